"""The events of a run that another process measures, from its run directory: what a waiting terminal shows of a submitted run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fabricbench.campaign.estimate import seconds_left
from fabricbench.campaign.events import LaunchFinished, LaunchStarted, Notice, Notify, RunStarted, Tick
from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.submission import stored_plan
from fabricbench.errors import FabricbenchError
from fabricbench.record.journal import Journal, JournalEntry, JournalEvent

FINISHED = (JournalEvent.FINISHED, JournalEvent.ADOPTED)


class Following:
    """Tells what the journal has told since it was last looked at. What was there at the first look is one event, not all again."""

    def __init__(self, directory: Path, notify: Notify) -> None:
        self._run = RunDirectory(directory)
        self._notify = notify
        self._stored: StoredPlan | None = None
        self._size_bytes = -1
        self._told = 0
        self._is_over = False
        self._finished: set[str] = set()
        self._observed: list[tuple[tuple[str, str], float, float]] = []

    def look(self) -> bool:
        """Tell what is new; return whether the run is over. What cannot be read now is looked at again the next time."""
        with suppress(FabricbenchError, OSError):
            self._look()
        return self._is_over

    def _look(self) -> None:
        journal = Journal(self._run.path)
        size_bytes = journal.path.stat().st_size if journal.path.exists() else 0
        if size_bytes == self._size_bytes:
            if self._stored is not None:
                self._notify(Tick(self._seconds_left()))
            return
        stored = stored_plan(self._run.path)
        if stored is None:
            return
        launches = {launch.launch_id: launch for launch in stored.plan.launches}
        entries = journal.entries()
        if self._stored is None or len(stored.plan.launches) != len(self._stored.plan.launches):
            self._stored, self._finished, self._observed = stored, set(), []
            for entry in entries:
                self._take(entry, launches)
            self._told = len(entries)
            self._begin()
        while self._told < len(entries):
            entry = entries[self._told]
            self._told += 1
            self._take(entry, launches)
            self._tell(entry, launches)
        self._is_over = bool(entries) and entries[-1].event is JournalEvent.COMPLETED
        self._size_bytes = size_bytes

    def _begin(self) -> None:
        if self._stored is not None:
            plan = self._stored.plan
            self._notify(RunStarted(len(plan.launches), len(self._finished), plan.blocks, self._seconds_left()))

    def _take(self, entry: JournalEntry, launches: dict[str, LaunchPlan]) -> None:
        """Keep what an entry says of how far the run is."""
        launch = launches.get(entry.launch_id or "")
        if entry.event is JournalEvent.AGAIN:
            aside = entry.facts.get("set_aside")
            self._finished.difference_update(map(str, aside) if isinstance(aside, list) else ())
        elif entry.event is JournalEvent.LOST:  # blocks that are not whole are measured again, on the rest of the nodes
            kept = entry.facts.get("kept", [])
            self._finished -= {one.launch_id for one in launches.values() if one.block not in kept}
        elif launch is not None and entry.event in FINISHED:
            self._finished.add(launch.launch_id)
            if isinstance(seconds := entry.facts.get("seconds"), float):
                self._observed.append((launch.arm, launch.estimated_seconds, seconds))

    def _tell(self, entry: JournalEntry, launches: dict[str, LaunchPlan]) -> None:
        launch = launches.get(entry.launch_id or "")
        if entry.event in (JournalEvent.AGAIN, JournalEvent.LOST, JournalEvent.RESUMED):
            self._begin()
        elif launch is None:
            return
        elif entry.event is JournalEvent.STARTED:
            self._notify(LaunchStarted(launch, entry.attempt or 1, self._seconds_left()))
        elif entry.event is JournalEvent.FAILED:
            self._notify(Notice(f"{launch.launch_id} failed: {entry.facts.get('reason', 'nobody knows why')}"))
        elif entry.event in FINISHED:
            summary = self._run.stored(launch)
            cells, failed = (summary.cells, summary.failed) if summary is not None else (len(launch.cells), 0)
            violations = summary.facts.invalid_because if summary is not None else ()
            seconds = entry.facts.get("seconds")
            took = seconds if isinstance(seconds, float) else launch.estimated_seconds
            self._notify(LaunchFinished(launch, took, cells, failed, tuple(violations)))

    def _seconds_left(self) -> float:
        if self._stored is None:
            return 0.0
        left = [one for one in self._stored.plan.launches if one.launch_id not in self._finished]
        pauses = sum(one.pause_seconds for one in left)
        return pauses + seconds_left([(one.arm, one.estimated_seconds) for one in left], self._observed)
