"""Launches of campaigns whose truth is known: what `characteristics` sends through the procedures of `fabricbench.statistics`.

The noise is that of real launches, each part with its own parameter: skewed samples with occasional spikes, autocorrelated within
a launch; a random effect of the launch that all its cells share and one of each cell in a launch; drift over blocks that both
sides of a block share. And what breaks the assumptions behind a test: a slow mode of one side's launches, a machine that becomes
slower half-way, sides that drift apart, sessions that differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Curves = Callable[[Floats], tuple[Floats, Floats]]
"""The true log times of a message on both sides, of sizes in bytes."""

MEDIAN_SCATTER = 0.39
"""Of the samples' deviation: what is left in the median of 40 samples with autocorrelation 0.7 (simulated, spikes included)."""


@dataclass(frozen=True)
class Noise:
    """How launches scatter. All deviations are of logarithms, so 0.02 is 2 %.

    The defaults were measured: 24 launches of a 64 B to 16 KiB blocking TCP ping-pong over loopback on a 2-core virtual machine
    (Linux 6.18), 3,000 round trips each. Launch medians scattered by 3.8 %, those of neighbouring launches by 0.035 to 0.048 in log
    ratio, different sizes of one launch correlated with 0.67 to 0.90; within a launch the middle half of the samples had the
    width of a normal with 1.5 to 2.3 %, the autocorrelation of the signs meant 0.57 to 0.76 at lag 1, and 0.2 % were twice as
    long and more. Spikes are taken more often here, as busy machines have them.
    """

    sample_deviation: float = 0.02
    sample_autocorrelation: float = 0.7
    spike_share: float = 0.01
    spike_mean: float = 2.0
    """Mean of the exponential that a spike adds, in units of the undisturbed sample."""
    launch_deviation: float = 0.024
    cell_launch_deviation: float = 0.017
    block_deviation: float = 0.022
    block_autocorrelation: float = 0.5
    cell_spread: float = 1.0
    """Cells differ in their noise: the deviations of each are multiplied by exp(uniform(-spread, spread) / 2)."""
    outlying_share: float = 0.0
    outlying_mean: float = 0.3
    """Share of launches that something else disturbed throughout, and the mean of the exponential that it adds to the log."""
    slow_share: tuple[float, float] = (0.0, 0.0)
    slow_excess: float = 0.3
    """Share of the launches of sides 0 and 1 that run in a slow mode, and how much slower they are, in all of their cells."""
    step_excess: float = 0.0
    """By how much the machine becomes slower, for good, at some launch of the campaign."""
    fabric_drift: float = 0.0
    """Deviation of the change of each side, of its own and linear, from the first block to the last."""
    session_deviation: float = 0.0
    """Deviation of what differs from one run to the next, in all cells alike: only runs set against each other show it."""
    bulk_share: float = 1.0
    """Launch effects of the largest message over those of the smallest; sizes in between in equal steps of the logarithm."""

    @property
    def mean_shift(self) -> float:
        """What the slow modes add to the mean log ratio of side 1 over side 0; a typical launch has none of it."""
        return (self.slow_share[1] - self.slow_share[0]) * float(np.log1p(self.slow_excess))


LAB_NOISE = Noise(launch_deviation=0.07, cell_launch_deviation=0.07, cell_spread=0.0, bulk_share=0.1)
"""Of the quiet lab (docs/lab.md): launch values of 64-byte round trips scatter by 10 % on each side, log ratios by 15 %, which is
four times what loopback shows; those of bulk transfers by 1 %."""


@dataclass(frozen=True)
class Shape:
    """How large a campaign is: curves of `sizes` cells each, measured in `blocks` blocks with `samples` samples in a launch.

    With no samples launch values are drawn at once, with what is left of the samples' scatter: 20 times faster.
    """

    blocks: int = 12
    curves: int = 6
    sizes: int = 6
    samples: int = 40

    @property
    def cells(self) -> int:
        """Comparisons of single cells in the campaign."""
        return self.curves * self.sizes


def simulate_launches(
    random: np.random.Generator, campaigns: int, shape: Shape, noise: Noise, log_effect: Floats | float = 0.0
) -> Floats:
    """Return log launch values, shape (campaigns, 2 sides, cells, blocks); side 1 has `log_effect` (broadcast over cells) more."""
    values = _launches(random, campaigns, shape, noise, np.array(noise.slow_share))
    values += (
        _autoregression(random, (campaigns, 1, 1), shape.blocks, noise.block_autocorrelation) * noise.block_deviation
    )
    values[:, 1] += np.broadcast_to(np.asarray(log_effect), (shape.cells,))[:, None]
    return values


def simulate_runs(
    random: np.random.Generator, campaigns: int, runs: int, shape: Shape, noise: Noise, log_effect: Floats | float = 0.0
) -> Floats:
    """Return log launch values, shape (campaigns, 2 sides, runs, cells, blocks), of runs that share no blocks."""
    values = _launches(random, campaigns, shape, noise, np.repeat(noise.slow_share, runs))
    own = (campaigns, 2 * runs, 1)
    values += _autoregression(random, own, shape.blocks, noise.block_autocorrelation) * noise.block_deviation
    values += random.normal(0.0, noise.session_deviation, (*own, 1))
    values = values.reshape(campaigns, 2, runs, shape.cells, shape.blocks)
    values[:, 1] += np.broadcast_to(np.asarray(log_effect), (shape.cells,))[:, None]
    return values


