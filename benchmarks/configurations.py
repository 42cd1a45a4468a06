"""How often does a comparison of configurations claim clearly what is not so? Simulated screens, the table of docs/statistics.md.

    python -m benchmarks.configurations [--screens 500] [--seed 1]

A row a design, a column how much (one standard deviation) sessions differ by themselves. `wrong`: of screens on which no
configuration differs, those with a clear row that sets one before another; `found`: of those on which one is 2 times faster,
those on which every row is clear and has it first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.configuration_screens import Design, is_found, is_wrong, screen

DESIGNS = {
    "2 systems, 3 runs each": Design(systems=2),
    "5 systems, 3 runs each": Design(systems=5),
    "12 systems, 3 runs each": Design(systems=12),
    "5 systems, 5 runs each": Design(systems=5, runs=5),
    "3 systems with 2 fabrics in each of 3 runs": Design(systems=3, fabrics=2),
    "3 systems with 2 fabrics in each of 5 runs": Design(systems=3, fabrics=2, runs=5),
    "5 systems, 1 run each": Design(systems=5, runs=1),
}
SESSIONS = (0.0, 0.005, 0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screens", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    heads = [f"sessions {100 * one:g} %: {what}" for one in SESSIONS for what in ("wrong", "found")]
    print(f"| configurations | {' | '.join(heads)} |")
    print(f"| --- |{' --: |' * len(heads)}", flush=True)
    for name, design in DESIGNS.items():
        cells = []
        for sessions in SESSIONS:
            random = np.random.default_rng([options.seed, design.systems, design.runs, round(1e4 * sessions)])
            one = Design(design.systems, design.fabrics, design.runs, design.blocks, sessions)
            wrong = sum(is_wrong(screen(random, one)) for _ in range(options.screens))
            found = sum(is_found(screen(random, one, 2.0)) for _ in range(options.screens // 10))
            cells += [f"{100 * wrong / options.screens:.1f} %", f"{100 * found / max(options.screens // 10, 1):.0f} %"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
