"""What the levels of the processor cost: the kernels of NPB in each build that is installed, beside one for this very processor.

    cmake -S . -B build/march -G Ninja -DFABRICBENCH_MARCH=native && cmake --build build/march --target fabricbench-npb
    python -m benchmarks.npb_levels [--native build/march/native/kernel/npb] [--class W] [--ranks 1 4] [--rounds 4] [--write PAGE]

Each round starts every kernel on each number of ranks once in every build, in turn and in reverse order in every other round, so
that what else the machine does falls on all of them. A ratio is the median over the rounds of the times within one round: a build's
seconds over those of the build for this processor (of the highest level, where no such build is given). More than 1 is slower.
A rank alone is judged by the processor's time of the whole program, which the load of others hardly touches; several, which
wait for each other, by the timed section. Ctrl-C ends it with the rounds that are complete.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    """Return what one start took, verified and at its level: of a rank alone the processor's time, else its median repetition.

    RuntimeError says what went wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        words = [kernel, "--class", problem_class, "--repeat", str(REPETITIONS), "--output", str(record)]
        environment = {**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))}
        environment.pop(LEVEL, None)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        starter = [] if ranks == 1 else [build_info().mpiexec, "-n", str(ranks)]
        done = subprocess.run(
            [*starter, str(build.program), *words],
            env=environment | ({} if build.level is None else {LEVEL: build.level}),
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{build.name}: {kernel} ended with {done.returncode}: {done.stderr[-1000:]}")
        processor_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        found = read_kernel_record(record)
    # Builds of before there were levels tell of none.
    if found.header is None or not set(found.header.processor_levels) <= {build.name}:
        raise RuntimeError(f"{build.program} is not built for {build.name}")
    return processor_s if ranks == 1 else statistics.median(run.seconds for run in found.runs)


Ratios = Mapping[tuple[str, str, int], float]
"""To the first build, by build, kernel and ranks."""


def measure_round(sides: Sequence[Build], problem_class: str, counts: Sequence[int], number: int) -> Ratios:
    """Return the ratios of one round."""
    ratios = {}
    for kernel in KERNELS:
        for ranks in counts:
            order = sides if number % 2 == 0 else sides[::-1]
            took = {build.name: seconds(build, kernel, problem_class, ranks) for build in order}
            for build in sides[1:]:
                ratios[build.name, kernel, ranks] = took[build.name] / took[sides[0].name]
    return ratios


def measure(sides: Sequence[Build], problem_class: str, counts: Sequence[int], rounds: int) -> list[Ratios]:
    """Return the ratios of each round, of those that are complete where it is interrupted."""
    done: list[Ratios] = []
    with suppress(KeyboardInterrupt):
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            done.append(measure_round(sides, problem_class, counts, number))
    return done


def table(sides: Sequence[Build], counts: Sequence[int], rounds: Sequence[Ratios]) -> list[str]:
    """Return the lines of the table: a row for each build and number of ranks."""
    lines = [
        f"| seconds over those of {sides[0].name} | {' | '.join(map(str.upper, KERNELS))} | geometric mean |",
        f"| --- |{' ---: |' * (len(KERNELS) + 1)}",
    ]
    for build in sides[1:]:
        for ranks in counts:
            medians = [statistics.median(one[build.name, kernel, ranks] for one in rounds) for kernel in KERNELS]
            cells = " | ".join(f"{ratio:.2f}" for ratio in (*medians, statistics.geometric_mean(medians)))
            lines.append(f"| {build.name}, {ranks} rank{'' if ranks == 1 else 's'} | {cells} |")
    return lines


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--native", type=Path, help="folder of a fabricbench-npb built for this processor, of an earlier commit say"
    )
    parser.add_argument("--class", dest="problem_class", default="W", choices="SWAB", help="of all kernels")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        sides = builds(given.native)
        rounds = measure(sides, given.problem_class, given.ranks, given.rounds)
    except (FabricbenchError, RuntimeError) as error:
        sys.exit(f"npb_levels: {error}")
    if not rounds:
        sys.exit("npb_levels: no round is complete")
    machine = f"Linux {platform.release()}, {os.cpu_count()} processors"
    text = [
        f"Class {given.problem_class}, medians of {len(rounds)} rounds, {machine}.",
        "",
        *table(sides, given.ranks, rounds),
    ]
    show(text, "npb-levels", given.write)


if __name__ == "__main__":
    main()
