"""Starts a command in a session of its own, watches it up to its time limit, and ends it with everything that it started.

The guard (`launch/guard.py`) ends what the command started. It may be killed itself, by SIGKILL or for want of memory: what it
leaves then is found by a mark in the environment that all of a launch inherit, and ended before the next launch can begin.

Output goes to files and is never parsed: what a launch measured is in its record, not in what it printed.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import guard
from fabricbench.launch.launcher import Command
from fabricbench.launch.standstill import StandstillWatch
from fabricbench.launch.starting import MARK
from fabricbench.record.atomic import written_anew
from fabricbench.record.launch import Standstill
from fabricbench.record.launch_files import STDERR_FILE, STDOUT_FILE

TICK_SECONDS = 0.5
"""How often the caller hears that a launch is still going on; seldom, as it may share the processors with the measuring."""

END_SECONDS = guard.GRACE_SECONDS + guard.KILL_SECONDS + 2.0
"""How long the guard may take to end everything before it is ended itself."""

KILLED_SECONDS = 5.0
"""How long a guard may take to be gone after SIGKILL; one that is stuck in the kernel is left to it."""


MOST_LOG_BYTES = 256 * 1024 * 1024
"""Of what a launch prints to either log: a loop that prints would fill the disk, which a run's other launches need."""

TAIL_LINES = 12
TAIL_BYTES = 16_384


@dataclass(frozen=True)
class LeftBehind:
    """A process of a launch that could not be ended: another user's, or one that is stuck in the kernel."""

    pid: int
    command: str
    user: str

    def __str__(self) -> str:
        """Return who it is, for people."""
        return f"process {self.pid} ({self.command or 'unknown command'}, user {self.user or 'unknown'})"


@dataclass(frozen=True)
class ProgramEnd:
    """How a launch ended. `exit_code` is None where it was ended: at its time limit, or because it had printed too much.

    `flooded` is the log that it had then filled with more than MOST_LOG_BYTES. `left_behind` runs on beside all that follows.
    `standstills` are times in which something that it needs did nothing: what it measured then tells nothing of its fabric.
    """

    exit_code: int | None
    seconds: float
    stderr_tail: str
    flooded: str | None = None
    left_behind: tuple[LeftBehind, ...] = ()
    standstills: tuple[Standstill, ...] = ()
    stdout_tail: str = ""

    @property
    def is_ended(self) -> bool:
        """Whether the launch had to be ended."""
        return self.exit_code is None

    @property
    def is_hung(self) -> bool:
        """Whether that was at its time limit."""
        return self.is_ended and self.flooded is None


def guarded(tokens: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return the tokens that run a command under the guard."""
    return (sys.executable, "-I", "-S", guard.__file__, *tokens)


def guarded_apart(tokens: list[str]) -> list[str]:
    """Return the tokens that a rank runs so that nothing of it stays behind on its node, whatever becomes of its starter."""
    return [sys.executable, "-I", "-S", guard.__file__, guard.APART, *tokens]


@dataclass(frozen=True)
class Growth:
    """What tells that a command beyond its limit is slow and not hung: one of `paths` has grown within `silent_seconds`.

    `most_seconds` after its start it is ended all the same. Where the paths are on another machine, `elsewhere` tells how long ago
    they grew, None if never; as asking takes part in what is measured, it is asked only where the command would be ended else.
    """

    paths: tuple[Path, ...]
    silent_seconds: float
    most_seconds: float
    elsewhere: Callable[[], float | None] = lambda: None

    @property
    def size_bytes(self) -> int:
        """What has been written by now."""
        return sum(path.stat().st_size for path in self.paths if path.exists())


def run_watched(
    command: Command,
    *,
    limit_seconds: float,
    growth: Growth | None = None,
    on_tick: Callable[[], None] = lambda: None,
) -> ProgramEnd:
    """Run a guarded command to its end or its limit, beyond which it may go on as long as there is `growth`.

    One that prints more than MOST_LOG_BYTES is ended at once. Logs land in its directory. Whatever is raised meanwhile ends it
    first.
    """
    begin = time.monotonic()
    stdout, stderr = command.directory / STDOUT_FILE, command.directory / STDERR_FILE
    (command.directory / guard.LEFT_FILE).unlink(missing_ok=True)
    mark = secrets.token_hex(16)
    stuck: list[int] = []
    with written_anew(stdout) as out, written_anew(stderr) as err:
        try:
            process = subprocess.Popen(
                command.tokens,
                cwd=command.directory,
                env={**command.whole_environment, MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentLacks(f"{command.tokens[0]} cannot be started: {error.strerror}") from error
        standstill = StandstillWatch(process.pid, command.beside)
        bounds = _Bounds(begin, limit_seconds, growth, (stdout, stderr))
        try:
            exit_code = _wait(process, bounds, on_tick, lambda late: standstill.look(late, is_here=command.is_here))
        finally:
            seconds = time.monotonic() - begin
            standstills = standstill.finish()
            end(process)
            stuck = guard.end_all(lambda: marked(mark))
    flooded = _flooded((stdout, stderr)) if exit_code is None else None
    left = _left_behind(command.directory, stuck)
    return ProgramEnd(exit_code, seconds, tail(stderr), flooded, left, standstills, tail(stdout))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and return when the guard has ended everything; SIGKILL is for a guard that hangs.

    SIGINT, because what enters a lab lets it pass to the guard and lives until that is done; SIGTERM would end it at once.
    """
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILLED_SECONDS)


