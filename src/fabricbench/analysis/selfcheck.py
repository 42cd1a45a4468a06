"""The self-check: is this machine one on which verdicts hold? A fabric is compared with itself, so whatever is found is wrong.

    plain        *twins*, a fabric that the testbed lists twice, by block; *halves*, the first half of a fabric's launches against
                 the second. As they were measured, nothing exchanged: a bias or a drift is a difference here, and fails
    dependence   does a launch, or a block's ratio, resemble the one before it, or drift? Verdicts take both for independent
    method       verdicts on launches dealt into two halves at random, and on twins whose sides are exchanged at random. That
                 hides any bias, and says only whether the arithmetic keeps its promise with the noise of this machine

Plain comparisons and tests of dependence share 1 - confidence, half each, by Holm's correction: so often at most a healthy machine
fails, and a second run decides. Trials of the method overlap, so that their share scatters more than that of as many
independent experiments: the proof is in the simulations (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.analysis.comparing import check_levels, number
from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import Side, in_order, ratio_rounding
from fabricbench.analysis.sides import read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model
from fabricbench.record.provenance import Marks
from fabricbench.record.store import Run
from fabricbench.statistics.correction import holm
from fabricbench.statistics.decision import EQUIVALENT, UNDECIDED, corrected, decision_codes, p_values_of
from fabricbench.statistics.dependence import LEAST_IN_A_ROW, pooled_lag_one, trend
from fabricbench.statistics.gate_power import POWER
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Ratios, Rounding, paired_ratios, unpaired_ratios
from fabricbench.testbed.model import Fabric

Floats = NDArray[np.float64]

MOST_TRIALS = 1000

PLAIN_SHARE = 0.5
"""The share of 1 - confidence that plain comparisons may err with; tests of dependence have the rest."""


class CellAgainstItself(Model):
    """A cell that differs from itself. `ratio` is above 1 where the second (the twin, the second half) is slower."""

    key: CellKey
    ratio: float
    low: float
    high: float
    p_adjusted: float


class PlainComparison(Model):
    """A fabric against itself as it was measured. `launches` counts pairs, or the launches of the smaller half.

    `named` are the cells in which a side was named faster, the largest difference first; `largest_ratio` is that of any cell, named
    or not. `finds` is the smallest bias of one cell (a ratio) that would have been found with 80 %, in the median cell.
    """

    way: Literal["twins", "halves"]
    fabric: str
    twin: str | None
    launches: int
    cells: int
    named: tuple[CellAgainstItself, ...]
    largest_ratio: float
    finds: float


class Dependence(Model):
    """Whether launches of a fabric, or ratios of two fabrics over blocks, depend on each other. p-values are adjusted (Holm).

    `autocorrelation` is that of a launch with the one before, over all cells of the network, less what independent ones show.
    `drift` is the change from first to last as a ratio, above 1 where it became slower (or the second fabric did).
    """

    fabric: str
    other: str | None
    launches: int
    autocorrelation: float | None
    p_autocorrelation: float | None
    drift: float | None
    p_drift: float | None
    is_autocorrelated: bool
    has_drift: bool


class SelfcheckResult(Model):
    """The check of the method: how often verdicts were wrong where any bias was hidden by exchanging launches at random.

    `trials` splits (or exchanges) of `cells` cells each; `wrong_trials` is the share with any wrong verdict (should be at most
    1 - confidence), `wrong_verdicts` the share of all verdicts. `largest_ratio` is the geometric mean ratio farthest from 1, as a
    factor above 1, that a trial showed in a cell; `typical_half_width` the median half width of the intervals, a relative
    difference: what this machine can resolve.
    """

    way: Literal["splits", "twins"]
    fabric: str
    twin: str | None
    launches: int
    cells: int
    trials: int
    wrong_trials: float
    wrong_verdicts: float
    equivalent: float
    not_enough_data: float
    largest_ratio: float
    typical_half_width: float


class Selfcheck(Model):
    """The self-check of a run. `plain` and `dependence` decide; `results` check the method."""

    margin: float
    confidence: float
    plain: tuple[PlainComparison, ...]
    dependence: tuple[Dependence, ...]
    results: tuple[SelfcheckResult, ...]
    skipped: tuple[str, ...]
    """Fabrics that could not be checked, with the reason."""
    marks: Marks
    """Which fabrics' numbers are emulated, simulated, predicted or imported."""
    unproven: tuple[str, ...] = ()
    """Fabrics with launches whose traffic nobody counted."""

    @property
    def wrong_trials(self) -> float:
        """Share of trials of the method with a wrong verdict, over all fabrics and ways."""
        trials = sum(result.trials for result in self.results)
        return sum(result.wrong_trials * result.trials for result in self.results) / max(trials, 1)

    @property
    def has_failed(self) -> bool:
        """Whether a fabric differs from itself, or launches depend on each other."""
        return any(one.named for one in self.plain) or any(
            one.is_autocorrelated or one.has_drift for one in self.dependence
        )


