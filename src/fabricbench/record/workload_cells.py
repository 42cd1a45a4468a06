"""What a workload's program told, as the record of a launch: its run is a cell, its repetitions are the samples. Pure.

So that whatever compares cells compares kernels and applications. A run whose result is wrong is a failed cell, with the reason,
and is never compared; its times are kept. What a kernel of ours recorded of itself (`kernel_lines`) comes in by `result_of_kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Literal

import numpy as np
from pydantic import Field

from fabricbench.model import Metric, Model
from fabricbench.patterns import metric_of
from fabricbench.quantity import decimal_product
from fabricbench.record.farm_jobs import FarmJobs
from fabricbench.record.frames import FIGURE_OF_MERIT
from fabricbench.record.kernel_lines import KernelRecord, KernelRun
from fabricbench.record.lines import (
    Cell,
    CellEnd,
    CellFailed,
    ClockInfo,
    FailureCode,
    Footer,
    Header,
    InterfaceBytes,
    Phase,
    RankInfo,
    StopReason,
)
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.reading import Batch, CellRecord, Damage, Record
from fabricbench.units import parse_unit

LEADER_BYTES = "leader_bytes"
"""In the values of a cell: what rank 0 handed to MPI for other ranks, over all samples. What proves the path of a kernel."""

MOPS_TOTAL, MOPS_PER_PROCESS, COMMUNICATION_SHARE = "mops_total", "mops_per_process", "communication_share"
"""In the values of a cell: medians over the repetitions, where the program tells."""

MOST_SECONDS = 1e9
"""Of a time that can be stored: a count of nanoseconds has 64 bits, and thirty years are enough."""

OF_FIGURE = "figure."
"""How the values of a cell name further figures of merit: `figure.HPL`."""


class Measures(StrEnum):
    """What a figure of merit measures. Only of work is there a time of a run, a price, a decision on money."""

    RUN_TIME = "time of a run"
    """Of all the work that the program does."""
    WORK_TIME = "time for a unit of work"
    """`s/step`: how many of them a run has is not told."""
    WORK_RATE = "rate of work"
    NETWORK = "network test"
    """A latency or a bandwidth: what the network does, not what it is worth to any work."""


class FigureOfMerit(Model):
    """A figure of merit: what a program is judged by. `unit` is the program's own, of a time always `s`.

    `told_in` is the unit in which a program told a time, and in which people are shown it: `ms`, or `ms/step` of one for each of
    something. `measures` is None of figures that were recorded before there was such a thing: `kind` says what they are taken for.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"]
    told_in: str | None = None
    measures: Measures | None = None

    @property
    def kind(self) -> Measures:
        """What it measures; where nobody said so, by its unit."""
        return self.measures or measures_of(self.told_in or self.unit, self.better)

    @property
    def metric(self) -> Metric:
        """What a cell measures whose primary figure this is."""
        return Metric.OPERATION_TIME if self.better == "lower" else Metric.WORK_RATE

    def found(self, value: float, printed_step: float | None = None) -> FigureFound:
        """Return it with a value, and what the last digit that was printed of it counts."""
        return FigureFound(**dict(self), value=value, printed_step=printed_step)

    def why_not(self, value: float) -> str | None:
        """Return why a value (a time in seconds) cannot be what fabrics are compared by; None if it can."""
        if not (math.isfinite(value) and value > 0):
            return f"{value:g} {self.unit}: no time and no rate is that"
        if self.metric.is_time and value > MOST_SECONDS:
            return f"{value:g} s: more than {MOST_SECONDS:g} s cannot be stored"
        return None


def measures_of(unit: str, better: Literal["lower", "higher"]) -> Measures:
    """Return what a figure in that unit is taken to measure."""
    found = parse_unit(unit)
    if found is not None and found.is_of_network:
        return Measures.NETWORK
    if better == "higher":
        return Measures.WORK_RATE
    return Measures.WORK_TIME if found is not None and found.is_time_per_work else Measures.RUN_TIME


def figure_in(name: str, unit: str, better: Literal["lower", "higher"]) -> FigureOfMerit:
    """Return the figure that a program tells in a unit: a time, also one for each of something, is kept in seconds."""
    found = parse_unit(unit)
    is_in_seconds = found is not None and (found.is_time or (better == "lower" and found.is_time_per_work))
    told_in = unit if is_in_seconds else None
    figure = FigureOfMerit(name=name, unit="s" if told_in else unit, better=better, told_in=told_in)
    return figure.model_copy(update={"measures": figure.kind})


