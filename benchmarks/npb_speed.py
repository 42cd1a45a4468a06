"""The kernels of NPB on this machine, beside the official programs.

    python -m benchmarks.npb_speed [--class A] [--processors 1 2] [--rounds 5] [--official FOLDER ...] [--write docs/npb.md]

Each round starts every kernel once on each number of processors, over shared memory, and each official program after it where
folders with official builds are given: of several builds (-O3, and -O3 -march=native, say) each kernel's faster one counts. The
tables have the medians over the rounds, times first. Mop/s are official counts of operations over the time, whatever a program
really does. Without a folder, class A is set beside what the official programs did on another machine of this kind, which is an
order of magnitude and no comparison. The last lines hold the target: no kernel slower than the official one. With --write the
table replaces the one between the markers of a page.
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
from pathlib import Path

from benchmarks.page import show

from fabricbench.errors import FabricbenchError
from fabricbench.native import build_info, native_file
from fabricbench.record.kernel_lines import KernelRecord, read_kernel_record
from fabricbench.workload.npb import BENCHMARKS
from fabricbench.workload.official_npb import find_official, parse_official

KERNELS = ("ep", "is", "mg", "cg", "ft", "lu", "sp", "bt")
TIME_LIMIT_S = 600
LEAST = 1.0

ELSEWHERE = "official 3.4.3 elsewhere"
ELSEWHERE_RATES: dict[int, tuple[float, ...]] = {
    1: (88, 262, 6070, 2320, 4350, 5890, 3480, 4430),
    2: (125, 408, 7350, 2690, 5120, 6300, 4850, 5100),
}
"""Mop/s of class A in the order of KERNELS, by processors: NPB 3.4.3, gfortran 12 -O3 -march=native, on an AMD EPYC (Zen 3). On one
by CPU time, best of three; on two by wall time of an otherwise idle machine, SP and BT on four ranks."""

Rates = Mapping[tuple[str, int], float]


def ranks_of(kernel: str, processors: int) -> int:
    """Return the number of ranks for so many processors: those that the kernel takes, four for two where it takes squares."""
    taken = BENCHMARKS[kernel].admissible_ranks(2 * processors)
    return min((ranks for ranks in taken if ranks >= processors), default=max(taken))


def rate(ranks: int, program: Sequence[str], *, is_official: bool) -> float:
    """Return the Mop/s of one start, verified; RuntimeError says what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), *program],
            cwd=folder,
            env={**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program[0]} ended with {done.returncode}: {done.stderr[-1000:]}")
        record: KernelRecord = (
            parse_official(done.stdout) if is_official else read_kernel_record(Path(folder) / "record.jsonl")
        )
    (run,) = record.runs
    if not run.verified or run.mops_total is None:
        raise RuntimeError(f"{' '.join(program)} did not verify")
    return run.mops_total


def measure(problem_class: str, counts: Sequence[int], rounds: int, builds: Sequence[Path]) -> tuple[Rates, Rates]:
    """Return the medians over rounds of our rates and of the faster official program's, by kernel and processors."""
    own: dict[tuple[str, int], list[float]] = defaultdict(list)
    official: dict[tuple[str, int, Path], list[float]] = defaultdict(list)
    for done in range(rounds):
        print(f"round {done + 1} of {rounds}", file=sys.stderr)
        for kernel in KERNELS:
            for processors in counts:
                ranks = ranks_of(kernel, processors)
                program = [str(native_file("fabricbench-npb")), kernel, "--class", problem_class]
                own[kernel, processors].append(rate(ranks, [*program, "--output", "record.jsonl"], is_official=False))
                for build in builds:
                    found = [str(find_official(kernel, problem_class, ranks, build))]
                    official[kernel, processors, build].append(rate(ranks, found, is_official=True))
    theirs: dict[tuple[str, int], float] = defaultdict(float)
    for (kernel, processors, _), rates in official.items():
        theirs[kernel, processors] = max(theirs[kernel, processors], statistics.median(rates))
    return {key: statistics.median(rates) for key, rates in own.items()}, theirs


