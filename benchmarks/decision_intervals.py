"""Do intervals of scores hold, and how often are equal fabrics told apart? Student's t beside resampled blocks (docs/decision.md).

    python -m benchmarks.decision_intervals [--campaigns 2000] [--seed 1]

Three fabrics that are alike give one log score a block each; what they do in the mean is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.ratios import EXACT, Rounding, paired_ratios
from fabricbench.statistics.scores import chances_of_first, mean_draws, pair_tests

Floats = NDArray[np.float64]
Random = np.random.Generator

FABRICS, CONFIDENCE, DRAWS = 3, 0.95, 1000
SHARE, DEVIATIONS = 0.1, 10.0
"""Of the slow mode on one fabric: how often a block is in it, and by how many deviations it is slower."""


def slow_mode(random: Random, blocks: int) -> Floats:
    """Draw normal noise of which the second fabric falls into a slow mode now and then, about the mean."""
    noise = random.standard_normal((blocks, FABRICS))
    noise[:, 1] -= DEVIATIONS * ((random.random(blocks) < SHARE) - SHARE)
    return noise


NOISES: dict[str, Callable[[Random, int], Floats]] = {
    "normal": lambda random, blocks: random.standard_normal((blocks, FABRICS)),
    "Student's t with 3 degrees": lambda random, blocks: random.standard_t(3.0, (blocks, FABRICS)),
    "exponential": lambda random, blocks: random.standard_exponential((blocks, FABRICS)) - 1.0,
    "one fabric slow by ten deviations in a tenth of the blocks": slow_mode,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    print("| blocks, noise | Student's t | Bayesian bootstrap | any separated | one first with 0.95 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, draw in NOISES.items():
        for blocks in (6, 12):
            found = np.array([campaign(random, 0.01 * draw(random, blocks)) for _ in range(options.campaigns)])
            print(
                f"| {blocks}, {name} | {' | '.join(f'{100 * share:.1f} %' for share in found.mean(axis=0))} |",
                flush=True,
            )


def campaign(random: Random, logs: Floats) -> tuple[bool, bool, bool, bool]:
    """Return whether both intervals of a score hold, whether any two fabrics are separated, and whether one is first."""
    ratios = logs[:, 1] - logs[:, 0]
    student = paired_ratios(ratios[np.newaxis, :], CONFIDENCE)
    resampled = random.dirichlet(np.ones(len(logs)), DRAWS) @ ratios
    low, high = np.quantile(resampled, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    exact = Rounding(np.zeros(FABRICS), np.zeros(FABRICS))
    draws = mean_draws(logs, exact, DRAWS, int(random.integers(2**31)))
    return (
        bool(student.low[0] <= 1.0 <= student.high[0]),
        bool(low <= 0.0 <= high),
        bool(np.any(pair_tests(logs, exact, CONFIDENCE).adjusted < 1.0 - CONFIDENCE)),
        draws is not None and bool(chances_of_first(draws, EXACT).max() >= CONFIDENCE),
    )


if __name__ == "__main__":
    main()