@dataclass(frozen=True)
class _Subject:
    """A fabric against itself, ready to be tested: a row a cell in `keys`, positive where the second is slower."""

    way: Literal["twins", "halves"]
    side: Side
    twin: Side | None
    keys: tuple[CellKey, ...]
    ratios: Ratios


def analyse_selfcheck(
    run: Run, *, fabric: str | None = None, margin: float = 0.02, confidence: float = 0.95, seed: int = 1
) -> Selfcheck:
    """Return what verdicts on a fabric against itself come to; of one `fabric` or of all.

    A run with too little data has no plain comparison. UsageError where the fabric is not there.
    """
    check_levels(margin, confidence)
    sides = read_sides([run])
    names = [side.name for side in sides]
    if fabric is not None and fabric not in names:
        raise UsageError(f"there is no fabric {fabric} in the run", hint=f"choose one of {', '.join(names)}")
    random = np.random.default_rng(seed)
    chosen = [side for side in sides if fabric in (None, side.name) and _reason_to_skip(side) is None]
    pairs = [(a, b) for a, b in combinations(sides, 2) if fabric in (None, a.name, b.name) and _shared(a, b)]
    twins = [(a, b) for a, b in pairs if is_aa_pair(a.fabric, b.fabric) and len(_blocks(a, b)) >= MINIMUM_LAUNCHES]
    subjects = [_twins(a, b, confidence) for a, b in twins] + [_halves(side, confidence) for side in chosen]
    error = 1.0 - confidence
    in_rows: list[tuple[str, str | None, Floats]] = [
        (side.name, None, _in_time(side, [side])) for side in sides if fabric in (None, side.name) and side.cells
    ]
    in_rows += [(a.name, b.name, _in_time(a, [a, b])) for a, b in pairs]
    return Selfcheck(
        margin=margin,
        confidence=confidence,
        plain=tuple(_plain(subjects, PLAIN_SHARE * error)),
        dependence=tuple(_dependences(in_rows, (1.0 - PLAIN_SHARE) * error)),
        results=(
            *(_exchanges(a, b, margin, confidence, random) for a, b in twins),
            *(_splits(side, margin, confidence, random) for side in chosen),
        ),
        skipped=tuple(
            f"{side.name}: {reason}"
            for side in sides
            if fabric in (None, side.name) and (reason := _reason_to_skip(side)) is not None
        ),
        marks=run.marks,
        unproven=run.unproven,
    )


def is_aa_pair(a: Fabric, b: Fabric) -> bool:
    """Return whether two entries of a testbed are the same fabric but for the name."""
    neutral = {"name": "twin", "network": "twin", "description": "", "condition_of": ""}
    return a.model_copy(update=neutral) == b.model_copy(update=neutral)


def _reason_to_skip(side: Side) -> str | None:
    if len(side.blocks) < 2 * MINIMUM_LAUNCHES:
        return f"{len(side.blocks)} valid launches, {2 * MINIMUM_LAUNCHES} are needed to split them"
    return None if side.cells else "nothing was measured"


def _keys(cells: Sequence[CellKey]) -> tuple[CellKey, ...]:
    """Return the cells of the network, those of the memory where there is nothing else."""
    network = [key for key in cells if key.layer is not Layer.MEMORY]
    return tuple(sorted(network or cells, key=in_order))


def _shared(a: Side, b: Side) -> tuple[CellKey, ...]:
    return _keys([key for key in a.cells if key in b.cells])


def _blocks(a: Side, b: Side) -> list[int]:
    return sorted(set(a.blocks) & set(b.blocks))


def _slowness(side: Side, keys: Sequence[CellKey], blocks: Sequence[int]) -> Floats:
    """Return logarithms, larger where slower: a row for each cell, a column for each of the blocks."""
    columns = [side.blocks.index(block) for block in blocks]
    signs = [1.0 if key.metric.is_lower_better else -1.0 for key in keys]
    return np.stack([sign * side.cells[key].log_values[columns] for sign, key in zip(signs, keys, strict=True)])


