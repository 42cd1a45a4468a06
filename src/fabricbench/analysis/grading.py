"""Grades a row by consequence: what would be left of its verdict if what speaks against it were true.

Size of a trouble is no measure of it: half of the launches may be slower by a fifth, and a fabric that is three times as fast is
as much faster as ever. So each trouble says what the row's own numbers would show with it:

    two groups of launches     what both groups show, each with the deviation within the groups (`statistics.skew.split_ratio`);
                               one launch, or a tenth, is no mode: with the same side ahead in it, what all show together is left
    blocks that resemble       what is left if the mean is off by DEPENDENT_REACH times the range of the blocks' ratios, or by
                               DEPENDENT_REACH_OF_HALF times that of the middle half of them, whichever is less
    blocks that might          what is left in an interval that holds with a correlation of UNTESTED_CORRELATION, from 12 blocks on,
                               where so much is not excluded
    a late switch              what is left if the slower fabric was delayed by all that the switch may have delayed it
    better than the wire       what is left if the faster fabric is as much slower as its figure, or its best launch, is too good
    starts that died           what is left if each of them had been as slow as the slowest launch of its fabric, or as two
    blocks of several days     what their means show, a day being one value (`statistics.decision.LogRatio.of_means`)
    a machine that changed     what is left if the ratio is off by as much as memory differs, which no fabric touches

The verdict unchanged: clear, with a remark. The same fabric in front, perhaps by less than matters: doubtful. Not even that, or
nothing bounds the trouble: alarm. Why 1.5 times the range: docs/statistics.md, "Grades".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, log1p

import numpy as np

from fabricbench.analysis.comparing import groups_doubt, times_number
from fabricbench.analysis.findings import Doubt, Grade, LaunchGroups, PairEffect, Verdict
from fabricbench.analysis.findings.doubts import Number, escaped, percentage, whole
from fabricbench.analysis.lost_launches import TIMES_OF_DEAD
from fabricbench.statistics.decision import Consequence, Decision, LogRatio, consequence_of, shared_by, stronger, weaker
from fabricbench.statistics.dependence import times_wider

DEPENDENT_REACH = 1.5
"""Times the range of the blocks' log ratios: how far their mean may be from the truth where neighbours resemble each other.
Widening by the correlation that was measured claims too much: short series show less of it than there is. What a quarter
more or less moves: docs/statistics.md, "Constants of the grades"."""

DEPENDENT_REACH_OF_HALF = 4.0
"""Times the width of the middle half of the blocks' log ratios, where that is less: of normal ones both are the same. Ratios that
wander fill their range, and a few that are far off widen it by all that they are off, and the middle half by nothing."""

UNTESTED_CORRELATION = 0.3
"""Of neighbouring blocks, that few blocks show seldom: 12 in a quarter of runs."""
UNTESTED_FROM, UNTESTED_AT = 8, 12
"""Blocks between which this grows from nothing to the whole, so that blocks which are added make nothing less clear. With fewer it
would take half of the differences of a tenth from who measures six."""

GRAVITY = (Consequence.NOTHING, Consequence.AMOUNT, Consequence.EQUALITY, None, Consequence.DIRECTION)
"""From what puts nothing in doubt to what undoes a verdict; None is a doubt that nobody can weigh."""


@dataclass(frozen=True)
class SharedDoubts:
    """What speaks against every row of a campaign.

    `control_drift` is by how much (log) memory differs between the sides; `dependence` has the lag-1 correlation of blocks, by the
    names of both sides and the subject, where neighbouring blocks resemble each other; `sessions` by how much (log) the means of
    sessions scatter in a usual test of it, where there are several. Of `untested` a correlation of UNTESTED_CORRELATION is not
    excluded.
    """

    control_drift: float = 0.0
    dependence: Mapping[tuple[str, str, str], float] | None = None
    sessions: Mapping[tuple[str, str, str], float] | None = None
    untested: frozenset[tuple[str, str, str]] = frozenset()

    def correlation(self, pair: PairEffect, subject: str) -> float | None:
        """Return the correlation that was found between blocks of a pair; None where none was."""
        return (self.dependence or {}).get((pair.fabric_a, pair.fabric_b, subject))

    def is_untested(self, pair: PairEffect, subject: str) -> bool:
        """Whether blocks of a pair may resemble each other by more than is reckoned with."""
        return (pair.fabric_a, pair.fabric_b, subject) in self.untested

    def usual_of_sessions(self, pair: PairEffect, subject: str) -> float:
        """Return how much the means of sessions scatter in a usual test of a pair; 0 where there are no sessions."""
        return (self.sessions or {}).get((pair.fabric_a, pair.fabric_b, subject), 0.0)


@dataclass(frozen=True)
class Span:
    """The least and the largest log ratio of a block, and by how much the middle half of the blocks' are apart."""

    least: float
    largest: float
    half: float

    @property
    def reach(self) -> float:
        """How far the mean may be from the truth where blocks resemble each other."""
        return min(DEPENDENT_REACH * (self.largest - self.least), DEPENDENT_REACH_OF_HALF * self.half)


