"""The interval of a proportion: how many of so many succeeded.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927): the proportions that a score test
would not reject. Its coverage is near what is asked for also near 0 and 1, where the usual interval around the found share has none
(Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001)).
"""

from __future__ import annotations

from math import sqrt

from scipy import special

from fabricbench.statistics.order import Estimate


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Return the share of successes with its interval; ValueError for no trial, or more successes than trials."""
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"found {successes} of {trials}, needed at least one trial and no more successes")
    z = float(special.ndtri((1 + confidence) / 2))
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At the ends the bound is the end itself, which rounding would miss.
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == trials else (middle + half) / scale
    return Estimate(share, low, high)
