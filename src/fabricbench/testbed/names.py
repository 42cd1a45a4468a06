"""Looking names up with a limit of time: a name server that is silent holds `getaddrinfo` for 20 seconds and more.

A look-up cannot be ended, so it has a thread of its own that nobody waits for beyond the limit, and that does not keep a program
from its end.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address

LOOK_UP_SECONDS = 2.0
"""A name service that is well answers within milliseconds; starters and ssh look every name up before they do anything."""


@dataclass(frozen=True)
class LookUp:
    """What a name leads to; no address where there is none by that name. `is_silent`: there was no answer in time."""

    address: IPv4Address | None = None
    is_silent: bool = False


def look_up(name: str, seconds: float = LOOK_UP_SECONDS) -> LookUp:
    """Return what a name leads to."""
    return look_up_all([name], seconds)[name]


def look_up_all(
    names: Iterable[str], seconds: float = LOOK_UP_SECONDS, resolve: Callable[[str], str] = socket.gethostbyname
) -> dict[str, LookUp]:
    """Return what each name leads to, all looked up at once and together in that time."""
    found: dict[str, LookUp] = {}

    def ask(name: str) -> None:
        answer = LookUp()
        with suppress(OSError, ValueError):  # ValueError: a name that no service could know
            answer = LookUp(IPv4Address(resolve(name)))
        found[name] = answer

    threads = {name: threading.Thread(target=ask, args=(name,), daemon=True) for name in names}
    for thread in threads.values():
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads.values():
        thread.join(max(0.0, end - time.monotonic()))
    return {name: found.get(name, LookUp(is_silent=True)) for name in threads}
