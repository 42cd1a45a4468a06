"""Ctrl-C and SIGTERM while a run is measured."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

from fabricbench.cli.starting import interrupt
from fabricbench.errors import Interrupted

if TYPE_CHECKING:
    from fabricbench.campaign.events import Event


ENDING = b"\nending the launch that runs (`fabricbench resume` measures it again); again (Ctrl-C) ends at once\n"


@contextmanager
def interruptible(directory: Path, notify: Callable[[Event], None]) -> Iterator[Callable[[Event], None]]:
    """Make Ctrl-C and SIGTERM end a run in order: Interrupted says how to go on. Yields what its events go to instead of `notify`.

    The run ends at its next event that comes while nothing is half done: half a second after the signal, or when the testbed is up.
    An exception anywhere could be lost, as libraries turn it into errors of their own, or come when a launch is stored already
    and have it stored again as an interrupted one. A second signal ends the run wherever it is.
    """
    from fabricbench.campaign.events import LaunchStarted, NodesAsked, RunStarted, Tick  # noqa: PLC0415 - keeps the start of the program fast
    from fabricbench.campaign.run_directory import PLAN  # noqa: PLC0415

    is_asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            interrupt(number, frame)
            return
        is_asked = True
        os.write(2, ENDING)  # a handler may come in the middle of another write, which Python's streams refuse

    def notify_or_end(event: Event) -> None:
        if is_asked and isinstance(event, NodesAsked | RunStarted | LaunchStarted | Tick):
            raise KeyboardInterrupt
        notify(event)

    numbers = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield notify_or_end
    except KeyboardInterrupt:
        if not (directory / PLAN).exists():
            raise Interrupted(
                "interrupted before anything was written", hint="give the same command to begin again"
            ) from None
        raise Interrupted(
            "interrupted; everything measured so far is kept",
            hint=f"go on with `fabricbench resume {quote(str(directory))}`",
        ) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
