"""Campaigns with known truth, and how often the procedures of this package are right on them.

The noise is that of real launches, each part with its own parameter: skewed samples with occasional spikes, autocorrelated within
a launch; a random effect of the launch that all its cells share and one of each cell in a launch; drift over blocks that
both sides of a block share. docs/statistics.md shows the rates that come out; the tests hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.decision import decision_codes
from fabricbench.statistics.ratios import Assumption, Ratios, paired_ratios

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class Shape:
    """How large a campaign is: curves of `sizes` cells each, measured in `blocks` blocks with `samples` samples in a launch."""

    blocks: int = 12
    curves: int = 6
    sizes: int = 6
    samples: int = 40

    @property
    def cells(self) -> int:
        """Comparisons of single cells in the campaign."""
        return self.curves * self.sizes


def simulate_launch_medians(
    random: np.random.Generator, campaigns: int, shape: Shape, noise: Noise, log_effect: Floats | float = 0.0
) -> Floats:
    """Return log medians, shape (campaigns, 2 sides, cells, blocks); `log_effect` (broadcast over cells) is added to side 1.

    The median commutes with the exponential, so undisturbed samples stay logarithms throughout and only spikes need it.
    """
    sides = (campaigns, 2, shape.cells, shape.blocks)
    scale = np.exp(random.uniform(-noise.cell_spread, noise.cell_spread, (campaigns, 1, shape.cells, 1)) / 2.0)
    launch = random.normal(0.0, noise.launch_deviation, (campaigns, 2, 1, shape.blocks))
    cell = random.normal(0.0, noise.cell_launch_deviation, sides)
    block = (
        _autoregression(random, (campaigns, 1, 1), shape.blocks, noise.block_autocorrelation) * noise.block_deviation
    )
    medians = scale * (launch + cell + _sample_medians(random, sides, shape.samples, noise)) + block
    if noise.outlying_share > 0:
        is_outlying = random.random((campaigns, 2, 1, shape.blocks)) < noise.outlying_share
        medians = medians + is_outlying * random.exponential(noise.outlying_mean, is_outlying.shape)
    medians[:, 1] += np.broadcast_to(np.asarray(log_effect), (shape.cells,))[:, None]
    return np.asarray(medians, dtype=np.float64)


def _autoregression(random: np.random.Generator, outer: tuple[int, ...], steps: int, correlation: float) -> Floats:
    """Return stationary AR(1) series of unit variance along a last axis of `steps`."""
    series = random.standard_normal((*outer, steps))
    fresh = np.sqrt(1.0 - correlation**2)
    for step in range(1, steps):
        series[..., step] = correlation * series[..., step - 1] + fresh * series[..., step]
    return series


def _sample_medians(random: np.random.Generator, sides: tuple[int, ...], samples: int, noise: Noise) -> Floats:
    """Return the log median of each launch's samples about its launch's level."""
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


@dataclass(frozen=True)
class OperatingCharacteristics:
    """What the procedure did on simulated campaigns; every figure is a share.

    `wrong_campaigns`: campaigns with at least one LOWER or HIGHER that is not true. `coverage`: 95 % intervals of single cells that
    hold the true ratio, `curve_coverage` those of curves. `found`: cells with a true difference decided for the right side.
    `equivalent`, `undecided`: decisions among the cells without one.
    """

    wrong_campaigns: float
    wrong_decisions: float
    coverage: float
    curve_coverage: float
    found: float
    equivalent: float
    undecided: float


def operating_characteristics(
    seed: int,
    campaigns: int,
    shape: Shape,
    noise: Noise | None = None,
    *,
    effect: float = 0.0,
    differing_curves: int | None = None,
    margin: float = 0.02,
    confidence: float = 0.95,
    assumption: Assumption = Assumption.NORMAL,
) -> OperatingCharacteristics:
    """Run campaigns through ratios, correction and decision, cells and curves in one family as the analysis does.

    Side 1 is longer by `effect` in the first `differing_curves` curves (all of them by default).
    """
    random = np.random.default_rng(seed)
    curves = shape.curves if differing_curves is None else differing_curves
    log_effect = np.where(np.arange(shape.cells) < curves * shape.sizes, np.log1p(effect), 0.0)
    truth = np.concatenate([log_effect, log_effect.reshape(shape.curves, shape.sizes).mean(axis=1)])
    codes, covered = [], []
    for size in _batches(campaigns, shape):
        medians = simulate_launch_medians(random, size, shape, noise or Noise(), log_effect)
        ratios = _ratios_of_campaigns(medians, shape, confidence, assumption)
        adjusted = benjamini_hochberg(ratios.p_value.reshape(size, -1)).reshape(-1)
        codes.append(decision_codes(ratios, adjusted, margin, confidence).reshape(size, -1))
        holds = (np.log(ratios.low) <= np.tile(truth, size)) & (np.tile(truth, size) <= np.log(ratios.high))
        covered.append(holds.reshape(size, -1))
    return _summary(np.concatenate(codes), np.concatenate(covered), truth, shape.cells)


def _batches(campaigns: int, shape: Shape) -> list[int]:
    """Campaigns at a time, so that the samples of one batch stay within about 100 MB."""
    most = max(1, 25_000_000 // (2 * shape.cells * shape.blocks * shape.samples))
    return [min(most, campaigns - start) for start in range(0, campaigns, most)]


def _ratios_of_campaigns(medians: Floats, shape: Shape, confidence: float, assumption: Assumption) -> Ratios:
    cells = medians[:, 1] - medians[:, 0]
    curves = cells.reshape(len(cells), shape.curves, shape.sizes, shape.blocks).mean(axis=2)
    return paired_ratios(np.concatenate([cells, curves], axis=1).reshape(-1, shape.blocks), confidence, assumption)


def _summary(
    codes: NDArray[np.int64], covered: NDArray[np.bool_], truth: Floats, cells: int
) -> OperatingCharacteristics:
    right = np.where(truth > 0, 2, np.where(truth < 0, 1, 0))
    is_wrong = ((codes == 1) | (codes == 2)) & (codes != right)
    same, differs = codes[:, :cells][:, truth[:cells] == 0], codes[:, :cells][:, truth[:cells] != 0]

    def share(of: NDArray[np.bool_]) -> float:
        return float(np.mean(of)) if of.size else float("nan")

    return OperatingCharacteristics(
        wrong_campaigns=share(is_wrong.any(axis=1)),
        wrong_decisions=share(is_wrong),
        coverage=share(covered[:, :cells]),
        curve_coverage=share(covered[:, cells:]),
        found=share(differs == right[:cells][truth[:cells] != 0]),
        equivalent=share(same == 3),
        undecided=share(same == 0),
    )


def noisier(noise: Noise, factor: float) -> Noise:
    """Return the same noise with the launch effects multiplied: what a busier machine does."""
    return replace(
        noise,
        launch_deviation=noise.launch_deviation * factor,
        cell_launch_deviation=noise.cell_launch_deviation * factor,
    )
