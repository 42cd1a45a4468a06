"""The run directory while it is written: created, locked, asked which launches are finished. Reading it is `record.store`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Literal

from pydantic import Field, ValidationError

from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.specification import Campaign
from fabricbench.campaign.venue import AnyVenue, Venue
from fabricbench.configuration import first_problem
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.atomic import TEMPORARY, explained, synced
from fabricbench.record.confinement import ATTEMPT, check_confined
from fabricbench.record.integrity import (
    HASHED,
    JOURNAL,
    LAUNCH,
    LAUNCHES,
    MANIFEST,
    PLAN,
    Seals,
    launch_path,
    read_file,
    seals,
)
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import LaunchSummary, is_converted, read_launch
from fabricbench.record.launch_files import KERNEL_RECORDS, RECORDS
from fabricbench.record.lock import LOCK, locked
from fabricbench.record.store import attempt_number
from fabricbench.testbed.preflight_result import Preflight

SEAL = "plan.seal"
"""Tells who wrote the plan (`trust`)."""
SUBMIT_SCRIPT, SUBMISSION, JOB_LOG = "submit.sh", "submission.json", "job-*.log"
"""What a submitted run has before it begins (`submission`)."""
STUB = (JOURNAL, SEAL)
"""What a run has written before its plan."""
MOVING = ".moving"
"""Ends the name of an attempt's folder until all of it is there."""


class StoredPlan(Model):
    """What a resumed run follows: every launch in its order, and where it takes place. `command` is what was typed to start it."""

    schema_name: Literal["fabricbench/run-plan/1"] = Field(default="fabricbench/run-plan/1", alias="schema")
    campaign: Campaign
    plan: RunPlan
    venue: AnyVenue
    command: tuple[str, ...] = ()
    preflight: Preflight | None = None

    @property
    def place(self) -> Venue:
        """Where it goes on: the venue without the nodes that failed."""
        return self.venue.without(self.plan.lost_nodes)

    model_config = {**Model.model_config, "populate_by_name": True}


