"""Adapter for an official NPB, built elsewhere: finds its programs, and makes records of what they print.

Each of its programs ends with the same block, ` Benchmark Completed.` and lines for class, time, rate and verification.
It prints the time to a hundredth of a second; the rate, of a count of operations that is known, often tells it finer. It has no
single check. Where its ranks ran, and over which MPI library, `workload.counted` tells on the lines before.

The official counts of operations are those of NAS-95-020 and the official programs (3.4). fabricbench-npb has the same counts in
C++; a test compares the two.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fabricbench.errors import EnvironmentLacks
from fabricbench.record.kernel_lines import KernelFooter, KernelHeader, KernelRecord, KernelRun
from fabricbench.record.reading import Damage
from fabricbench.workload.adapter import ToldAround, split_counted_output
from fabricbench.workload.npb import find_benchmark

PROGRAM = "official NPB"

PRINTED_SECONDS = 0.01
PRINTED_MOPS = 0.01
"""What its printed time and its printed rate are rounded to."""

COMPLETED = re.compile(r"^\s*(?P<kernel>[A-Z]{2}) Benchmark Completed\.?\s*$")
FIELD = re.compile(r"^\s*(?P<name>[A-Z][A-Za-z/ ]*?)\s*=\s*(?P<value>.*?)\s*$")
NEEDED = (
    "Class",
    "Size",
    "Iterations",
    "Time in seconds",
    "Total processes",
    "Mop/s total",
    "Operation type",
    "Verification",
)
VERDICTS = {"SUCCESSFUL": True, "UNSUCCESSFUL": False, "NOT PERFORMED": False}


def find_official(kernel: str, problem_class: str, ranks: int, folder: Path | None = None) -> Path:
    """Return the program of a kernel and class: in `folder` or its `bin`, or on PATH where no folder is given.

    Up to NPB 3.3 a program was built for one number of ranks, which its name ends with; since 3.4 the name ends with
    `x`. EnvironmentLacks says where it was looked for.
    """
    find_benchmark(kernel)
    names = [f"{kernel}.{problem_class}.{ending}" for ending in ("x", str(ranks))]
    path = None if folder is None else os.pathsep.join((str(folder), str(folder / "bin")))
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None:
            return Path(found)
    where = "on PATH" if folder is None else f"in {folder} and {folder / 'bin'}"
    raise EnvironmentLacks(
        f"no official NPB for {kernel}, class {problem_class}, {ranks} ranks: looked for {' and '.join(names)} {where}",
        hint=f"run `make {kernel} CLASS={problem_class}` in its NPB3.4-MPI folder, and name that folder",
    )


def official_program(program: Path) -> list[str]:
    """Return what each rank runs; kernel and class are built in, the number of ranks comes from the starter."""
    return [str(program)]


def parse_official(text: str, started_unix_ns: int | None = None) -> KernelRecord:
    """Read what a program of the official NPB printed; never raises on what it holds, the damage is in the result."""
    lines = text.splitlines(keepends=True)
    begin = next((number for number, line in enumerate(lines) if COMPLETED.match(line)), None)
    if begin is None:
        return _damaged(len(lines), "the output has no `Benchmark Completed`: the program did not come to its end")
    fields = _fields(lines[begin + 1 :])
    missing = [name for name in NEEDED if name not in fields]
    if missing:
        return _damaged(len(lines), f"the block of results has no {missing[0]}: the output was cut short")
    if fields["Verification"] not in VERDICTS:
        return _damaged(len(lines), f"the verification is {fields['Verification']!r}, which is no known verdict")
    again = [number for number, line in enumerate(lines) if COMPLETED.match(line)][1:]
    if again:
        return _damaged(again[0] + 1, "a second block of results: the output is of more than one run")
    completed = COMPLETED.match(lines[begin])
    try:
        return _record(
            completed["kernel"].lower() if completed else "",
            fields,
            split_counted_output("".join(lines[:begin])),
            started_unix_ns,
        )
    except ValueError as error:  # also what pydantic raises
        return _damaged(begin + 1, f"the block of results cannot be read: {error}")


def _damaged(line: int, reason: str) -> KernelRecord:
    return KernelRecord(damage=[Damage(line=max(line, 1), reason=reason)])


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the fields of the block, the first of each name. A line without its end may lack digits and is left out."""
    fields: dict[str, str] = {}
    for line in lines:
        found = FIELD.match(line) if line.endswith("\n") else None
        if found is not None:
            fields.setdefault(found["name"], found["value"])
    return fields


@dataclass(frozen=True)
class _Time:
    seconds: float
    resolution_seconds: float
    """The smallest difference that the program can tell."""


