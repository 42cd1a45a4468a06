"""A load that was imported (Linpack, a kernel of NPB) as the record of a launch of its own, as own runs of workloads have one."""

from __future__ import annotations

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.model import Layer, Metric, Receive
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.reading import Record
from fabricbench.record.workload_cells import LaunchOfWorkload, Measures, WorkloadPart, WorkloadResult, record_of
from fabricbench.workload.adapter import launch_name, named

NOT_TOLD_SECONDS = 1.0
"""The time of the sample of a program that tells its rate alone: there is none without a time."""


def name_of(load: ImportedLoad) -> str:
    """Return what its launches are called: `hpl-n448-nb64-grid2x2-variantWR11C2R4-byhpl.4`."""
    return launch_name(load.workload, dict(load.parameters), _ranks(load))


def _ranks(load: ImportedLoad) -> int:
    assert load.ranks is not None  # noqa: S101 - `storing` asked whoever imports
    return load.ranks


def load_record(load: ImportedLoad, imported: Imported, launch_id: str, fabric: str) -> tuple[Record, WorkloadPart]:
    """Return the record of a launch that ran a load, and what `launch.json` keeps of it; ValueError for what cannot be stored."""
    figure = load.figure
    parameters = dict(load.parameters) if load.has_own_pattern else named(load.workload, figure, dict(load.parameters))
    why = figure.why_not(figure.value)
    if why is not None:
        raise ValueError(why)
    is_time = figure.metric.is_time
    result = WorkloadResult(
        program=f"{imported.program} {imported.version}",
        mpi_library=imported.mpi_library or None,
        started_unix_ns=imported.started_unix_ns if load.started_unix_ns is None else load.started_unix_ns,
        finished_unix_ns=load.ended_unix_ns,
        seconds=(figure.value if is_time else load.seconds or NOT_TOLD_SECONDS,),
        rate=None if is_time else figure.value,
        printed_seconds=figure.value if is_time else None,
        printed_step=figure.printed_step,
        metric=Metric.OPERATION_TIME if is_time else Metric.WORK_RATE,
    )
    probe = PlanProbe(
        id=0,
        layer=Layer.MPI,
        pattern=load.pattern,
        message_bytes=0,
        receive=Receive.LIBRARY,
        ranks=tuple(range(_ranks(load))),
        parameters=parameters,
    )
    part = WorkloadPart(
        kind=load.workload,
        name=name_of(load),
        ranks=_ranks(load),
        parameters=parameters,
        figures=(figure,),
    )
    record = record_of(result, LaunchOfWorkload(launch_id, fabric, probe))
    _tell_no_more(record, result, load)
    return record, part


def _tell_no_more(record: Record, result: WorkloadResult, load: ImportedLoad) -> None:
    """Let a record say how long its program ran, and until when, as far as the text tells."""
    figure, cell = load.figure, record.cells[0]
    lasted = load.seconds or (figure.value if figure.kind is Measures.RUN_TIME else 0.0)
    if cell.end is not None:
        cell.end = cell.end.model_copy(update={"seconds": lasted})
    if record.footer is not None:
        ended = result.finished_unix_ns or (result.started_unix_ns or 0) + round(lasted * 1e9)
        record.footer = record.footer.model_copy(update={"finished_unix_ns": ended})
