"""Weighted scores of several candidates: which is first, and how sure that is. Arrays only; rows are blocks, columns candidates.

A score is a weighted geometric mean of ratios (Fleming and Wallace, "How not to lie with statistics", Comm. ACM 29 (1986)), on
logarithms a weighted sum, so a block gives each candidate one number, and blocks are independent. Those of several `sessions`, of
which each block has the number, are not: what is said then holds by the means of sessions as well.

How sure: the means of the candidates are jointly multivariate t with n - 1 degrees of freedom about what was seen, with the
sample's covariance over n. That is the posterior under the prior of Geisser and Cornfield (J. R. Stat. Soc. B 25 (1963)) under
which every difference of two means has exactly Student's t: the probability that one is ahead of another agrees with the paired
t test of the two. Resampling the blocks (Rubin's Bayesian bootstrap, 1981) is not used: with six blocks its 95 % intervals cover
82 to 84 %, with twelve 87 to 90 %, where Student's cover 94 to 96 % (normal, t3 and exponential noise; docs/decision.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.correction import holm
from fabricbench.statistics.ratios import (
    EXACT,
    MINIMUM_LAUNCHES,
    NOTHING_FITTED,
    Counts,
    Fitted,
    Ratios,
    Rounding,
    ratios_over_sessions,
    run_means,
)

Floats = NDArray[np.float64]

DRAWS = 20_000
"""A probability is then known to 0.004 (one standard error), finer than it is ever told."""

SEED = 1963
"""The same data give the same probabilities."""

GRID = 2001
"""Steps of a share from 0 to 1: finer than a tenth of a percent."""


@dataclass(frozen=True)
class PairTests:
    """All pairs of candidates: which columns, the ratio `second / first` of each, p-values that hold together (Holm)."""

    pairs: tuple[tuple[int, int], ...]
    ratios: Ratios
    adjusted: Floats


def pair_tests(
    logs: Floats,
    rounding: Rounding,
    confidence: float = 0.95,
    sessions: Sequence[int] | Counts = (),
    fitted: Callable[[int, int], Fitted] = lambda _one, _other: NOTHING_FITTED,
) -> PairTests:
    """Return the paired t tests of every two columns of `logs`, shape (blocks, candidates).

    `rounding` has an entry for each column, and `fitted` returns what was fitted to the difference of two.
    """
    pairs = tuple(combinations(range(logs.shape[1]), 2))
    rows = np.array([logs[:, second] - logs[:, first] for first, second in pairs]).reshape(len(pairs), len(logs))
    first, second = (rounding.part([pair[place] for pair in pairs]) for place in (0, 1))
    paid = Fitted.joined([fitted(*pair) for pair in pairs])
    ratios = ratios_over_sessions(rows, sessions, confidence, rounding=first.against(second), fitted=paid)
    return PairTests(pairs, ratios, holm(ratios.p_value))


def mean_draws(
    logs: Floats,
    rounding: Rounding,
    draws: int = DRAWS,
    seed: int = SEED,
    sessions: Sequence[int] | Counts = (),
    fitted: Fitted = NOTHING_FITTED,
) -> Floats | None:
    """Return draws of the candidates' means, shape (draws, candidates); None from fewer than MINIMUM_LAUNCHES blocks (sessions).

    Effects that were `fitted` to blocks cost degrees of freedom; means of sessions hold them.
    """
    if np.unique(sessions).size > 1:
        means = run_means(logs.T, sessions).T
        logs, fitted = means[~np.isnan(means).any(axis=1)], NOTHING_FITTED
    blocks, candidates = logs.shape
    if blocks < MINIMUM_LAUNCHES:
        return None
    random = np.random.default_rng(seed)
    centred = logs - logs.mean(axis=0)
    # Normal combinations of the blocks themselves have the sample's covariance, also where it is singular.
    freedom = max(blocks - 1 - int(fitted.effects), 1)
    spread = random.standard_normal((draws, blocks)) @ centred / np.sqrt(freedom) * fitted.error_times
    spread += random.standard_normal((draws, candidates)) * rounding.deviation
    scale = np.sqrt(freedom / random.chisquare(freedom, size=(draws, 1)))
    return np.asarray(logs.mean(axis=0) + spread * scale / np.sqrt(blocks), dtype=np.float64)


def chances_of_first(draws: Floats, rounding: Rounding = EXACT) -> Floats:
    """Return how often each column is the largest; those that tie share, and so do those that rounding cannot tell apart."""
    bound = np.broadcast_to(np.asarray(rounding.bound, dtype=np.float64), draws.shape[1:])
    surely = (draws - bound).max(axis=1, keepdims=True)
    is_first = draws + bound >= surely
    return np.asarray((is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0), dtype=np.float64)


def share_of_no_difference(
    ahead: Floats,
    behind: Floats,
    offset: float,
    confidence: float = 0.95,
    rounding: tuple[Rounding, Rounding] = (EXACT, EXACT),
    sessions: Sequence[int] | Counts = (),
    fitted: Fitted = NOTHING_FITTED,
) -> tuple[float, float, float] | None:
    """Return the share x, with its interval, at which `x * ahead + (1 - x) * behind` has the mean `offset`.

    Both are log ratios of the same blocks, each with its `rounding`, and pay for what was `fitted`. None unless each mean lies on
    its own side of the offset for itself, by a t test: else the interval would reach the ends. Source: Fieller, J. R. Stat. Soc. B
    16 (1954), by inverting the paired t test.
    """
    blocks = ahead.size
    if blocks < MINIMUM_LAUNCHES or not ahead.mean() > offset > behind.mean():
        return None
    shares = np.linspace(0.0, 1.0, GRID)
    rows = shares[:, None] * ahead + (1.0 - shares[:, None]) * behind - offset
    deviation = np.hypot(shares * rounding[0].deviation, (1.0 - shares) * rounding[1].deviation)
    bound = shares * rounding[0].bound + (1.0 - shares) * rounding[1].bound
    rounded = Rounding(deviation, bound)
    p_values = ratios_over_sessions(rows, sessions, confidence, rounding=rounded, fitted=fitted).p_value
    level = 1.0 - confidence
    if not (p_values[0] < level and p_values[-1] < level):
        return None
    share = float((offset - behind.mean()) / (ahead.mean() - behind.mean()))
    possible = shares[p_values >= level]
    return share, float(min(possible.min(initial=1.0), share)), float(max(possible.max(initial=0.0), share))
