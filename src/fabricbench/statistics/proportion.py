"""The interval of a proportion: how many of so many succeeded; and whether two proportions differ by more than chance makes.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927): the proportions that a score test
would not reject. Its coverage is near what is asked for also near 0 and 1, where the usual interval around the found share has none
(Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001)).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy import special

from fabricbench.statistics.order import Estimate


def exact_p_value(failed: tuple[int, int], trials: tuple[int, int]) -> float:
    """Return the two-sided p-value of "both sides fail alike": the chance of all outcomes that are no likelier than what was seen.

    Fisher, "The logic of inductive inference", J. R. Statist. Soc. 98 (1935): with as many failures in all as there were, whose
    they are is hypergeometric.
    """
    both, first, second = sum(failed), *trials
    chances = np.array(
        [
            special.binom(first, mine) * special.binom(second, both - mine)
            for mine in range(max(0, both - second), min(both, first) + 1)
        ]
    )
    seen = chances[failed[0] - max(0, both - second)]
    return float(min(1.0, chances[chances <= seen * (1.0 + 1e-9)].sum() / chances.sum()))


def clustered_interval(successes: Sequence[int], trials: Sequence[int], confidence: float = 0.95) -> Estimate:
    """Return the share of successes over clusters of the same trials, repeated, with its interval; one number a cluster.

    Wilson's interval of as many independent trials as tell what these do (Korn and Graubard, Survey Methodology 24 (1998)): no more
    than one cluster has, for the same trial repeated may fail each time; fewer where clusters differ by more than chance makes.
    ValueError for no trial.
    """
    done, tried = np.array(successes, dtype=np.float64), np.array(trials, dtype=np.float64)
    if not done.size or not tried.sum() or np.any(done > tried) or np.any(done < 0):
        raise ValueError(f"found {list(successes)} of {list(trials)}, needed at least one trial and no more successes")
    share, clusters = float(done.sum() / tried.sum()), done.size
    effective = float(tried.max())
    if clusters > 1:
        residual = done - share * tried
        variance = float((residual**2).sum()) * clusters / (clusters - 1) / float(tried.sum()) ** 2
        widened = (special.ndtri((1 + confidence) / 2) / special.stdtrit(clusters - 1, (1 + confidence) / 2)) ** 2
        if variance > 0:
            effective = min(effective, max(1.0, share * (1 - share) / variance * float(widened)))
    return _wilson(share, effective, confidence)


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Return the share of successes with its interval; ValueError for no trial, or more successes than trials."""
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"found {successes} of {trials}, needed at least one trial and no more successes")
    return _wilson(successes / trials, trials, confidence)


def _wilson(share: float, trials: float, confidence: float) -> Estimate:
    z = float(special.ndtri((1 + confidence) / 2))
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At the ends the bound is the end itself, which rounding would miss.
    low = 0.0 if share == 0 else (middle - half) / scale
    high = 1.0 if share == 1 else (middle + half) / scale
    return Estimate(share, low, high)
