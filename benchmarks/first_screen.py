"""How often does the first screen say anything that is not true? Simulated campaigns, the table of docs/statistics.md.

    python -m benchmarks.first_screen [--campaigns 2000] [--seed 20261123] [--level 0.5] [--share 0.8]

Each campaign is judged and written as `fabricbench report` does it; any wrong statement makes it wrong. `--level` scales the
noise of launches: 1 is that measured over loopback. `--share` is that of effects, or of sizes, from which the sentence, or a row,
speaks for all of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fabricbench.analysis import answer, single_sizes
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES
from support.screen_claims import SHAPES, TRUTHS, wrong_campaigns

BLOCKS = (6, 12, EQUIVALENT_LAUNCHES)
NAMES = {
    "normal": "normal",
    "skewed": "skewed, both",
    "one skewed": "skewed, one side",
    "drift": "normal, drift 5 times as much",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--level", type=float, default=0.5)
    parser.add_argument("--share", type=float, default=answer.WINNING_SHARE)
    options = parser.parse_args()
    answer.WINNING_SHARE = single_sizes.BEARING_SHARE = options.share
    rows = list(product(BLOCKS, SHAPES))
    jobs = [
        (options.campaigns, options.level, blocks, shape, truth, options.seed + number)
        for number, ((blocks, shape), truth) in enumerate(product(rows, TRUTHS))
    ]
    print(f"| noise | blocks | {' | '.join(TRUTHS)} |")
    print(f"| --- | --: |{' --: |' * len(TRUTHS)}", flush=True)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        counts = pool.imap(_wrong, jobs)
        for blocks, shape in rows:
            shares = (f"{100 * next(counts) / options.campaigns:.1f} %" for _ in TRUTHS)
            print(f"| {NAMES[shape]} | {blocks} | {' | '.join(shares)} |", flush=True)


def _wrong(job: tuple[int, float, int, str, str, int]) -> int:
    campaigns, level, blocks, shape, truth, seed = job
    count, _ = wrong_campaigns(campaigns, level, blocks, shape, TRUTHS[truth], seed)
    return count


if __name__ == "__main__":
    main()