@dataclass(frozen=True)
class Judged:
    """A pair of a row and what its verdict rests on: the mean log ratio `b / a`, both groups, the least and largest of a block."""

    pair: PairEffect
    is_lower_better: bool
    subject: str
    rate: float
    margin: float
    known: LogRatio | None
    groups: LaunchGroups | None = None
    span: Span | None = None
    single_runs: tuple[str, ...] = ()
    """The sides of which there is one run alone, in words (`before`)."""
    sessions: tuple[float, ...] = ()
    """The mean log ratio of each session in which blocks were measured."""
    usual_of_sessions: float = 0.0
    """How much these scatter (log) in a usual test: two of them agree by chance in some row."""
    rate_of_sessions: float = 0.0
    """What these may err."""
    values: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """The log values of both sides that are compared: pairs by block, or of each launch."""
    is_one_machine: bool = True
    """Whether memory is a control of this pair."""
    worse: tuple[float, float] | None = None
    """Of a tail whose launches are in two groups: how many times worse the slow ones are, the least and the most."""

    @property
    def of_sessions(self) -> LogRatio | None:
        """The log ratio by the means of several sessions, each one value of what differs between them; None of a single one.

        They scatter at least as in a usual test.
        """
        if self.known is None or len(self.sessions) < 2:
            return None
        found = LogRatio.of_means(np.array(self.sessions), self.known.rounding_bound)
        return replace(
            found, deviation=max(found.deviation, self.usual_of_sessions), met=self.known.met or self.known.launches
        )

    def with_dead(self, fabric: str, starts: int) -> Decision:
        """Return what is decided if so many more starts of a side had been as slow as its slowest launch, or as two usual ones.

        Its slowest stands against a usual launch of the other side, as often as starts died. That each costs TIMES_OF_DEAD launches
        moves the mean by a known part, and scatters nothing. The weaker of both decisions counts.
        """
        mine, other = self.values if fabric == self.pair.fabric_a else self.values[::-1]
        if self.known is None or not mine or not other:
            return Decision.UNDECIDED
        slowest = max(mine) if self.is_lower_better else min(mine)
        dead = (slowest - float(np.mean(other))) * (-1.0 if fabric == self.pair.fabric_a else 1.0)
        count = self.known.launches
        squares = self.known.deviation**2 * max(count - 1, 1)
        mean = (self.known.mean * count + dead * starts) / (count + starts)
        squares += count * (self.known.mean - mean) ** 2 + starts * (dead - mean) ** 2
        deviation = float(np.sqrt(squares / (count + starts - 1)))
        whole = replace(self.known, mean=mean, deviation=deviation, launches=count + starts)
        share = starts / ((self.known.met or count) + starts)
        return weaker(whole.decide(self.rate, self.margin), self.decide(share * log(TIMES_OF_DEAD)))

    @property
    def parts(self) -> tuple[LogRatio, ...]:
        """The log ratio in each group of launches; the one of all where they are not in groups."""
        if self.known is None:
            return ()
        return (self.known,) if self.groups is None else self.groups.parts(self.known.rounding_bound)

    def decide(self, bias: float = 0.0) -> Decision:
        """Return the decision if the mean may be off by so much more: the stronger of the whole's and of both groups'."""
        if self.known is None:
            return Decision.UNDECIDED
        shared = shared_by([part.off_by(bias) for part in self.parts], self.rate, self.margin)
        if self.groups is None:
            return shared
        return stronger(self.known.off_by(bias).decide(self.rate, self.margin), shared)

    def decide_wider(self, times: float) -> Decision:
        """Return the decision by intervals so many times as wide."""
        if self.known is None:
            return Decision.UNDECIDED
        groups = self.groups
        if groups is not None:
            groups = groups.model_copy(update={"deviation": times * groups.deviation})
        known = replace(self.known, deviation=times * self.known.deviation)
        return replace(self, known=known, groups=groups).decide()

    @property
    def is_open(self) -> bool:
        """Whether nothing is claimed that a trouble could undo."""
        return self.known is None or self.pair.verdict.is_open

    def loses(self, left: Decision) -> Consequence:
        """Return what the verdict loses where only `left` is shown."""
        return Consequence.NOTHING if self.is_open else consequence_of(self.decide(), left)

    def loses_by(self, bias: float) -> Consequence:
        """Return what the verdict loses if the mean may be off by so much more."""
        return self.loses(self.decide(bias)) if bias < inf else self.loses(Decision.UNDECIDED)

    def times(self, log_ratio: float) -> float:
        """Return how many times better the leader is, by a log ratio; B where nobody leads."""
        sign = (-1.0 if self.is_lower_better else 1.0) * (self.pair.verdict.of_leader(-1.0, 1.0) or 1.0)
        return exp(sign * log_ratio)


