"""What is drawn of two fabrics whose truth is known: the noise of launches, and what each kind of it adds (BETWEEN).

The noise of a launch is half of what loopback showed (docs/statistics.md), most of it shared by the launch's cells. Orders of
launches are those that `campaign.order` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fabricbench.campaign.order import launch_of, order_blocks
from fabricbench.model import Layer
from support.simulated_sides import keys_of

Floats = NDArray[np.float64]
Random = np.random.Generator

KEYS = keys_of(layers=(Layer.TCP, Layer.MPI), trips=(64,), streams=(16384,))
TRIPS = [row for row, key in enumerate(KEYS) if key.metric.is_lower_better]
"""The rows of round trips, which samples are drawn of; a stream has none."""
LAUNCH, CELL = 0.012, 0.0085
"""Deviations (log) of what a launch shares, and of a cell's own."""
SLOW = float(np.log(1.3))


@dataclass(frozen=True)
class Inside:
    """The samples of the launches: how many times a launch's level each is, shape (2 sides, trips, blocks, samples).

    `late` is by how much the switch released each of a sample's frames too late, relative to the level, shape (..., samples,
    frames): it is in the samples, and not the fabric's. `shift` says by how much (log) b is slower, for what is shown of the
    samples: "median", "mean", or a tail. What is not there is not known. `level` has the log median over launches of each, of a's.
    """

    samples: Floats
    shift: Mapping[str | float, float] = field(default_factory=dict)
    late: Floats | None = None
    level: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawn:
    """A campaign's slowness, log, shape (2 sides, rows, blocks), what it adds to b's mean, and what else is odd about it.

    `order` is the side of each launch in the order of time, `day_of` the day of each block. With `runs` the sides are so many runs,
    before and after, whose launches stand one run after the other; NaN are launches that a side does not have.
    """

    slowness: Floats
    mean_shift: float = 0.0
    digits: int | None = None
    dead_on_b: int = 0
    order: Sequence[int] = ()
    day_of: Sequence[int] = ()
    runs: tuple[int, int] | None = None
    is_imported: bool = False
    inside: Inside | None = None


def usual(random: Random, blocks: int, correlation: float = 0.0) -> Floats:
    """Draw the noise of launches; each side's launches may resemble the one before."""
    scale = np.exp(random.uniform(-0.5, 0.5, (1, len(KEYS), 1)))
    noise = random.standard_normal((2, 1, blocks)) * LAUNCH, random.standard_normal((2, len(KEYS), blocks)) * CELL
    for part in noise:
        for block in range(1, blocks if correlation else 0):
            fresh = np.sqrt(1.0 - correlation**2)
            part[..., block] = correlation * part[..., block - 1] + fresh * part[..., block]
    return np.asarray(scale * (noise[0] + noise[1]))


def launch_order(random: Random, blocks: int) -> list[int]:
    """Return which side each launch is of, in the order of a run of so many blocks."""
    halves = [launch_of("a", (0,), 1.0), launch_of("b", (0,), 1.0)]
    return ["ab".index(one.fabric) for one in order_blocks(halves, range(blocks), int(random.integers(2**31)))]


