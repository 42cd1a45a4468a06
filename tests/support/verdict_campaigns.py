"""Campaigns of two fabrics whose truth is known, through comparison, first screen and grade: what is clear, and what is wrong.

Four rows lead (a small message's time and a large one's rate, over MPI and TCP), as on the first screen of a usual run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from fabricbench.analysis.cell_doubts import unknowns_of
from fabricbench.analysis.findings import Doubt, Effect, Grade, Verdict
from fabricbench.analysis.headline import rows_of
from fabricbench.analysis.instrument import doubt_of
from fabricbench.analysis.lost_launches import doubt_of_losses
from fabricbench.analysis.measured import TAILS, CellMeasured, Side
from fabricbench.analysis.pairing import pair
from fabricbench.record.launch import CellLateness
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.run_account import SubjectAccount
from support.lost_runs import write_journal
from support.simulated_sides import compared, sides_of
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run
from support.verdict_noises import BETWEEN, KEYS, TRIPS, Drawn, Floats, Inside, Random, launch_order
from support.verdict_samples import WITHIN

MARGIN = 0.02
SLOWER = np.array([1.0 if key.metric.is_lower_better else -1.0 for key in KEYS])
NOISES: dict[str, Callable[[Random, int], Drawn]] = BETWEEN | WITHIN


DAY_NS, LAUNCH_NS = 86_400 * 10**9, 10**9


def _launches(drawn: Drawn, names: str) -> list[list[Any]]:
    """Return the launches of each side, with their places in their blocks and the days on which they were measured."""
    made: list[list[Any]] = []
    for side, name in enumerate(names):
        blocks = np.flatnonzero(~np.isnan(drawn.slowness[side, 0])).tolist()
        mine = []
        for block in blocks:
            day = drawn.day_of[block] if len(drawn.day_of) else 0
            place = [*drawn.order[2 * block : 2 * block + 2]].index(side) if len(drawn.order) else None
            header = SimpleNamespace(started_unix_ns=(1 + day) * DAY_NS + (2 * block + side) * LAUNCH_NS, ranks=())
            summary = SimpleNamespace(header=header, footer=None, workload=None, kernel=None)
            origin = Origin.IMPORTED if drawn.is_imported else Origin.MEASURED
            mine.append(
                SimpleNamespace(
                    block=block,
                    fabric=name,
                    launch_id=f"b{block:02d}-{name}",
                    directory=Path(f"b{block:02d}-{name}"),
                    position=place,
                    origin=origin,
                    proof=Proof.PROVEN,
                    subject="",
                    summary=summary,
                )
            )
        made.append(mine)
    return made


def _in_runs(drawn: Drawn, sides: Sequence[Side]) -> list[Side]:
    """Return the sides with their launches, of one run, or of so many runs before and after."""
    launches = _launches(drawn, "ab")
    if drawn.runs is None:
        run: Any = SimpleNamespace(manifest=None, launches=[one for mine in launches for one in mine])
        return [
            replace(side, run=run, runs=(run,), launches=tuple(mine))
            for side, mine in zip(sides, launches, strict=True)
        ]
    made = []
    for side, mine, count, name in zip(sides, launches, drawn.runs, ("f (before)", "f (after)"), strict=True):
        manifest = SimpleNamespace(versions={}, inventory={}, losses=())
        runs = tuple(
            SimpleNamespace(manifest=manifest, path=f"{name} {number}", launches=()) for number in range(count)
        )
        run_of = tuple(place * count // len(mine) for place in range(len(mine)))
        cells = {
            key: replace(cell, launch_values=cell.launch_values[: len(mine)], pooled=cell.pooled[: len(mine)])
            for key, cell in side.cells.items()
        }
        fabric = sides[0].fabric
        made.append(
            replace(
                side, name=name, fabric=fabric, run=runs[0], runs=runs, run_of=run_of, launches=tuple(mine), cells=cells
            )
        )
    return made


def _sides(drawn: Drawn, faster: float) -> list[Side]:
    slowness = drawn.slowness.copy()
    slowness[1] -= np.log(faster)
    levels = np.log(np.array([15.2e3, 15.2, 15.2e3, 15.2]))[None, :, None]  # any that digits are coarse at
    values = np.exp(levels + slowness * SLOWER[:, np.newaxis])
    of_trips = None
    if drawn.inside is not None:
        of_trips = values[:, TRIPS, :, np.newaxis] * drawn.inside.samples
        values[:, TRIPS] = np.median(of_trips, axis=3)
    step = None
    if drawn.digits is not None:
        step = 10.0 ** (np.floor(np.log10(values)) - drawn.digits + 1)
        values = np.maximum(np.rint(values / step), 1.0) * step
    sides = sides_of(KEYS, np.log(values), ("a", "b"))
    for side, of_side in enumerate(sides):
        if step is not None:
            for row, cell in enumerate(of_side.cells.values()):
                cell.step_share = float(np.mean(step[side, row] / values[side, row]))
        if of_trips is not None and drawn.inside is not None:
            _add_samples(of_side, of_trips[side], drawn.inside, side)
    sides = _in_runs(drawn, sides)
    if drawn.dead_on_b:
        blocks = slowness.shape[2]
        account = SubjectAccount(
            fabric="b",
            subject="",
            planned=blocks,
            starts=blocks + drawn.dead_on_b,
            failed_starts=drawn.dead_on_b,
            measured=blocks,
        )
        sides[1].accounts = (account,)
    return sides


def _add_samples(side: Side, of_trips: Floats, inside: Inside, number: int) -> None:
    """Give the cells of round trips what is kept of their samples, shape (trips, blocks, samples), and of the switch."""
    cells = list(side.cells.values())
    for trip, row in enumerate(TRIPS):
        samples = of_trips[trip]
        cells[row].tails = {tail: np.quantile(samples, tail, axis=1) for tail in TAILS}
        cells[row].means = samples.mean(axis=1)
        cells[row].pooled = np.sort(samples, axis=None)
        if inside.late is not None and inside.late[number].any():
            level = cells[row].launch_values / np.median(inside.samples[number, trip], axis=1)
            cells[row].lateness = tuple(map(lateness, inside.late[number, trip] * level[:, np.newaxis, np.newaxis]))


def _judge(side: Side, cell: CellMeasured, is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
    """Return what the product says against a cell, but for what a wire allows: there is none."""
    found = [lost] if (lost := doubt_of_losses(side, cell)) is not None else []
    late = doubt_of(side, cell)
    if late is not None and (is_tail or not late.is_tail_only):
        found.append(late.doubt.model_copy(update={"delay_share": late.delay_share}))
    return (*found, *unknowns_of(side, cell))


@dataclass(frozen=True)
class Outcome:
    """What a campaign came to: whether a clear row is wrong, whether all blocks were on one side, whether all rows were clear.

    `reach`: how far the mean ratio is from the middle of an interval, in halves of its width, in the row where it is farthest: the
    intervals of all rows together hold it up to 1. `of_samples` counts, of tails and means, rows that
    are clear and wrong, and intervals of ratios and of levels, and how many of these hold.
    """

    is_wrong: bool
    is_one_sided: bool
    is_clear: bool
    reach: float
    of_samples: Counter[str]

    @property
    def is_held(self) -> bool:
        """Whether the intervals of all rows together hold the mean ratio."""
        return self.reach <= 1.0


def run_campaign(random: Random, noise: str, blocks: int, faster: float) -> Outcome:
    """Draw a campaign in which b is so many times faster, and return what the first screen says of it."""
    drawn = NOISES[noise](random, blocks)
    sides = _sides(drawn, faster)
    pairings = None if drawn.runs is None else [pair(*sides)]
    # A first look spends 0.8 of 5 %.
    _, effects, _ = rows_of(compared(sides, judge=_judge, margin=MARGIN, confidence=0.96, pairings=pairings))
    lead = np.log(faster)
    rows = [(effect, _truths(drawn, effect, lead)) for effect in effects if effect.is_typical]
    differences = drawn.slowness[0] - drawn.slowness[1] + lead
    return Outcome(
        any(_is_wrong(effect.pairs[0].verdict, leads) for effect, leads in rows if effect.grade is Grade.CLEAR),
        bool(np.all(differences[~np.isnan(differences)] > 0)),
        all(effect.grade is Grade.CLEAR and effect.pairs[0].verdict is Verdict.B_FASTER for effect, _ in rows),
        max((_reach(effect, leads[-1]) for effect, leads in rows), default=0.0),
        _of_samples(drawn, [effect for effect in effects if not effect.is_typical], lead),
    )


WRITTEN = tuple(
    name for name in NOISES if not any(one in name for one in ("runs, ", " after", "imports, ", " digits "))
)
"""The noises that lie inside one run of ours, which `write_campaign` stores: not runs before and after, nor what others print."""


@dataclass(frozen=True)
class WrittenCampaign:
    """What is known of a stored campaign: whether b leads in every block, and whether a verdict on a row is wrong."""

    is_one_sided: bool
    _of_trips: tuple[float, ...]
    _of_streams: tuple[float, ...]

    def is_wrong(self, verdict: Verdict, *, is_trip: bool) -> bool:
        """Whether a verdict on a row of round trips, or of streams, is true of neither the usual launch nor the mean."""
        return _is_wrong(verdict, self._of_trips if is_trip else self._of_streams)


def write_campaign(directory: Path, random: Random, noise: str, blocks: int, faster: float) -> WrittenCampaign:
    """Write a run of one of WRITTEN, in nanoseconds and bits a second, in which b is so many times faster."""
    drawn = NOISES[noise](random, blocks)
    lead = np.log(faster)
    slowness = drawn.slowness - np.array([0.0, lead])[:, np.newaxis, np.newaxis]
    levels = np.where(SLOWER > 0, 60e3, 1e9)

    def median_of(launch: PlannedLaunch, row: int) -> float:
        return float(levels[row] * np.exp(SLOWER[row] * slowness["ab".index(launch.fabric), row, launch.block]))

    def factors_of(launch: PlannedLaunch, row: int) -> Floats | None:
        if drawn.inside is None or row not in TRIPS:
            return None
        return drawn.inside.samples["ab".index(launch.fabric), TRIPS.index(row), launch.block]

    def lateness_of(launch: PlannedLaunch) -> dict[int, CellLateness]:
        side = "ab".index(launch.fabric)
        if drawn.inside is None or drawn.inside.late is None or not drawn.inside.late[side].any():
            return {}
        of_launch = drawn.inside.late[side, :, launch.block]
        return {row: lateness(of_launch[trip] * median_of(launch, row)) for trip, row in enumerate(TRIPS)}

    run = write_synthetic_run(
        directory,
        cells=[
            SyntheticCell(
                key.layer,
                key.pattern,
                key.message_bytes,
                dict.fromkeys("ab", 1.0),
                receive=key.receive,
                samples=40 if drawn.inside is None or row not in TRIPS else drawn.inside.samples.shape[-1],
            )
            for row, key in enumerate(KEYS)
        ],
        blocks=blocks,
        noise=Noise(0.0, 0.01),
        seed=int(random.integers(2**31)),
        testbed=synthetic_testbed({"a": None, "b": None}),
        order=["ab"[side] for side in drawn.order or launch_order(random, blocks)],
        day_of=drawn.day_of,
        median_of=median_of,
        factors_of=factors_of,
        lateness_of=lateness_of,
    )
    write_journal(run, again=[f"b{block:02d}-b" for block in random.integers(blocks, size=drawn.dead_on_b)])
    usual = lead, lead - drawn.mean_shift
    of_trips = usual if drawn.inside is None else (lead - drawn.inside.shift["median"],)
    return WrittenCampaign(bool(np.all(slowness[0] > slowness[1])), of_trips, usual)


def lateness(late: Floats) -> CellLateness:
    """Return what a switch tells of frames that it released so late."""
    quantiles = dict(zip(("p50", "p90", "p99"), map(float, np.quantile(late, (0.5, 0.9, 0.99))), strict=True))
    return CellLateness(count=late.size, mean=float(late.mean()), maximum=float(late.max()), **quantiles)


def _truths(drawn: Drawn, effect: Effect, lead: float) -> tuple[float, ...]:
    """Return how much faster b is (log) in a row: in the usual launch, and in the mean of launches."""
    if drawn.inside is None or not effect.metric.is_lower_better:
        return lead, lead - drawn.mean_shift
    return (lead - drawn.inside.shift["median"],)


def _of_samples(drawn: Drawn, effects: Sequence[Effect], lead: float) -> Counter[str]:
    found: Counter[str] = Counter()
    for effect, name in _named(effects):
        shift = None if drawn.inside is None else drawn.inside.shift.get(name)
        if shift is None or drawn.inside is None:
            continue
        found.update(
            sample_rows=1,
            sample_wrong=int(effect.grade is Grade.CLEAR and _is_wrong(effect.pairs[0].verdict, (lead - shift,))),
            sample_held=int(_reach(effect, lead - shift) <= 1.0),
        )
        level = drawn.inside.level.get(name) if isinstance(name, float) else None
        if level is not None and effect.readings[0].low is not None and effect.readings[0].high is not None:
            true = 15.2e3 * np.exp(level)
            held = effect.readings[0].low <= true <= effect.readings[0].high
            found.update(levels=1, levels_held=int(held))
    return found


def _named(effects: Sequence[Effect]) -> Iterator[tuple[Effect, str | float]]:
    """Yield rows of samples with the name of what they show: "mean", or the tail."""
    for effect in effects:
        tails = [tail for tail in TAILS if effect.what.startswith(f"p{100 * tail:g} of ")]
        yield effect, "mean" if effect.is_mean else tails[0]


def _reach(effect: Effect, lead: float) -> float:
    """Return how far the interval of a row is from how much faster b is, in halves of its width; one not shown holds everything."""
    ends = [np.log([one.low, one.high]) for one in effect.pairs if one.low is not None and one.high is not None]
    return max((abs(lead - float(np.mean(one))) / max(float(np.ptp(one)) / 2.0, 1e-12) for one in ends), default=0.0)


def _is_wrong(verdict: Verdict, leads: Sequence[float]) -> bool:
    """Whether a verdict is true of none of `leads`, each how much faster b is (log)."""
    limit = float(np.log1p(MARGIN))
    least, most = min(leads), max(leads)
    return {
        Verdict.A_FASTER: least >= -limit,
        Verdict.B_FASTER: most <= limit,
        Verdict.A_AHEAD: least >= 0,
        Verdict.B_AHEAD: most <= 0,
        Verdict.EQUIVALENT: most > limit or least < -limit,
    }.get(verdict, False)