def weighed(doubt: Doubt, judged: Sequence[Judged]) -> Doubt:
    """Return a doubt about one fabric's numbers with its consequence, where something bounds how far they may be off."""
    decided = [one for one in judged if not one.is_open]
    if not decided or (doubt.delay_share is None and doubt.excess_share is None and not doubt.lost_starts):
        return doubt
    found = doubt.model_copy(update={"consequence": gravest(_of_side(doubt, one) for one in decided)})
    return found if doubt.excess_share is None else _with_ratio_left(found, doubt.excess_share, decided)


def _with_ratio_left(doubt: Doubt, excess: float, judged: Sequence[Judged]) -> Doubt:
    """Return a doubt of too good values with how many times better its fabric is if all of them are too good by as much."""
    left = sorted(
        one.times(one.known.mean) / (1.0 + excess)
        for one in judged
        if one.known is not None and one.pair.verdict.of_leader(one.pair.fabric_a, one.pair.fabric_b) == doubt.subject
    )
    if not left:
        return doubt
    kind = f"{doubt.kind} ({{}} times if all launches on {escaped(doubt.subject)} are off by as much)"
    return doubt.model_copy(
        update={"kind": kind, "numbers": (*doubt.numbers, times_number(left[0]).to(times_number(left[-1])))}
    )


def _of_side(doubt: Doubt, one: Judged) -> Consequence | None:
    fabric = doubt.lost_on or doubt.subject
    leader = one.pair.verdict.of_leader(one.pair.fabric_a, one.pair.fabric_b)
    if fabric not in (one.pair.fabric_a, one.pair.fabric_b):
        return Consequence.NOTHING
    if doubt.lost_starts:  # of a side that is behind already the dead ones would be as slow, or slower
        return (
            Consequence.NOTHING if leader not in (None, fabric) else one.loses(one.with_dead(fabric, doubt.lost_starts))
        )
    delay = doubt.delay_share if leader != doubt.subject else None
    excess = doubt.excess_share if leader in (None, doubt.subject) else None
    bias = 0.0
    if delay is not None:
        bias += -log1p(-delay) if delay < 1.0 else inf
    return one.loses_by(bias + log1p(excess or 0.0))


