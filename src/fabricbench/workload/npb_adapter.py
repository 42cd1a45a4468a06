"""The NAS Parallel Benchmarks as a workload: fabricbench-npb, or the programs of an official NPB that was built elsewhere.

[[workload]]
kind = "npb"                 # or [[npb]], which means the same
benchmarks = ["IS", "CG"]    # default: all eight
class = "W"                  # or a list
ranks = [1, 4]               # default "all": the most that each takes on the nodes there are, one a node
repetitions = 3              # runs in one start
program = "own"              # or "official", found on PATH, or the folder that holds the official programs

A wrong result of fabricbench-npb is no failed launch: it ran, and its cell says so. What an official program prints is its record,
and interfaces are counted around it from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabricbench.configuration import expanded
from fabricbench.model import Pattern
from fabricbench.native import native_file
from fabricbench.record.kernel_lines import KernelRecord
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.lines import InterfaceBytes
from fabricbench.record.workload_cells import Failed, FigureFound, FigureOfMerit, WorkloadResult, result_of_kernel
from fabricbench.testbed.model import WITHOUT_NUL
from fabricbench.workload import counted
from fabricbench.workload.adapter import (
    Output,
    Parameters,
    Place,
    Ranks,
    RankSlots,
    Unseated,
    WorkloadKind,
    WorkloadStart,
    WorkloadTable,
    is_cut,
    read_output,
    seated,
    split_counted_output,
)
from fabricbench.workload.counted import CLOCKS_APART
from fabricbench.workload.npb import (
    BENCHMARKS,
    CLASSES,
    PROGRAM,
    VERIFIED,
    WRONG,
    NpbRun,
    npb_program,
    read_npb,
    usual_seconds,
)
from fabricbench.workload.official_npb import find_official, official_program, parse_official
from fabricbench.workload.pace import Pace

OWN: Literal["own"] = "own"
OFFICIAL: Literal["official"] = "official"

NAMES = tuple(name.upper() for name in BENCHMARKS)

SECONDS = FigureOfMerit(name="time", unit="s", better="lower")


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str | int) and value != "all" else value


def _known(allowed: tuple[str, ...], what: str) -> AfterValidator:
    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(value.upper() for value in values)
        for value in found:
            if value not in allowed:
                raise ValueError(f"there is no {what} {value!r}; there are {', '.join(allowed)}")
        if not found:
            raise ValueError(f"needed at least one {what}")
        return tuple(dict.fromkeys(found))

    return AfterValidator(check)


def _located(value: str) -> str:
    """Return a folder as an absolute path: a launch starts elsewhere."""
    return value if value in (OWN, OFFICIAL) else str(expanded(value).absolute())


class KernelStart(WorkloadStart):
    """What a launch of a kernel starts. `program` is `own`, `official` (on PATH), or the folder of an official NPB."""

    pattern: ClassVar[Pattern] = Pattern.NPB
    kind: Literal["npb"] = "npb"
    benchmark: Annotated[str, Field(pattern=rf"^({'|'.join(NAMES)})$")]
    problem_class: Annotated[str, Field(pattern=rf"^({'|'.join(CLASSES)})$")]
    program: Annotated[str, Field(pattern=WITHOUT_NUL)] = OWN

    @property
    def name(self) -> str:
        """The kernel as names of launches have it: `is.W.4`, of an official program with a word for that."""
        other = "" if self.is_own else f"-{re.sub(r'[^A-Za-z0-9._-]|[.]{2,}', '-', _word(self.program))}"
        return f"{self._kernel}.{self.problem_class}.{self.ranks}{other}"

    @property
    def title(self) -> str:
        """`kernel IS.W`."""
        return f"kernel {self.benchmark}.{self.problem_class}"

    @property
    def is_own(self) -> bool:
        """Whether fabricbench-npb runs it."""
        return self.program == OWN

    @property
    def _kernel(self) -> str:
        return self.benchmark.lower()

    @property
    def parameters(self) -> Parameters:
        """Benchmark and class, and of an official program the folder that it lies in."""
        known: Parameters = {"benchmark": self.benchmark, "class": self.problem_class}
        return known if self.is_own else known | {"program": _word(self.program)}

    @property
    def figure(self) -> FigureOfMerit:
        """The time that the specification times."""
        return SECONDS

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take."""
        return self.repetitions * usual_seconds(self._kernel, self.problem_class, self.ranks, pace)

    def tokens(self, place: Place) -> list[str]:
        """Return its tokens: a program of ours writes its record into the launch's directory, another is counted from outside."""
        if not self.is_own:
            folder = None if self.program == OFFICIAL else Path(self.program)
            found = find_official(self._kernel, self.problem_class, self.ranks, folder).absolute()
            around = place.directory / counted.AROUND
            return counted.wrapped(official_program(found), around, fabric=place.fabric.where)
        run = NpbRun(
            kernel=self._kernel, problem_class=self.problem_class, repetitions=self.repetitions, ranks=self.ranks
        )
        program = native_file(PROGRAM, place.build)
        return [*npb_program(run, place.directory / KERNEL_RECORDS, program), *place.interface_options]

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether it ran to its end, whatever its results."""
        return exit_code in (VERIFIED, WRONG) if self.is_own else exit_code == 0

    def outputs(self, output: Output) -> tuple[Path, ...]:
        """Return what grows."""
        return (output.directory / KERNEL_RECORDS,) if self.is_own else (output.stdout,)

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return its record."""
        path = output.directory / KERNEL_RECORDS if self.is_own else output.stdout
        if not path.exists() or not (self.is_own or path.stat().st_size):
            return None
        if self.is_own:
            return _result(read_npb(path))
        around = counted.read_around(output.directory / counted.AROUND)
        carried = {name: InterfaceBytes(**each) for name, each in around.interfaces.items()}
        return _of_others(_result(parse_official(read_output(path)), carried), path, around.lasted_seconds)

    @property
    def native_programs(self) -> tuple[str, ...]:
        """fabricbench-npb, unless the program is another's."""
        return (PROGRAM,) if self.is_own else ()

    def external_commands(self) -> Iterator[str]:
        """Yield the program of a folder; what is on the user's PATH is the user's."""
        if self.program not in (OWN, OFFICIAL):
            what = f"{self._kernel}.{self.problem_class}"
            yield f"kernel {self.name}: a program {what}.x or {what}.{self.ranks} of the folder {quote(self.program)}"


