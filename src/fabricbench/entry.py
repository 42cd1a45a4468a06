"""Where the program begins: nothing but the standard library is loaded before it is known that the rest can be.

What PYTHONPATH brings is put behind our own modules, and those of Python itself, before any of them is imported: site modules set
it for a Python of their own. Standard streams that are closed are opened on the null device: the next file that is opened would
become one of them.

Libraries end the process where they get no memory (polars and NumPy start threads as they are loaded, an allocation that fails
aborts, and one failed so in a loop), and Python ends with 1 whatever it was that could not be imported, which here says that a gate
was not passed. So a limit that is too small is told before anything is loaded, and what cannot be loaded is told as what it is.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False
"""As that of `typing`, which loads modules that PYTHONPATH may have of its own."""

if TYPE_CHECKING:
    from typing import NoReturn

LACKS = 3
"""Exit code of `errors.EnvironmentLacks`, which may be what cannot be loaded."""

LEAST_BYTES = 2 * 1024**3
"""Of address space: `run` needs half of it, a report in HTML, whose figures are drawn by a JavaScript engine, three quarters."""
BYTES_A_PROCESSOR = 16 * 1024**2
"""The stack of the thread that polars starts for each, and what is kept for it by the allocator."""

LEAST_THREADS, THREADS_A_PROCESSOR = 20, 6
"""Of this process and the one that decodes tables: 29 were seen on 2 processors, 65 with 8, 113 with 16."""
SMALL_NUMBER = 8192
"""Of processes that a user may have: below it those that he has are counted."""

LEAST_FILES, LEAST_FILE_BYTES = 24, 1024**2
"""Open files, and bytes of one, with which at least what is asked of a host can be answered."""

LIMITS = ((resource.RLIMIT_AS, "address space", "ulimit -v"), (resource.RLIMIT_DATA, "memory for data", "ulimit -d"))


def main() -> NoReturn:
    """Run the command line; end with 3 and a sentence where it cannot be loaded."""
    put_pythonpath_last()
    _be_silent_on_interrupt()
    open_closed_streams()
    _check_limits()
    try:
        from fabricbench import cli  # noqa: PLC0415 - see above
    except MemoryError:
        _end("there is not enough memory to load fabricbench", "free some, or raise the limit (`ulimit -a` shows all)")
    except (ImportError, OSError) as error:
        # NumPy's own text has a page of advice; what the loader said stands at its end.
        said = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
        reason = " ".join(said) if len(said) < 4 else said[-1]
        _end(
            f"fabricbench cannot be loaded: {reason}",
            "is the installation whole, and do limits (`ulimit -a`) leave it room?",
        )
    try:
        cli.main()
        sys.exit(0)
    finally:
        cli.starting.ending()


is_silent = False
"""Whether Ctrl-C ends this process without a word: nothing has begun."""


def _be_silent_on_interrupt() -> None:
    """Have Ctrl-C end the process as it does other programs, until `cli.starting` takes over; unless a caller has other plans."""
    import signal  # noqa: PLC0415 - once PYTHONPATH is last

    global is_silent  # noqa: PLW0603 - of the process, as the handler is
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        is_silent = True


def put_pythonpath_last() -> None:
    """Let modules of this installation and of Python win over those of the same name below PYTHONPATH, unless we are there too.

    Python has made its entries absolute, an empty one the working directory.
    """
    path = os.environ.get("PYTHONPATH", "")
    given = {os.path.abspath(entry) for entry in path.split(os.pathsep)} if path else set()  # noqa: PTH100 - see TYPE_CHECKING
    if given and not sys.flags.ignore_environment and not any(__file__.startswith(f"{entry}/") for entry in given):
        sys.path.sort(key=lambda entry: os.path.abspath(entry) in given)  # noqa: PTH100


def open_closed_streams() -> None:
    """Open those of stdin, stdout and stderr that the caller has closed on the null device."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - a descriptor, for good


def _check_limits() -> None:
    needed = LEAST_BYTES + BYTES_A_PROCESSOR * len(os.sched_getaffinity(0))
    for limit, what, command in LIMITS:
        allowed, most = resource.getrlimit(limit)
        if allowed == resource.RLIM_INFINITY or allowed >= needed:
            continue
        if most == resource.RLIM_INFINITY or most >= needed:
            hint = f"raise it: {command} {needed // 1024}"
        else:
            hint = f"raise it to {needed // 1024} (KiB) where it is set: the batch system's job, or limits.conf"
        _end(
            f"the {what} of this process is limited to {_mib(allowed)} ({command}), and {_mib(needed)} are needed", hint
        )
    files, size = (resource.getrlimit(limit)[0] for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE))
    if files != resource.RLIM_INFINITY and files < LEAST_FILES:
        _end(
            f"this process may open {files} files (ulimit -n), and {LEAST_FILES} are needed", "raise it: ulimit -n 1024"
        )
    if size != resource.RLIM_INFINITY and size < LEAST_FILE_BYTES:
        _end(
            f"a file of this process may have {size:,} B (ulimit -f), and what is measured needs more",
            "raise it: ulimit -f unlimited",
        )
    _check_threads()


def _check_threads() -> None:
    """End with 3 where libraries would not get the threads that they start: polars waits for ever for those that it lacks."""
    needed = LEAST_THREADS + THREADS_A_PROCESSOR * len(os.sched_getaffinity(0))
    for left, what, action in (_left_in_cgroup(), _left_of_user()):
        if left < needed:
            _end(
                f"{what} leaves room for {max(left, 0)} more processes and threads, and {needed} are needed",
                f"allow more: {action}",
            )


def _left_in_cgroup() -> tuple[float, str, str]:
    """Return how many processes and threads may be started before a cgroup of this process is full."""
    from contextlib import suppress  # noqa: PLC0415 - once PYTHONPATH is last
    from pathlib import Path  # noqa: PLC0415

    left = float("inf")
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers not in ("", "pids"):
                continue
            root = Path("/sys/fs/cgroup", controllers)
            for folder in (root / place.lstrip("/"), *(root / one for one in Path(place.lstrip("/")).parents)):
                with suppress(OSError, ValueError):
                    most, now = (int((folder / f"pids.{which}").read_text()) for which in ("max", "current"))
                    left = min(left, most - now)
    return left, "pids.max of this container or job", "--pids-limit of a container, pids.max of its cgroup"


def _left_of_user() -> tuple[float, str, str]:
    """Return how many processes and threads this user may still start; root is not bound."""
    from contextlib import suppress  # noqa: PLC0415 - once PYTHONPATH is last
    from pathlib import Path  # noqa: PLC0415

    most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    left = float("inf")
    if most != resource.RLIM_INFINITY and most < SMALL_NUMBER and os.getuid() != 0:
        left = most
        for task in Path("/proc").glob("[0-9]*/task"):
            with suppress(OSError):
                left -= sum(1 for _ in task.iterdir()) if task.stat().st_uid == os.getuid() else 0
    return left, "the limit of a user's processes (ulimit -u)", "ulimit -u 4096"


def _mib(size: int) -> str:
    return f"{size / 1024**2:,.0f} MiB"


def _end(message: str, hint: str) -> NoReturn:
    sys.stderr.write(f"fabricbench: {message}\n  what to do: {hint}\n")
    sys.exit(LACKS)
