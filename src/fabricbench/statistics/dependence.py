"""What breaks independence: autocorrelation of samples within a launch, and a trend over blocks.

Neither enters a decision, because a launch is the unit of replication and fabrics are paired within a block; both are told to the
reader, who would otherwise believe ten thousand samples to be ten thousand facts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def side_autocorrelation(samples: Floats) -> float:
    """Return the lag-1 autocorrelation of "above the median", which spikes cannot distort; 0 for fewer than 4 samples."""
    if samples.size < 4:
        return 0.0
    above = (samples > np.median(samples)).astype(np.float64)
    centred = above - above.mean()
    variance = float(np.dot(centred, centred))
    return float(np.dot(centred[1:], centred[:-1])) / variance if variance > 0 else 0.0


def effective_samples(count: int, autocorrelation: float) -> float:
    """Return how many independent samples would give the median the same spread: n (1 - r) / (1 + r), for 0 <= r < 1.

    The variance of a sample median is that of the mean of "above the median" indicators divided by a squared density (Bahadur 1966),
    so their autocorrelation is the one that counts; r is taken at lag 1 and its powers at longer lags.
    """
    bounded = min(max(autocorrelation, 0.0), 0.999)
    return count * (1.0 - bounded) / (1.0 + bounded)


@dataclass(frozen=True)
class Trend:
    """A monotone change over blocks: Kendall's tau with its p-value, and the change in log units from first to last (Theil-Sen)."""

    tau: float
    p_value: float
    change: float


def trend(log_values: Floats) -> Trend | None:
    """Return the trend of one value for each block, in time order, or None for fewer than 5 (no p below 0.05 is possible).

    Mann (1945) and Kendall (1975) for the test, exact where there are no ties; Sen (1968) for the slope.
    """
    position = np.flatnonzero(~np.isnan(log_values)).astype(np.float64)
    values = log_values[~np.isnan(log_values)]
    if values.size < 5 or np.ptp(values) == 0:
        return None
    tau, p_value = stats.kendalltau(position, values)
    later, earlier = np.triu_indices(values.size, k=1)[::-1]
    slope = float(np.median((values[later] - values[earlier]) / (position[later] - position[earlier])))
    return Trend(float(tau), float(p_value), slope * float(position[-1] - position[0]))
