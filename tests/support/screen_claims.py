"""What the first screen says of campaigns of launch values whose truth is known, and which of it is not true.

The noise is not that of `statistics.simulation`: normal, skewed on either side or on one, drifting with the machine; each
family of claims on the screen is looked at, and any wrong one makes the whole campaign wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Headline, Verdict
from fabricbench.analysis.rows import row_name
from fabricbench.model import Layer
from support.simulated_sides import first_screen, keys_of, sides_of

Floats = NDArray[np.float64]
Effect = Callable[[CellKey], float]
"""How much slower the second side is in a cell, a logarithm."""

MARGIN = 0.02
KEYS = keys_of()
SLOW_SHARE, SLOW_EXCESS = 0.1, np.log(1.3)
"""Skew: this share of launches is slower by this logarithm."""
DRIFT = 0.004
"""Standard deviation of the machine's drift from one launch to the next, a logarithm; five times as much where it drifts."""
DIRECTIONS = np.array([1.0 if key.metric.is_lower_better else -1.0 for key in KEYS])
"""What being slower does to the logarithm of each cell's value: times grow, rates fall."""
SHAPES = ("normal", "skewed", "one skewed", "drift")
TRUTHS: dict[str, Effect] = {
    "nothing differs": lambda _: 0.0,
    "half differ by 50 %": lambda key: np.log(1.5) if key.layer in (Layer.TCP, Layer.FRAME) else 0.0,
    "all by 1.5 %": lambda _: np.log(1.015),
    "all by 2.01 %": lambda _: np.log(1.0201),
}


def noise(random: np.random.Generator, blocks: int, level: float, shape: str) -> Floats:
    """Log values of two sides, shape (2, cells, blocks), without a difference but for what the shape brings.

    The machine drifts from launch to launch, and the sides take turns in random order, as fabrics do in a block.
    """
    cells = len(KEYS)
    scale = np.exp(random.uniform(-0.5, 0.5, (1, cells, 1)))
    slower = scale * (random.normal(0, 0.024, (2, 1, blocks)) + random.normal(0, 0.017, (2, cells, blocks))) * level
    drift = np.cumsum(random.normal(0, DRIFT * (5.0 if shape == "drift" else 1.0), 2 * blocks)).reshape(blocks, 2)
    slower = slower + random.permuted(drift, axis=1).T[:, np.newaxis]
    if shape == "skewed":
        slower = slower + SLOW_EXCESS * (random.random((2, 1, blocks)) < SLOW_SHARE)
    if shape == "one skewed":
        slower[1] += SLOW_EXCESS * (random.random((1, blocks)) < SLOW_SHARE)
    return slower * DIRECTIONS[:, np.newaxis]


def wrong(headline: Headline, truth: dict[str, float], *, also: float = 0.0) -> list[str]:
    """The claims that are not true: `truth` is how much slower b is (log) in each row, `also` what skew adds to its mean."""
    limit = np.log1p(MARGIN)
    found = []
    for effect in (*headline.effects, *headline.more_effects):
        ends = (truth[effect.what], truth[effect.what] + also)
        for pair in effect.pairs:
            is_true = {
                Verdict.A_FASTER: max(ends) > limit,
                Verdict.B_FASTER: min(ends) < -limit,
                Verdict.A_AHEAD: max(ends) > 0,
                Verdict.B_AHEAD: min(ends) < 0,
                Verdict.EQUIVALENT: all(-limit < end < limit for end in ends),
                Verdict.NOT_ENOUGH_DATA: True,
            }[pair.verdict]
            if not is_true:
                found.append(f"{effect.what}: {pair.verdict}")
    if (
        headline.exceptions
        and not any(value > limit for value in truth.values())
        and max(truth.values()) + also <= limit
    ):
        found.append(f"except {headline.exceptions}")
    if " b slower by 2 % in none" in headline.detail and max(truth.values()) >= limit:
        found.append(headline.detail)
    return found


def wrong_campaigns(
    campaigns: int, level: float, blocks: int, shape: str, effect: Effect, seed: int
) -> tuple[int, list[str]]:
    """How many campaigns said anything wrong, and the first of it."""
    random = np.random.default_rng(seed)
    also = SLOW_SHARE * SLOW_EXCESS if shape == "one skewed" else 0.0
    slower = DIRECTIONS * [effect(key) for key in KEYS]
    truth = {row_name(key): effect(key) for key in KEYS}
    bad: list[str] = []
    count = 0
    for _ in range(campaigns):
        values = 10.0 + noise(random, blocks, level, shape)
        values[1] += slower[:, np.newaxis]
        headline, _ = first_screen(sides_of(KEYS, values, ("a", "b")))
        said = wrong(headline, truth, also=also)
        count += bool(said)
        bad += said
    return count, bad[:5]
