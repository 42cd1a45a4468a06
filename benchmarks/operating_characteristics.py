"""Prints the tables of docs/statistics.md: how often the procedures are right on simulated campaigns. `--help` tells more."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from benchmarks.characteristics import (
    Characteristics,
    Rates,
    claims_characteristics,
    crossing_characteristics,
    runs_characteristics,
)
from benchmarks.simulation import LAB_NOISE, Noise, Shape, noisier, step_curves, straight_curves

from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES

MEASURED = Noise()
HALF = noisier(MEASURED, 0.5)
QUIET = Noise(launch_deviation=0.005, cell_launch_deviation=0.005, sample_deviation=0.01)
NOISES = {
    "as measured": MEASURED,
    "launches half as noisy": HALF,
    "quiet, 0.5 %": QUIET,
    "the lab's own": LAB_NOISE,
    "one launch in twenty disturbed (+30 %)": replace(MEASURED, outlying_share=0.05),
    "blocks drift by 10 %": replace(MEASURED, block_deviation=0.1, block_autocorrelation=0.95),
    "sides drift apart by 5 %": replace(MEASURED, fabric_drift=0.05),
    "half as noisy, +30 % from half-way": replace(HALF, step_excess=0.3),
    "half as noisy, one side slow in 1 of 10": replace(HALF, slow_share=(0.0, 0.1)),
    "quiet, one side slow in 1 of 10": replace(QUIET, slow_share=(0.0, 0.1)),
    "half as noisy, both sides slow in 1 of 10": replace(HALF, slow_share=(0.1, 0.1)),
}
BLOCKS = (6, 12, EQUIVALENT_LAUNCHES)
SIZES = (64, 256, 1024, 4096, 16384, 65536, 262144)
QUICK_SIZES = (64, 512, 1472, 16384, 65536)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--table", choices=list(TABLES), help="print this table alone")
    options = parser.parse_args()
    for name, print_table in TABLES.items():
        if options.table in (None, name):
            print_table(options.seed, options.campaigns)
            print(flush=True)


def print_wrong(seed: int, campaigns: int) -> None:
    """Campaigns with any wrong claim, by truth and noise."""
    truths = ("A/A", "half differ", "1.5 %", "2.01 %")
    _head(
        "noise",
        "blocks",
        *(f"Holm wrong, {truth}" for truth in truths),
        "table wrong, A/A",
        "table wrong, half differ",
        'table wrongly "faster", 1.5 %',
        "coverage, cells",
        "coverage, curves",
        "slow mode found",
    )
    for name, noise in NOISES.items():
        for blocks in BLOCKS:
            found = _truths(seed, campaigns, blocks, noise)
            shares = [found[truth].headlines.wrong for truth in truths]
            same = found["A/A"]
            shares += [same.tables.wrong, found["half differ"].tables.wrong]
            shares += [found["1.5 %"].tables.wrong_beyond, same.coverage]
            _row(name, blocks, *shares, same.curve_coverage, same.alarmed)


def _truths(seed: int, campaigns: int, blocks: int, noise: Noise) -> dict[str, Characteristics]:
    def run(**truth: float) -> Characteristics:
        return claims_characteristics(
            seed,
            campaigns,
            Shape(blocks=blocks, samples=0),
            noise,
            effect=truth.get("effect", 0.0),
            differing_curves=3 if "half" in truth else None,
        )

    return {
        "A/A": run(),
        "half differ": run(effect=0.5, half=1.0),
        "1.5 %": run(effect=0.015),
        "2.01 %": run(effect=0.0201),
    }


def print_power(seed: int, campaigns: int) -> None:
    """Of cells that all differ: how many are named, in tables and by Holm."""
    effects = (0.05, 0.10)
    columns = [f"{100 * effect:.0f} %: {what}" for effect in effects for what in ("ahead", "faster", "faster, Holm")]
    _head("noise", "blocks", *columns, "equal: equivalent")
    for name, noise in NOISES.items():
        for blocks in BLOCKS:
            shape = Shape(blocks=blocks, samples=0)
            shares: list[float] = []
            for effect in effects:
                found = claims_characteristics(seed + 1, campaigns // 4, shape, noise, effect=effect)
                shares += [found.tables.ahead, found.tables.beyond, found.headlines.beyond]
            same = claims_characteristics(seed + 1, campaigns // 4, shape, noise)
            _row(name, blocks, *shares, same.tables.equivalent)


def print_runs(seed: int, campaigns: int) -> None:
    """Before and after: runs of 6 blocks a side, without a true difference and with one of 5 %."""
    _head("sessions differ by", "runs a side", "table wrong", "Holm wrong", "coverage", "5 %: ahead", "10 %: ahead")
    for session in (0.0, 0.01, 0.02):
        for runs in (1, 3, 4, 6):
            noise = replace(MEASURED, session_deviation=session)
            shape = Shape(blocks=6, samples=0)
            same, five, ten = (
                runs_characteristics(seed + 2, part, runs, shape, noise, effect=effect)
                for effect, part in ((0.0, campaigns), (0.05, campaigns // 4), (0.1, campaigns // 4))
            )
            wrong: tuple[Rates, Rates] = (same.tables, same.headlines)
            shares = (*(one.wrong for one in wrong), same.coverage, five.tables.ahead, ten.tables.ahead)
            _row(f"{100 * session:.0f} %", runs, *shares)


def print_crossings(seed: int, campaigns: int) -> None:
    """Crossovers: how often the bracket holds the truth, how often a model earns a point, how often its interval holds it."""
    _head("truth", "sizes", "blocks", "noise", "claimed", "bracket right", "point earned", "interval right", "width")
    truths = {
        "50 us, 100 Mbit/s; 60 us, 1 Gbit/s": straight_curves((50e-6, 1e8), (60e-6, 1e9)),
        "30 us, 1 Gbit/s; 40 us, 10 Gbit/s": straight_curves((30e-6, 1e9), (40e-6, 1e10)),
        "5 us, 10 Gbit/s; 8 us, 100 Gbit/s": straight_curves((5e-6, 1e10), (8e-6, 1e11)),
        "step at 8 KiB, -20 to +15 %": step_curves((20e-6, 1e9), 8192, 0.8, 1.15),
        "step at 8 KiB, -5 to +5 %": step_curves((60e-6, 1e9), 8192, 0.95, 1.05),
        "linear in log2 size": lambda size: (
            np.log(50e-6 + 8e-8 * size),
            np.log(50e-6 + 8e-8 * size) + 0.06 * (np.log2(size) - 8.2),
        ),
    }
    for name, curves in truths.items():
        for sizes in (QUICK_SIZES, SIZES):
            for blocks, factor in ((6, 1.0), (12, 0.5), (12, 0.1)):
                noise = noisier(MEASURED, factor)
                found = crossing_characteristics(seed + 3, max(campaigns // 5, 20), curves, sizes, blocks, noise)
                width = "-" if found.earned == 0 else f"x {found.width:.2f}"
                shares = (found.claimed, found.bracket_right, found.earned, found.interval_right)
                _row(name, len(sizes), blocks, f"{factor:g}", *shares, width)


TABLES: dict[str, Callable[[int, int], None]] = {
    "wrong": print_wrong,
    "power": print_power,
    "runs": print_runs,
    "crossings": print_crossings,
}


def _head(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |")
    print("| --- |" + " --: |" * (len(columns) - 1))


def _row(*values: str | float) -> None:
    print("| " + " | ".join(_texts(values)) + " |", flush=True)


def _texts(values: Iterable[str | float]) -> Iterable[str]:
    for value in values:
        is_share = isinstance(value, float)
        yield ("-" if np.isnan(value) else f"{100 * value:.1f} %") if is_share else str(value)


if __name__ == "__main__":
    main()
