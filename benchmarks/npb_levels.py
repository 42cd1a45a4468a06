"""What the levels of the processor cost: the kernels of NPB in each build that is installed, beside one for this very processor.

    cmake -S . -B build/march -G Ninja -DFABRICBENCH_MARCH=native && cmake --build build/march --target fabricbench-npb
    python -m benchmarks.npb_levels [--native build/march/native/kernel/npb] [--class W] [--rounds 5] [--write docs/npb.md]

Each round starts every kernel on each number of ranks once in every build, in turn and in reverse order in every other round, so
that what else the machine does falls on all of them. A ratio is the median over the rounds of the times within one round: a build's
seconds over those of the build for this processor (of the highest level, where no such build is given). More than 1 is slower.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.npb_speed import KERNELS, TIME_LIMIT_S
from benchmarks.page import show

from fabricbench.errors import FabricbenchError
from fabricbench.native import build_info, built_for_levels, native_file
from fabricbench.record.kernel_lines import read_kernel_record
from fabricbench.workload.npb import PROGRAM

LEVEL = "FABRICBENCH_PROCESSOR_LEVEL"
RANKS = (1, 4)
REPETITIONS = 3
"""Runs in one start, of which the median counts: class W takes a hundredth of a second with some kernels."""


@dataclass(frozen=True)
class Build:
    """A program and the level that it is held to, none where it has but one."""

    name: str
    program: Path
    level: str | None


def builds(native: Path | None) -> list[Build]:
    """Return what is compared, the one that the others are set beside first."""
    program = native_file(PROGRAM)
    levels = [name.removeprefix(f"{PROGRAM}-") for name in built_for_levels(PROGRAM)[1:]]
    own = [Build(level, program, level) for level in (*sorted(levels, reverse=True), "x86-64")]
    return own if native is None else [Build("native", native / PROGRAM, None), *own]


def seconds(build: Build, kernel: str, problem_class: str, ranks: int) -> float:
    """Return the median of the repetitions of one start, verified and at its level; RuntimeError says what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        words = [kernel, "--class", problem_class, "--repeat", str(REPETITIONS), "--output", str(record)]
        environment = {**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))}
        environment.pop(LEVEL, None)
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), str(build.program), *words],
            env=environment | ({} if build.level is None else {LEVEL: build.level}),
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{build.name}: {kernel} ended with {done.returncode}: {done.stderr[-1000:]}")
        found = read_kernel_record(record)
    if found.header is None or set(found.header.processor_levels) != {build.name}:
        raise RuntimeError(f"{build.program} is not built for {build.name}")
    return statistics.median(run.seconds for run in found.runs)


def measure(sides: Sequence[Build], problem_class: str, rounds: int) -> Mapping[tuple[str, str, int], list[float]]:
    """Return the ratios to the first build, a value for each round, by build, kernel and ranks."""
    ratios = defaultdict(list)
    for done in range(rounds):
        print(f"round {done + 1} of {rounds}", file=sys.stderr)
        for kernel in KERNELS:
            for ranks in RANKS:
                order = sides if done % 2 == 0 else sides[::-1]
                took = {build.name: seconds(build, kernel, problem_class, ranks) for build in order}
                for build in sides[1:]:
                    ratios[build.name, kernel, ranks].append(took[build.name] / took[sides[0].name])
    return ratios


def table(sides: Sequence[Build], ratios: Mapping[tuple[str, str, int], list[float]]) -> list[str]:
    """Return the lines of the table: a row for each build and number of ranks."""
    lines = [
        f"| seconds over those of {sides[0].name} | {' | '.join(map(str.upper, KERNELS))} | geometric mean |",
        f"| --- |{' ---: |' * (len(KERNELS) + 1)}",
    ]
    for build in sides[1:]:
        for ranks in RANKS:
            medians = [statistics.median(ratios[build.name, kernel, ranks]) for kernel in KERNELS]
            cells = " | ".join(f"{ratio:.2f}" for ratio in (*medians, statistics.geometric_mean(medians)))
            lines.append(f"| {build.name}, {ranks} rank{'' if ranks == 1 else 's'} | {cells} |")
    return lines


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--native", type=Path, help="folder of a fabricbench-npb built for this processor")
    parser.add_argument("--class", dest="problem_class", default="W", choices="SWAB", help="of all kernels")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        sides = builds(given.native)
        ratios = measure(sides, given.problem_class, given.rounds)
    except (FabricbenchError, RuntimeError) as error:
        sys.exit(f"npb_levels: {error}")
    machine = f"Linux {platform.release()}, {os.cpu_count()} processors"
    text = [f"Class {given.problem_class}, medians of {given.rounds} rounds, {machine}.", "", *table(sides, ratios)]
    show(text, "npb-levels", given.write)


if __name__ == "__main__":
    main()