def marked(mark: str) -> list[int]:
    """Return the living processes of this machine that have inherited a launch's mark, as far as /proc shows it to this user."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a Path for each is slow
        if entry.isdigit():
            try:
                environment = Path("/proc", entry, "environ").read_bytes()  # a zombie's is empty
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(entry))
    return found


def _left_behind(directory: Path, stuck: Sequence[int]) -> tuple[LeftBehind, ...]:
    """Return what could not be ended: what the guard has written down, and `stuck`, what bears the launch's mark still."""
    try:
        told = json.loads((directory / guard.LEFT_FILE).read_text())
    except (OSError, ValueError):
        told = []
    found = {int(one["pid"]): one for one in (*told, *map(guard.describe, stuck))}
    return tuple(LeftBehind(pid, str(one["command"]), str(one["user"])) for pid, one in sorted(found.items()))


def tail(path: Path) -> str:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])


@dataclass(frozen=True)
class _Bounds:
    """What ends a command that does not end by itself."""

    begin: float
    limit_seconds: float
    growth: Growth | None
    logs: Sequence[Path]


def _wait(
    process: subprocess.Popen[bytes], bounds: _Bounds, on_tick: Callable[[], None], on_wake: Callable[[float], None]
) -> int | None:
    """Wait for a process; return its exit code, None where it is at its bounds. `on_wake` gets how late a wait ended."""
    begin, growth = bounds.begin, bounds.growth
    deadline, size_bytes = begin + bounds.limit_seconds, 0
    with _end_of(process) as wait:
        while True:
            asleep = time.monotonic()
            seconds = max(0.0, min(TICK_SECONDS, deadline - asleep))
            wait(seconds)
            on_wake(time.monotonic() - asleep - seconds)
            if (exit_code := process.poll()) is not None:
                return exit_code
            on_tick()
            now = time.monotonic()
            if growth is not None and (grown_bytes := growth.size_bytes) != size_bytes:
                size_bytes = grown_bytes
                deadline = max(deadline, min(now + growth.silent_seconds, begin + growth.most_seconds))
            if _flooded(bounds.logs) is not None:
                return None
            if now >= deadline and growth is not None and (silent_s := growth.elsewhere()) is not None:
                deadline = max(deadline, min(now + growth.silent_seconds - silent_s, begin + growth.most_seconds))
            if now >= deadline:
                return None


@contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], object]]:
    """Give what waits so many seconds for a process's end, and hears of it at once: `Popen.wait` with a limit looks every 50 ms."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # before Linux 5.3, or where a sandbox forbids it
        yield lambda seconds: _waited(process, seconds)
        return
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        yield lambda seconds: ended.poll(seconds * 1e3)
    finally:
        os.close(descriptor)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _flooded(logs: Sequence[Path]) -> str | None:
    """Return the name of a log that is larger than any may be."""
    return next((log.name for log in logs if log.stat().st_size > MOST_LOG_BYTES), None)
