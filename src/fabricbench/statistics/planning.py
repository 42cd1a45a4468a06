"""How many launches, of what length: components of variance, the length of a cell that tells most, and what will be found.

A value is the mean over n launches of what each measured for s seconds; its variance is (launch**2 + second**2 / s) / n. More
launches divide both parts, longer cells the second alone, so time belongs between launches unless starting one is dear. Kalibera
and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, sections 6 and 7 (the random effects are those of Searle, Casella
and McCulloch, "Variance components", 1992). All deviations are of logarithms, so 0.05 is 5 %; effects are shares, so 0.1 is 10 %.

A correction over many tests depends on what else is found. `alone`, the worst case, is one true difference among `tests`: then
Benjamini and Hochberg (and Holm) ask of it what Bonferroni does. Where all differ they ask as little as of a single test if all are
found; planned is for POWER of them found, so the level of one is that share of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, FEWEST_PAIRS, MOST_BLOCKS, POWER

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """Deviations of logarithms: between launches, and within one of what a second of measuring gives."""

    launch: float
    second: float

    def value(self, seconds: float) -> float:
        """Return the deviation of the value of a launch that measures for so long."""
        return sqrt(self.launch**2 + self.second**2 / seconds)


def components(batches: Floats, batch_seconds: float) -> Components:
    """Return the components of a cell's log values, shape (sides, blocks, batches); each batch is `batch_seconds` of measuring.

    Samples of a launch depend on each other, so the lower level is the batch: its mean or median over a time that is long
    beside their memory (batch means, Law and Carson, Operations Research 27 (1979)). What all sides of a block share cancels in a
    comparison and is taken out; with one side it stays in. Batches that are NaN are left out, and so are blocks without any on
    some side. Fewer than two blocks or no two batches in a launch: NaN.
    """
    values = np.asarray(batches, dtype=np.float64)
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    values, count = (one[:, (count > 0).all(axis=0)] for one in (values, count))
    sides, blocks = count.shape
    freedom = float((count - 1).sum())
    if blocks < 2 or freedom < 1:
        return Components(np.nan, np.nan)
    means = np.nanmean(values, axis=-1)
    within = float(np.nansum((values - means[..., None]) ** 2)) / freedom
    centred = means - means.mean(axis=1, keepdims=True)
    if sides > 1:
        centred = centred - centred.mean(axis=0, keepdims=True)
    between = float((centred**2).sum()) / ((blocks - 1) * max(sides - 1, 1))
    launch = between - within * float(np.mean(1.0 / count))
    return Components(sqrt(max(launch, 0.0)), sqrt(within * batch_seconds))


def best_repetitions(costs: tuple[float, float], variances: tuple[float, float]) -> float:
    """Return how often to repeat the lower level within one of the higher for the smallest variance of the mean for the cost.

    Costs and variances of one of the (lower, higher) level; inf where the higher level does not vary, for then it need not be
    repeated. Kalibera and Jones (2013), section 7: r(i) = sqrt(c(i+1) / c(i) * T(i)^2 / T(i+1)^2).
    """
    (low_cost, high_cost), (low, high) = costs, variances
    return sqrt(high_cost / low_cost * low / high) if high > 0 else np.inf


def best_cell_seconds(
    noise: Components, overhead_seconds: float, *, least_seconds: float, most_seconds: float = np.inf
) -> float:
    """Return the length of a cell that makes the variance of the mean over launches smallest, whatever the budget.

    `overhead_seconds` is what a cell costs beside its measuring: its own start, and its share of the start of a launch. Between
    the bounds the optimum is flat: twice as long or half as long costs a few percent.
    """
    best = best_repetitions((1.0, overhead_seconds), (noise.second**2, noise.launch**2))
    return float(min(max(best, least_seconds), most_seconds)) if noise.second > 0 else least_seconds


@dataclass(frozen=True)
class Detectable:
    """The smallest true differences that will be called: `beyond` the margin, and `ahead` at all. Shares: 0.1 is 10 %."""

    beyond: Floats
    ahead: Floats


def _level(confidence: float, tests: int, differing: int, power: float) -> float:
    """Return what the correction leaves of 1 - confidence for a true difference if `power` of the others are found with it."""
    found = 1.0 + power * (min(differing, tests) - 1.0)
    return (1.0 - confidence) * found / max(tests, 1)


def _noncentrality(freedom: Floats, level: float, power: float) -> Floats:
    """Return the noncentrality at which a one-sided t test at `level` rejects with `power`."""
    critical = special.stdtrit(freedom, 1.0 - level)
    found = np.asarray(special.nctdtrinc(freedom, 1.0 - power, critical), dtype=np.float64)
    return np.where(np.isfinite(found), found, critical + special.stdtrit(freedom, power))


def detectable(
    deviation: ArrayLike,
    blocks: ArrayLike,
    margin: float,
    *,
    confidence: float = 0.95,
    power: float = POWER,
    tests: int = 1,
    differing: int = 1,
) -> Detectable:
    """Return what paired comparisons of so many blocks find with `power`, by the rules of `decision`.

    `deviation` is that of the log ratio of one block; `tests` is how many comparisons are corrected together and `differing` how
    many of them truly differ, each found with `power`: 1, the default, is the worst case, `alone`. inf below FEWEST_PAIRS. Exact
    for normal log ratios (the other side's chance of being called is left out: it is below half the level).
    """
    blocks, deviations = (np.asarray(one, dtype=np.float64) for one in (blocks, deviation))
    level = _level(confidence, tests, differing, power)
    shift = _noncentrality(np.maximum(blocks - 1.0, 1.0), level / 2.0, power) * deviations / np.sqrt(blocks)
    enough = blocks >= FEWEST_PAIRS
    return Detectable(
        beyond=np.where(enough, np.expm1(np.log1p(margin) + shift), np.inf),
        ahead=np.where(enough, np.expm1(shift), np.inf),
    )


@dataclass(frozen=True)
class Needed:
    """Blocks that find a difference with the power asked for; inf where more than MOST_BLOCKS would be.

    `beyond`: it is called faster; `ahead`: it is named who is ahead; `equivalent`: without a difference, equivalence is said.
    """

    beyond: float
    ahead: float
    equivalent: float


def blocks_for(
    effect: float,
    deviation: float,
    margin: float,
    *,
    confidence: float = 0.95,
    power: float = POWER,
    tests: int = 1,
    differing: int = 1,
) -> Needed:
    """Return how many blocks find a true difference of `effect` (a share) with `power`; the inverse of `detectable`.

    Equivalence is corrected family-wise, at worst for all `tests`, and asks for EQUIVALENT_LAUNCHES at least.
    """
    blocks = np.arange(FEWEST_PAIRS, MOST_BLOCKS + 1, dtype=np.float64)
    found = detectable(deviation, blocks, margin, confidence=confidence, power=power, tests=tests, differing=differing)
    # Both one-sided tests have to reject, each misses with half of what the power leaves; the interval shown is at half the level.
    level = min((1.0 - confidence) / 2.0, _level(confidence, tests, 1, power))
    needed = _noncentrality(blocks - 1.0, level, (1.0 + power) / 2.0) * deviation / np.sqrt(blocks)
    equivalent = _first(blocks, (needed <= np.log1p(margin)) & (blocks >= EQUIVALENT_LAUNCHES))
    return Needed(_first(blocks, found.beyond <= effect), _first(blocks, found.ahead <= effect), equivalent)


def _first(blocks: Floats, enough: NDArray[np.bool_]) -> float:
    return float(blocks[np.argmax(enough)]) if enough.any() else np.inf
