"""Which earlier runs a new one is to be measured by: the last of the same campaign and testbed that are whole and proven.

One that was checked and did not pass is none: by one that was slower, or perhaps was, the nights after it would be measured by what
they are to be warned of. One that nobody checked is taken as it is, or there would be no first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from fabricbench.model import Model
from fabricbench.record.atomic import replace_text
from fabricbench.record.integrity import read_file
from fabricbench.record.past_run import PassedOver, PastRun
from fabricbench.record.run_state import State

GATE_FILE = "gate.json"
"""In a run directory: what came of it when it was checked by the last good runs."""


class GateResult(Model):
    """Whether a run was slower than its baselines by more than was allowed. What later versions keep besides is passed over."""

    model_config = ConfigDict(extra="ignore")

    is_regressed: bool
    is_inconclusive: bool = False
    baselines: tuple[str, ...]
    unix_ns: int


def keep_gate_result(directory: Path, result: GateResult) -> None:
    """Write what came of a run when it was checked. Raises EnvironmentLacks where it cannot be written."""
    replace_text(directory / GATE_FILE, result.model_dump_json(indent=1) + "\n")


def _why_not_passed(directory: Path) -> str:
    """Return why a run that was checked is not known to have passed; empty where it did, or nobody checked it."""
    try:
        result = GateResult.model_validate_json(read_file(directory / GATE_FILE))
    except FileNotFoundError:
        return ""
    except (OSError, ValidationError) as error:
        why = (
            error.strerror if isinstance(error, OSError) else "it is damaged, or of a version that this one cannot read"
        )
        return f"{GATE_FILE}, what came of its check, cannot be read ({why}): check it again, or remove it to take the run as good"
    if result.is_regressed:
        return f"slower than its own baseline; to take it for the new usual, remove its {GATE_FILE}"
    if result.is_inconclusive:
        return (
            f"its own check could not exclude that it is slower; to take it for the new usual, remove its {GATE_FILE}"
        )
    return ""


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
        elif reason := _flaw(run, (one for one in runs if one.identity == run.identity)):
            passed_over.append(PassedOver(path=run.path, reason=reason))
        elif any(one.identity == run.identity for one in good):
            passed_over.append(PassedOver(path=run.path, reason="a copy of one that is taken"))
        else:
            good.append(run)
    return LastGood(tuple(good), tuple(passed_over), others)


def _flaw(run: PastRun, copies: Iterable[PastRun]) -> str:
    """Return why a run is not good; empty for one that is. What came of the check of one of its copies holds for all of them."""
    if run.state is not State.COMPLETE:
        return f"{run.state.value}: {run.reason}" if run.reason else run.state.value
    if run.unproven:
        return f"path unproven: {', '.join(run.unproven)}"
    own = _why_not_passed(Path(run.path))
    of_copies = ((one.path, _why_not_passed(Path(one.path))) for one in copies if one.path != run.path)
    return own or next((f"a copy of {path}: {why}" for path, why in of_copies if why), "")
