"""Whether the launches that are left of a test may be a selection: how many of its starts gave nothing that counts.

And whether they were lost more often on one fabric than chance makes, which is a finding by itself (`unequal_starts`).

A program that crashes or is thrown out on one fabric leaves the launches that went well. The values are those of the survivors, so
each start that died counts as the slowest of them, or as two (`grading`), and above a share of the starts its fabric wins nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from fabricbench.analysis.findings import DEFAULT_CONFIDENCE, CellKey, StartsOfFabric, UnequalStarts
from fabricbench.analysis.findings.doubts import Doubt, whole
from fabricbench.analysis.measured import AFTER, BEFORE, CellMeasured, Side
from fabricbench.quantity import enumeration
from fabricbench.record.account import DOUBTED_SHARE, joined
from fabricbench.record.farm_lines import DONE, JOBS
from fabricbench.record.run_account import LossKind, RunAccount, SubjectAccount
from fabricbench.statistics.proportion import exact_p_value

_Tested = tuple[str, StartsOfFabric, StartsOfFabric]
UNDER_WAY = 1
"""Launches that a run which was interrupted may lack more on one fabric than on another: those of its last block."""
SURVIVORS_SHARE = 0.1
"""Of a side's launches, starts, and jobs of a farm: where more gave nothing, the rest is no sample of what users get; it wins
nothing."""
TIMES_OF_DEAD = 2.0
"""What a start that died costs at least, in usual launches: it has to be done again. The slowest launch of a side may be hardly
slower than the others, and says nothing of what the survivors were spared."""


def starts_of(accounts: Sequence[SubjectAccount]) -> list[StartsOfFabric]:
    """Return of one test on the fabrics of one run how many starts there were on each, and how many gave nothing that counts.

    A launch that was planned and is not there counts as a start that gave nothing, where other fabrics have theirs of that block.
    """
    absent = [one.launches_lost(LossKind.NOT_MEASURED) for one in accounts]
    common = min(absent, default=0) + UNDER_WAY
    missing = [max(0, number - common) for number in absent]
    return [
        StartsOfFabric(fabric=one.fabric, lost=one.lost_starts + more, starts=one.starts + more)
        for one, more in zip(accounts, missing, strict=True)
    ]


def unequal_starts(accounts: Sequence[RunAccount], confidence: float = DEFAULT_CONFIDENCE) -> tuple[UnequalStarts, ...]:
    """Return where starts of a test came to nothing more often on one fabric of a run than on another, beyond chance.

    Fisher's exact test of every two fabrics in every test of the runs; any wrong one has at most 1 - `confidence` (Bonferroni).
    """
    tested: list[_Tested] = []
    for account in accounts:
        for subject in dict.fromkeys(one.subject for one in account.subjects):
            counts = starts_of([one for one in account.subjects if one.subject == subject])
            tested += [(subject, a, b) for a, b in combinations(counts, 2) if a.starts and b.starts]
    return _unlike(tested, confidence)


def changed_starts(
    before: Sequence[RunAccount], after: Sequence[RunAccount], confidence: float = DEFAULT_CONFIDENCE
) -> tuple[UnequalStarts, ...]:
    """Return where starts of a test on a fabric came to nothing more often after a change than before it, or less often."""
    counts = [
        {
            (one.subject, one.fabric): StartsOfFabric(fabric=one.fabric + when, lost=one.lost_starts, starts=one.starts)
            for one in _joined(accounts)
        }
        for accounts, when in ((before, BEFORE), (after, AFTER))
    ]
    pairs = [(key[0], one, counts[1][key]) for key, one in counts[0].items() if key in counts[1]]
    return _unlike([(subject, a, b) for subject, a, b in pairs if a.starts and b.starts], confidence)


def _joined(accounts: Sequence[RunAccount]) -> list[SubjectAccount]:
    every = [one for account in accounts for one in account.subjects]
    keys = dict.fromkeys((one.subject, one.fabric) for one in every)
    return [joined([one for one in every if (one.subject, one.fabric) == key]) for key in keys]


def _unlike(tested: Sequence[_Tested], confidence: float) -> tuple[UnequalStarts, ...]:
    found = []
    for subject, a, b in tested:
        p_value = exact_p_value((a.lost, b.lost), (a.starts, b.starts))
        if p_value < (1.0 - confidence) / len(tested):
            worse, better = sorted((a, b), key=lambda one: one.lost / one.starts, reverse=True)
            found.append(UnequalStarts(subject=subject, worse=worse, better=better, p_value=p_value))
    return tuple(found)


def doubt_of_losses(side: Side, cell: CellMeasured) -> Doubt | None:
    """Return what the lost starts of a cell's launches say against its values on a side; None where none was lost."""
    account = side.account_of(cell.subject)
    if account is None or not account.lost_starts:
        return None
    is_grave = account.lost_share > DOUBTED_SHARE
    how = enumeration([f"{number} {what}" for number, what in _kinds(account) if number])
    starts = "start" if account.starts == 1 else "starts"
    return Doubt.of(
        *(whole(account.lost_starts), " of ", whole(account.starts), f" {starts} gave nothing that counts ({how})"),
        ": those that did may be a selection" if is_grave else "",
        is_loss=True,
        lost_on=side.name,
        lost_starts=account.lost_starts,
    )


