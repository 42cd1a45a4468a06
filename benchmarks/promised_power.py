"""Are promises of 80 % kept? What `plan`, a gate and "k more blocks" promise, against simulated campaigns; and what a test of
independence between blocks finds.

    python -m benchmarks.promised_power [--campaigns 300] [--seed 1]

Every campaign has 22 normal tests, judged at the level that a run is judged at (its first look; after more blocks its second).
"""

from __future__ import annotations

import argparse
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.correction import level_of_look
from fabricbench.statistics.decision import (
    Decision,
    PValues,
    blocks_to_settle,
    corrected,
    decide,
    p_values_of,
)
from fabricbench.statistics.dependence import pooled_lag_one
from fabricbench.statistics.gate_power import blocks_to_decide
from fabricbench.statistics.planning import detectable
from fabricbench.statistics.ratios import paired_ratios, unpaired_ratios

Floats = NDArray[np.float64]

TESTS, MARGIN, ALLOWED = 22, 0.02, 0.05
FIRST, SECOND = (1.0 - level_of_look(range(1, look + 1), 0.05) for look in (1, 2))
SETTLED = (Decision.HIGHER, Decision.LOWER, Decision.EQUIVALENT)
MOST_TIMES = 4
"""The headline tells of no more blocks than so many times those that there are."""
DEPENDENCE_LEVEL = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    for blocks in (6, 12):
        for scatter in (0.014, 0.058):
            for differing in (1, TESTS):
                found = planned(random, options.campaigns, blocks, scatter, differing)
                print(
                    f"plan, {blocks} blocks, {scatter:.1%} a block, {differing} of {TESTS} differ: called faster {found:.0%}"
                )
    for scatter in (0.014, 0.03, 0.058):
        needed = blocks_to_decide(scatter, ALLOWED, FIRST, cells=TESTS)
        for blocks in (6, 30, needed) if needed is not None else (6, 30):
            passed = gate(random, options.campaigns, scatter, blocks)
            promise = " (promised)" if blocks == needed else ""
            print(
                f"gate, {scatter:.1%} a pair of launches: {blocks} blocks pass an unchanged system in {passed:.0%}{promise}"
            )
    for blocks in (6, 12):
        for truth, told in ((None, "ratios from -8 to 8 %"), (0.0, "equal"), (0.03, "3 %"), (0.05, "5 %")):
            settled = more_blocks(random, options.campaigns, blocks, truth)
            rates = ", ".join(f"{name} {np.mean(each):.0%} of {len(each)}" for name, each in settled.items() if each)
            print(f"more blocks after {blocks}, {told}: settled {rates}")
    for blocks in (6, 12, 32):
        for correlation in (0.0, 0.3, 0.6, 0.9):
            share = dependence_found(random, min(options.campaigns, 100), blocks, correlation)
            print(f"independence, {blocks} blocks, lag-1 correlation {correlation}: doubted in {share:.0%}")


def judged(values: Floats, confidence: float) -> NDArray[np.object_]:
    """Return what is decided about the rows of a campaign, shape (tests, blocks)."""
    ratios = paired_ratios(values, confidence)
    return decide(ratios, corrected(p_values_of(ratios, MARGIN)), MARGIN, confidence)


def planned(random: np.random.Generator, campaigns: int, blocks: int, scatter: float, differing: int) -> float:
    """Return how often a difference that `plan` promises to find is called faster."""
    effect = float(detectable(scatter, blocks, MARGIN, confidence=FIRST, tests=TESTS, differing=differing).beyond)
    true = np.where(np.arange(TESTS) < differing, np.log1p(effect), 0.0)[:, None]
    called = [
        judged(random.normal(true, scatter, (TESTS, blocks)), FIRST)[:differing] == Decision.HIGHER
        for _ in range(campaigns)
    ]
    return float(np.mean(called))


def gate(random: np.random.Generator, campaigns: int, scatter: float, blocks: int) -> float:
    """Return how often an unchanged system passes a gate with so many blocks a side."""
    passed = []
    for _ in range(campaigns):
        old, new = random.normal(0.0, scatter / sqrt(2.0), (2, TESTS, blocks))
        passed.append(bool(np.all(unpaired_ratios(old, new, FIRST).high <= 1.0 + ALLOWED)))
    return float(np.mean(passed))


def more_blocks(
    random: np.random.Generator, campaigns: int, blocks: int, truth: float | None, scatter: float = 0.03
) -> dict[str, list[bool]]:
    """Return whether the blocks promised settle a test that is open, one of each campaign: in tables, and on the first screen.

    A table tells each test's own number, the first screen that which half of all open tests need, if it is not too large.
    """
    settled: dict[str, list[bool]] = {"in tables": [], "on the first screen": []}
    for _ in range(campaigns):
        true = np.log1p(random.uniform(-0.08, 0.08, (TESTS, 1)) if truth is None else np.full((TESTS, 1), truth))
        first = random.normal(true, scatter, (TESTS, blocks))
        ratios = paired_ratios(first, FIRST)
        raw = p_values_of(ratios, MARGIN)
        adjusted: PValues = corrected(raw)
        more = blocks_to_settle(ratios, raw, adjusted, MARGIN, SECOND)
        rows = np.flatnonzero(~np.isin(decide(ratios, adjusted, MARGIN, FIRST), SETTLED))
        needed = np.sort(np.where(np.isnan(more[rows]), np.inf, more[rows]))
        half = needed[(rows.size - 1) // 2] if rows.size else np.inf
        for name, number, candidates in (
            ("in tables", None, rows[~np.isnan(more[rows])]),
            ("on the first screen", half, rows[more[rows] <= half]),
        ):
            if candidates.size and (number is None or number <= MOST_TIMES * blocks):
                row = random.choice(candidates)
                added = int(more[row] if number is None else number)
                later = np.concatenate([first, random.normal(true, scatter, (TESTS, added))], axis=1)
                settled[name].append(judged(later, SECOND)[row] in SETTLED)
    return settled


def dependence_found(random: np.random.Generator, campaigns: int, blocks: int, correlation: float) -> float:
    """Return how often blocks whose log ratios depend on the one before are doubted, of 8 tests that share half of it."""
    found = 0
    for _ in range(campaigns):
        series = random.standard_normal((9, blocks))
        for block in range(1, blocks):
            series[:, block] = correlation * series[:, block - 1] + sqrt(1.0 - correlation**2) * series[:, block]
        lag = pooled_lag_one(series[:8] + series[8])
        found += lag is not None and lag.autocorrelation > 0.0 and lag.p_value < DEPENDENCE_LEVEL
    return found / campaigns


if __name__ == "__main__":
    main()
