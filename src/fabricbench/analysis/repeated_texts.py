"""The same text in several imports: it is one measurement, and counts for the run that has it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fabricbench.errors import UsageError
from fabricbench.record.confinement import TEXTS
from fabricbench.record.integrity import file_sha256
from fabricbench.record.provenance import Origin
from fabricbench.record.store import Run, StoredLaunch

Repeated = Mapping[tuple[Path, str], str]
"""By a run's path and a launch's name: why the launch is left out, whose text an earlier run has as well."""


def repeated_texts(runs: Sequence[Run]) -> Repeated:
    """Return the imported launches whose texts an earlier run has as well; UsageError where those are all that a run has.

    A text is one measurement, however often it was imported. One import never has it twice, but as the results of a loop in it.
    """
    first: dict[str, Run] = {}
    found: dict[tuple[Path, str], str] = {}
    for run in runs:
        texts = {launch.launch_id: _texts(launch) for launch in run.launches}
        for launch_id, path, mark in (
            (one, path, mark) for one, marks in texts.items() for path, mark in marks.items()
        ):
            other = first.setdefault(mark, run)
            if other is not run:
                found[run.path, launch_id] = (
                    f"its text {path.name} in {run.path} is the same as in {other.path}: one measurement, which counts once"
                )
        again = [why for (path, _), why in found.items() if path == run.path]
        if again and len(again) == len(texts):
            raise UsageError(
                f"{run.path} has no text of its own: {again[0]}",
                hint="leave one of the two runs out, or import what was measured for it",
            )
    return found


def _texts(launch: StoredLaunch) -> dict[Path, str]:
    """Return the SHA-256 of each text that a launch was read from; of one that cannot be read none."""
    found: dict[Path, str] = {}
    for path in sorted((launch.directory / TEXTS).glob("*")) if launch.origin is Origin.IMPORTED else ():
        with suppress(OSError):
            found[path] = file_sha256(path)
    return found


def counted_once(launch: StoredLaunch, why: str | None) -> StoredLaunch:
    """Return a launch as one that does not count, where there is a reason why."""
    if why is None:
        return launch
    facts = launch.summary.facts.model_copy(update={"is_valid": False, "invalid_because": (why,)})
    return replace(launch, summary=launch.summary.model_copy(update={"facts": facts}))
