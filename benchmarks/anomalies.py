"""How often anomalies of curves are named where there are none, and where there are: `python -m benchmarks.anomalies [--runs N]`.

Prints the tables of docs/statistics.md, Anomalies of curves. A run has two fabrics with six curves each, of 15 sizes from 64 B to
1 MiB: lines, datagrams in packets that cost something each, two protocols of which the better one is always taken, a stream that
is bound by messages and then by bytes, rates that fall by a few per cent beyond a cache. None of them has an anomaly but what is
put there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from benchmarks.operating_characteristics import NOISES
from benchmarks.simulation import Noise, Shape, simulate_launches
from numpy.typing import NDArray

from fabricbench.statistics.curves import Anomaly, Curve, CurveBreak, anomalies

Floats = NDArray[np.float64]
Random = np.random.Generator

SIZES = 2.0 ** np.arange(6, 21)
PAYLOAD = 1472.0
"""Of a packet: of curves of packets, and where packets are expected to show in all."""
IS_EXPECTED = (SIZES[:-1] < 2.1 * PAYLOAD) & (SIZES[1:] >= 0.9 * PAYLOAD)
MARGIN, LEVEL = 0.02, 0.05


def _packets(size: Floats) -> Floats:
    return 30e3 + 8.0 * size + 8.0 * np.minimum(size, PAYLOAD) + 1e3 * np.ceil(size / PAYLOAD)


CLEAN: tuple[Callable[[Floats], Floats], ...] = (
    lambda size: 25e3 + 8.0 * size,
    _packets,
    lambda size: np.minimum(20e3 + 2.0 * size, 60e3 + 0.8 * size),
    lambda size: np.maximum(1.2e3, 0.8 * size),
    lambda size: 8e3 + 0.8 * size + 0.03 * np.maximum(size - 2.0**18, 0.0),
    lambda size: 1.5e3 + 0.08 * size,
)
"""Times in ns."""
TRUE = np.log(np.concatenate([curve(SIZES) for curve in CLEAN]))


def runs_of(random: Random, runs: int, blocks: int, noise: Noise, added: Floats | None = None) -> Iterator[list[Curve]]:
    """Yield the curves of simulated runs; `added` are logs on top of the first fabric's, shape (runs, curves * sizes)."""
    shape = Shape(blocks=blocks, curves=len(CLEAN), sizes=SIZES.size, samples=0)
    for run in range(runs):
        values = simulate_launches(random, 1, shape, noise)[0] + TRUE[:, None]
        if added is not None:
            values[0] += added[run][:, None]
        yield [Curve(SIZES, rows, IS_EXPECTED) for side in values for rows in np.split(side, len(CLEAN))]


def false_names(runs: int, blocks: int, noise: Noise, seed: int) -> tuple[float, Counter[CurveBreak]]:
    """Return the share of clean runs in which any anomaly is named, and of which kinds."""
    named, kinds = 0, Counter[CurveBreak]()
    for curves in runs_of(np.random.default_rng([seed, blocks]), runs, blocks, noise):
        found = [one for of_curve in anomalies(curves, MARGIN, LEVEL) for one in of_curve]
        named += bool(found)
        kinds.update({one.kind for one in found})
    return named / runs, kinds


Planted = Callable[[Random], tuple[Floats, Callable[[Anomaly], bool]]]
"""Draws what is added to the log times of a curve, and what tells whether an anomaly is that."""


def _slow(excess: float, width: int) -> Planted:
    def plant(random: Random) -> tuple[Floats, Callable[[Anomaly], bool]]:
        # Where lines say something: between the ends, and not across first packets.
        places = [first for first in range(1, SIZES.size - width) if not IS_EXPECTED[first - 1 : first + width].any()]
        first = int(random.choice(places))
        added = np.zeros(SIZES.size)
        added[first : first + width] = np.log1p(excess)
        return added, lambda one: one.kind is CurveBreak.SLOW and one.first < first + width and one.last >= first

    return plant


def _jump(excess: float) -> Planted:
    def plant(random: Random) -> tuple[Floats, Callable[[Anomaly], bool]]:
        first = int(random.choice([place for place in range(1, SIZES.size - 2) if not IS_EXPECTED[place]]))
        added = np.where(np.arange(SIZES.size) > first, np.log1p(excess), 0.0)
        kinds = (CurveBreak.JUMP, CurveBreak.PARTS)
        return added, lambda one: one.kind in kinds and one.first <= first < one.last

    return plant


PLANTED = {
    "two sizes 10 % slower": _slow(0.1, 2),
    "two sizes 20 % slower": _slow(0.2, 2),
    "one size 10 % slower": _slow(0.1, 1),
    "30 % longer from a size on": _jump(0.3),
    "60 % longer from a size on": _jump(0.6),
}


def power(runs: int, blocks: int, noise: Noise, planted: Planted, seed: int) -> tuple[float, float]:
    """Return how often what was put into one curve of a run is named, and how often anything else is."""
    random = np.random.default_rng([seed, blocks, 1])
    there = elsewhere = 0
    added, is_it, of_curve = np.zeros((runs, TRUE.size)), [], []
    for run in range(runs):
        curve = int(random.choice([0, 4, 5]))
        here, tells = planted(random)
        added[run, curve * SIZES.size : (curve + 1) * SIZES.size] = here
        is_it.append(tells)
        of_curve.append(curve)
    for run, curves in enumerate(runs_of(random, runs, blocks, noise, added)):
        found = anomalies(curves, MARGIN, LEVEL)
        mine = found[of_curve[run]]
        there += any(map(is_it[run], mine))
        elsewhere += any(one for index, others in enumerate(found) if index != of_curve[run] for one in others) or any(
            not is_it[run](one) for one in mine
        )
    return there / runs, elsewhere / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--blocks", type=int, nargs="+", default=[6, 10, 32])
    parser.add_argument("--noise", nargs="*", default=list(NOISES), choices=list(NOISES), help="of clean runs")
    parser.add_argument("--power-runs", type=int, default=250, help="of each row with something planted; 0: none")
    options = parser.parse_args()
    print("| noise | blocks | clean runs with any name | kinds |")
    print("| --- | --: | --: | --- |")
    for name in options.noise:
        for blocks in options.blocks:
            share, kinds = false_names(options.runs, blocks, NOISES[name], options.seed)
            told = ", ".join(f"{kind.value} {number}" for kind, number in kinds.most_common())
            print(f"| {name} | {blocks} | {100 * share:.1f} % | {told} |", flush=True)
    if not options.power_runs:
        return
    print()
    print("| noise | blocks | planted | named | anything else named |")
    print("| --- | --: | --- | --: | --: |")
    for name in ("as measured", "launches half as noisy", "the lab's own"):
        for blocks in options.blocks:
            for what, planted in PLANTED.items():
                there, elsewhere = power(options.power_runs, blocks, NOISES[name], planted, options.seed)
                print(f"| {name} | {blocks} | {what} | {100 * there:.0f} % | {100 * elsewhere:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
