"""Time limits for what has none of its own.

What Python itself computes and cannot be trusted to end, the search of a regular expression say; a lock whose holder may hang.
"""

from __future__ import annotations

import fcntl
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

LOOK_SECONDS = 0.05
"""How often a lock is tried: who holds one does so for a second or more."""


def locks(file: IO[Any], seconds: float) -> bool:
    """Lock an open file for this process alone, within so many seconds; return whether it is locked."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(LOOK_SECONDS)
        else:
            return True


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError within the block where it takes longer; Ctrl-C and further signals are heard as before.

    By the timer of the process (setitimer(2), ITIMER_REAL), which Python hears in its main thread alone: others have no limit.
    The search of a regular expression asks for signals while it goes back and forth.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
