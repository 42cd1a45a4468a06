"""The NAS Parallel Benchmarks as fabricbench-npb runs them: what each stresses, how it is started, what it leaves, its time.

Specification: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; NAS-95-020 for the versions over MPI.

An estimate of time is enough to plan with and to tell a hung run from a slow one, never a result: a run is taken to need its
computing, with the processors shared by all ranks, then its bytes at the line rate, then its messages one after the other.
Nothing of it is hidden behind the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from types import MappingProxyType

from fabricbench.errors import UsageError
from fabricbench.native import native_file
from fabricbench.record.kernel_lines import KernelRecord, read_kernel_record
from fabricbench.workload.pace import MESSAGE_SECONDS, Pace

CLASSES = ("S", "W", "A", "B", "C", "D")
"""The sizes of problem that fabricbench-npb has, from the smallest."""

PROGRAM = "fabricbench-npb"
VERIFIED, WRONG = 0, 1
"""Exit codes of fabricbench-npb after which its record is whole."""


def _any(_ranks: int) -> bool:
    return True


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _square(ranks: int) -> bool:
    return isqrt(ranks) ** 2 == ranks


def _nearly_square(ranks: int) -> bool:
    """Whether the ranks form a grid of which one side is at most twice the other."""
    rows = next(rows for rows in range(isqrt(ranks), 0, -1) if ranks % rows == 0)
    return ranks // rows <= 2 * rows


@dataclass(frozen=True)
class Benchmark:
    """One of the eight. `rank_rule` names the numbers of ranks that the official versions admit, `admits` tests one.

    A number may still be too many for a small class, and fabricbench-npb runs some kernels on more numbers than these:
    its `--list`, read by `read_list`, has the last word.
    """

    name: str
    title: str
    stresses: str
    rank_rule: str
    is_admissible: Callable[[int], bool]
    is_own_free: bool = False
    """Whether fabricbench-npb runs it on any number of ranks."""

    def admits(self, ranks: int) -> bool:
        """Tell whether the official rule admits this number of ranks."""
        return ranks >= 1 and self.is_admissible(ranks)

    def takes(self, ranks: int, *, is_own: bool) -> bool:
        """Tell whether fabricbench-npb (`is_own`), or an official version, runs on so many ranks."""
        return ranks >= 1 if is_own and self.is_own_free else self.admits(ranks)

    def admissible_ranks(self, most: int) -> tuple[int, ...]:
        """Return all admissible numbers of ranks up to `most`."""
        return tuple(ranks for ranks in range(1, most + 1) if self.admits(ranks))


BENCHMARKS = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (
            Benchmark(
                "ep",
                "Embarrassingly parallel",
                "the processors alone: a few reductions of some bytes",
                "any number",
                _any,
            ),
            Benchmark(
                "mg",
                "Multigrid",
                "nearest neighbours, from large messages on the fine grids to tiny ones on the coarse",
                "powers of two",
                _power_of_two,
            ),
            Benchmark(
                "cg",
                "Conjugate gradient",
                "latency and middle-sized messages in irregular pairs, and memory",
                "powers of two",
                _power_of_two,
                is_own_free=True,
            ),
            Benchmark(
                "ft",
                "3-D fast Fourier transform",
                "bisection bandwidth: all ranks exchange the whole array with all",
                "powers of two",
                _power_of_two,
                is_own_free=True,
            ),
            Benchmark(
                "is",
                "Integer sort",
                "bandwidth between all ranks, with messages of unequal sizes",
                "powers of two",
                _power_of_two,
                is_own_free=True,
            ),
            Benchmark(
                "lu",
                "Lower-upper Gauss-Seidel solver",
                "latency: very many small messages along a wavefront",
                "grids whose one side is at most twice the other",
                _nearly_square,
            ),
            Benchmark(
                "sp",
                "Scalar pentadiagonal solver",
                "bandwidth to neighbours with middle-sized messages, in many steps",
                "squares",
                _square,
            ),
            Benchmark(
                "bt",
                "Block tridiagonal solver",
                "bandwidth to neighbours with large messages, with more computing for each",
                "squares",
                _square,
            ),
        )
    }
)
"""The eight, by name."""


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark of this name; UsageError lists those that there are."""
    if name not in BENCHMARKS:
        raise UsageError(f"there is no NPB kernel {name!r}", hint=f"there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


@dataclass(frozen=True)
class NpbRun:
    """What is asked of fabricbench-npb. `ranks` takes the first so many of those started, None all of them."""

    kernel: str
    problem_class: str = "S"
    ranks: int | None = None
    repetitions: int = 1

    def __post_init__(self) -> None:
        find_benchmark(self.kernel)
        if self.problem_class not in CLASSES:
            raise UsageError(f"there is no NPB class {self.problem_class!r}", hint=f"there are {', '.join(CLASSES)}")
        if self.repetitions < 1 or (self.ranks is not None and self.ranks < 1):
            raise UsageError("ranks and repetitions of an NPB run are at least 1")


def npb_program(run: NpbRun, output: Path, program: Path | None = None) -> list[str]:
    """Return what each rank runs; EnvironmentLacks where fabricbench-npb is not built."""
    tokens = [str(program or native_file(PROGRAM)), run.kernel, "--class", run.problem_class]
    if run.ranks is not None:
        tokens += ["--ranks", str(run.ranks)]
    return [*tokens, "--repeat", str(run.repetitions), "--output", str(output)]


def read_list(text: str) -> dict[str, tuple[int, ...]]:
    """Read what `fabricbench-npb --list` prints: the numbers of ranks, up to 64, on which each kernel runs."""
    kernels: dict[str, tuple[int, ...]] = {}
    kernel = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            kernel = line.split()[0]
            kernels[kernel] = ()
        elif found := re.fullmatch(r" +ranks, class \w: ([\d -]+)", line):
            kernels[kernel] = tuple(ranks for word in found[1].split() for ranks in _range(word))
    return kernels


def _range(word: str) -> range:
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)