def _launches(random: np.random.Generator, campaigns: int, shape: Shape, noise: Noise, slow_share: Floats) -> Floats:
    """Return log launch values without the drift of blocks, shape (campaigns, sides, cells, blocks); a slow share for each side.

    The median commutes with the exponential, so undisturbed samples stay logarithms throughout and only spikes need it.
    """
    sides = (campaigns, slow_share.size, shape.cells, shape.blocks)
    of_launch = (campaigns, slow_share.size, 1, shape.blocks)
    scale = np.exp(random.uniform(-noise.cell_spread, noise.cell_spread, (campaigns, 1, shape.cells, 1)) / 2.0)
    of_size = np.tile(noise.bulk_share ** np.linspace(0.0, 1.0, shape.sizes), shape.curves)[:, None]
    launch = random.normal(0.0, noise.launch_deviation, of_launch)
    cell = random.normal(0.0, noise.cell_launch_deviation, sides)
    values = scale * (of_size * (launch + cell) + _sample_medians(random, sides, shape.samples, noise))
    if noise.outlying_share > 0:
        is_outlying = random.random(of_launch) < noise.outlying_share
        values += is_outlying * random.exponential(noise.outlying_mean, of_launch)
    if np.any(slow_share > 0):
        values += np.log1p(noise.slow_excess) * (random.random(of_launch) < slow_share[:, None, None])
    if noise.step_excess > 0:
        values += np.log1p(noise.step_excess) * _is_after_step(random, of_launch)
    if noise.fabric_drift > 0:
        values += random.normal(0.0, noise.fabric_drift, (*of_launch[:3], 1)) * np.linspace(-0.5, 0.5, shape.blocks)
    return np.asarray(values, dtype=np.float64)


def _is_after_step(random: np.random.Generator, of_launch: tuple[int, int, int, int]) -> NDArray[np.bool_]:
    """Return which launches come after a moment between two launches; the order of the sides within a block is random."""
    campaigns, sides, _, blocks = of_launch
    place = np.argsort(random.random((campaigns, sides, blocks)), axis=1) + sides * np.arange(blocks)
    moment = random.integers(1, sides * blocks, (campaigns, 1, 1))
    return np.asarray(place >= moment, dtype=np.bool_)[:, :, None, :]


def _autoregression(random: np.random.Generator, outer: tuple[int, ...], steps: int, correlation: float) -> Floats:
    """Return stationary AR(1) series of unit variance along a last axis of `steps`."""
    series = random.standard_normal((*outer, steps))
    fresh = np.sqrt(1.0 - correlation**2)
    for step in range(1, steps):
        series[..., step] = correlation * series[..., step - 1] + fresh * series[..., step]
    return series


def _sample_medians(random: np.random.Generator, sides: tuple[int, ...], samples: int, noise: Noise) -> Floats:
    """Return the log median of each launch's samples about its launch's level."""
    if samples == 0:
        return np.asarray(random.normal(0.0, MEDIAN_SCATTER * noise.sample_deviation, sides), dtype=np.float64)
    correlation, fresh = noise.sample_autocorrelation, np.sqrt(1.0 - noise.sample_autocorrelation**2)
    series = random.standard_normal((samples, *sides), dtype=np.float32)
    for step in range(1, samples):  # samples lead, so that each step is one pass over contiguous memory
        series[step] *= np.float32(fresh)
        series[step] += np.float32(correlation) * series[step - 1]
    series *= np.float32(noise.sample_deviation)
    spikes = random.random(int(series.size * noise.spike_share), dtype=np.float32)
    if spikes.size:
        where = random.integers(0, series.size, spikes.size)
        flat = series.reshape(-1)
        flat[where] += np.log1p(-np.float32(noise.spike_mean) * np.log1p(-spikes))
    series.partition((samples // 2 - 1, samples // 2), axis=0)
    return np.asarray((series[samples // 2 - 1] + series[samples // 2]) / 2.0, dtype=np.float64)


def noisier(noise: Noise, factor: float) -> Noise:
    """Return this noise with its launch effects multiplied: what a busier machine does."""
    return replace(
        noise,
        launch_deviation=noise.launch_deviation * factor,
        cell_launch_deviation=noise.cell_launch_deviation * factor,
    )


def straight_curves(a: tuple[float, float], b: tuple[float, float]) -> Curves:
    """Return curves of two sides, each with a latency (s) and a rate (bit/s): Hockney's model is true of them."""
    return lambda size: (np.log(a[0] + 8.0 * size / a[1]), np.log(b[0] + 8.0 * size / b[1]))


def step_curves(a: tuple[float, float], at_bytes: float, below: float, above: float) -> Curves:
    """Return curves of which side 1 takes `below` times as long as side 0 below a size, and `above` times from there on."""

    def curves(size: Floats) -> tuple[Floats, Floats]:
        log_a = np.log(a[0] + 8.0 * size / a[1])
        return log_a, log_a + np.log(np.where(size < at_bytes, below, above))

    return curves


def simulate_curves(
    random: np.random.Generator, curves: Curves, sizes: Floats, blocks: int, noise: Noise
) -> tuple[Floats, Floats]:
    """Return log launch values of both sides, each of shape (sizes, blocks), with the launch effects of the noise."""
    shared = random.normal(0.0, noise.launch_deviation, (2, 1, blocks))
    own = random.normal(0.0, noise.cell_launch_deviation, (2, len(sizes), blocks))
    log_a, log_b = curves(sizes)
    return log_a[:, None] + shared[0] + own[0], log_b[:, None] + shared[1] + own[1]