def doubts_of_pairs(judged: Sequence[Judged], shared_doubts: SharedDoubts) -> list[Doubt]:
    """Return what speaks against a row as a comparison: groups of launches, blocks that resemble each other, a changed machine."""
    found = []
    for one in judged:
        if one.groups is not None and one.pair.verdict is not Verdict.EQUIVALENT:
            doubt = groups_doubt(
                one.groups, one.pair.verdict.leader, is_lower_better=one.is_lower_better, worse=one.worse
            )
            left = one.decide() if one.groups.are_few_that_agree else shared_by(one.parts, one.rate, one.margin)
            found.append(doubt.model_copy(update={"consequence": one.loses(left)}))
        correlation = shared_doubts.correlation(one.pair, one.subject)
        if correlation is not None and one.span is not None and one.known is not None and not one.is_open:
            found.append(_dependence(one, one.known, one.span, correlation))
        elif one.span is not None and one.known is not None and shared_doubts.is_untested(one.pair, one.subject):
            found += _untested(one, one.known.launches)
        if one.of_sessions is not None:
            found += _of_sessions(one, one.of_sessions)
        if one.single_runs and not one.is_open:
            found.append(Doubt.of(_of_single_runs(one.single_runs), is_unknown=True))
        if (
            one.is_one_machine
            and shared_doubts.control_drift
            and (lost := one.loses_by(shared_doubts.control_drift)) is not Consequence.NOTHING
        ):
            found.append(
                Doubt.of(
                    *("the memory control differs by ", percentage(exp(shared_doubts.control_drift) - 1)),
                    ", which no fabric changes: the machine changed between the launches",
                    consequence=lost,
                )
            )
    return found


def _of_sessions(one: Judged, of_sessions: LogRatio) -> Iterator[Doubt]:
    """Yield that the sessions do not show the verdict by themselves."""
    lost = one.loses(of_sessions.decide(one.rate_of_sessions, one.margin))
    if lost is not Consequence.NOTHING:
        least, most = sorted(map(one.times, (min(one.sessions), max(one.sessions))))
        yield Doubt.of(
            *("measured in ", whole(len(one.sessions)), " sessions, ", times_number(least).to(times_number(most))),
            " times in them: how far other days would differ takes blocks of more days to tell",
            consequence=lost,
        )


def _of_single_runs(sides: tuple[str, ...]) -> str:
    if len(sides) > 1:
        return "one run on either side: whatever else differed between the sessions is in the ratio"
    return f"one run ({sides[0]}): how far another one would differ from it is taken from the other side"


def _untested(one: Judged, blocks: int) -> Iterator[Doubt]:
    """Yield that so many blocks do not exclude a correlation of neighbours with which the verdict would be less.

    It is no alarm, for nothing was found. Of an equivalence it is not asked: its tests err towards caution.
    """
    part = min(max((blocks - UNTESTED_FROM) / (UNTESTED_AT - UNTESTED_FROM), 0.0), 1.0)
    lost = one.loses(one.decide_wider(1.0 + part * (times_wider(UNTESTED_CORRELATION) - 1.0)))
    if lost is Consequence.NOTHING or one.pair.verdict is Verdict.EQUIVALENT:
        return
    yield Doubt.of(
        whole(blocks),
        " blocks do not exclude that neighbouring ones resemble each other a little (lag-1 correlation ",
        Number(value=UNTESTED_CORRELATION, written=f"{UNTESTED_CORRELATION:g}"),
        "): the interval may be too narrow",
        consequence=lost if lost is Consequence.AMOUNT else None,
    )


def _dependence(one: Judged, known: LogRatio, span: Span, correlation: float) -> Doubt:
    left = known.anywhere_within(span.reach).decide(one.rate, one.margin)
    least, most = sorted(map(one.times, (span.least, span.largest)))
    return Doubt.of(
        "ratios of neighbouring blocks resemble each other (lag-1 correlation ",
        Number(value=correlation, written=f"{correlation:.2f}"),
        *("), all of them within ", times_number(least).to(times_number(most))),
        " times: the interval is too narrow",
        consequence=one.loses(left),
    )


def gravest(consequences: Iterable[Consequence | None]) -> Consequence | None:
    """Return the gravest of some consequences; nothing of none."""
    return max(consequences, key=GRAVITY.index, default=Consequence.NOTHING)


def grade_of(judged: Sequence[Judged], doubts: Sequence[Doubt], *, is_alone: bool = False) -> Grade:
    """Return the grade of a row by all that speaks against it; of a fabric that `is_alone` it is the values that are in doubt."""
    if any(doubt.is_void for doubt in doubts):
        return Grade.VOID
    if is_alone and doubts:
        return Grade.DOUBTFUL
    if all(one.pair.verdict.is_open for one in judged):
        return Grade.OPEN
    worst = gravest(doubt.consequence for doubt in doubts)
    return {Consequence.NOTHING: Grade.CLEAR, Consequence.DIRECTION: Grade.ALARM}.get(worst, Grade.DOUBTFUL)  # type: ignore[arg-type]
