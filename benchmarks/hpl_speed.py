"""fabricbench-hpl on this machine, beside the HPL in Debian's hpcc and ScaLAPACK's Linpack, with the same BLAS.

    python -m benchmarks.hpl_speed [--n 3000] [--nb 192] [--rounds 3] [--write docs/workloads.md]

Each round starts ours and then hpcc on each number of ranks, over shared memory: A B A B. All load Debian's OpenBLAS
without threads, and ours once more that of the wheel which it takes by itself. hpcc runs with Debian's Open MPI and
ours with the MPI that it was built with: on one rank nothing is sent, on two what differs is their shared memory. Where
hpcc is not installed, its packages are unpacked below build/debian, which changes nothing else. hpcc runs all its other
parts as well, about twenty seconds. ScaLAPACK's test program `xdlu` has its memory compiled in, so both solve N = 384 with
NB = 64, ours several times a start as it does; its MPI is Debian's MPICH over shared memory. The tables have the medians over
the rounds; the lines below them hold the target, at least 1.0 times theirs on each number of ranks.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hpcc import hpcc_input
from benchmarks.page import show

from fabricbench.errors import FabricbenchError
from fabricbench.native import build_info, native_file
from fabricbench.record.kernel_lines import read_kernel_record

ROOT = Path(__file__).parents[1]
FOLDER = Path(f"usr/lib/{platform.machine()}-linux-gnu")
TIME_LIMIT_S = 300
LEAST = 1.0
RANKS = {1: (1, 1), 2: (1, 2)}
OURS, BY_ITSELF, THEIRS = "ours, Debian's OpenBLAS", "ours, the wheel's OpenBLAS", "hpcc 1.5, Debian's OpenBLAS"
SCALAPACK = "ScaLAPACK 2.2 xdlu, Debian's OpenBLAS"
SMALL_N, SMALL_NB, SMALL_REPETITIONS = 384, 64, 16
"""Small, for what xdlu has memory for on one rank: 768 was refused, 384 not tried yet."""

Rates = Mapping[tuple[str, int], list[float]]
"""Gflop/s of all rounds, by program and ranks."""


@dataclass(frozen=True)
class Debian:
    """Where hpcc with its Open MPI is, and the OpenBLAS without threads; both roots are / where they are installed."""

    root: Path
    blas_root: Path

    @property
    def _libraries(self) -> Path:
        return self.root / FOLDER

    @property
    def blas(self) -> Path:
        """The library that both load."""
        return self.blas_root / FOLDER / "openblas-serial/libblas.so.3"

    @property
    def blas_environment(self) -> dict[str, str]:
        """What lets the BLAS find its libraries, and nothing of hpcc's, which our MPI would take for its own."""
        return (
            {**os.environ, "LD_LIBRARY_PATH": str(self.blas_root / FOLDER)}
            if self.blas_root != Path("/")
            else {**os.environ}
        )

    @property
    def environment(self) -> dict[str, str]:
        """What lets hpcc find its libraries, and Open MPI its parts."""
        folders = (self.blas.parent, self.blas_root / FOLDER, self._libraries, self.root / FOLDER.relative_to("usr"))
        return {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(map(str, folders)),
            "OPAL_PREFIX": str(self.root / "usr"),
            "OMPI_MCA_mca_base_component_path": str(self._libraries / "openmpi/lib/openmpi3"),
        }

    def start(self, ranks: int) -> list[str]:
        """Return the tokens that start hpcc."""
        starter = [str(self.root / "usr/bin/mpirun.openmpi"), "--allow-run-as-root", "--oversubscribe"]
        return [*starter, "-n", str(ranks), str(self.root / "usr/bin/hpcc")]


def debian() -> Debian:
    """Return what is installed, else what is unpacked; RuntimeError where there is neither."""
    installed = Debian(Path("/"), Path("/"))
    if shutil.which("hpcc") and installed.blas.exists():
        return installed
    folder = ROOT / "build/debian"
    for package in ("hpcc", "libopenblas0-serial"):
        made = subprocess.run(
            [ROOT / "tools/unpack", folder / package, package], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise RuntimeError(made.stderr.strip())
    return Debian(folder / "hpcc", folder / "libopenblas0-serial")


def scalapack() -> Path:
    """Return the root of ScaLAPACK's test programs, which are unpacked where they are not."""
    folder = ROOT / "build/debian/scalapack"
    made = subprocess.run(
        [ROOT / "tools/unpack", folder, "scalapack-mpi-test"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise RuntimeError(made.stderr.strip())
    return folder


def own_rate(ranks: int, n: int, nb: int, given: Debian | None = None, repetitions: int = 1) -> float:
    """Return the median Gflop/s of one start of ours, verified; with a BLAS of Debian's, or the one that it takes by itself."""
    p, q = RANKS[ranks]
    more = [] if given is None else ["--blas", str(given.blas)]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        program = [str(native_file("fabricbench-hpl")), "--n", str(n), "--nb", str(nb), "--p", str(p), "--q", str(q)]
        program += ["--repeat", str(repetitions)]
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), *program, *more, "--output", str(record)],
            env=dict(os.environ) if given is None else given.blas_environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"fabricbench-hpl ended with {done.returncode}: {done.stderr[-1000:]}")
        runs = read_kernel_record(record).runs
    return statistics.median(run.mops_total or 0.0 for run in runs) / 1e3