def _time(printed_seconds: float, mops: float | None, operations: float | None) -> _Time:
    """Return the time by the rate where that is finer than the printed time and the two agree, else the printed time."""
    if mops and operations:
        seconds = operations / mops * 1e-6
        by_rate = _Time(seconds, seconds * PRINTED_MOPS / mops)
        agree = abs(seconds - printed_seconds) <= (PRINTED_SECONDS + by_rate.resolution_seconds) / 2
        if agree and by_rate.resolution_seconds < PRINTED_SECONDS:
            return by_rate
    return _Time(printed_seconds, PRINTED_SECONDS)


def _record(kernel: str, fields: dict[str, str], told: ToldAround, started_unix_ns: int | None) -> KernelRecord:
    ranks = int(fields.get("Active processes", fields["Total processes"]))
    mops = _rate(fields["Mop/s total"])
    size = " x ".join(fields["Size"].replace("x", " ").split())
    iterations = int(fields["Iterations"])
    operations = official_operations(kernel, fields["Class"], size, iterations)
    time = _time(float(fields["Time in seconds"]), mops, operations)
    header = KernelHeader(
        program=PROGRAM,
        program_version=fields.get("Version", "unknown"),
        kernel=kernel,
        problem_class=fields["Class"],
        rank_count=ranks,
        ranks=told.all_of(ranks),
        mpi_library=told.mpi_library,
        clock_resolution_ns=time.resolution_seconds * 1e9,
        started_unix_ns=started_unix_ns,
    )
    run = KernelRun(
        repetition=0,
        size=size,
        iterations=iterations,
        seconds=time.seconds,
        operations=operations,
        operation_unit=fields["Operation type"].lower(),
        mops_total=mops,
        mops_per_process=None if mops is None else mops / ranks,
        verified=VERDICTS[fields["Verification"]],
    )
    return KernelRecord(header=header, runs=[run], footer=KernelFooter(runs=1, verified=int(run.verified)))


def _rate(text: str) -> float | None:
    """Return a rate; None for the infinity or the stars that Fortran prints where a run took no measurable time."""
    if text.strip("*") == "":
        return None
    rate = float(text)
    return rate if math.isfinite(rate) else None


CG_STEPS = 25
"""Steps of conjugate gradients in one iteration of CG."""

CG_ENTRIES = MappingProxyType({"S": 7, "W": 8, "A": 11, "B": 13, "C": 15, "D": 21})
"""Entries of the random vectors that CG's matrix is made of, by class."""


def official_operations(kernel: str, problem_class: str, size: str, iterations: int) -> float | None:
    """Return the operations that an official program counts, from what it prints of its size (`36 x 36 x 36`, `1400`).

    None for a kernel, a class or a size that is not known here.
    """
    try:
        edges = [int(edge) for edge in size.split(" x ")]
    except ValueError:
        return None
    if kernel == "cg":
        entries = CG_ENTRIES.get(problem_class)
        return None if entries is None else _of_cg(edges[0], iterations, entries)
    count = COUNTS.get(kernel)
    return None if count is None else count(edges, iterations)


def _of_cg(rows: int, iterations: int, entries: int) -> float:
    per_row = entries * (entries + 1)
    return 2.0 * iterations * rows * (3 + per_row + CG_STEPS * (5 + per_row) + 3)


def _of_ft(edges: list[int], iterations: int) -> float:
    points = math.prod(edges)
    logarithm = math.log(points)
    return points * (14.8157 + 7.19641 * logarithm + (5.23518 + 7.21113 * logarithm) * iterations)


def _cubic(cubic: float, square: float, linear: float, constant: float) -> Callable[[list[int], int], float]:
    """Return a count that is so many times the iterations, by powers of the edge; of unequal edges the mean counts."""

    def count(edges: list[int], iterations: int) -> float:
        n = sum(edges) / len(edges)
        return iterations * (math.prod(edges) * cubic + n * (n * square + linear) + constant)

    return count


COUNTS: MappingProxyType[str, Callable[[list[int], int], float]] = MappingProxyType(
    {
        "ep": lambda edges, _: float(edges[0]),  # it prints the numbers that it draws
        "is": lambda edges, iterations: float(edges[0] * iterations),
        "mg": lambda edges, iterations: 58.0 * iterations * math.prod(edges),
        "ft": _of_ft,
        "lu": _cubic(1984.77, -10923.3, 27770.9, -144010),
        "sp": _cubic(881.174, -4683.91, 11484.5, -19272.4),
        "bt": _cubic(3478.8, -17655.7, 28023.7, 0),
    }
)
"""By kernel, of the edges of the grid (or the one number that is printed for a size) and the iterations."""
