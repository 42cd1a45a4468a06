"""What the order of launches does to their values: the first of a block is slower, say, or whatever follows a certain fabric.

Balanced orders (`campaign.order`) keep such an effect out of a mean, or most of it, and leave it in the scatter. Here it is
estimated together with the sides and the blocks, by least squares: value = side + block + effects. It is taken out only where it
is shown, so that a run without any keeps all of its degrees of freedom; each one that is taken out costs one. Residual effects of
a treatment are fitted so since Williams (1949); see Jones and Kenward, "Design and Analysis of Cross-Over Trials" (2014), ch. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fabricbench.statistics.ratios import NOTHING_FITTED, Fitted

Floats = NDArray[np.float64]

FEWEST_BLOCKS = 8
"""With fewer whole blocks a degree of freedom is worth more than what an effect adds to the scatter."""

LEVEL = 0.01
"""Chance of taking out an effect that is not there: it is then small, and what it does to an interval is so too."""

LEAST_INFORMATION = 0.125
"""Of the values of a campaign: an effect that less than so much of their variation could show cannot be told from side or block."""


@dataclass(frozen=True)
class OrderEffects:
    """Effects of the order on the values of some cells, and what taking them out costs.

    `sizes` has for each effect and cell by how much (log) it raises a value; `removed` what that is of each value, shape (cells,
    sides, blocks); `pooled` the sizes in the values that they were found in.
    """

    chosen: tuple[int, ...]
    pooled: Floats
    sizes: Floats
    removed: Floats
    means: Floats
    """Of each effect on each side the mean over blocks of how much of it a value has, shape (effects, sides)."""
    inverse: Floats

    def fitted(self, contrast: Sequence[tuple[int, float]]) -> Fitted:
        """Return the cost of the fit for a contrast, given as (side, weight) pairs whose weights sum to 0.

        Each effect costs one degree of freedom. Where orders are unbalanced the sides differ in how much of an effect they have,
        and the error of the effect's estimate adds to that of the contrast.
        """
        if not self.chosen:
            return NOTHING_FITTED
        sides, weights = (np.array(values) for values in zip(*contrast, strict=True))
        apart = self.means[:, sides] @ weights
        blocks = self.removed.shape[2]
        more = blocks / float(weights @ weights) * float(apart @ self.inverse @ apart)
        return Fitted(len(self.chosen), float(np.sqrt(1.0 + more)))


def find_order_effects(pooled: Floats, cells: Floats, candidates: Floats) -> OrderEffects | None:
    """Return the effects among `candidates` that are there; None where none is, or there are too few whole blocks.

    `pooled` holds a value for each side and block, in which the effects are looked for, `cells` those of each cell, shape (cells,
    sides, blocks), from which each cell's are taken out; `candidates` how much of an effect each value would have, shape (effects,
    sides, blocks). NaN is what was not measured: only blocks that are whole tell.
    """
    is_whole = ~np.isnan(pooled).any(axis=0)
    if np.count_nonzero(is_whole) < FEWEST_BLOCKS or len(pooled) < 2:
        return None
    chosen = _chosen(pooled[:, is_whole], candidates[:, :, is_whole])
    if not chosen:
        return None
    parts = candidates[list(chosen)]
    within = parts - parts.mean(axis=1, keepdims=True)
    sizes = np.array([_sizes(values, parts) for values in cells]).T
    centred = _centred(parts[:, :, is_whole]).reshape(len(chosen), -1)
    return OrderEffects(
        chosen,
        _sizes(pooled, parts),
        sizes,
        np.asarray(np.einsum("mc,msb->csb", sizes, within), dtype=np.float64),
        np.asarray(within[:, :, is_whole].mean(axis=2), dtype=np.float64),
        np.asarray(np.linalg.inv(centred @ centred.T), dtype=np.float64),
    )


def _chosen(values: Floats, candidates: Floats) -> tuple[int, ...]:
    """Return the effects that are shown, one after the other, each beside those before it."""
    target = _centred(values).ravel()
    columns = _centred(candidates).reshape(len(candidates), -1)
    sides, blocks = values.shape
    chosen: list[int] = []
    usable = [index for index in range(len(columns)) if _is_shown_by(columns, [index], values.size)]
    level = LEVEL / max(len(usable), 1)
    while True:
        found = [
            (_p_value(target, columns[[*chosen, index]], (sides - 1) * (blocks - 1)), index)
            for index in usable
            if index not in chosen and _is_shown_by(columns, [*chosen, index], values.size)
        ]
        p_value, index = min(found, default=(1.0, -1))
        if p_value >= level:
            return tuple(chosen)
        chosen.append(index)


def _is_shown_by(columns: Floats, indices: list[int], values: int) -> bool:
    """Whether the last of some effects varies enough beside the others, sides and blocks."""
    *others, last = columns[indices]
    rest = last
    if others:
        design = np.array(others).T
        rest = last - design @ np.linalg.lstsq(design, last, rcond=None)[0]
    return float(rest @ rest) >= LEAST_INFORMATION * values


def _p_value(target: Floats, columns: Floats, freedom: int) -> float:
    """Return the two-sided p-value of "the last effect is 0", beside the others."""
    inverse = np.linalg.inv(columns @ columns.T)
    sizes = inverse @ columns @ target
    left = max(freedom - len(columns), 1)
    variance = float(np.sum((target - sizes @ columns) ** 2)) / left
    if variance <= 0.0:
        return float(sizes[-1] == 0.0)
    return 2.0 * float(special.stdtr(left, -abs(sizes[-1]) / np.sqrt(variance * inverse[-1, -1])))


def _sizes(values: Floats, parts: Floats) -> Floats:
    """Return the effects in some values, shape (sides, blocks), of their whole blocks; 0 where too few are."""
    is_whole = ~np.isnan(values).any(axis=0)
    columns = _centred(parts[:, :, is_whole]).reshape(len(parts), -1)
    if np.count_nonzero(is_whole) < FEWEST_BLOCKS or np.linalg.matrix_rank(columns) < len(columns):
        return np.zeros(len(parts))
    found = np.linalg.lstsq(columns.T, _centred(values[:, is_whole]).ravel(), rcond=None)[0]
    return np.asarray(found, dtype=np.float64)


def _centred(values: Floats) -> Floats:
    """Return values less what their side and their block have in common."""
    of_side, of_block = values.mean(axis=-1, keepdims=True), values.mean(axis=-2, keepdims=True)
    return np.asarray(values - of_side - of_block + values.mean(axis=(-1, -2), keepdims=True), dtype=np.float64)
