"""One launch of the measurer for a benchmark: a plan of cells in, what it recorded out, no run directory between."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricbench.campaign.start import PROBE
from fabricbench.launch.launcher import Launcher
from fabricbench.native import native_file
from fabricbench.record.lines import LINE_ADAPTER, Cell, CellEnd, CellFailed, Channel, Header, Phase, Samples
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan, Stopping
from fabricbench.testbed.model import Fabric

TIME_LIMIT_S = 60
RECORDS = "records.jsonl"


@dataclass(frozen=True)
class Measured:
    """One cell of a launch: its measured samples that missed no start, in ns, and what it tells of channels."""

    cell: Cell
    end: CellEnd
    times: tuple[int, ...]
    channels: tuple[Channel, ...]


def launch(
    launcher: Launcher, fabric: Fabric, probes: Sequence[PlanProbe], ranks: int, program: Path | None = None
) -> tuple[Header, tuple[Measured, ...]]:
    """Return what one launch of the measurer says of itself, and its cells in the plan's order. A failed cell is an error.

    `program` is a measurer that was built with another MPI.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = plan_of(Path(folder), fabric, probes)
        command = launcher.command(fabric, [str(program or native_file(PROBE)), str(path)], Path(folder), ranks)
        done = subprocess.run(
            command.tokens, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the measurer ended with {done.returncode}: {done.stderr[-1000:]}")
        return _cells((Path(folder) / RECORDS).read_text())


def plan_of(folder: Path, fabric: Fabric, probes: Sequence[PlanProbe]) -> Path:
    """Write the plan of one launch into a folder, where its records will be too, and return its path."""
    plan = ProbePlan(
        launch_id="benchmark",
        token=0x5EED,
        fabric=PlanFabric(name=fabric.name, interface=fabric.interface, subnet=fabric.subnet, mtu=fabric.mtu),
        output=str(folder / RECORDS),  # earlier builds took it from where they ran
        probes=tuple(probes),
    )
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True, exclude_none=True))
    return path


def unsatisfied(seconds: float, maximum_samples: int = 1_000_000) -> Stopping:
    """Return a rule that is never satisfied: the whole time is used, as the peers do."""
    return Stopping(maximum_seconds=seconds, relative_width=1e-9, maximum_samples=maximum_samples)


def _cells(records: str) -> tuple[Header, tuple[Measured, ...]]:
    lines = [LINE_ADAPTER.validate_json(line) for line in records.splitlines()]
    failed = [line.reason for line in lines if isinstance(line, CellFailed)]
    if failed:
        raise RuntimeError(failed[0])
    header = next(line for line in lines if isinstance(line, Header))
    cells = [line for line in lines if isinstance(line, Cell)]
    ends = {line.cell: line for line in lines if isinstance(line, CellEnd)}
    return header, tuple(
        Measured(
            cell,
            ends[cell.id],
            tuple(_times(line for line in lines if isinstance(line, Samples) and line.cell == cell.id)),
            tuple(line for line in lines if isinstance(line, Channel) and line.cell == cell.id),
        )
        for cell in cells
    )


def _times(batches: Iterable[Samples]) -> Iterator[int]:
    for batch in batches:
        if batch.phase is Phase.MEASURED:
            missed = set(batch.missed)
            yield from (time for index, time in enumerate(batch.time_ns) if index not in missed)
