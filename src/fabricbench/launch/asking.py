"""Asks many nodes at once: a bounded number of commands in flight, one deadline over all, and no child left whatever happens.

What commands print goes to memory files, not to pipes: nothing can block on a full one, and a helper that outlives its parent with
an end open (ssh's ControlPersist) is not waited for.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST_IN_FLIGHT = 32
"""As many ssh clients as start within a second or so and as no jump host minds."""

DESCRIPTORS_OF_EACH = 4
"""Two memory files, and two that starting a process takes for a moment."""

DESCRIPTORS_IN_RESERVE = 32

LOOK_SECONDS = 0.02
TELL_SECONDS = 0.5
"""How often the caller hears that the questions are still open."""

END_SECONDS = 1.0
"""How long a killed process may take to end; one that hangs in the kernel (a dead file server) is left to it."""


@dataclass(frozen=True)
class CommandAnswer:
    """How a command on a node ended. `problem` says why it was not started or not waited for; `exit_code` is None then.

    `is_unstartable`: the program that reaches the node cannot be started here.
    `begin_unix_ns` and `end_unix_ns` are when it was asked, and when it was seen to have answered.
    """

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    problem: str | None = None
    begin_unix_ns: int = 0
    end_unix_ns: int = 0
    is_unstartable: bool = False

    @property
    def last_words(self) -> str:
        """The last line of its stderr, which is where programs say why they failed; its exit code where there is none."""
        return (self.stderr.strip().splitlines() or [f"exit code {self.exit_code}"])[-1].strip()


@dataclass(frozen=True)
class AskingLimits:
    """The seconds that each command and all of them together may take, and how many run at a time."""

    each_s: float
    all_s: float
    in_flight: int = MOST_IN_FLIGHT


class _Asked:
    """A command that runs."""

    def __init__(
        self, tokens: Sequence[str], end: float, given: BinaryIO | None = None, taken: BinaryIO | None = None
    ) -> None:
        self.end = end
        self.begin = time.monotonic()
        self._read = 0
        self._begin_unix_ns = time.time_ns()
        self._stdout = _memory_file()
        try:
            self._stderr = _memory_file()
            self._process = subprocess.Popen(
                tokens,
                stdin=given or subprocess.DEVNULL,
                stdout=taken or self._stdout,
                stderr=self._stderr,
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise

    def answer(self) -> CommandAnswer | None:
        """Return the answer, None while the command runs."""
        code = self._process.poll()
        if code is None:
            return None
        return CommandAnswer(code, _text(self._stdout), _text(self._stderr), None, self._begin_unix_ns, time.time_ns())

    def new_lines(self) -> list[str]:
        """Return the whole lines that it has printed since this was asked for."""
        with open(f"/proc/self/fd/{self._stdout.fileno()}", "rb") as output:  # noqa: PTH123 - a place of its own in the file
            output.seek(self._read)
            whole = output.read().rpartition(b"\n")[0]
        self._read += len(whole) + 1 if whole else 0
        return whole.decode("utf-8", errors="replace").splitlines() if whole else []

    def finish(self) -> None:
        """End the command if it still runs, with all that it started in its session, and free everything."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        self._close()

    def _close(self) -> None:
        self._stdout.close()
        if hasattr(self, "_stderr"):
            self._stderr.close()


