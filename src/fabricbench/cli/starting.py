"""Ctrl-C while the program still loads: it ends silently, as nothing has begun. Imported first, and `over` once all is loaded."""

from __future__ import annotations

import signal
import threading

_before = signal.getsignal(signal.SIGINT)
_is_ours = _before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
if _is_ours:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def over() -> None:
    """Take Ctrl-C as Python does again."""
    if _is_ours:
        signal.signal(signal.SIGINT, _before)
