"""Sets sides against each other: every cell and every curve in one family of tests, then a verdict for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, CellSummary, Comparison, Verdict
from fabricbench.analysis.measured import Side, in_order
from fabricbench.model import Layer, Metric
from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.decision import Decision, blocks_to_settle, decide
from fabricbench.statistics.ratios import Ratios, paired_ratios, unpaired_ratios

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Cells that differ in their message size only, in ascending order of it."""

    keys: tuple[CellKey, ...]


@dataclass(frozen=True)
class Pairing:
    """Two sides and the cells that both have. Paired: columns are the blocks that both have. Unpaired: each its launches."""

    a: Side
    b: Side
    is_paired: bool
    keys: tuple[CellKey, ...]

    def log_values(self, key: CellKey) -> tuple[Floats, Floats]:
        """Return the logarithms of both sides' launch values; of equal length and aligned by block where paired."""
        log_a, log_b = self.a.cells[key].log_values, self.b.cells[key].log_values
        if not self.is_paired:
            return log_a, log_b
        by_block_a = dict(zip(self.a.blocks, log_a, strict=True))
        by_block_b = dict(zip(self.b.blocks, log_b, strict=True))
        shared = sorted(set(by_block_a) & set(by_block_b))
        return np.array([by_block_a[block] for block in shared]), np.array([by_block_b[block] for block in shared])

    def log_ratios(self, key: CellKey) -> Floats:
        """Return a log ratio for each block; unpaired launches are independent, so any pairing of them is as good."""
        log_a, log_b = self.log_values(key)
        shorter = min(log_a.size, log_b.size)
        return np.asarray(log_b[:shorter] - log_a[:shorter], dtype=np.float64)

    def clock_deviation(self, key: CellKey) -> float:
        """Return the deviation of a log ratio that the clock's resolution alone makes (uniform rounding on both sides)."""
        shares = (self.a.cells[key].clock_share, self.b.cells[key].clock_share)
        return float(np.hypot(*shares) / np.sqrt(12.0))


def pair(a: Side, b: Side) -> Pairing:
    """Return the pairing of two sides: by block if they come from one run."""
    keys = tuple(sorted(set(a.cells) & set(b.cells), key=in_order))
    return Pairing(a, b, a.run is b.run, keys)


def curves_of(keys: Sequence[CellKey]) -> list[Curve]:
    """Return the curves of at least two sizes."""
    groups: dict[CellKey, list[CellKey]] = defaultdict(list)
    for key in keys:
        groups[key.model_copy(update={"message_bytes": 0})].append(key)
    return [Curve(tuple(sorted(group, key=in_order))) for group in groups.values() if len(group) > 1]


def compare_all(
    pairings: Sequence[Pairing], summaries: Sequence[CellSummary], margin: float, confidence: float
) -> tuple[list[Comparison], list[Comparison]]:
    """Return the comparisons of cells and of curves; one correction spans them all, whatever the number of fabrics."""
    by_name = {(summary.fabric, summary.key): summary for summary in summaries}
    subjects: list[tuple[Pairing, CellKey | Curve]] = []
    for pairing in pairings:
        subjects += [(pairing, key) for key in pairing.keys]
        subjects += [(pairing, curve) for curve in curves_of(pairing.keys)]
    if not subjects:
        return [], []
    ratios = _joined([_ratios(pairing, subject, confidence) for pairing, subject in subjects])
    adjusted = adjusted_with_control(
        ratios.p_value, np.array([_layer(subject) is Layer.MEMORY for _, subject in subjects])
    )
    decisions = decide(ratios, adjusted, margin, confidence)
    more = blocks_to_settle(ratios, adjusted, margin, confidence)
    made = [
        _comparison(
            pairing, subject, ratios, index, float(adjusted[index]), decisions[index], float(more[index]), by_name
        )
        for index, (pairing, subject) in enumerate(subjects)
        if ratios.launches[index] > 0  # else no block has both sides, and there is nothing to say
    ]
    return [one for one in made if one.kind == "cell"], [one for one in made if one.kind == "curve"]


