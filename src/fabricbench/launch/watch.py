"""Starts a command in a session of its own, watches it up to its time limit, and ends it with everything that it started.

Output goes to files and is never parsed: what a launch measured is in its record, not in what it printed.
"""

from __future__ import annotations

import os
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

STDOUT_FILE = "stdout.log"
STDERR_FILE = "stderr.log"

TICK_SECONDS = 0.5
"""How often the caller hears that a launch is still going on; seldom, as it may share the processors with the measuring."""

END_SECONDS = guard.GRACE_SECONDS + 3.0
"""How long the guard may take to end everything before it is ended itself."""

MOST_LOG_BYTES = 256 * 1024 * 1024
"""Of what a launch prints to either log: a loop that prints would fill the disk, which a run's other launches need."""

TAIL_LINES = 12
TAIL_BYTES = 16_384


@dataclass(frozen=True)
class Outcome:
    """How a launch ended. `exit_code` is None where it was ended: at its time limit, or because it had printed too much.

    `flooded` is the log that it had then filled with more than MOST_LOG_BYTES.
    """

    exit_code: int | None
    seconds: float
    stderr_tail: str
    flooded: str | None = None

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
) -> Outcome:
    """Run a guarded command to its end or its limit, beyond which it may go on as long as there is `growth`.

    One that prints more than MOST_LOG_BYTES is ended at once. Logs land in its directory. Whatever is raised meanwhile ends it
    first.
    """
    begin = time.monotonic()
    stdout, stderr = command.directory / STDOUT_FILE, command.directory / STDERR_FILE
    with stdout.open("wb") as out, stderr.open("wb") as err:
        try:
            process = subprocess.Popen(
                command.tokens,
                cwd=command.directory,
                env={**os.environ, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentLacks(f"{command.tokens[0]} cannot be started: {error.strerror}") from error
        try:
            exit_code = _wait(process, begin, limit_seconds, growth, (stdout, stderr), on_tick)
        finally:
            end(process)
    flooded = _flooded((stdout, stderr)) if exit_code is None else None
    return Outcome(exit_code, time.monotonic() - begin, tail(stderr), flooded)


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
        process.wait()


def tail(path: Path) -> str:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])


def _wait(
    process: subprocess.Popen[bytes],
    begin: float,
    limit_seconds: float,
    growth: Growth | None,
    logs: Sequence[Path],
    on_tick: Callable[[], None],
) -> int | None:
    deadline, size_bytes = begin + limit_seconds, 0
    with _end_of(process) as wait:
        while True:
            wait(max(0.0, min(TICK_SECONDS, deadline - time.monotonic())))
            if (exit_code := process.poll()) is not None:
                return exit_code
            on_tick()
            now = time.monotonic()
            if growth is not None and (grown_bytes := growth.size_bytes) != size_bytes:
                size_bytes = grown_bytes
                deadline = max(deadline, min(now + growth.silent_seconds, begin + growth.most_seconds))
            if _flooded(logs) is not None:
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
