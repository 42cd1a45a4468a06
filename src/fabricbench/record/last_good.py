"""Which earlier runs a new one is to be measured by: the last of the same campaign and testbed that are whole and proven.

One that was found slower than its own baseline is none: the nights after it would be measured by what they are to be warned of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fabricbench.model import Model
from fabricbench.record.atomic import replace_text
from fabricbench.record.integrity import read_file
from fabricbench.record.past_run import PassedOver, PastRun
from fabricbench.record.run_state import State

GATE_FILE = "gate.json"
"""In a run directory: what came of it when it was checked by the last good runs."""


class GateResult(Model):
    """Whether a run was slower than its baselines by more than was allowed."""

    is_regressed: bool
    baselines: tuple[str, ...]
    unix_ns: int


def keep_gate_result(directory: Path, result: GateResult) -> None:
    """Write what came of a run when it was checked. Raises EnvironmentLacks where it cannot be written."""
    replace_text(directory / GATE_FILE, result.model_dump_json(indent=1) + "\n")


def _is_regressed(directory: Path) -> bool:
    """Tell whether a run was found slower; not where nobody checked it, or nobody can read what came of that."""
    try:
        return GateResult.model_validate_json(read_file(directory / GATE_FILE)).is_regressed
    except (OSError, ValidationError):
        return False


@dataclass(frozen=True)
class LastGood:
    """The last good runs, newest first, those that were passed over on the way to them, and how many are of something else."""

    runs: tuple[PastRun, ...]
    passed_over: tuple[PassedOver, ...]
    others: int


def last_good(runs: Sequence[PastRun], new: PastRun, wanted: int = 1) -> LastGood:
    """Return the last good runs that began before a new one, at most as many as are wanted. `runs` are newest first."""
    good: list[PastRun] = []
    passed_over: list[PassedOver] = []
    others = 0
    for run in runs:
        if len(good) == wanted:
            break
        if run.created is None:
            passed_over.append(PassedOver(path=run.path, reason=f"damaged: {run.reason}"))
        elif new.created is not None and run.created.timestamp() >= new.created.timestamp():
            continue
        elif (run.campaign, run.testbed) != (new.campaign, new.testbed):
            others += 1
        elif reason := _flaw(run):
            passed_over.append(PassedOver(path=run.path, reason=reason))
        elif any(one.identity == run.identity for one in good):
            passed_over.append(PassedOver(path=run.path, reason="a copy of one that is taken"))
        else:
            good.append(run)
    return LastGood(tuple(good), tuple(passed_over), others)


def _flaw(run: PastRun) -> str:
    """Return why a run is not good; empty for one that is."""
    if run.state is not State.COMPLETE:
        return f"{run.state.value}: {run.reason}" if run.reason else run.state.value
    if run.unproven:
        return f"path unproven: {', '.join(run.unproven)}"
    is_slower = _is_regressed(Path(run.path))
    return f"slower than its own baseline; to take it for the new usual, remove its {GATE_FILE}" if is_slower else ""