def their_rate(given: Debian, ranks: int, n: int, nb: int) -> float:
    """Return the Gflop/s of the HPL of one start of hpcc, verified."""
    p, q = RANKS[ranks]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hpccinf.txt").write_text(hpcc_input(n, nb, p, q))
        done = subprocess.run(
            given.start(ranks),
            cwd=folder,
            env=given.environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        output = Path(folder) / "hpccoutf.txt"
        text = output.read_text() if output.exists() else ""
    rate = re.search(r"^HPL_Tflops=(\S+)$", text, re.MULTILINE)
    residual = re.search(r"^\|\|Ax-b\|\|.*PASSED$", text, re.MULTILINE)
    if rate is None or residual is None:
        raise RuntimeError(f"hpcc ended with {done.returncode} and without a verified HPL: {done.stderr[-1000:]}")
    return float(rate[1]) * 1e3


def scalapack_rate(given: Debian, root: Path, ranks: int) -> float:
    """Return the median Gflop/s of one start of xdlu, all of it passed: factorisation and solution."""
    p, q = RANKS[ranks]
    sizes = " ".join([str(SMALL_N)] * SMALL_REPETITIONS)
    head = ("ScaLAPACK LU", "of fabricbench", "'LU.out' file", "6 device", f"{SMALL_REPETITIONS} sizes", sizes, sizes)
    text = [*head, "1 NB", str(SMALL_NB), "1 NRHS", "1", "1 NBRHS", "1", "1 grids", str(p), str(q), "1.0", "F"]
    libraries = (given.blas.parent, given.blas_root / FOLDER, root / FOLDER, root / FOLDER / "lapack")
    variables = {"LD_LIBRARY_PATH": ":".join(map(str, libraries)), "UCX_TLS": "posix,self", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "LU.dat").write_text("\n".join(text) + "\n")
        done = subprocess.run(
            [build_info().mpiexec, "-n", str(ranks), str(root / FOLDER / "scalapack/mpich-tests/xdlu")],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    rates = re.findall(r"^WALL(?:\s+\d+){7}\s+\S+\s+\S+\s+(\S+)\s+PASSED", done.stdout, re.MULTILINE)
    if len(rates) != SMALL_REPETITIONS:
        raise RuntimeError(
            f"xdlu ended with {done.returncode}, {len(rates)} passed: {(done.stdout + done.stderr)[-1000:]}"
        )
    return statistics.median(map(float, rates)) / 1e3


def measure_small(rounds: int) -> Rates:
    """Return the rates of ours and of ScaLAPACK's Linpack."""
    given, root = debian(), scalapack()
    found: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for ranks in RANKS:
            found[OURS, ranks].append(own_rate(ranks, SMALL_N, SMALL_NB, given, SMALL_REPETITIONS))
            found[SCALAPACK, ranks].append(scalapack_rate(given, root, ranks))
    return found


def measure(n: int, nb: int, rounds: int) -> Rates:
    """Return the rates of ours and of hpcc's HPL."""
    given = debian()
    found: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for done in range(rounds):
        for ranks in RANKS:
            print(f"round {done + 1} of {rounds}, {ranks} ranks", file=sys.stderr)
            found[OURS, ranks].append(own_rate(ranks, n, nb, given))
            found[THEIRS, ranks].append(their_rate(given, ranks, n, nb))
            found[BY_ITSELF, ranks].append(own_rate(ranks, n, nb))
    return found


def table(found: Rates, other: str, others: str) -> list[str]:
    """Return the lines of the table, and whether the target holds against the other program."""
    heads = [f"{ranks} rank{'s' if ranks > 1 else ''}" for ranks in RANKS]
    lines = [f"| Gflop/s | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for name in dict.fromkeys(name for name, _ in found):
        cells = (
            f"{statistics.median(found[name, ranks]):.1f} ({min(found[name, ranks]):.1f} to {max(found[name, ranks]):.1f})"
            for ranks in RANKS
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    ends = []
    for ranks in RANKS:
        pairs = zip(found[OURS, ranks], found[other, ranks], strict=True)
        ratio = statistics.median(own / theirs for own, theirs in pairs)
        ends.append(f"{ratio:.2f} on {ranks}{'' if ratio >= LEAST else ', which DOES NOT HOLD'}")
    return [*lines, "", f"Ours over {others}, median of pairs, at least {LEAST:.1f}: {'; '.join(ends)}."]


def main() -> None:
    """Measure, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--nb", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    try:
        found = measure(given.n, given.nb, given.rounds)
        small = measure_small(given.rounds)
    except (FabricbenchError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(f"hpl_speed: {error}")
    machine = f"Linux {platform.release()}, {os.cpu_count()} processors"
    about = (
        f"N = {given.n}, NB = {given.nb}, {given.rounds} rounds, {machine}; medians, and from the least to the most."
    )
    beside = f"N = {SMALL_N}, NB = {SMALL_NB}, {SMALL_REPETITIONS} in a start:"
    lines = [*table(found, THEIRS, "hpcc's"), "", beside, "", *table(small, SCALAPACK, "ScaLAPACK's")]
    show([about, "", *lines], "hpl-speed", given.write)


if __name__ == "__main__":
    main()
