"""How often change points are found, where there are some and where there are none: `python benchmarks/change_points.py [SERIES]`.

Prints the tables of docs/statistics.md, Over runs. A series has one value a run, normal with a standard deviation of 1; `family`
is how many series are looked at together. A step half-way is found where a change is told within one run of it; its interval is
that of the trend, at 95 %.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from fabricbench.statistics.change_points import change_points, dependence
from fabricbench.statistics.ratios import unpaired_ratios

Floats = NDArray[np.float64]
SEED = 20261127
DEVIATION = 0.01
"""Of a logarithm: what the unit stands for, so that ratios are near 1."""


def noise(draw: np.random.Generator, runs: int, depends: float = 0.0, kind: str = "normal") -> Floats:
    """Return stable values; each depends on the one before it by so much."""
    fresh = draw.standard_t(3, runs) / np.sqrt(3.0) if kind == "heavy tails" else draw.standard_normal(runs)
    values = np.empty(runs)
    values[0] = fresh[0]
    for run in range(1, runs):
        values[run] = depends * values[run - 1] + np.sqrt(1.0 - depends**2) * fresh[run]
    return values


def false_alarms(series: int) -> None:
    """Print the share of stable series with a change, and (in brackets) of those whose changes are not told as doubtful."""
    print("| runs | normal | heavy tails | each depends on the one before: 0.2 | 0.5 |")
    print("| --- | --- | --- | --- | --- |")
    for runs in (10, 20, 40):
        row = []
        for depends, kind in ((0.0, "normal"), (0.0, "heavy tails"), (0.2, "normal"), (0.5, "normal")):
            draw = np.random.default_rng([SEED, runs, int(10 * depends), len(kind)])
            alarms = doubted = 0
            for _ in range(series):
                values = noise(draw, runs, depends, kind)
                if found := change_points(values):
                    alarms += 1
                    doubted += dependence(values, [one.index for one in found]) is not None
            row.append(f"{100 * alarms / series:.1f} % ({100 * (alarms - doubted) / series:.1f} %)")
        print(f"| {runs} | {' | '.join(row)} |", flush=True)


def power(series: int) -> None:
    """Print how often a step is found, and how often the interval of one that was found alone holds it."""
    print("| runs before, after | family | step of 1 deviation | 2 | 3 | 5 | interval holds it |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for before, after in ((10, 5), (20, 5), (20, 20)):
        for family in (1, 24):
            row, held, intervals = [], 0, 0
            for step in (1, 2, 3, 5):
                draw = np.random.default_rng([SEED, before, after, family, step])
                there = 0
                for _ in range(series):
                    values = noise(draw, before + after)
                    values[before:] += step
                    found = [one.index for one in change_points(values, 0.05 / family)]
                    there += any(abs(index - before) <= 1 for index in found)
                    if len(found) == 1:
                        logs = DEVIATION * values
                        ratio = unpaired_ratios(logs[: found[0]], logs[found[0] :])
                        held += bool(ratio.low[0] <= np.exp(DEVIATION * step) <= ratio.high[0])
                        intervals += 1
                row.append(f"{100 * there / series:.0f} %")
            shown = f"{100 * held / intervals:.0f} %" if intervals else "-"
            print(f"| {before}, {after} | {family} | {' | '.join(row)} | {shown} |", flush=True)


def main(series: int) -> None:
    false_alarms(series)
    print()
    power(series // 5)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