def _twins(a: Side, b: Side, confidence: float) -> _Subject:
    keys, blocks = _shared(a, b), _blocks(a, b)
    ratios = _slowness(b, keys, blocks) - _slowness(a, keys, blocks)
    return _Subject("twins", a, b, keys, paired_ratios(ratios, confidence, rounding=_rounding(a, b, keys)))


def _halves(side: Side, confidence: float) -> _Subject:
    """Contiguous halves, the middle launch of an odd number in the second: what drifts shows, and is not dealt away."""
    keys = _keys(list(side.cells))
    rows = _slowness(side, keys, _by_time(side))
    half = rows.shape[1] // 2
    return _Subject(
        "halves",
        side,
        None,
        keys,
        unpaired_ratios(rows[:, :half], rows[:, half:], confidence, rounding=_rounding(side, side, keys)),
    )


def _rounding(a: Side, b: Side, keys: Sequence[CellKey]) -> Rounding:
    return Rounding.joined([ratio_rounding(a.cells[key], b.cells[key]) for key in keys])


def _by_time(side: Side) -> list[int]:
    """Return the blocks in the order in which they were measured: one that was measured again stands where it was."""
    started = {block: float(block) for block in side.blocks}
    headers = [(launch.block, launch.summary.header) for launch in side.launches]
    if all(header is not None for _, header in headers):
        for block in side.blocks:
            started[block] = min(header.started_unix_ns for at, header in headers if at == block and header is not None)
    return sorted(side.blocks, key=lambda block: started[block])


def _plain(subjects: Sequence[_Subject], error: float) -> list[PlainComparison]:
    """Test all cells of all comparisons as one family and return who was named."""
    if not subjects:
        return []
    adjusted = holm(np.concatenate([subject.ratios.p_value for subject in subjects]))
    ends = np.cumsum([len(subject.keys) for subject in subjects])
    return [
        _plain_comparison(subject, p_values, error, cells=int(ends[-1]))
        for subject, p_values in zip(subjects, np.split(adjusted, ends[:-1]), strict=True)
    ]


def _plain_comparison(subject: _Subject, adjusted: Floats, error: float, cells: int) -> PlainComparison:
    ratios = subject.ratios
    named = [
        CellAgainstItself(
            key=key,
            ratio=float(ratios.ratio[index]),
            low=float(ratios.low[index]),
            high=float(ratios.high[index]),
            p_adjusted=float(adjusted[index]),
        )
        for index, key in enumerate(subject.keys)
        if adjusted[index] < error
    ]
    freedom = ratios.degrees_of_freedom
    reach = special.stdtrit(freedom, 1.0 - error / cells / 2.0) + special.stdtrit(freedom, POWER)
    return PlainComparison(
        way=subject.way,
        fabric=subject.side.name,
        twin=None if subject.twin is None else subject.twin.name,
        launches=int(ratios.launches.max()),
        cells=len(subject.keys),
        named=tuple(sorted(named, key=lambda one: -abs(np.log(one.ratio)))),
        largest_ratio=float(np.exp(_known(np.abs(np.log(ratios.ratio))).max())),
        finds=float(np.exp(np.median(_known(reach * ratios.log_standard_error)))),
    )


def _known(values: Floats) -> Floats:
    """Return what is a number; one infinite value where nothing is, so that "it finds nothing smaller" stays true."""
    known = values[~np.isnan(values)]
    return known if known.size else np.array([np.inf])


def _in_time(first: Side, sides: Sequence[Side]) -> Floats:
    """Return a side's launches, or the ratios of two, in the order of time: a row for each cell of the network."""
    blocks = [block for block in _by_time(first) if block in sides[-1].blocks]
    keys = _shared(first, sides[-1])
    rows = [_slowness(side, keys, blocks) for side in sides]
    return rows[0] if len(rows) == 1 else rows[1] - rows[0]


