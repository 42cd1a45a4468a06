"""The shape of a distribution: histograms on a logarithmic axis, and a hint at two modes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

SMALLER_MODE_SHARE = 0.1
"""A second mode holds at least this share of all samples, else it is a tail."""

VALLEY_DEPTH = 0.5
"""Between two modes the density falls below this share of the lower peak."""

CHANCE = 5.0
"""Many valleys are tried in many histograms: five standard deviations keep chance out."""

FEWEST_SAMPLES = 100
"""With fewer samples than this, gaps in a histogram are chance."""


def log_edges(low: float, high: float, bins: int) -> Floats:
    """Return `bins + 1` edges, evenly spaced in the logarithm, that hold [low, high]; both above 0."""
    if not high > low:
        low, high = low * 0.99, low * 1.01
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high
    return edges


def has_two_modes(counts: Counts) -> bool:
    """Return whether a histogram looks bimodal: two peaks, each with a good share of the samples, and a deep valley between.

    A hint for the reader, never a test: counts are summed over five bins, then every valley is tried; it must be deeper than
    chance makes it (CHANCE standard deviations of a Poisson count).
    """
    total = int(counts.sum())
    if total < FEWEST_SAMPLES or counts.size < 5:
        return False
    smooth = np.convolve(counts, np.ones(5), mode="same")
    peak = np.minimum(np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1])
    left_share = np.cumsum(counts) / total
    is_valley = (smooth < VALLEY_DEPTH * peak) & (peak - smooth > CHANCE * np.sqrt(peak + 1.0))
    is_shared = (left_share >= SMALLER_MODE_SHARE) & (left_share <= 1.0 - SMALLER_MODE_SHARE)
    return bool(np.any(is_valley & is_shared))
