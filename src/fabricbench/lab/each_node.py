"""Runs a module of ours in several nodes of a lab: by one Python, forked for each node.

`python -m fabricbench.lab.each_node ORDER` is started in the first of them; ORDER is the JSON of an `Order`. What the module prints
in a node comes in whole lines behind `NODE: `. A Python that starts takes longer than most of what such a module does, and all
nodes of a lab share one machine.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import os
import signal
import sys
import traceback
from collections import deque
from contextlib import redirect_stdout
from types import ModuleType
from typing import NoReturn

from fabricbench.model import Model

PR_SET_PDEATHSIG = 1


class Seat(Model):
    """A node: the process that holds it, by its PID inside the lab, and its processors."""

    pid: int
    cpus: tuple[int, ...]


class Order(Model):
    """The module, whose `main` is called in each node, and its arguments."""

    module: str
    arguments: tuple[str, ...]
    nodes: dict[str, Seat]


def run(order: Order) -> None:
    """Run the module here, in the first node, then in the others, in as many at a time as they have processors together."""
    module = importlib.import_module(order.module)
    sys.argv = [order.module, *order.arguments]
    first, *others = order.nodes
    _pass_on(first, _printed_by(module))  # leaves imported and built what all others need
    # This process may use those of the first node alone.
    processors = {cpu for seat in order.nodes.values() for cpu in seat.cpus}
    waiting, running = deque(others), dict[int, tuple[str, int]]()
    while waiting or running:
        while waiting and len(running) < len(processors):
            node = waiting.popleft()
            output = os.memfd_create(node)
            pid = os.fork()
            if pid == 0:
                _run_in(order.nodes[node], output, module)
            running[pid] = (node, output)
        pid, _ = os.wait()
        node, output = running.pop(pid)
        with os.fdopen(output, errors="replace") as printed:
            printed.seek(0)
            _pass_on(node, printed.read())


def _printed_by(module: ModuleType) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        module.main()
    return printed.getvalue()


def _pass_on(node: str, printed: str) -> None:
    sys.stdout.writelines(f"{node}: {line}\n" for line in printed.splitlines())
    sys.stdout.flush()


def _run_in(seat: Seat, output: int, module: ModuleType) -> NoReturn:
    """Become a process of the node, and end with what the module does."""
    code = 1
    try:
        from fabricbench.lab.namespaces import enter_node  # noqa: PLC0415 - brings pyroute2, which who only gives orders lacks time for

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        enter_node(seat.pid)
        os.sched_setaffinity(0, seat.cpus)
        os.write(output, _printed_by(module).encode())
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    run(Order.model_validate_json(sys.argv[1]))