def _dependences(in_rows: Sequence[tuple[str, str | None, Floats]], error: float) -> list[Dependence]:
    """Test autocorrelation and drift of all that stands in a row as one family."""
    enough = [(fabric, other, rows) for fabric, other, rows in in_rows if rows.shape[1] >= LEAST_IN_A_ROW]
    lags = [pooled_lag_one(rows) for _, _, rows in enough]
    trends = [trend(_level(rows)) for _, _, rows in enough]
    p_values = [np.nan if one is None else one.p_value for one in (*lags, *trends)]
    adjusted = holm(np.array(p_values)) if p_values else np.zeros(0)
    found = []
    for (fabric, other, rows), lag, drift, p_lag, p_drift in zip(
        enough, lags, trends, adjusted[: len(enough)], adjusted[len(enough) :], strict=True
    ):
        found.append(
            Dependence(
                fabric=fabric,
                other=other,
                launches=rows.shape[1],
                autocorrelation=None if lag is None else lag.autocorrelation,
                p_autocorrelation=number(float(p_lag)),
                drift=None if drift is None else float(np.exp(drift.change)),
                p_drift=number(float(p_drift)),
                is_autocorrelated=bool(p_lag < error),
                has_drift=bool(p_drift < error),
            )
        )
    return found


def _level(rows: Floats) -> Floats:
    """Return each launch's mean over the cells, each cell around its own mean; NaN for a launch without any."""
    present = ~np.isnan(rows)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    centred = np.where(present, rows - np.where(present, rows, 0.0).sum(axis=1, keepdims=True) / count, 0.0)
    cells = present.sum(axis=0)
    return np.asarray(np.where(cells > 0, centred.sum(axis=0) / np.maximum(cells, 1), np.nan), dtype=np.float64)


def _splits(side: Side, margin: float, confidence: float, random: np.random.Generator) -> SelfcheckResult:
    keys = _keys(list(side.cells))
    table = _slowness(side, keys, side.blocks)
    rounding, launches = _rounding(side, side, keys), table.shape[1]
    half = launches // 2
    if comb(launches, half) <= MOST_TRIALS:
        halves = [np.array(chosen) for chosen in combinations(range(launches), half)]
    else:
        halves = [random.permutation(launches)[:half] for _ in range(MOST_TRIALS)]

    def trial(index: int) -> Ratios:
        rest = np.setdiff1d(np.arange(launches), halves[index])
        return unpaired_ratios(table[:, halves[index]], table[:, rest], confidence, rounding=rounding)

    return _result("splits", side, None, len(keys), trial, len(halves), margin, confidence)


def _exchanges(a: Side, b: Side, margin: float, confidence: float, random: np.random.Generator) -> SelfcheckResult:
    keys, blocks = _shared(a, b), _blocks(a, b)
    table = _slowness(b, keys, blocks) - _slowness(a, keys, blocks)
    rounding, count = _rounding(a, b, keys), table.shape[1]
    if count - 1 <= int(np.log2(MOST_TRIALS)):  # all ways that differ in more than an exchange of the names
        signs = 1 - 2 * ((np.arange(2 ** (count - 1))[:, None] >> np.arange(count)) & 1)
    else:
        signs = random.choice([-1, 1], size=(MOST_TRIALS, count))
        signs[0] = 1

    def trial(index: int) -> Ratios:
        return paired_ratios(table * signs[index], confidence, rounding=rounding)

    return _result("twins", a, b.name, len(keys), trial, len(signs), margin, confidence)


def _result(
    way: Literal["splits", "twins"],
    side: Side,
    twin: str | None,
    cells: int,
    trial: Callable[[int], Ratios],
    trials: int,
    margin: float,
    confidence: float,
) -> SelfcheckResult:
    codes = np.zeros((trials, cells), dtype=np.int64)
    largest, widths = 0.0, []
    for index in range(trials):
        ratios = trial(index)
        codes[index] = decision_codes(ratios, corrected(p_values_of(ratios, margin)), margin, confidence)
        largest = max(largest, float(_known(np.abs(np.log(ratios.ratio))).max()))
        widths.append(np.median(_known(np.log(ratios.high / ratios.low))) / 2.0)
    is_wrong = (codes != UNDECIDED) & (codes != EQUIVALENT)
    return SelfcheckResult(
        way=way,
        fabric=side.name,
        twin=twin,
        launches=len(side.blocks),
        cells=cells,
        trials=trials,
        wrong_trials=float(is_wrong.any(axis=1).mean()),
        wrong_verdicts=float(is_wrong.mean()),
        equivalent=float((codes == EQUIVALENT).mean()),
        not_enough_data=float((codes == UNDECIDED).mean()),
        largest_ratio=float(np.exp(largest)),
        typical_half_width=float(np.expm1(np.median(widths))),
    )
