"""fabricbench-hpcg on this machine, beside the official HPCG 3.1 where its source is given, and its own two variants.

    python -m benchmarks.hpcg_speed [--source FOLDER] [--sizes 24 48 104] [--rounds 3] [--write docs/workloads.md]

The official program is in no package of Debian or PyPI: FOLDER is its source (on GitHub: hpcg-benchmark/hpcg), which is compiled
below build/hpcg with the MPI that ours was built with, its own flags for GCC and -march=native. Without it, ours is set beside
its own variant `reference`, and the last line says so. Each round starts ours and then the other on each size and number of ranks,
over shared memory: A B A B. All rates are ratings by the official formula, with a tenth of the seconds of setting up for each
set. The table has the medians over the rounds; the last line holds the target, at least 1.2 times the reference, as the
geometric mean over sizes and ranks of the medians of pairs.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
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
from fabricbench.record.kernel_lines import read_kernel_record

ROOT = Path(__file__).parents[1]
TIME_LIMIT_S = 600
LEAST = 1.2
RANKS = (1, 2)
SETS = 2
FLAGS = ("-DHPCG_NO_OPENMP", "-O3", "-ffast-math", "-ftree-vectorize", "-march=native", "-w")
OPTIMISED, REFERENCE, OFFICIAL = "ours, optimised", "ours, reference", "official HPCG 3.1"

Found = Mapping[tuple[str, int, int], list[float]]
"""The ratings of all rounds, by program, points along a side of each rank's cube, and ranks."""


def compile_official(source: Path) -> Path:
    """Return the official program, compiled from its source."""
    files = sorted((source / "src").glob("*.cpp"))
    if not files:
        raise RuntimeError(f"{source}: found no src/*.cpp, needed the source of HPCG 3.1")
    program = ROOT / "build/hpcg/xhpcg"
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = Path(build_info().mpiexec).with_name("mpicxx")
    command = [compiler, *FLAGS, f"-I{source / 'src'}", *files, "-o", program]
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(f"{compiler} ended with {made.returncode}: {made.stderr[-1000:]}")
    return program


def own_rate(variant: str, points: int, ranks: int) -> float:
    """Return the rating of one start of ours, verified."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        words = ["--nx", str(points), "--sets", str(SETS), "--variant", variant, "--output", str(record)]
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), str(native_file("fabricbench-hpcg")), *words],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"fabricbench-hpcg ended with {done.returncode}: {done.stderr[-1000:]}")
        (run,) = read_kernel_record(record).runs
    return run.values["gflops"] or 0.0


def official_rate(program: Path, points: int, ranks: int) -> float:
    """Return the rating of one start of the official program, valid."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*(f"--n{side}={points}" for side in "xyz"), "--rt=1"]
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), str(program), *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        text = "".join(one.read_text() for one in Path(folder).glob("HPCG-Benchmark*.txt"))
    rating = re.search(r"^Final Summary::HPCG result is VALID with a GFLOP/s rating of=(\S+)", text, re.MULTILINE)
    if rating is None:
        raise RuntimeError(f"the official HPCG ended with {done.returncode} and without a valid result: {text[-1000:]}")
    return float(rating[1])


def measure(official: Path | None, sizes: Sequence[int], rounds: int) -> Found:
    """Return the ratings of all rounds."""
    found: defaultdict[tuple[str, int, int], list[float]] = defaultdict(list)
    for done in range(rounds):
        for points in sizes:
            for ranks in RANKS:
                print(f"round {done + 1} of {rounds}, {points} points, {ranks} ranks", file=sys.stderr)
                found[OPTIMISED, points, ranks].append(own_rate("optimised", points, ranks))
                if official is not None:
                    found[OFFICIAL, points, ranks].append(official_rate(official, points, ranks))
                found[REFERENCE, points, ranks].append(own_rate("reference", points, ranks))
    return found


def table(found: Found, sizes: Sequence[int], other: str) -> list[str]:
    """Return the lines of the table, and whether the target holds against the other program."""
    cells = [(points, ranks) for points in sizes for ranks in RANKS]
    heads = [f"{points}^3, {ranks} rank{'s' if ranks > 1 else ''}" for points, ranks in cells]
    lines = [f"| Gflop/s | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for name in dict.fromkeys((OPTIMISED, other, REFERENCE)):
        rates = [found[name, *cell] for cell in cells]
        row = (f"{statistics.median(one):.2f} ({min(one):.2f} to {max(one):.2f})" for one in rates)
        lines.append(f"| {name} | {' | '.join(row)} |")
    ratios = []
    for cell in cells:
        pairs = zip(found[OPTIMISED, *cell], found[other, *cell], strict=True)
        ratios.append(statistics.median(own / theirs for own, theirs in pairs))
    lines.append(f"| optimised over {other} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    mean = statistics.geometric_mean(ratios)
    holds = "" if mean >= LEAST else ", which DOES NOT HOLD"
    without = "" if other == OFFICIAL else " The official program was not given: this is our own reference."
    return [*lines, "", f"Geometric mean of the ratios, at least {LEAST:.1f}: {mean:.2f}{holds}.{without}"]


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="the folder with the official program's source")
    parser.add_argument("--sizes", type=int, nargs="+", default=[24, 48, 104])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        official = None if given.source is None else compile_official(given.source)
        found = measure(official, given.sizes, given.rounds)
    except (FabricbenchError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(f"hpcg_speed: {error}")
    machine = f"Linux {platform.release()}, {os.cpu_count()} processors"
    about = f"{SETS} sets of ours, {given.rounds} rounds, {machine}; medians, and from the least to the most."
    show([about, "", *table(found, given.sizes, OFFICIAL if official else REFERENCE)], "hpcg-speed", given.write)


if __name__ == "__main__":
    main()
