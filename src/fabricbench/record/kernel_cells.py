"""A kernel's record as that of a launch: its run is a cell, its repetitions are the samples. Pure.

So that whatever compares cells compares kernels. A run whose result is wrong is a failed cell, with the reason, and is never
compared; its times are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from fabricbench.patterns import metric_of
from fabricbench.record.kernel_lines import KernelHeader, KernelRun
from fabricbench.record.kernel_reading import KernelRecord
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
    StopReason,
)
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.reading import Batch, CellRecord, Record

LEADER_BYTES = "leader_bytes"
"""In the values of a cell: what rank 0 handed to MPI for other ranks, over all samples. What proves the path of a kernel."""

MOPS_TOTAL, MOPS_PER_PROCESS, COMMUNICATION_SHARE = "mops_total", "mops_per_process", "communication_share"
"""In the values of a cell: medians over the repetitions, where the program tells."""


@dataclass(frozen=True)
class LaunchOfKernel:
    """What the record of a kernel does not know of its launch: its name, the fabric, and which cell of the plan it is."""

    launch_id: str
    fabric: str
    probe: PlanProbe


def as_record(
    kernel: KernelRecord, launch: LaunchOfKernel, interfaces: Mapping[str, InterfaceBytes] | None = None
) -> Record:
    """Return the launch's record. `interfaces` is what was counted from outside around a program that does not count."""
    header = None if kernel.header is None else _header(kernel.header, launch)
    record = Record(header=header, damage=list(kernel.damage))
    if not kernel.is_complete or not kernel.runs:
        return record
    cell = _cell(kernel, launch, interfaces)
    record.cells.append(cell)
    finished = kernel.footer.finished_unix_ns if kernel.footer is not None else None
    started = kernel.header.started_unix_ns if kernel.header is not None else None
    lasted_ns = round(sum(run.seconds for run in kernel.runs) * 1e9)
    record.footer = Footer(
        finished_unix_ns=finished or (started or 0) + lasted_ns, cells=1, failed=int(cell.failed is not None)
    )
    return record


def _header(header: KernelHeader, launch: LaunchOfKernel) -> Header:
    return Header(
        launch_id=launch.launch_id,
        fabric=launch.fabric,
        probe_version=f"{header.program} {header.program_version}",
        mpi_library=header.mpi_library or "not told",
        started_unix_ns=header.started_unix_ns or 0,
        ranks=header.ranks,
        clock=ClockInfo(
            name="the program's own",
            resolution_ns=header.clock_resolution_ns or 1.0,
            overhead_ns=0.0,
            loop_floor_ns=0.0,
        ),
    )


def _cell(kernel: KernelRecord, launch: LaunchOfKernel, interfaces: Mapping[str, InterfaceBytes] | None) -> CellRecord:
    probe, runs = launch.probe, kernel.runs
    seconds = np.array([round(run.seconds * 1e9) for run in runs], dtype=np.uint64)
    record = CellRecord(
        Cell(
            id=probe.id,
            layer=probe.layer,
            pattern=probe.pattern,
            message_bytes=probe.message_bytes,
            receive=probe.receive,
            metric=metric_of(probe.pattern),
            ranks=probe.ranks,
            bytes_per_sample=round(median(_bytes_sent(run) for run in runs)),
            parameters=probe.parameters,
        ),
        [Batch(Phase.MEASURED, 0, seconds, None)],
    )
    wrong = next((run for run in runs if not run.verified), None)
    if wrong is not None:
        record.failed = CellFailed(
            cell=probe.id,
            layer=probe.layer,
            pattern=probe.pattern,
            message_bytes=probe.message_bytes,
            code=FailureCode.CORRUPTED,
            reason=f"repetition {wrong.repetition} gave a wrong result: {first_wrong_check(wrong)}",
        )
        return record
    record.end = CellEnd(
        cell=probe.id,
        stop=StopReason.COUNT,
        warmup=0,
        measured=len(runs),
        seconds=sum(run.seconds for run in runs),
        sent=sum(_messages(run) for run in runs),
        verified=len(runs),
        values=_values(runs),
        interfaces=dict(interfaces) if interfaces else _interfaces(runs),
        begin_unix_ns=kernel.header.started_unix_ns if kernel.header is not None else None,
        end_unix_ns=kernel.footer.finished_unix_ns if kernel.footer is not None else None,
    )
    return record


def first_wrong_check(run: KernelRun) -> str:
    """Return in words what of a run's result is wrong."""
    check = next((check for check in run.checks if not check.holds), None)
    if check is None:
        return "the program does not say which check failed"
    return f"{check.name} is {check.found}, expected {check.expected} within {check.tolerance:g}"


def _bytes_sent(run: KernelRun) -> int:
    return sum(run.profile.bytes_sent) if run.profile is not None else 0


def _messages(run: KernelRun) -> int:
    return sum(sizes.number for sizes in run.profile.message_sizes) if run.profile is not None else 0


def _values(runs: list[KernelRun]) -> dict[str, float]:
    profiles = [run.profile for run in runs if run.profile is not None]
    numbers = {
        MOPS_TOTAL: [run.mops_total for run in runs if run.mops_total is not None],
        MOPS_PER_PROCESS: [run.mops_per_process for run in runs if run.mops_per_process is not None],
        COMMUNICATION_SHARE: [profile.communication_share for profile in profiles],
    }
    values = {name: float(median(found)) for name, found in numbers.items() if found}
    return values | {LEADER_BYTES: float(sum(profile.bytes_sent[0] for profile in profiles))}


def _interfaces(runs: list[KernelRun]) -> dict[str, InterfaceBytes]:
    """Return what each interface carried in the timed parts of all runs."""
    total: dict[str, InterfaceBytes] = {}
    for run in runs:
        for name, one in run.profile.interfaces.items() if run.profile is not None else ():
            before = total.get(name, InterfaceBytes(sent=0, received=0))
            total[name] = InterfaceBytes(sent=before.sent + one.sent, received=before.received + one.received)
    return total