class FigureFound(FigureOfMerit):
    """A figure of merit with its value in one launch."""

    value: float = Field(allow_inf_nan=False)
    printed_step: float | None = None
    """What the last digit that was printed counts, in its unit; None where nobody told, as in earlier versions."""


class CheckFound(Model):
    """Something of a result that must hold, in words."""

    name: str
    holds: bool
    found: str
    needed: str


FILE_BEGINS, FILE_ENDS = "file ", " sha256"


MPI_FACT = "MPI"
"""What `WorkloadPart.fixed` calls the MPI that a program ran with: the same on sides that ask for the same."""
PROGRAM_FACT = "program sha256"
"""What it calls the program itself."""


def file_fact(argument: str) -> str:
    """Return what `WorkloadPart.fixed` calls the hash of a file that an argument of the command names."""
    return f"{FILE_BEGINS}{argument}{FILE_ENDS}"


class WorkloadPart(Model):
    """What a launch found of its workload, kept in `launch.json`: figures with their units, checks, and what must not differ.

    `fixed` are facts that are to be the same on all fabrics, else it is not the network alone that differs: what -> fact.
    `definition` is what was asked for besides the parameters (command, variables, input, primary figure), as people wrote it:
    with another one it is another test, whatever its name. Empty in earlier versions. `jobs` is what became of those of a farm.
    """

    kind: str
    name: str
    ranks: int
    parameters: dict[str, str | int | float] = {}
    figures: tuple[FigureFound, ...] = ()
    checks: tuple[CheckFound, ...] = ()
    communication_share: float | None = None
    fixed: dict[str, str] = {}
    definition: dict[str, str] = {}
    jobs: FarmJobs | None = None

    @property
    def files(self) -> dict[str, str]:
        """Those of `fixed` that are files which the program read: with other ones it does other work."""
        of_files = (what for what in self.fixed if what.startswith(FILE_BEGINS) and what.endswith(FILE_ENDS))
        return {what: self.fixed[what] for what in of_files}


@dataclass(frozen=True)
class Failed:
    """Why a run has no value that counts: `is_wrong` where it told a result and that is wrong."""

    reason: str
    is_wrong: bool = True


@dataclass(frozen=True)
class RanksFound:
    """Which ranks say that they are of a launch, and the MPI that their program loads.

    `count` is how many a program of ours found in MPI_COMM_WORLD. `numbers` are those that starters gave to processes, as often as
    they are told, and `sizes` of how many each is one, where the starter tells; of an output that was cut some `may_lack`.
    """

    count: int | None = None
    numbers: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    may_lack: bool = False
    mpi_library: str | None = None
    is_over_mpi: bool = True


@dataclass(frozen=True)
class WorkloadResult:
    """What a program told of one launch, brought into one shape: of it come the record of the launch and what is kept beside it.

    `seconds` has the time of each repetition. Of a rate `rate` is the figure and `seconds` how long the program ran; a time that is
    a figure which the program printed is `printed_seconds` as well, for no clock of ours measured it: it may be less than a
    nanosecond. `printed_step` is what the last printed digit of either counts. `damage` says what is not whole; without
    any the program came to its end. `values` are further numbers of the cell.

    `figures` has the primary one first; none where the run failed. `checks` must hold, and what is `fixed` must be the same on all
    fabrics: what -> fact. `kernel` is the record of a program of ours, `jobs` what became of those of a farm.
    """

    program: str
    mpi_library: str | None = None
    ranks: tuple[RankInfo, ...] = ()
    clock_resolution_ns: float | None = None
    started_unix_ns: int | None = None
    finished_unix_ns: int | None = None
    has_started: bool = True
    seconds: tuple[float, ...] = ()
    rate: float | None = None
    printed_seconds: float | None = None
    printed_step: float | None = None
    metric: Metric = Metric.OPERATION_TIME
    values: Mapping[str, float] = field(default_factory=dict)
    bytes_of_sample: int = 0
    messages: int = 0
    failed: Failed | None = None
    damage: Sequence[Damage] = ()
    interfaces: Mapping[str, InterfaceBytes] = field(default_factory=dict)
    other_hosts: Mapping[str, Mapping[str, InterfaceBytes]] = field(default_factory=dict)
    found: RanksFound | None = None
    """None where nobody tells of ranks but the record itself."""
    figures: tuple[FigureFound, ...] = ()
    checks: tuple[CheckFound, ...] = ()
    communication_share: float | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    kernel: KernelRecord | None = None
    jobs: FarmJobs | None = None