class NpbTable(WorkloadTable):
    """Kernels to be run: each benchmark, class and number of ranks is a launch of its own in every block on every fabric."""

    kind: Literal["npb"] = "npb"
    benchmarks: Annotated[tuple[str, ...], BeforeValidator(_as_list), _known(NAMES, "benchmark")] = NAMES
    classes: Annotated[tuple[str, ...], BeforeValidator(_as_list), _known(CLASSES, "class")] = Field(
        default=("W",), alias="class"
    )
    ranks: Ranks = "all"
    repetitions: int = Field(default=1, ge=1, le=1000)
    program: Annotated[str, Field(min_length=1), AfterValidator(_located)] = OWN

    model_config = {**WorkloadTable.model_config, "populate_by_name": True}

    @model_validator(mode="after")
    def _official_programs_run_once(self) -> NpbTable:
        if self.program != OWN and self.repetitions > 1:
            raise ValueError(
                f"repetitions: an official program runs once in a start, found {self.repetitions}; use blocks"
            )
        return self

    def plan(self, seats: RankSlots) -> Iterator[WorkloadStart | Unseated]:
        """Yield a start for each benchmark, class and number of ranks that the benchmark takes and the testbed seats."""
        for name in self.benchmarks:
            benchmark = BENCHMARKS[name.lower()]
            counts, left_out = seated(
                name,
                self.ranks,
                seats,
                lambda count, one=benchmark: one.takes(count, is_own=self.program == OWN),  # type: ignore[misc]
                benchmark.rank_rule,
            )
            yield from left_out
            for problem_class in self.classes:
                for count in counts:
                    yield KernelStart(
                        benchmark=name,
                        problem_class=problem_class,
                        ranks=count,
                        repetitions=self.repetitions,
                        program=self.program,
                    )

    def has(self, benchmark: str, problem_class: str, ranks: int | None) -> bool:
        """Tell whether a kernel is among what is asked for, on so many ranks (None: any)."""
        is_named = benchmark in self.benchmarks and problem_class in self.classes
        return is_named and (ranks is None or self.ranks == "all" or ranks in self.ranks)


def _result(kernel: KernelRecord, interfaces: Mapping[str, InterfaceBytes] | None = None) -> WorkloadResult:
    result = result_of_kernel(kernel, interfaces)
    runs = kernel.runs if result.seconds and result.failed is None else []
    rates = {"Mop/s total": "mops_total", "Mop/s a process": "mops_per_process"}
    figures = [SECONDS.found(median(run.seconds for run in runs))] if runs else []
    figures += [
        FigureFound(name=name, unit="Mop/s", better="higher", value=result.values[value])
        for name, value in rates.items()
        if runs and value in result.values
    ]
    return replace(result, figures=tuple(figures))


def _of_others(result: WorkloadResult, stdout: Path, lasted: float | None) -> WorkloadResult:
    """Return what an official program printed with what its processes said around it; no time of it is longer than it ran."""
    about = split_counted_output(read_output(stdout))
    result = replace(result, other_hosts=about.other_hosts)
    if result.found is not None:
        result = replace(result, found=replace(about.found(is_cut=is_cut(stdout)), count=result.found.count))
    printed, last_digit = sum(result.seconds), (result.clock_resolution_ns or 0.0) * 1e-9
    if lasted is None or printed <= lasted * (1 + CLOCKS_APART) + last_digit:
        return result
    reason = (
        f"it printed {printed:g} s, and the launch that printed it took {lasted:.3g} s, which no time of it can exceed"
    )
    return replace(result, failed=result.failed or Failed(reason, is_wrong=False), figures=())


def _word(program: str) -> str:
    """Return what an official program is called: the folder that it lies in."""
    return OFFICIAL if program == OFFICIAL else Path(program).name


NPB = WorkloadKind(
    "npb", "the eight kernels of the NAS Parallel Benchmarks, ours or an official build", NpbTable, KernelStart
)
