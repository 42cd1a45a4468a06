"""Runs one command so that nothing of it outlives the run: `python -I -S guard.py [--apart] COMMAND...`.

An MPI starter makes sessions of its own, so killing a process group does not reach its ranks, and a run that is killed with SIGKILL
kills nothing. The guard is told by the kernel when its parent dies, adopts whatever its command orphans, and ends all of it:
when the parent dies, when it is asked to (SIGTERM or SIGINT), and after the command's own end. Only the standard library, and of
that as little as can be, since it is started for each launch: about 15 ms.

`--apart` is for a rank on a node where no guard of the launch is: its starter may kill it with SIGKILL, which reaches no process
that made a session of its own. So the guard is a process in a session of its own, and what the starter knows only waits for it.
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

ENDING = (signal.SIGTERM, signal.SIGINT)
"""What asks for the end."""

GRACE_SECONDS = 1.0
"""How long processes have between SIGTERM and SIGKILL: a starter needs it to tell its ranks on other machines."""

CANNOT_START = 127

APART = "--apart"


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


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code, 128 + N for a signal N, as a shell does."""
    if arguments[0] == APART:
        return _apart(arguments[1:])
    return _guard(arguments, os.getppid())


def _apart(command: list[str]) -> int:
    """Guard the command in a process apart; it ends with this one, however this one ends."""
    parent, this = os.getppid(), os.getpid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    # Until it is known whom to hand them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    child = os.fork()
    if not child:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os._exit(_guard(command, this))
    for number in ENDING:
        signal.signal(number, lambda _number, _frame: os.kill(child, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    return _wait_for(child)


def _guard(command: list[str], parent: int) -> int:
    for number in ENDING:
        signal.signal(number, _end_everything)
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=list(ENDING))
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
    for each in ENDING:
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
