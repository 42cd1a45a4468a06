"""Draws in a child process, beside what this one computes: the engine holds Python's lock for as long as it draws.

It also joins Vega's parts into one script, which takes as long as ten pictures. What the child does not answer, because it could
not be started or has ended, is done in this process when it is asked for.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import vl_convert

from fabricbench.interpreter import python
from fabricbench.report.drawing.engine import drawn_png, drawn_svg

Order = dict[str, Any]
"""What to draw: `task` is a name of TASKS, the rest its arguments."""


def _svg(spec: Any) -> str:
    return drawn_svg(spec)


def _png(spec: Any, scale: float) -> str:
    return base64.b64encode(drawn_png(spec, scale)).decode()


def _script() -> str:
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


TASKS: dict[str, Callable[..., str]] = {"svg": _svg, "png": _png, "script": _script}
"""A view as SVG; one as PNG, in base64; Vega, Vega-Lite and Vega-Embed as one script."""


def _done(order: Order) -> str:
    task = TASKS[order["task"]]
    return task(**{name: value for name, value in order.items() if name != "task"})


class Drawing:
    """What was ordered; the order is kept until it is done."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._answer: Future[str | None] = Future()

    def set_answer(self, answer: str | None) -> None:
        """Take what the child answered, None where it did not."""
        self._answer.set_result(answer)

    @cached_property
    def text(self) -> str:
        """What was drawn, once it is. Raises what the engine raises at what it cannot draw."""
        answer = self._answer.result()
        return _done(self._order) if answer is None else answer

    def line(self) -> bytes:
        """Return the order as a line for the child."""
        return json.dumps(self._order).encode() + b"\n"


class Drawer:
    """The child, started by the first order, and the thread that hands it one order after the other; both end with this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._orders: SimpleQueue[Drawing] | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def order(self, task: str, **arguments: Any) -> Drawing:
        """Have something drawn and return at once."""
        drawing = Drawing({"task": task, **arguments})
        with self._lock:
            if self._orders is None:
                self._orders = SimpleQueue()
                Thread(target=self._hand_over, args=(self._orders,), daemon=True).start()
            self._orders.put(drawing)
        return drawing

    def _hand_over(self, orders: SimpleQueue[Drawing]) -> None:
        with suppress(OSError):
            self._child = subprocess.Popen(
                python("fabricbench.report.drawing.drawer"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        while True:
            drawing = orders.get()
            drawing.set_answer(_asked(self._child, drawing.line()))

    def end(self) -> None:
        """End the child, whatever it draws: nobody waits for it."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def forget(self) -> None:
        """Leave the child, and the thread, to the process that this one was forked from."""
        self._lock, self._orders, self._child = Lock(), None, None


def _asked(child: subprocess.Popen[bytes] | None, line: bytes) -> str | None:
    """Return what the child answers, None where there is none or it has ended."""
    if child is None or child.stdin is None or child.stdout is None:
        return None
    try:
        child.stdin.write(line)
        child.stdin.flush()
        answer = child.stdout.readline()
        return str(json.loads(answer))
    except (OSError, ValueError):
        return None


DRAWER = Drawer()
"""That of this process."""
atexit.register(DRAWER.end)
os.register_at_fork(after_in_child=DRAWER.forget)


def _serve() -> None:
    """Answer each line of standard input, an order, with what was drawn; end with one that cannot be drawn."""
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(_done(json.loads(line))).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
