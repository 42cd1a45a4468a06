"""Runs one command so that nothing of it outlives the run: `python -I -S guard.py COMMAND...`.

An MPI starter makes sessions of its own, so killing a process group does not reach its ranks, and a run that is killed with SIGKILL
kills nothing. The guard is told by the kernel when its parent dies, adopts whatever its command orphans, and ends all of it:
when the parent dies, when it is asked to (SIGTERM or SIGINT), and after the command's own end. Only the standard library, and of
that as little as can be, since it is started for each launch: about 15 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

GRACE_SECONDS = 1.0
"""How long processes have between SIGTERM and SIGKILL: a starter needs it to tell its ranks on other machines."""

CANNOT_START = 127


def descendants(root: int) -> list[int]:
    """Return every living process below `root`, from the parents that /proc shows."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes as long to be imported as all the rest
        if entry.isdigit():
            try:
                # pid (command) state parent ...; a command may hold spaces and brackets, so cut after the last one.
                with open(f"/proc/{entry}/stat", errors="replace") as stat:  # noqa: PTH123
                    state, parent = stat.read().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def end_descendants() -> None:
    """End every process below this one: politely first, then for good."""
    if not _reap():
        return  # the usual end: whoever is orphaned below becomes a child of this process, so that none means nobody
    _signal_all(descendants(os.getpid()), signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while left := descendants(os.getpid()):
        if time.monotonic() > deadline:
            _signal_all(left, signal.SIGKILL)
        _reap()
        time.sleep(0.01)


def main(command: list[str]) -> int:
    """Run the command and return its exit code, 128 + N for a signal N, as a shell does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_everything)
    library = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGTERM, signal.SIGINT])
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return CANNOT_START
    code = _wait_for(child)
    end_descendants()
    return code


def _wait_for(child: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_everything(number: int, _frame: FrameType | None) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    end_descendants()
    os._exit(128 + number)


def _signal_all(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def _reap() -> bool:
    """Take note of the children that have ended, and tell whether any is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