def in_time(random: Random, blocks: int, series: Floats) -> Drawn:
    """Return the usual noise and what a series over launches, in the order of time, adds to both sides."""
    slowness, order = usual(random, blocks), launch_order(random, blocks)
    for place, side in enumerate(order):
        slowness[side, :, place // 2] += series[place]
    return Drawn(slowness, order=order)


def _slow(of_a: float, of_b: float) -> Callable[[Random, int], Drawn]:
    def draw(random: Random, blocks: int) -> Drawn:
        is_slow = random.random((2, 1, blocks)) < np.array([of_a, of_b])[:, None, None]
        return Drawn(usual(random, blocks) + SLOW * is_slow, (of_b - of_a) * SLOW)

    return draw


def _correlated(random: Random, blocks: int) -> Drawn:
    is_slow = random.random((1, blocks)) < 0.2
    return Drawn(usual(random, blocks) + np.array([SLOW, SLOW / 2])[:, None, None] * is_slow, -0.1 * SLOW)


def _two_states(random: Random, blocks: int) -> Drawn:
    states, slow = [], random.random() < 0.3
    for _ in range(2 * blocks):
        states.append(SLOW * slow)
        slow = random.random() < (0.8 if slow else 0.0857)
    return in_time(random, blocks, np.array(states))


def _pareto(of_a: float, of_b: float) -> Callable[[Random, int], Drawn]:
    def draw(random: Random, blocks: int) -> Drawn:
        tails = np.log1p(random.pareto(1.5, (2, 1, blocks)) * np.array([of_a, of_b])[:, None, None])
        # The mean of log(1 + s X) for a Pareto (Lomax) X of shape 1.5, by quadrature over its quantiles.
        quantiles = (np.arange(20000) + 0.5) / 20000
        means = [float(np.mean(np.log1p(((1 - quantiles) ** (-1 / 1.5) - 1) * scale))) for scale in (of_a, of_b)]
        return Drawn(usual(random, blocks) * 0.3 + tails, means[1] - means[0])

    return draw


def _timed(series: Callable[[Random, int], Floats]) -> Callable[[Random, int], Drawn]:
    return lambda random, blocks: in_time(random, blocks, series(random, 2 * blocks))


def _carry_over(random: Random, blocks: int) -> Drawn:
    slowness, order = usual(random, blocks), launch_order(random, blocks)
    for place, side in enumerate(order):
        slowness[side, :, place // 2] += 0.05 * (place > 0 and order[place - 1] == 1)
    return Drawn(slowness, order=order)


def _days(days: int, deviation: float, rows: int = 1) -> Callable[[Random, int], Drawn]:
    """Blocks of several days, each of which shifts the ratio, of all rows alike or of each by itself."""

    def draw(random: Random, blocks: int) -> Drawn:
        day_of = np.arange(blocks) * days // blocks
        shifts = random.normal(0.0, deviation / np.sqrt(2.0), (2, rows, days))
        return Drawn(usual(random, blocks) + shifts[:, :, day_of], day_of=day_of.tolist())

    return draw


def _runs(before: int, after: int, deviation: float) -> Callable[[Random, int], Drawn]:
    """Runs of so many blocks, before and after; each has a day of its own, that all of its launches share."""

    def draw(random: Random, blocks: int) -> Drawn:
        most = max(before, after)
        slowness = usual(random, most * blocks)
        slowness += np.repeat(random.normal(0.0, deviation, (2, 1, most)), blocks, axis=2)
        for side, runs in enumerate((before, after)):
            slowness[side, :, runs * blocks :] = np.nan
        return Drawn(slowness, runs=(before, after))

    return draw


def _unequal(random: Random, blocks: int) -> Drawn:
    """One run a side: so many launches before, ten times as many after."""
    slowness = usual(random, 10 * blocks)
    slowness[0, :, blocks:] = np.nan
    return Drawn(slowness, runs=(1, 1))


def _batches(deviation: float) -> Callable[[Random, int], Drawn]:
    """Texts of another program, those of a fabric measured in one go: each fabric has a shift of its own."""
    return lambda random, blocks: Drawn(
        usual(random, blocks) + random.normal(0.0, deviation, (2, 1, 1)), is_imported=True
    )


def _dead(share: float) -> Callable[[Random, int], Drawn]:
    """Of b's starts so many died; those that came through are 5 % faster than all would have been, where any died."""

    def draw(random: Random, blocks: int) -> Drawn:
        slowness = usual(random, blocks)
        dead = int(random.negative_binomial(blocks, 1.0 - share))
        lead = np.log(1.05) if dead else 0.0
        slowness[1] -= lead
        return Drawn(slowness, lead, dead_on_b=dead)

    return draw


def _printed(digits: int) -> Callable[[Random, int], Drawn]:
    return lambda random, blocks: Drawn(usual(random, blocks) * 0.3, digits=digits)


BETWEEN: dict[str, Callable[[Random, int], Drawn]] = {
    "normal": lambda random, blocks: Drawn(usual(random, blocks)),
    "heavy tails, both sides": _pareto(0.05, 0.05),
    "heavy tails, b": _pareto(0.0, 0.05),
    "host of two states": _two_states,
    "slow mode, b, 1 in 10": _slow(0.0, 0.1),
    "slow mode, b, 3 in 10": _slow(0.0, 0.3),
    "slow mode, both, 1 in 10": _slow(0.1, 0.1),
    "slow mode, both, 3 in 10": _slow(0.3, 0.3),
    "slow blocks, a more": _correlated,
    "step": _timed(lambda random, launches: SLOW * (np.arange(launches) >= random.integers(1, launches))),
    "linear drift, 30 %": _timed(lambda _, launches: np.linspace(0.0, SLOW, launches)),
    "period of 4 launches, 10 %": _timed(lambda _, launches: 0.1 * (np.arange(launches) % 4 < 2)),
    "first place 10 % slower": _timed(lambda _, launches: np.log(1.1) * (np.arange(launches) % 2 == 0)),
    "after b 5 % slower": _carry_over,
    "2 days, 2 %": _days(2, 0.02),
    "2 days, 5 %": _days(2, 0.05),
    "2 days, 2 %, each row": _days(2, 0.02, len(KEYS)),
    "2 days, 5 %, each row": _days(2, 0.05, len(KEYS)),
    "3 days, 5 %": _days(3, 0.05),
    "6 days, 5 %": _days(6, 0.05),
    "1:1 runs, days 2 %": _runs(1, 1, 0.02),
    "1:1 runs, days 5 %": _runs(1, 1, 0.05),
    "1:3 runs, days 2 %": _runs(1, 3, 0.02),
    "1:3 runs, days 5 %": _runs(1, 3, 0.05),
    "3:3 runs, days 2 %": _runs(3, 3, 0.02),
    "3:3 runs, days 5 %": _runs(3, 3, 0.05),
    "ten times the launches after": _unequal,
    "3 launches before, 30 after": lambda random, _: _unequal(random, 3),
    "imports, batches 2 %": _batches(0.02),
    "imports, batches 5 %": _batches(0.05),
    "a quarter of b's starts died": _dead(0.25),
    "half of b's starts died": _dead(0.5),
    "two digits printed": _printed(2),
    "three digits printed": _printed(3),
    "correlation .3": lambda random, blocks: Drawn(usual(random, blocks, 0.3)),
    "correlation .6": lambda random, blocks: Drawn(usual(random, blocks, 0.6)),
    "correlation .9": lambda random, blocks: Drawn(usual(random, blocks, 0.9)),
}