def operations(kernel: str, problem_class: str) -> float:
    """Return the official count of operations, by a run of ours."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        program = [str(native_file("fabricbench-npb")), kernel, "--class", problem_class, "--output", str(record)]
        subprocess.run(program, capture_output=True, timeout=TIME_LIMIT_S, check=True)
        (run,) = read_kernel_record(record).runs
    return run.operations or 0.0


def seconds_table(own: Rates, theirs: Rates, whose: str, counts: Mapping[str, float]) -> list[str]:
    """Return the lines of the table of times."""
    lines = [f"| seconds | {' | '.join(map(str.upper, KERNELS))} |", f"| --- |{' ---: |' * len(KERNELS)}"]
    for processors in sorted({of for _, of in own}):
        ranks = "1 rank" if processors == 1 else f"{processors} ranks"
        for name, side in ((ranks, own), (f"{ranks}, {whose}", theirs)):
            if side:
                cells = (f"{counts[kernel] / side[kernel, processors] * 1e-6:.3g}" for kernel in KERNELS)
                lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def table(own: Rates, theirs: Rates, whose: str) -> list[str]:
    """Return the lines of the table of rates, and whether the target holds for each number of processors."""
    lines = [f"| Mop/s | {' | '.join(map(str.upper, KERNELS))} |", f"| --- |{' ---: |' * len(KERNELS)}"]
    ends: list[str] = []
    for processors in sorted({of for _, of in own}):
        ranks = "1 rank" if processors == 1 else f"{processors} ranks"
        lines.append(f"| {ranks} | {' | '.join(f'{own[kernel, processors]:,.0f}' for kernel in KERNELS)} |")
        if not theirs:
            continue
        lines.append(f"| {ranks}, {whose} | {' | '.join(f'{theirs[kernel, processors]:,.0f}' for kernel in KERNELS)} |")
        ratios = {kernel: own[kernel, processors] / theirs[kernel, processors] for kernel in KERNELS}
        mean, least = statistics.geometric_mean(ratios.values()), min(ratios, key=lambda kernel: ratios[kernel])
        holds = "holds" if ratios[least] >= LEAST else "DOES NOT HOLD"
        ends.append(
            f"{ranks}: geometric mean {mean:.1f} times {whose}, least {ratios[least]:.2f} ({least.upper()}): {holds}"
        )
    return [*lines, "", *(f"{end}." for end in ends)]


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--class", dest="problem_class", default="A", choices="SWABC", help="of all kernels")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processors", type=int, nargs="+", default=sorted(ELSEWHERE_RATES), help="a rank on each")
    parser.add_argument(
        "--official", type=Path, nargs="+", default=[], help="folders of official NPBs with their programs built"
    )
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        own, theirs = measure(given.problem_class, given.processors, given.rounds, given.official)
    except (FabricbenchError, RuntimeError) as error:
        sys.exit(f"npb_speed: {error}")
    whose = "official" if given.official else ELSEWHERE
    if not theirs and given.problem_class == "A" and set(given.processors) <= set(ELSEWHERE_RATES):
        theirs = {
            (kernel, processors): found
            for processors in given.processors
            for kernel, found in zip(KERNELS, ELSEWHERE_RATES[processors], strict=True)
        }
    machine = f"Linux {platform.release()}, {os.cpu_count()} processors"
    text = [
        f"Class {given.problem_class}, medians of {given.rounds} rounds, {machine}; SP and BT on 4 ranks in place of 2.",
        "",
        *seconds_table(own, theirs, whose, {kernel: operations(kernel, given.problem_class) for kernel in KERNELS}),
        "",
        *table(own, theirs, whose),
    ]
    show(text, "npb-speed", given.write)


if __name__ == "__main__":
    main()
