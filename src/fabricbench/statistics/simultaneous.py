"""Intervals that hold together, and what each of them decides: for the few sentences that a reader takes away.

If all intervals cover their ratios at once, no decision read off them can be wrong, whatever mixture of equal, nearly equal and
different pairs is true; so the chance of any wrong one is at most the share of the error that the family was given
(Bonferroni; the argument is that of the partitioning principle, Finner and Strassburger, Annals of Statistics 30, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, Decision


@dataclass(frozen=True)
class LogRatio:
    """A mean log ratio `b / a`, the standard deviation of a pair's, how many pairs, and the degrees of freedom of the deviation.

    `met` counts launches where they are not the pairs: those of several runs, say.
    """

    mean: float
    deviation: float
    launches: int
    freedom: float
    met: int | None = None

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / float(np.sqrt(self.launches))

    def bounds(self, error_rate: float) -> tuple[float, float]:
        """Return the interval of the log ratio that misses it at most so often, on both sides together."""
        half = float(special.stdtrit(self.freedom, 1.0 - error_rate / 2.0)) * self.error
        return self.mean - half, self.mean + half

    def decide(self, error_rate: float, margin: float) -> Decision:
        """Return what the interval at that rate decides; `margin` is the smallest relative difference that matters."""
        low, high = self.bounds(error_rate)
        limit = float(np.log1p(margin))
        if low > limit:
            return Decision.HIGHER
        if high < -limit:
            return Decision.LOWER
        if low > -limit and high < limit and (self.launches if self.met is None else self.met) >= EQUIVALENT_LAUNCHES:
            return Decision.EQUIVALENT
        if low > 0:
            return Decision.HIGHER_AHEAD
        return Decision.LOWER_AHEAD if high < 0 else Decision.UNDECIDED

    def is_at_least(self, limit: float, error_rate: float) -> bool:
        """Return whether the log ratio is shown to be above `limit`, one-sided."""
        return self.mean - float(special.stdtrit(self.freedom, 1.0 - error_rate)) * self.error > limit
