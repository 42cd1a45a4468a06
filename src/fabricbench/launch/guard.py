"""Runs one command so that nothing of it outlives the run: `python -I -S guard.py [--apart] COMMAND...`.

An MPI starter makes sessions of its own, so killing a process group does not reach its ranks, and a run that is killed with SIGKILL
kills nothing. The guard is told by the kernel when its parent dies, adopts whatever its command orphans, and ends all of it:
when the parent dies, when it is asked to (SIGTERM or SIGINT), and after the command's own end. Only the standard library, and of
that as little as can be, since it is started for each launch: about 15 ms.

What it may not signal (a `sudo` in a workload) or what stays after SIGKILL (a call to a dead file server) is left to itself after
a limit, and told: on stderr, and in LEFT_FILE of the launch's directory. The exit code is the command's all the same.

`--apart` is for a rank on a node where no guard of the launch is: its starter may kill it with SIGKILL, which reaches no process
that made a session of its own. So the guard is a process in a session of its own; what the starter knows waits for it, and ends
what it leaves where it is killed itself. Where the launch's own guard is killed, `launch/watch.py` ends what it leaves.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:  # that of `typing` takes longer to be imported than all the rest
    from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

ENDING = (signal.SIGTERM, signal.SIGINT)
"""What asks for the end."""

GRACE_SECONDS = 1.0
"""How long processes have between SIGTERM and SIGKILL: a starter needs it to tell its ranks on other machines."""

KILL_SECONDS = 2.0
"""How long processes may take to be gone after SIGKILL: one that is stuck in the kernel stays until that lets it go."""

LEFT_FILE = "left-behind.json"
"""Of the directory that the guard was started in: a list of what could not be ended, and who it is."""

MOST_OF_A_COMMAND = 200

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


def end_all(find: Callable[[], list[int]]) -> list[int]:
    """End every process that `find` returns, politely first, then for good; return those that could not be ended."""
    _signal_all(find(), signal.SIGTERM)
    begin = time.monotonic()
    while left := find():
        seconds = time.monotonic() - begin
        if seconds > GRACE_SECONDS:
            refused = _signal_all(left, signal.SIGKILL)
            if refused == left or seconds > GRACE_SECONDS + KILL_SECONDS:
                return left
        time.sleep(0.01)
    return []


def end_descendants() -> list[int]:
    """End every process below this one; return those that could not be ended."""
    if not _reap():
        return []  # the usual end: whoever is orphaned below becomes a child of this process, so that none means nobody

    def living() -> list[int]:
        _reap()
        return descendants(os.getpid())

    return end_all(living)


def describe(process: int) -> dict[str, str | int]:
    """Return who a process is: `pid`, `command`, `user`; empty where /proc does not tell."""
    command = user = ""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:  # noqa: PTH123
            command = file.read(MOST_OF_A_COMMAND).rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
        owner = os.stat(f"/proc/{process}").st_uid  # noqa: PTH116
        user = str(owner)
        import pwd  # noqa: PLC0415 - takes longer to be imported than the rest, and is seldom needed

        user = pwd.getpwuid(owner).pw_name
    except (OSError, KeyError, ImportError):
        pass
    return {"pid": process, "command": command, "user": user}


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code, 128 + N for a signal N, as a shell does."""
    if arguments[0] == APART:
        return _apart(arguments[1:])
    return _guard(arguments, os.getppid(), os.path.join(os.getcwd(), LEFT_FILE))  # noqa: PTH109, PTH118


def _apart(command: list[str]) -> int:
    """Guard the command in a process apart; it ends with this one, however this one ends."""
    parent, this = os.getppid(), os.getpid()
    library = ctypes.CDLL(None)
    library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    library.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    # Until it is known whom to hand them on to.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    child = os.fork()
    if not child:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os._exit(_guard(command, this, None))
    for number in ENDING:
        signal.signal(number, lambda _number, _frame: _signal_all([child], signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    code = _wait_for(child)
    _tell(end_descendants(), None)  # nothing, unless the guard was killed
    return code


def _guard(command: list[str], parent: int, left_file: str | None) -> int:
    def end_everything(number: int, _frame: FrameType | None) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        _tell(end_descendants(), left_file)
        os._exit(128 + number)

    for number in ENDING:
        signal.signal(number, end_everything)
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
    _tell(end_descendants(), left_file)
    return code


def _wait_for(child: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _tell(left: list[int], left_file: str | None) -> None:
    """Tell which processes could not be ended. Whatever keeps it from being told (a full disk) costs no exit code."""
    if not left:
        return
    import json  # noqa: PLC0415 - as `pwd` above

    found = [describe(process) for process in left]
    try:
        for one in found:
            sys.stderr.write(f"fabricbench: this process could not be ended: {json.dumps(one)}\n")
        sys.stderr.flush()
        if left_file is not None:
            with open(left_file, "w") as file:  # noqa: PTH123
                json.dump(found, file)
    except OSError:
        pass


def _signal_all(processes: list[int], number: signal.Signals) -> list[int]:
    """Signal processes; return those that this user may not signal."""
    refused = []
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.append(process)
    return refused


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
