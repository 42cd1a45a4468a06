"""Processes by identity: a PID alone may name another process later, a PID with its start time and boot may not."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fabricbench.model import Model

_PROC = Path("/proc")
_STATE, _START_TIME = 0, 19
"""Places in /proc/PID/stat, counted behind the command's closing bracket."""


class ProcessIdentity(Model):
    """One process for good: its PID as seen here, its start time in clock ticks since boot, and the boot."""

    pid: int
    start_ticks: int
    boot_id: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        fields = _stat(self.pid)
        return (
            fields is not None
            and self.boot_id == boot_id()
            and int(fields[_START_TIME]) == self.start_ticks
            and fields[_STATE] not in "ZX"
        )

    @property
    def is_stopped(self) -> bool:
        """Whether this very process stands still: SIGSTOP, by hand or by a batch system."""
        fields = _stat(self.pid)
        return self.is_alive and fields is not None and fields[_STATE] == "T"

    def kill(self, sent: signal.Signals = signal.SIGKILL) -> bool:
        """Send a signal to this process and never to a later one with its PID; return whether it was still there."""
        with _pidfd(self.pid) as descriptor:
            if descriptor is None or not self.is_alive:
                return False
            signal.pidfd_send_signal(descriptor, sent)
            return True

    def wait(self, timeout_s: float) -> bool:
        """Wait until this process has ended; return whether it has."""
        with _pidfd(self.pid) as descriptor:
            if descriptor is None or not self.is_alive:
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(timeout_s * 1e3))


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that bears `pid` now; None where there is none."""
    fields = _stat(pid)
    return None if fields is None else ProcessIdentity(pid=pid, start_ticks=int(fields[_START_TIME]), boot_id=boot_id())


def told_exit_code(code: int) -> str:
    """Return how a process ended, in words, from an exit code that is negative for a signal."""
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


@cache
def boot_id() -> str:
    """Return what names this boot of the kernel, which outlives this process."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def all_pids() -> Iterator[int]:
    """Yield every PID that is visible here."""
    return (int(entry) for entry in os.listdir(_PROC) if entry.isdigit())  # noqa: PTH208 - a Path for each is slow


def inner_pids(keeper: int) -> dict[int, int]:
    """Return the processes of the keeper's PID namespace: their PIDs inside, and the PIDs that they have here."""
    home = namespace_of(keeper, "pid")
    found: dict[int, int] = {}
    for pid in all_pids():
        if home is not None and namespace_of(pid, "pid") == home:
            inner = _innermost_pid(pid)
            if inner is not None:
                found[inner] = pid
    return found


def namespace_of(pid: int, kind: str) -> str | None:
    """Return what names the `kind` namespace of a process, `net:[4026531840]` say; None where that cannot be seen."""
    try:
        return str((_PROC / str(pid) / "ns" / kind).readlink())
    except OSError:
        return None


def members_of_namespaces(kind: str, names: set[str]) -> list[ProcessIdentity]:
    """Return the processes that live in any of the named namespaces of one kind."""
    pids = [pid for pid in all_pids() if namespace_of(pid, kind) in names]
    return [identity for pid in pids if (identity := identify(pid)) is not None]


def wait_for_all(processes: list[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Wait until all the processes have ended; return those that have not when the time is over."""
    deadline = time.monotonic() + timeout_s
    return [process for process in processes if not process.wait(max(0.0, deadline - time.monotonic()))]


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command in brackets may hold anything, brackets and blanks too.
    return text.rpartition(")")[2].split()


def _innermost_pid(pid: int) -> int | None:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), None)


class _pidfd:  # noqa: N801 - reads as the function that it is
    """A descriptor of a process; None where the process is gone already."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor: int | None = None

    def __enter__(self) -> int | None:
        try:
            self._descriptor = os.pidfd_open(self._pid)
        except ProcessLookupError:
            self._descriptor = None
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
