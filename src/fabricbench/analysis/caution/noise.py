"""Warnings about noise: drift over blocks, launches and samples that are not like the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.caution.material import Material, Tally, name_of, named, note_shares, warn
from fabricbench.analysis.findings import Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import percent
from fabricbench.model import Layer, Metric
from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.dependence import Trend, trend
from fabricbench.statistics.shape import has_two_modes

Floats = NDArray[np.float64]

CLOCK_SHARE = 0.01
"""Reading the clock may take this share of a sample before it is told."""

EFFECTIVE_SHARE = 0.2
"""Where fewer samples than this share count as independent, the reader is told."""

OUTLYING = 5.0
OUTLYING_LOG = 0.05
"""A launch is named as off the others from so many robust standard deviations, and from so much in the logarithm."""


def drifts(material: Material) -> Iterator[Warning]:
    """A layer that gets slower or faster from block to block: pairing cancels it in ratios, medians carry it."""
    found: list[tuple[str, Trend]] = []
    for side in material.sides:
        for layer in Layer:
            rows = [_centred(cell) for cell in side.cells.values() if cell.key.layer is layer]
            one = trend(_column_means(rows)) if rows else None
            if one is not None:
                found.append((f"{side.name}, {layer.value}", one))
    yield from _drift_warnings(found, material, "medians over launches carry it; ratios within a block do not")


def ratio_drifts(material: Material) -> Iterator[Warning]:
    """A ratio that changes from block to block: the fabrics did not drift alike."""
    found: list[tuple[str, Trend]] = []
    for pairing in material.pairings:
        for layer in Layer:
            keys = [key for key in pairing.keys if key.layer is layer and key.metric is Metric.ROUND_TRIP_TIME]
            one = (
                trend(_column_means([pairing.log_ratios(key) for key in keys])) if keys and pairing.is_paired else None
            )
            if one is not None:
                found.append((f"{pairing.b.name} / {pairing.a.name}, {layer.value} round trip", one))
    yield from _drift_warnings(
        found, material, "the two fabrics did not drift alike, so the ratio depends on when it was measured"
    )


def _drift_warnings(found: Sequence[tuple[str, Trend]], material: Material, meaning: str) -> Iterator[Warning]:
    if not found:
        return
    adjusted = benjamini_hochberg(np.array([one.p_value for _, one in found]))
    for (name, one), p_value in zip(found, adjusted, strict=True):
        if p_value < 1.0 - material.confidence and abs(one.change) > np.log1p(material.margin):
            text = (
                f"a drift of {100 * np.expm1(one.change):+.1f} % from the first block to the last (p "
                f"{p_value:.2g}): {meaning}"
            )
            yield warn(Severity.WARNING, name, text)


def _centred(cell: CellMeasured) -> Floats:
    """Return how much slower each launch was than the cell's median launch, in logs: rates turn their sign."""
    log = cell.log_values
    if np.isnan(log).all():
        return log
    centred = log - np.nanmedian(log)
    return centred if cell.key.metric.is_lower_better else -centred


def _column_means(rows: Sequence[Floats]) -> Floats:
    table = np.stack(rows)
    present = ~np.isnan(table)
    counts = present.sum(axis=0)
    return np.where(counts > 0, np.where(present, table, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)


def outlying_launches(material: Material) -> Iterator[Warning]:
    """A launch that something else disturbed throughout: named, never dropped."""
    for side in material.sides:
        rows = [_centred(cell) for cell in side.cells.values() if cell.key.layer is not Layer.MEMORY]
        if not rows or len(side.blocks) < 5:
            continue
        level = _column_means(rows)
        known = level[~np.isnan(level)]
        centre = np.median(known)
        spread = 1.4826 * np.median(np.abs(known - centre))
        for block, value in zip(side.blocks, level - centre, strict=True):
            if abs(value) > max(OUTLYING * spread, OUTLYING_LOG):
                text = (
                    f"its tests are {100 * np.expm1(value):+.0f} % in time off the other launches, on average; it "
                    "is kept"
                )
                named_launches = side.launches_of(block)
                whole = f"launch {named_launches[0]}" if len(named_launches) == 1 else f"{side.name}, block {block}"
                yield warn(Severity.WARNING, whole, text)


def clock_cost(material: Material) -> Iterator[Warning]:
    """Cells whose samples are so short that reading the clock is part of them."""

    def shares(side: Side) -> dict[str, float]:
        return {name_of(cell): cell.overhead_share for cell in side.cells.values() if cell.overhead_share > CLOCK_SHARE}

    def words(found: Tally) -> str:
        which = named(list(found.shares))
        return f"reading the clock takes more than {percent(CLOCK_SHARE)} of a sample in {which} (up to {found.most})"

    return note_shares(material, shares, words)


def dependent_samples(material: Material) -> Iterator[Warning]:
    """Samples that tell less than their number promises."""

    def shares(side: Side) -> dict[str, float]:
        cells = side.cells.values()
        return {name_of(cell): cell.effective_share for cell in cells if cell.effective_share < EFFECTIVE_SHARE}

    def words(found: Tally) -> str:
        return (
            f"samples of one launch depend on each other in {found.tests}: as few as {found.least} of them count "
            "as independent. Intervals and verdicts rest on launches, so they are not affected"
        )

    return note_shares(material, shares, words)


def two_modes(material: Material) -> Iterator[Warning]:
    """Cells whose samples gather about two values."""
    for side in material.sides:
        names = [
            name_of(side.cells[one.key])
            for one in material.distributions
            if one.fabric == side.name and has_two_modes(np.array(one.counts[1:-1]))
        ]
        if names:
            yield warn(
                Severity.NOTE,
                side.name,
                f"samples look two-peaked in {named(names)}: the median hides one of the peaks",
            )
