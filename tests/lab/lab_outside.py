"""What this machine has outside any lab, to prove that a lab left nothing; and the types of the fixtures."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from fabricbench.lab import Lab

StartLab = Callable[..., Lab]
RunIn = RunCli = Callable[..., subprocess.CompletedProcess[str]]


def network_namespaces() -> set[str]:
    """Every network namespace that some process lives in."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add(str((process / "ns" / "net").readlink()))
        except OSError:
            continue
    return found


def interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def processes_in(namespaces: set[str]) -> list[str]:
    """The processes that live in one of these network namespaces."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns" / "net").readlink()) in namespaces:
                found.append(process.name)
        except OSError:
            continue
    return found


def becomes_true(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