def adjusted_with_control(p_values: Floats, is_control: NDArray[np.bool_]) -> Floats:
    """Return p-values adjusted over all comparisons, those of the control also among themselves (the larger counts).

    Where most network cells truly differ, the false discovery rate allows a few false ones among them: the memory cells, none of
    which should differ, would be those, and raise a false alarm of a changed machine every fourth time.
    """
    adjusted = benjamini_hochberg(p_values)
    of_control = benjamini_hochberg(np.where(is_control, p_values, np.nan))
    return np.where(is_control, np.maximum(adjusted, of_control), adjusted)


def _layer(subject: CellKey | Curve) -> Layer:
    return subject.keys[0].layer if isinstance(subject, Curve) else subject.layer


def _ratios(pairing: Pairing, subject: CellKey | Curve, confidence: float) -> Ratios:
    keys = subject.keys if isinstance(subject, Curve) else (subject,)
    floor = min(pairing.clock_deviation(key) for key in keys)
    if pairing.is_paired:
        return paired_ratios(
            _mean_over_sizes([pairing.log_ratios(key) for key in keys]), confidence, least_deviation=floor
        )
    sides = [pairing.log_values(key) for key in keys]
    log_a, log_b = _mean_over_sizes([a for a, _ in sides]), _mean_over_sizes([b for _, b in sides])
    return unpaired_ratios(log_a, log_b, confidence, least_deviation=floor)


def _mean_over_sizes(rows: Sequence[Floats]) -> Floats:
    """Return each launch's mean over the sizes of a curve; a launch that lacks a size has none, for a mean over others misleads."""
    return np.asarray(np.mean(np.stack(rows), axis=0), dtype=np.float64)


def _joined(parts: Sequence[Ratios]) -> Ratios:
    names = Ratios.__dataclass_fields__
    return Ratios(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _comparison(
    pairing: Pairing,
    subject: CellKey | Curve,
    ratios: Ratios,
    index: int,
    p_adjusted: float,
    decision: Decision,
    more_blocks: float,
    summaries: dict[tuple[str, CellKey], CellSummary],
) -> Comparison:
    is_curve = isinstance(subject, Curve)
    key = subject.keys[0] if isinstance(subject, Curve) else subject
    medians: dict[str, float | None] = dict.fromkeys(("median_a", "low_a", "high_a", "median_b", "low_b", "high_b"))
    if not is_curve:
        for letter, side in (("a", pairing.a), ("b", pairing.b)):
            median = summaries[side.name, key].median
            medians |= {f"median_{letter}": median.value, f"low_{letter}": median.low, f"high_{letter}": median.high}
    verdict = verdict_of(decision, key.metric)
    needs_more = verdict is Verdict.NOT_ENOUGH_DATA and not isnan(more_blocks)
    return Comparison(
        kind="curve" if is_curve else "cell",
        layer=key.layer,
        pattern=key.pattern,
        receive=key.receive,
        variant=key.variant,
        message_bytes=None if is_curve else key.message_bytes,
        metric=key.metric,
        unit=key.metric.unit,
        fabric_a=pairing.a.name,
        fabric_b=pairing.b.name,
        **medians,
        ratio=float(ratios.ratio[index]),
        ratio_low=number(ratios.low[index]),
        ratio_high=number(ratios.high[index]),
        p_value=number(ratios.p_value[index]),
        p_adjusted=number(p_adjusted),
        verdict=verdict,
        launches=int(ratios.launches[index]),
        is_paired=pairing.is_paired,
        more_blocks_needed=int(more_blocks) if needs_more else None,
    )


def verdict_of(decision: Decision, metric: Metric) -> Verdict:
    """Return a decision about `b / a` as a verdict: a lower time is faster, a lower rate is slower."""
    if decision is Decision.EQUIVALENT:
        return Verdict.EQUIVALENT
    if decision is Decision.UNDECIDED:
        return Verdict.NOT_ENOUGH_DATA
    return Verdict.B_FASTER if (decision is Decision.LOWER) == metric.is_lower_better else Verdict.A_FASTER


def number(value: float) -> float | None:
    """Return a number, or None for NaN: findings carry no NaN."""
    return None if isnan(value) else float(value)
