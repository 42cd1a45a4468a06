"""Whether points in time lie on a grid: the period by which they come in step.

The resultant length of the phases of n points by a period, |mean exp(2 pi i t / period)|, is 1 where all lie on a grid of it and
about 1 / sqrt(n) where they come at random; for random points P(length > r) is about exp(-n r^2) (Rayleigh's test: Mardia and Jupp,
"Directional Statistics" (2000), section 6.3). Over a span T about T (1 / shortest - 1 / longest) periods can be told apart, and
between them the length goes on changing; that any of them comes out as long is about that many times sqrt(n r^2) as probable
(Baluev, "Assessing the statistical significance of periodogram peaks", MNRAS 385 (2008)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS_OF_A_PERIOD = 8
"""Of the shortest: the resultant length comes out within 3 % (sinc(1/8)), which is corrected for."""
FEWEST_POINTS = 20
SAME_LENGTH = 0.9
"""Of the longest: points on a grid are on that of every part of its period as well, and there a little less sharply."""


@dataclass(frozen=True)
class Period:
    """The period that points come in step by, in their unit, its resultant length, and how often chance alone finds one as long."""

    period: float
    length: float
    by_chance: float


def resultant_length(times: Floats, period: float) -> float:
    """Return how sharply points in time gather at one phase of a period: 0 to 1."""
    return float(np.abs(np.mean(np.exp(2j * np.pi * (times - times[0]) / period))))


def find_period(times: Floats, shortest: float, longest: float) -> Period | None:
    """Return the period that points are most in step by, from `shortest` to `longest`, in their unit.

    None of fewer than FEWEST_POINTS, and of less than two of the longest periods. Of a grid the period itself is told, not a part
    of it: None where that is beyond the longest.
    """
    if len(times) < FEWEST_POINTS:
        return None
    since = np.sort(times) - times.min()
    span = float(since[-1])
    if span < 2.0 * longest:
        return None
    step = shortest / BINS_OF_A_PERIOD
    counts = np.bincount((since / step).astype(np.int64))
    padded = 1 << (2 * len(counts) - 1).bit_length()
    frequencies = np.fft.rfftfreq(padded, step)
    is_asked = (frequencies >= 1.0 / longest) & (frequencies <= 1.0 / shortest)
    lengths = np.abs(np.fft.rfft(counts, padded))[is_asked] / len(times) / np.sinc(frequencies[is_asked] * step)
    frequency, length = _refined(since, float(frequencies[is_asked][np.argmax(lengths)]), span)
    parts = range(2, int(BINS_OF_A_PERIOD * longest / shortest))
    whole = [part for part in parts if resultant_length(since, part / frequency) >= SAME_LENGTH * length]
    if whole:
        frequency, length = _refined(since, frequency / whole[-1], span)
    if 1.0 / frequency > longest + 1.0 / (span * frequency**2):
        return None
    power = len(times) * length**2
    trials = span * (1.0 / shortest - 1.0 / longest) * float(np.sqrt(power))
    return Period(1.0 / frequency, length, min(1.0, trials * float(np.exp(-power))))


def _refined(since: Floats, frequency: float, span: float) -> tuple[float, float]:
    """Return the frequency of the longest resultant beside one, and that length."""
    near = frequency + np.linspace(-0.5, 0.5, 41) / span
    lengths = np.abs(np.exp(2j * np.pi * near[:, np.newaxis] * since[np.newaxis, :]).mean(axis=1))
    best = int(np.argmax(lengths))
    return float(near[best]), float(lengths[best])