def read_npb(path: Path) -> KernelRecord:
    """Read the record of fabricbench-npb, or of any program that is brought into the same lines."""
    return read_kernel_record(path)


@dataclass(frozen=True)
class Effort:
    """One kernel. `seconds` is class A of the official program on one rank (a 2-core EPYC of 2.25 GHz, CPU time).

    `growth` is the work of the classes S, W, A, B, C, D in units of class A, from the official counts of operations.
    `bytes_sent` and `messages` are what all of `PROFILED_RANKS` send together in class W, by the profile of fabricbench-npb.
    """

    seconds: float
    growth: tuple[float, ...]
    bytes_sent: float
    messages: float


PROFILED_RANKS = 4

EFFORTS = {
    "ep": Effort(6.10, (1 / 16, 1 / 8, 1, 4, 16, 256), 384, 8),
    "is": Effort(0.32, (1 / 128, 1 / 8, 1, 4, 16, 256), 31.6e6, 280),
    "mg": Effort(0.64, (1 / 512, 1 / 8, 1, 5, 40, 800), 13.1e6, 248),
    "cg": Effort(0.65, (0.045, 0.28, 1, 37, 95, 2430), 65.5e6, 5520),
    "ft": Effort(1.64, (1 / 32, 1 / 16, 1, 13.3, 53, 1060), 44.0e6, 108),
    "lu": Effort(20.3, (0.0013, 0.16, 1, 4.05, 16.2, 311), 147.9e6, 80412),
    "sp": Effort(24.4, (0.0016, 0.178, 1, 4.05, 16.2, 324), 691.2e6, 19200),
    "bt": Effort(38.0, (0.002, 0.053, 1, 4.05, 16.2, 324), 152.1e6, 9600),
}


def usual_seconds(kernel: str, problem_class: str, ranks: int, pace: Pace) -> float:
    """Return the seconds that one run of a kernel takes: computing, then its bytes, then its messages."""
    effort = EFFORTS[kernel]
    work = effort.growth[CLASSES.index(problem_class)]
    of_w = max(1.0, work / effort.growth[CLASSES.index("W")])
    computing = effort.seconds * work / pace.computing
    if ranks == 1:
        return computing
    # What crosses the network grows with the ranks, and each has a link of its own: that of one is as of four.
    moving = effort.bytes_sent / PROFILED_RANKS * of_w * 8.0 / pace.line_rate_bit_s
    talking = effort.messages / PROFILED_RANKS * math.cbrt(of_w) * MESSAGE_SECONDS
    return computing + moving + talking