class _Round:
    """All questions, those that wait, those that are asked, and the answers."""

    def __init__(self, questions: Mapping[str, Sequence[str]], limits: AskingLimits) -> None:
        self._waiting = deque(questions.items())
        self._running: dict[str, _Asked] = {}
        self._limits = limits
        self._deadline = time.monotonic() + limits.all_s
        self._width = max(1, min(limits.in_flight, _descriptors_left() // DESCRIPTORS_OF_EACH))
        self.answers: dict[str, CommandAnswer] = {}

    @property
    def is_open(self) -> bool:
        """Whether something is still to be answered."""
        return bool(self._waiting or self._running)

    def start(self, now: float) -> None:
        """Start as many as may run at a time; past the deadline none."""
        while self._waiting and len(self._running) < self._width:
            name, tokens = self._waiting.popleft()
            if now >= self._deadline:
                self.answers[name] = CommandAnswer(
                    problem=f"it was not asked: the {self._limits.all_s:g} s for all nodes were over"
                )
                continue
            try:
                self._running[name] = _Asked(tokens, min(now + self._limits.each_s, self._deadline))
            except (OSError, ValueError) as error:
                self.answers[name] = _cannot_start(tokens[0], error)

    def collect(self, now: float) -> None:
        """Take the answers of those that have ended, and end those whose time is over."""
        for name, asked in list(self._running.items()):
            answer = asked.answer()
            if answer is None and now >= asked.end:
                answer = CommandAnswer(problem=f"there was no answer within {asked.end - asked.begin:.0f} s")
            if answer is not None:
                self.answers[name] = answer
                self._running.pop(name).finish()

    def finish(self) -> None:
        """End what still runs."""
        for asked in self._running.values():
            asked.finish()


def ask_all(
    questions: Mapping[str, Sequence[str]], limits: AskingLimits, tell: Callable[[int], None] = lambda _: None
) -> dict[str, CommandAnswer]:
    """Run each command (tokens by name) and return how each ended. Raises nothing but what `tell` raises.

    `tell` gets the number of questions that are over, each time it grows and at least twice a second.
    """
    asking = _Round(questions, limits)
    told = time.monotonic()
    try:
        while asking.is_open:
            before, now = len(asking.answers), time.monotonic()
            asking.start(now)
            asking.collect(now)
            if len(asking.answers) > before or now >= told + TELL_SECONDS:
                told = now
                tell(len(asking.answers))
            if asking.is_open:
                time.sleep(LOOK_SECONDS)
    finally:
        asking.finish()
    return {name: asking.answers[name] for name in questions}


QUIET_SECONDS = 5.0
"""Nodes that say nothing for so long after others have answered are not waited for: they are asked one by one."""


def ask_together(
    tokens: Sequence[str],
    nodes: Collection[str],
    seconds: float,
    is_answer: Callable[[str], bool],
    tell: Callable[[int], None] = lambda _: None,
) -> dict[str, CommandAnswer]:
    """Run one command that asks many nodes, and return the answers of those that gave one: a line behind `NODE: `.

    It may come in parts: all but the last stand behind `NODE:+ `. Of `n17.site.org` the name may be cut to `n17`, as pdsh does
    where the domains of all nodes are one.

    It is not waited for once all have answered, or none has for QUIET_SECONDS after others had. Raises nothing but what `tell`
    raises.
    """
    begin, answers = time.time_ns(), dict[str, CommandAnswer]()
    labels = _labels(nodes)
    parts: dict[str, str] = {}
    try:
        asked = _Asked(tokens, time.monotonic() + seconds)
    except (OSError, ValueError):
        return answers
    heard, is_over = time.monotonic(), False
    try:
        while not is_over and len(answers) < len(nodes):
            now, is_over = time.monotonic(), asked.answer() is not None
            is_over = is_over or now >= (min(asked.end, heard + QUIET_SECONDS) if answers else asked.end)
            before = len(answers)
            for line in asked.new_lines():
                label, _, rest = line.partition(":")
                mark, _, text = rest.partition(" ")
                name = labels.get(label)
                if name is None or mark not in ("", "+"):
                    continue
                whole = parts.pop(name, "") + text
                if mark:
                    parts[name] = whole
                elif is_answer(whole):
                    answers[name] = CommandAnswer(0, whole, begin_unix_ns=begin, end_unix_ns=time.time_ns())
            if len(answers) > before:
                heard = now
                tell(len(answers))
            time.sleep(LOOK_SECONDS)
    finally:
        asked.finish()
    return answers


def _labels(nodes: Collection[str]) -> dict[str, str]:
    """Return the node that each name before a colon stands for: its own, or without its domain where no other has that."""
    short = Counter(name.partition(".")[0] for name in nodes)
    cut = {name.partition(".")[0]: name for name in nodes}
    return {label: name for label, name in cut.items() if short[label] == 1 and not label.isdigit()} | {
        name: name for name in nodes
    }


def ask_one(
    tokens: Sequence[str], seconds: float, *, given: BinaryIO | None = None, taken: BinaryIO | None = None
) -> CommandAnswer:
    """Run one command and return how it ended; it reads `given` from where that stands, and prints into `taken`, of any size.

    Raises nothing; whatever is raised meanwhile ends the command first.
    """
    try:
        asked = _Asked(tokens, time.monotonic() + seconds, given, taken)
    except (OSError, ValueError) as error:
        return _cannot_start(tokens[0], error)
    try:
        while (answer := asked.answer()) is None and time.monotonic() < asked.end:
            time.sleep(LOOK_SECONDS)
        return answer or CommandAnswer(problem=f"there was no answer within {seconds:.0f} s")
    finally:
        asked.finish()


def _cannot_start(program: str, error: OSError | ValueError) -> CommandAnswer:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return CommandAnswer(problem=f"{program} cannot be started here: {reason}", is_unstartable=True)


def _memory_file() -> BinaryIO:
    return os.fdopen(os.memfd_create("answer"), "w+b")


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _descriptors_left() -> int:
    """Return how many more files this process may open, less a reserve for the rest of the program."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_IN_FLIGHT * DESCRIPTORS_OF_EACH
    return soft - len(list(Path("/proc/self/fd").iterdir())) - DESCRIPTORS_IN_RESERVE