def _kinds(account: SubjectAccount) -> list[tuple[int, str]]:
    """Return how many starts were lost in which way."""
    ended = (LossKind.INVALID, LossKind.DAMAGED, LossKind.EMPTY)
    return [(account.failed_starts, "failed"), *((account.launches_lost(kind), kind.value) for kind in ended)]


def survivors(sides: Sequence[Side], keys: Sequence[CellKey]) -> tuple[tuple[str, ...], tuple[Doubt, ...]]:
    """Return the sides of which too many launches, starts or jobs gave nothing, and how many did."""
    thin, notes = [], []
    for side in sides:
        nothing = max(side.cells[key].gave_nothing for key in keys)
        expected = max(side.cells[key].expected for key in keys)
        if nothing:
            launches = f" {'launch' if expected == 1 else 'launches'} on {side.name} gave nothing"
            told = whole(nothing), " of ", whole(expected), launches
            notes.append(Doubt.of(*told, lost_on=side.name, lost_starts=nothing))
        lost, starts = _lost_starts(side, sides, side.cells[keys[0]].subject)
        is_lost = lost > SURVIVORS_SHARE * starts
        if is_lost:
            told = whole(lost), " of ", whole(starts), f" starts on {side.name} gave nothing that counts"
            notes.append(Doubt.of(*told, is_loss=True, lost_on=side.name, lost_starts=lost))
        failed, jobs = _failed_jobs(side, keys)
        if is_short := failed > SURVIVORS_SHARE * jobs:
            notes.append(Doubt.of(whole(failed), " of ", whole(jobs), f" jobs on {side.name} failed for good"))
        if nothing > SURVIVORS_SHARE * expected or is_lost or is_short:
            thin.append(side.name)
    return tuple(thin), tuple(notes)


def _lost_starts(side: Side, sides: Sequence[Side], subject: str) -> tuple[int, int]:
    """Return how many starts of a side gave nothing that counts, and of how many; of one run beside what the other side has."""
    beside = [side, *(one for one in sides if one is not side and one.run is side.run)]
    mark = (subject, *(one.name for one in beside))
    if mark not in side.lost_starts:
        accounts = [account for one in beside if (account := one.account_of(subject)) is not None]
        mine = starts_of(accounts)[0] if side.account_of(subject) is not None else None
        side.lost_starts[mark] = (0, 0) if mine is None else (mine.lost, mine.starts)
    return side.lost_starts[mark]


def _failed_jobs(side: Side, keys: Sequence[CellKey]) -> tuple[int, int]:
    """Return how many jobs of a farm failed for good on a side, and of how many; none of what is no farm."""
    told = [side.cells[key].values for key in keys]
    counts = [(np.nansum(one[JOBS] - one[DONE]), np.nansum(one[JOBS])) for one in told if DONE in one and JOBS in one]
    failed, jobs = max(counts, default=(0.0, 0.0))
    return int(failed), int(jobs)
