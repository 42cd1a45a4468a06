"""A load that was imported (Linpack, a kernel of NPB) as the record of a launch of its own, as own runs of workloads have one."""

from __future__ import annotations

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.model import Layer, Metric, Receive
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.reading import Record
from fabricbench.record.workload_cells import LaunchOfWorkload, Told, WorkloadPart, record_of
from fabricbench.workload.adapter import launch_name, named

NOT_TOLD_SECONDS = 1.0
"""How long a program is said to have run that tells its rate alone."""


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
    told = Told(
        program=f"{imported.program} {imported.version}",
        mpi_library=imported.mpi_library or None,
        started_unix_ns=imported.started_unix_ns,
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
    return record_of(told, LaunchOfWorkload(launch_id, fabric, probe)), part
