"""Which earlier runs a new one is to be measured by: the last of the same campaign and testbed that are whole and proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricbench.record.past_run import PassedOver, PastRun
from fabricbench.record.run_state import State


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
    return f"path unproven: {', '.join(run.unproven)}" if run.unproven else ""