class RunDirectory:
    """A run directory by its path; nothing is created before `create`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._sealed: tuple[tuple[int, ...], Seals] | None = None
        """The journal's hashes, and which journal they were read from."""
        self._read: dict[str, tuple[tuple[object, ...], LaunchSummary]] = {}
        """Launches that were looked at, with what their files were: whoever resumes asks whether any is left, and then which."""
        self._made: list[Path] = []
        """The folders that `create` made, the innermost first."""

    def check_unused(self) -> None:
        """Raise UsageError if there is something in the directory already, which is never overwritten."""
        known = (".*", SUBMIT_SCRIPT, SUBMISSION, JOB_LOG, *(STUB if self._is_stub else ()))
        if self.path.is_dir() and any(
            not any(path.match(pattern) for pattern in known) for path in self.path.iterdir()
        ):
            is_run = any((self.path / name).exists() for name in (MANIFEST, PLAN))
            raise UsageError(
                f"{self.path} is not empty" + (": it holds a run" if is_run else ""),
                hint=f"go on with it by `fabricbench resume {quote(str(self.path))}`, or give another -o"
                if is_run
                else "give a directory that is empty or does not exist",
            )
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file", hint="give a directory that does not exist")

    @property
    def _is_stub(self) -> bool:
        """Whether a run was here that died before its plan was whole: it has started nothing, and cannot be resumed."""
        if not (self.path / JOURNAL).is_file() or any(os.path.lexists(self.path / name) for name in (PLAN, MANIFEST)):
            return False
        return all(entry.event is JournalEvent.DESCRIBED for entry in Journal(self.path).entries())

    def remove_stub(self) -> None:
        """Remove what such a run left; the lock must be held, and the directory be unused."""
        for name in STUB:
            (self.path / name).unlink(missing_ok=True)

    def create(self) -> None:
        """Create the directory, unless it is there and unused. Raises what `check_unused` raises."""
        self.check_unused()
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._made = missing
            for path in missing:
                synced(path.parent)  # else a power cut takes the whole run away
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"{self.path} is a file", hint="give a directory that does not exist") from error
        except OSError as error:
            raise explained(error, self.path) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from running the same run; the kernel frees the lock however this process ends."""
        with locked(self.path):
            yield

    def remove_temporaries(self) -> None:
        """Remove the halves of files that a kill left; the lock must be held."""
        for path in self.path.rglob(TEMPORARY):
            if path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)

    def write_plan(self, stored: StoredPlan) -> None:
        """Write the plan, whole or not at all."""
        Journal(self.path).write(PLAN, stored.model_dump_json(by_alias=True, indent=1) + "\n")

    def check_is_run(self) -> None:
        """Raise UsageError where there is neither a plan nor a manifest, so that nothing here is a run's, or where it leads out."""
        if not self.path.exists():
            raise UsageError(f"there is no run directory {self.path}", hint="check the path")
        if not any(os.path.lexists(self.path / name) for name in (PLAN, MANIFEST)):
            raise UsageError(
                f"{self.path} is not a run directory: it has no {PLAN}",
                hint="give the folder that `fabricbench run -o` wrote",
            )
        check_confined(self.path)

    def read_plan(self) -> StoredPlan:
        """Return the plan; UsageError where this is no run that can be resumed."""
        path = self.path / PLAN
        try:
            return StoredPlan.model_validate_json(read_file(path))
        except (FileNotFoundError, NotADirectoryError):
            if not self.path.exists():
                raise UsageError(f"there is no run directory {self.path}", hint="check the path") from None
            raise UsageError(
                f"{self.path} is not a run that can be resumed: it has no {PLAN}",
                hint="give the folder that `fabricbench run -o` wrote; if it died before its first launch, run it again",
            ) from None
        except (OSError, ValidationError) as error:
            reason = first_problem(error) if isinstance(error, ValidationError) else error.strerror
            raise UsageError(f"{path} cannot be read: {reason}", hint="restore the file from a copy") from error

    def discard(self) -> None:
        """Remove what was written of a run that did not begin, and the directory unless it was there before."""
        for name in (PLAN, SEAL, JOURNAL, LOCK):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else has put something there meanwhile
            for path in self._made:
                path.rmdir()

    def launch(self, launch_id: str) -> Path:
        """Return a launch's directory."""
        return self.path / LAUNCHES / launch_id

    @property
    def launch_names(self) -> tuple[str, ...]:
        """Whatever has a directory among the launches, planned or not."""
        folder = self.path / LAUNCHES
        return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir())) if folder.is_dir() else ()

    def stored(self, launch: LaunchPlan) -> LaunchSummary | None:
        """Return a launch that was stored and can be read, however it ended; None if there is none."""
        directory = self.launch(launch.launch_id)
        if not is_converted(directory):
            return None
        sealed = self._seals().get(launch_path(launch.launch_id), ())
        mark = (sealed, *(_mark(directory / name) for name in HASHED))
        known = self._read.get(launch.launch_id)
        if known is not None and known[0] == mark:
            return known[1]
        try:
            summary = read_launch(directory, sealed, is_own=True)
        except UsageError:
            return None
        self._read[launch.launch_id] = (mark, summary)
        return summary

    def finished(self, launch: LaunchPlan) -> LaunchSummary | None:
        """Return a launch that is stored and counts, whatever the journal says; None if there is none."""
        summary = self.stored(launch)
        return summary if summary is not None and summary.is_finished else None

    def _seals(self) -> Seals:
        """Return the hashes that the journal holds, read once as long as it does not change: every launch asks."""
        mark = _mark(self.path / JOURNAL)
        if mark is None:
            return seals(self.path)
        if self._sealed is None or self._sealed[0] != mark:
            self._sealed = (mark, seals(self.path))
        return self._sealed[1]

    def prepare(self, launch_id: str) -> Path:
        """Return an empty directory for a launch; what an earlier attempt left is kept aside in `attempt-N`."""
        directory = self.launch(launch_id)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in (directory.parent, directory.parent.parent):
                synced(path)  # the journal must not tell of a launch whose folder a power cut takes away
        except OSError as error:
            raise explained(error, directory) from error
        self.set_aside(launch_id)
        return directory

    def set_aside(self, launch_id: str) -> None:
        """Move what a launch has left into `attempt-N`, where it stays readable and enters no comparison."""
        directory = self.launch(launch_id)
        try:
            left = [path for path in directory.iterdir() if not path.name.startswith(ATTEMPT)]
            aside = self._half_moved(launch_id)
            if aside is None and not left:
                return
            if aside is None:
                aside = _next_attempt(directory).with_suffix(MOVING)
                aside.mkdir()
            # launch.json first: without it no reader takes the rest for a launch.
            for path in sorted(left, key=lambda each: each.name != LAUNCH):
                path.rename(aside / path.name)
            whole = aside.with_suffix("")
            aside.rename(_next_attempt(directory) if whole.exists() else whole)
        except FileNotFoundError:
            return  # the launch was never started
        except OSError as error:
            raise explained(error, directory) from error

    def finish_setting_aside(self, launch_id: str) -> None:
        """Move the rest of an attempt that was being moved when a crash came: a half of it is no launch."""
        if self._half_moved(launch_id) is not None:
            self.set_aside(launch_id)

    def _half_moved(self, launch_id: str) -> Path | None:
        return next(self.launch(launch_id).glob(f"{ATTEMPT}*{MOVING}"), None)

    def blocks_with_data(self, plan: RunPlan) -> int:
        """Return how many blocks there are up to the last of which anything was measured, cut short and set aside as well."""
        return max((1 + one.block for one in plan.launches if _holds_data(self.launch(one.launch_id))), default=0)


def _mark(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from what it was before; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _holds_data(directory: Path) -> bool:
    return any(next(directory.rglob(name), None) is not None for name in (LAUNCH, RECORDS, KERNEL_RECORDS))


def _next_attempt(directory: Path) -> Path:
    """Return the path of the next attempt: after the highest number there is, for people may have removed one before it."""
    numbers = [attempt_number(path) for path in directory.iterdir() if path.name.startswith(ATTEMPT)]
    return directory / f"{ATTEMPT}{1 + max(numbers, default=0)}"
