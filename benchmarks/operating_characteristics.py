"""Prints the table of docs/statistics.md: how often the procedure is right on simulated campaigns. `--help` lists the options."""

from __future__ import annotations

import argparse
from dataclasses import replace

from fabricbench.statistics.ratios import Assumption
from fabricbench.statistics.simulation import Noise, Shape, noisier, operating_characteristics

MEASURED = Noise()
NOISES = {
    "as measured": MEASURED,
    "launches half as noisy": noisier(MEASURED, 0.5),
    "launches twice as noisy": noisier(MEASURED, 2.0),
    "one launch in twenty disturbed (+30 %)": replace(MEASURED, outlying_share=0.05),
}
EFFECT = 0.05
COLUMNS = (
    "noise",
    "blocks",
    "A/A campaigns with a wrong verdict",
    "coverage, cells",
    "coverage, curves",
    "equivalent",
    "5 % found, all differ",
    "found, one curve of six",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--assumption", choices=[one.value for one in Assumption], default=Assumption.NORMAL.value)
    options = parser.parse_args()
    way = Assumption(options.assumption)
    print("| " + " | ".join(COLUMNS) + " |")
    print("| --- |" + " --: |" * (len(COLUMNS) - 1))
    for name, noise in NOISES.items():
        for blocks in (6, 12, 24):
            shape = Shape(blocks=blocks)
            same = operating_characteristics(options.seed, options.campaigns, shape, noise, assumption=way)
            every, one = (
                operating_characteristics(
                    options.seed + 1,
                    options.campaigns // 4,
                    shape,
                    noise,
                    effect=EFFECT,
                    differing_curves=k,
                    assumption=way,
                )
                for k in (None, 1)
            )
            shares = (same.wrong_campaigns, same.coverage, same.curve_coverage, same.equivalent, every.found, one.found)
            print(f"| {name} | {blocks} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
