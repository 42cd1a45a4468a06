"""Ctrl-C while something is loaded, or the program ends. Imported first, `over` once the program is there, `ending` at its end.

Before that it ends silently, as nothing has begun. From then on it is KeyboardInterrupt, but never in the middle of an import, or
of a model's validator, which is built when it is first used: commands load what they need when they need it, and an exception
there is lost (Python ignores it in the locks of modules), or becomes an error of a library (pydantic: a schema cannot be built).
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import pydantic

from fabricbench import entry

AGAIN_SECONDS = 0.02
"""How soon it is looked again whether what is loaded is there."""

LOADERS = ("<frozen importlib", str(Path(pydantic.__file__).with_name("_internal") / "_model_construction.py"))
"""Beginnings of the names of files whose functions load: modules, and validators of models."""

_before = signal.getsignal(signal.SIGINT)
_is_ours = (
    _before is signal.default_int_handler or entry.is_silent
) and threading.current_thread() is threading.main_thread()
if _is_ours:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def over() -> None:
    """Take Ctrl-C as Python does again, but for imports."""
    if _is_ours:
        signal.signal(signal.SIGINT, interrupt)


def ending() -> None:
    """Let Ctrl-C end a program that has said all it has to say: an exception would only be printed, by whatever cleans up."""
    if _is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, once what is being loaded is whole: the handler of signals, and of the alarm that it sets."""
    if _is_loading(frame):
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    else:
        raise KeyboardInterrupt


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(LOADERS):
            return True
        frame = frame.f_back
    return False