@dataclass(frozen=True)
class LaunchOfWorkload:
    """What a program does not know of its launch: its name, the fabric, and which cell of the plan it is."""

    launch_id: str
    fabric: str
    probe: PlanProbe


def record_of(result: WorkloadResult, launch: LaunchOfWorkload) -> Record:
    """Return the launch's record; ValueError or OverflowError where a number of it is none that can be stored."""
    record = Record(header=_header(result, launch) if result.has_started else None, damage=list(result.damage))
    if not result.has_started or result.damage or not result.seconds:
        return record
    cell = _cell(result, launch)
    record.cells.append(cell)
    lasted_ns = round(sum(result.seconds) * 1e9)
    record.footer = Footer(
        finished_unix_ns=result.finished_unix_ns or (result.started_unix_ns or 0) + lasted_ns,
        cells=1,
        failed=int(cell.failed is not None),
    )
    return record


def result_of_kernel(kernel: KernelRecord, interfaces: Mapping[str, InterfaceBytes] | None = None) -> WorkloadResult:
    """Return what a kernel recorded of itself; `interfaces` is what was counted around a program that does not count."""
    header, runs = kernel.header, kernel.runs
    if header is None:
        return WorkloadResult("", has_started=False, damage=kernel.damage)
    wrong = next((run for run in runs if not run.verified), None)
    profiles = [run.profile for run in runs if run.profile is not None]
    is_whole = kernel.is_complete and bool(runs)
    values = _values(runs)
    return WorkloadResult(
        program=f"{header.program} {header.program_version}",
        mpi_library=header.mpi_library,
        ranks=header.ranks,
        clock_resolution_ns=header.clock_resolution_ns,
        started_unix_ns=header.started_unix_ns,
        finished_unix_ns=kernel.footer.finished_unix_ns if kernel.footer is not None else None,
        seconds=tuple(run.seconds for run in runs) if is_whole else (),
        values=values,
        bytes_of_sample=round(median(_bytes_sent(run) for run in runs)) if runs else 0,
        messages=sum(_messages(run) for run in runs),
        failed=None
        if wrong is None
        else Failed(f"repetition {wrong.repetition} gave a wrong result: {first_wrong_check(wrong)}"),
        damage=kernel.damage,
        interfaces=dict(interfaces) if interfaces else _total(profile.interfaces for profile in profiles),
        other_hosts={
            host: _total(profile.other_hosts.get(host, {}) for profile in profiles)
            for host in {host: None for profile in profiles for host in profile.other_hosts}
        },
        found=RanksFound(header.rank_count, tuple(one.rank for one in header.ranks), mpi_library=header.mpi_library),
        checks=tuple(
            CheckFound(name=check.name, holds=check.holds, found=f"{check.found}", needed=check.needed)
            for run in runs[:1]
            for check in run.checks
        ),
        communication_share=values.get(COMMUNICATION_SHARE),
        fixed=_fixed(kernel),
        kernel=kernel,
    )


def _fixed(kernel: KernelRecord) -> dict[str, str]:
    """Return what is to be the same on all fabrics: the instruction set, and what the program computed with."""
    levels = kernel.header.processor_levels if kernel.header is not None else ()
    facts = kernel.runs[0].facts if kernel.runs else {}
    return {**({"instruction set": ", ".join(dict.fromkeys(levels))} if levels else {}), **facts}


def _header(result: WorkloadResult, launch: LaunchOfWorkload) -> Header:
    return Header(
        launch_id=launch.launch_id,
        fabric=launch.fabric,
        probe_version=result.program,
        mpi_library=result.mpi_library or "not told",
        started_unix_ns=result.started_unix_ns or 0,
        ranks=result.ranks,
        clock=ClockInfo(
            name="the program's own",
            resolution_ns=result.clock_resolution_ns or 1.0,
            overhead_ns=0.0,
            loop_floor_ns=0.0,
        ),
    )


