"""While a run is measured: how it goes on is shown, and Ctrl-C and SIGTERM end it.

A bar with the time left on a terminal, a line a launch elsewhere. All of it on stderr.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fabricbench.campaign import events
from fabricbench.campaign.events import Event, LaunchFinished, LaunchStarted, NodesAsked, Notify, RunStarted, Tick
from fabricbench.cli.starting import interrupt
from fabricbench.errors import FabricbenchError, Interrupted, RunIncomplete
from fabricbench.printable import PrintableConsole
from fabricbench.quantity import count, format_duration
from fabricbench.record.integrity import PLAN
from fabricbench.testbed.allocation import JOB


class RunProgress:
    """Takes the events of a run. Draws only when an event comes: a thread of its own would steal time from the measuring."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or PrintableConsole(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            auto_refresh=False,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None, left="")
        self._blocks = 0
        self._done = 0
        self._total = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case events.NodesAsked():
                self._update(description="preflight: nodes", total=event.nodes, completed=event.answered)
            case events.RunStarted():
                self._blocks, self._done, self._total = event.blocks, event.finished, event.launches
                self._progress.update(
                    self._task, description="starting", total=event.launches, completed=event.finished
                )
                done = f", {event.finished} of them done already" if event.finished else ""
                self._say(
                    f"{count(event.launches, 'launch')} in {count(event.blocks, 'block')}{done}; {_left(event.seconds_left)}"
                )
            case events.LaunchStarted():
                again = f", try {event.attempt}" if event.attempt > 1 else ""
                description = f"block {event.launch.block + 1} of {self._blocks}: {event.launch.fabric}{again}"
                self._update(description=description, left=_left(event.seconds_left))
            case events.Tick():
                self._update(left=_left(event.seconds_left))
            case events.LaunchFinished():
                self._finished(event)
            case events.LaunchFailed():
                then = "it is tried again when its block is over" if event.is_retried else "it is given up"
                self._say(f"{event.launch.launch_id} failed: {event.reason}; {then}", style="red")
            case events.GroupAgain():
                self._done -= event.set_aside
                self._update(completed=self._done)
                if event.set_aside:
                    names = ", ".join(launch.launch_id for launch in event.group.launches)
                    aside = f"{event.set_aside} that {'was' if event.set_aside == 1 else 'were'} finished kept aside"
                    self._say(f"{names} are measured again together: {event.reason}; {aside}")
            case events.Notice():
                self._say(event.text, style="yellow")

    def _finished(self, event: LaunchFinished) -> None:
        self._done += 1
        self._update(completed=self._done)
        failed = f", {event.failed} not" if event.failed else ""
        line = f"{event.launch.launch_id} {event.seconds:.1f} s, {count(event.cells, 'test')} measured{failed}"
        line = line if self._console.is_terminal else f"[{self._done}/{self._total}] {line}"
        if event.violations:
            self._say(f"{line}, INVALID, it is kept but not used: {event.violations[0]}", style="bold red")
        elif not self._console.is_terminal:
            self._say(line)

    def _say(self, text: str, style: str | None = None) -> None:
        self._progress.console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def _update(self, **fields: object) -> None:
        self._progress.update(self._task, refresh=True, **fields)  # type: ignore[arg-type]


def _left(seconds: float) -> str:
    return f"about {format_duration(seconds)} left"


ENDING = b"\nending the launch that runs (`fabricbench resume` measures it again); again (Ctrl-C) ends at once\n"


@contextmanager
def interruptible(directory: Path, notify: Notify) -> Iterator[Notify]:
    """Make Ctrl-C and SIGTERM end a run in order: Interrupted says how to go on. Yields what its events go to instead of `notify`.

    In a job of Slurm SIGTERM says that the job ends, and RunIncomplete is what becomes of the run.
    The run ends at its next event that comes while nothing is half done: half a second after the signal, or when the testbed is up.
    An exception anywhere could be lost, as libraries turn it into errors of their own, or come when a launch is stored already
    and have it stored again as an interrupted one. A second signal ends the run wherever it is.
    """
    is_asked = is_job_over = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked, is_job_over
        if is_asked:
            interrupt(number, frame)
            return
        is_asked = True
        is_job_over = number == signal.SIGTERM and JOB in os.environ
        os.write(2, ENDING)  # a handler may come in the middle of another write, which Python's streams refuse

    def notify_or_end(event: Event) -> None:
        if is_asked and isinstance(event, NodesAsked | RunStarted | LaunchStarted | Tick):
            raise KeyboardInterrupt
        notify(event)

    numbers = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield notify_or_end
    except (KeyboardInterrupt, Interrupted) as error:
        raise _ended(directory, error, is_job_over=is_job_over) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended(directory: Path, error: BaseException, *, is_job_over: bool) -> FabricbenchError:
    """Return what becomes of a run that a signal has ended."""
    resume = f"fabricbench resume {quote(str(directory))}"
    if is_job_over:
        return RunIncomplete(
            f"job {os.environ[JOB]} is about to end, or was cancelled (SIGTERM); everything measured so far is kept",
            hint=f"go on with `{resume} --submit`, or without --submit within a job",
        )
    if isinstance(error, Interrupted):
        return error
    if not (directory / PLAN).exists():
        return Interrupted("interrupted before anything was written", hint="give the same command to begin again")
    return Interrupted("interrupted; everything measured so far is kept", hint=f"go on with `{resume}`")
