"""What is drawn of the samples inside launches, of two fabrics whose truth is known: stalls, two modes, a late switch (WITHIN)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fabricbench.analysis.measured import TAILS
from support.verdict_noises import TRIPS, Drawn, Floats, Inside, Random, usual

SAMPLES = 1000
"""Of a launch: the fewest of which a tail of one in a thousand is shown."""
WIDTH = 0.02
"""Deviation (log) of the samples of a launch."""
STALL = 49.0
"""How many times a stall takes a usual round trip, beside it."""


def _stalling(random: Random, shape: tuple[int, ...], rate: float) -> Floats:
    """Draw samples of which at that rate one is a stall, exponential in length; shape (..., samples)."""
    usual_ones = np.exp(random.normal(0.0, WIDTH, shape))
    return np.asarray(usual_ones + (random.random(shape) < rate) * STALL * random.standard_exponential(shape))


@lru_cache(maxsize=8)
def _levels(rate: float) -> dict[str | float, float]:
    """Return the log median over launches of the tails of samples that stall so often, and of their median; the log mean."""
    samples = _stalling(np.random.default_rng(1), (4000, SAMPLES), rate)
    found: dict[str | float, float] = {
        tail: float(np.median(np.log(np.quantile(samples, tail, axis=1)))) for tail in TAILS
    }
    return found | {"median": 0.0, "mean": float(np.log(np.exp(WIDTH**2 / 2.0) + rate * STALL))}


def _stalls(of_a: float, of_b: float) -> Callable[[Random, int], Drawn]:
    """Launches of which one sample in so many is a stall: the medians know nothing of it."""

    def draw(random: Random, blocks: int) -> Drawn:
        shape = (len(TRIPS), blocks, SAMPLES)
        samples = np.stack([_stalling(random, shape, rate) for rate in (of_a, of_b)])
        levels = _levels(of_a), _levels(of_b)
        shift = {name: levels[1][name] - levels[0][name] for name in levels[0]}
        return Drawn(
            usual(random, blocks), inside=Inside(samples, shift, level={tail: levels[0][tail] for tail in TAILS})
        )

    return draw


def _two_modes(of_a: float, of_b: float) -> Callable[[Random, int], Drawn]:
    """Samples of 1 and of 1.2 times the level, so many of them slow: a median lies in the one mode or in the other by chance.

    What their means differ by is the truth, of the median too.
    """

    def draw(random: Random, blocks: int) -> Drawn:
        shape = (len(TRIPS), blocks, SAMPLES)
        samples = np.stack(
            [
                np.where(random.random(shape) < share, 1.2, 1.0) * np.exp(random.normal(0.0, WIDTH, shape))
                for share in (of_a, of_b)
            ]
        )
        shift = float(np.log1p(0.2 * of_b) - np.log1p(0.2 * of_a))
        return Drawn(usual(random, blocks), inside=Inside(samples, {"median": shift, "mean": shift}))

    return draw


def _late(share: float, mean: float) -> Callable[[Random, int], Drawn]:
    """On a the emulated switch released so many of all frames late, by so much of a round trip, more in some launches."""

    def draw(random: Random, blocks: int) -> Drawn:
        shape = (len(TRIPS), blocks, SAMPLES)
        samples = np.exp(random.normal(0.0, WIDTH, (2, *shape)))
        late = np.zeros((2, *shape, 2))
        mood = np.exp(random.normal(0.0, 0.5, (len(TRIPS), blocks, 1, 1)))
        late[0] = (random.random((*shape, 2)) < share) * random.standard_exponential((*shape, 2)) * mean * mood
        return Drawn(usual(random, blocks), inside=Inside(samples + late.sum(axis=-1), {"median": 0.0}, late))

    return draw


WITHIN: dict[str, Callable[[Random, int], Drawn]] = {
    "stalls, both, 1 sample in 200": _stalls(1 / 200, 1 / 200),
    "stalls, both, 1 sample in 2,000": _stalls(1 / 2000, 1 / 2000),
    "stalls, b, 1 sample in 200": _stalls(0.0, 1 / 200),
    "stalls, b, 1 sample in 2,000": _stalls(0.0, 1 / 2000),
    "two modes of samples, 48 and 52 % slow": _two_modes(0.48, 0.52),
    "two modes of samples, half slow": _two_modes(0.5, 0.5),
    "two modes of samples, 30 % slow": _two_modes(0.3, 0.3),
    "late switch on a, all frames": _late(1.0, 0.03),
    "late switch on a, 1 frame in 10": _late(0.1, 0.3),
}