def _cell(result: WorkloadResult, launch: LaunchOfWorkload) -> CellRecord:
    probe = launch.probe
    seconds = np.array([round(decimal_product(each, 1e9)) for each in result.seconds], dtype=np.uint64)
    is_rate = result.metric is Metric.WORK_RATE
    record = CellRecord(
        Cell(
            id=probe.id,
            layer=probe.layer,
            pattern=probe.pattern,
            message_bytes=probe.message_bytes,
            receive=probe.receive,
            metric=result.metric if is_rate else metric_of(probe.pattern),
            ranks=probe.ranks,
            bytes_per_sample=result.bytes_of_sample,
            parameters=probe.parameters,
        ),
        [Batch(Phase.MEASURED, 0, seconds, None)],
    )
    if result.failed is not None:
        record.failed = CellFailed(
            cell=probe.id,
            layer=probe.layer,
            pattern=probe.pattern,
            message_bytes=probe.message_bytes,
            code=FailureCode.CORRUPTED if result.failed.is_wrong else FailureCode.ERROR,
            reason=result.failed.reason,
            values={name: value for name, value in result.values.items() if math.isfinite(value)},
            interfaces=dict(result.interfaces),
            begin_unix_ns=result.started_unix_ns,
            end_unix_ns=result.finished_unix_ns,
        )
        return record
    printed_ns = None if result.printed_seconds is None else decimal_product(result.printed_seconds, 1e9)
    endless = next((name for name, value in result.values.items() if not math.isfinite(value)), None)
    if endless is not None:
        raise ValueError(f"{endless} is {result.values[endless]:g}, which is no finite number")
    figure = result.rate if is_rate else printed_ns
    of_figure = {FIGURE_OF_MERIT: figure} if figure is not None else {}
    step = result.printed_step if figure is not None else None
    record.end = CellEnd(
        cell=probe.id,
        stop=StopReason.COUNT,
        warmup=0,
        measured=len(result.seconds),
        seconds=sum(result.seconds),
        sent=result.messages,
        verified=len(result.seconds),
        values={**result.values, **of_figure},
        interfaces=dict(result.interfaces),
        other_hosts={host: dict(counters) for host, counters in result.other_hosts.items()},
        printed_step=step if step is None or is_rate else decimal_product(step, 1e9),
        begin_unix_ns=result.started_unix_ns,
        end_unix_ns=result.finished_unix_ns,
    )
    return record


def first_wrong_check(run: KernelRun) -> str:
    """Return in words what of a run's result is wrong."""
    check = next((check for check in run.checks if not check.holds), None)
    if check is None:
        return "the program does not say which check failed"
    return f"{check.name} is {check.found}, expected {check.needed}"


def _bytes_sent(run: KernelRun) -> int:
    return sum(run.profile.bytes_sent) if run.profile is not None else 0


def _messages(run: KernelRun) -> int:
    return sum(sizes.number for sizes in run.profile.message_sizes) if run.profile is not None else 0


def _values(runs: Sequence[KernelRun]) -> dict[str, float]:
    profiles = [run.profile for run in runs if run.profile is not None]
    numbers = {
        MOPS_TOTAL: [run.mops_total for run in runs if run.mops_total is not None],
        MOPS_PER_PROCESS: [run.mops_per_process for run in runs if run.mops_per_process is not None],
        COMMUNICATION_SHARE: [profile.communication_share for profile in profiles],
    }
    values = {name: float(median(found)) for name, found in numbers.items() if found}
    sent = {LEADER_BYTES: float(sum(profile.bytes_sent[0] for profile in profiles))}
    return values | sent if profiles else values


def _total(counters: Iterable[Mapping[str, InterfaceBytes]]) -> dict[str, InterfaceBytes]:
    """Return what each interface carried in the timed parts of all runs; what could not be counted in one is not counted."""
    total: dict[str, InterfaceBytes] = {}
    for of_run in counters:
        for name, one in of_run.items():
            before = total.get(name, InterfaceBytes(sent=0, received=0))
            is_counted = before.is_counted and one.is_counted
            total[name] = InterfaceBytes(
                sent=before.sent + one.sent if is_counted else 0,
                received=before.received + one.received if is_counted else 0,
                above=tuple(dict.fromkeys((*before.above, *one.above))),
                is_counted=is_counted,
            )
    return total
