"""A time limit for what Python itself computes and cannot be trusted to end: the search of a regular expression, say."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
