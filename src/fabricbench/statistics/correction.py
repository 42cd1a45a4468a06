"""Many comparisons at once, and several looks at one: p-values and levels that keep one error, each with what it promises.

    benjamini_hochberg   the false discovery rate: of what is claimed, the expected share that is wrong (tables of many rows)
    holm                 the chance of any wrong claim at all, whatever the dependence (what a headline quotes)
    hochberg             the same for positively dependent tests, with more power where most of the hypotheses are false

Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995). The comparisons of one campaign share
launches, so they are positively correlated, for which the bound holds (Benjamini and Yekutieli, Annals of Statistics 29 (2001));
two-sided tests are not covered by the letter of that theorem, so `simulation` checks it on campaigns with such correlation.
Where nothing differs at all, the false discovery rate is the probability of any false discovery. Holm, "A simple sequentially
rejective multiple test procedure", Scand. J. Statistics 6 (1979); Hochberg, Biometrika 75 (1988). All three work on the last axis;
NaN (no test was possible) stays NaN and does not count.

Whoever looks at growing data, finds nothing and adds blocks has two chances to be wrong, and so on. The error is spent like money
(Lan and DeMets 1983): what the looks spend adds up to no more than there is, whatever the data do between them, so no assumption
about how looks depend on each other is needed (the union bound, for looks at numbers of blocks that the data do not choose; where
they do choose, what the bound leaves unused covers it, as `tests/statistics/test_looks.py` simulates). Who looked when, the run's
manifest knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return p-values adjusted for the false discovery rate."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.minimum.accumulate((ordered * (np.maximum(tests, 1) / rank))[..., ::-1], axis=-1)[..., ::-1]
    return _restored(p_values, stepped, order)


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted so that the chance of any wrong rejection keeps its bound, whatever the dependence: step down."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.maximum.accumulate(ordered * np.maximum(tests - rank + 1, 1), axis=-1)
    return _restored(p_values, stepped, order)


def hochberg(p_values: Floats) -> Floats:
    """Return p-values adjusted as `holm` does, stepping up: never larger than Holm's, and sound for positively dependent tests."""
    ordered, order, tests, rank = _ordered(p_values)
    stepped = np.minimum.accumulate((ordered * np.maximum(tests - rank + 1, 1))[..., ::-1], axis=-1)[..., ::-1]
    return _restored(p_values, stepped, order)


def _ordered(p_values: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending p-values (missing ones infinite, last), their order, how many tests there are, and each one's rank."""
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, axis=-1)
    ordered = np.take_along_axis(p_values, order, axis=-1)
    tests = np.count_nonzero(~np.isnan(p_values), axis=-1, keepdims=True)
    rank = np.arange(1, p_values.shape[-1] + 1)
    return np.where(np.isnan(ordered), np.inf, ordered), order, tests, rank


def _restored(p_values: Floats, stepped: Floats, order: NDArray[np.int64]) -> Floats:
    p_values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=-1)
    return np.where(np.isnan(p_values), np.nan, adjusted)


FIRST_SHARE = 0.8
"""What the first look spends where nobody said how many will follow. A run that is never extended gives up a fifth of its error:
its intervals are 7 % wider with 6 blocks, 5 % with 16. Every later look has half of what is left. With one half instead, second
looks find more, but every run that is never extended pays 23 % of width at 6 blocks."""


def spent_alpha(information_fraction: float, alpha: float) -> float:
    """Return how much of `alpha` is spent once this share of the information is there (0 to 1), for two-sided tests.

    The function of Lan and DeMets (1983) that follows the boundary of O'Brien and Fleming (1979): next to nothing early, nearly
    all at the end, `alpha` at 1.
    """
    if information_fraction <= 0.0:
        return 0.0
    share = min(information_fraction, 1.0)
    return float(min(alpha, 4.0 * special.ndtr(special.ndtri(alpha / 4.0) / np.sqrt(share))))


def level_of_look(looks: Sequence[int], alpha: float, *, is_final: bool = False, most: int | None = None) -> float:
    """Return the level at which the newest of some looks may test, so that all looks together err with probability `alpha` at most.

    `looks` are the numbers of blocks at which somebody looked, ascending, the newest last; looking twice at the same blocks is one
    look. With `most`, where it was said beforehand that there will never be more blocks, the O'Brien-Fleming function is spent
    between looks. Where it was said that there will be no other look (`is_final`) the one look has all. Else looks may go on for
    ever: the first has FIRST_SHARE of `alpha`, each later one half of what is left.
    """
    numbers = list(dict.fromkeys(looks))
    if not numbers or numbers != sorted(numbers) or numbers[0] < 1:
        raise ValueError(f"looks {list(looks)} are not numbers of blocks in ascending order")
    if is_final:
        if len(numbers) > 1:
            raise ValueError(f"looks {list(looks)}: one that was final leaves nothing for another")
        return alpha
    if most is not None:
        before = spent_alpha(numbers[-2] / most, alpha) if len(numbers) > 1 else 0.0
        return spent_alpha(numbers[-1] / most, alpha) - before
    later = len(numbers) - 1
    return alpha * (FIRST_SHARE if later == 0 else (1.0 - FIRST_SHARE) * 0.5**later)
