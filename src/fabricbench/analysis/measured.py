"""What the analysis works on: the values of each fabric's launches, cell by cell, as `analysis.sides` reads them from runs.

A side may be several runs of a fabric: their launches stand one run after the other, and `Side.run_of` tells which is whose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, WorkloadName
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.patterns import PATTERNS, Family
from fabricbench.record.launch import CellLateness
from fabricbench.record.port_counters import PortEvent
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.workload_cells import WorkloadPart
from fabricbench.testbed.model import Fabric

Floats = NDArray[np.float64]

COUNTS = ("sent", "lost", "reordered", "duplicated", "corrupted", "verified", "warmup", "missed")

Times = Mapping[WorkloadName, WorkloadName]
"""Names of workloads as cells have them -> with the time that they are judged by."""

NO_TIMES: Times = MappingProxyType({})

TAILS = (0.99, 0.999)
"""How bad it gets, kept for each launch: as good or better are so many of its samples."""

BEFORE, AFTER = " (before)", " (after)"
"""Tell the two sides of one fabric apart where runs are compared with earlier ones."""


@dataclass(frozen=True)
class CellFacts:
    """What a cell was, the same in all its launches. `operation_bytes` is the payload that one operation moves, both ways."""

    ranks: tuple[int, ...] = (0, 1)
    channels: int = 1
    parameters: dict[str, str | int | float] = field(default_factory=dict)
    congestor: PlanCongestor | None = None
    operation_bytes: float = 0.0

    @property
    def flows(self) -> int:
        """Parallel flows in each channel."""
        return int(self.parameters.get("flows", 1))


@dataclass
class CellMeasured:
    """One cell on one side. Arrays over launches follow the side's `blocks`: one launch of a block measures a cell; NaN where none.

    `tails` maps each of TAILS to the launches' own: the time that so many samples stay below, the rate that they stay above.
    `values` are what else the pattern found in each launch. `pooled` holds all measured samples, sorted, in the metric's unit.
    `clock_share` is the resolution of the clock relative to a sample, `overhead_share` the cost of reading it. `effective_share` is
    the median over launches of the share of its samples that count as independent. Of the `expected` launches (valid ones that
    were to measure the cell) `gave_nothing` failed at it, found a rate or a time of 0, or took no sample: the values
    are of the others alone. `subject` is what these launches measure, alike on every fabric: a workload's name, empty for the
    measurer.
    """

    key: CellKey
    launch_values: Floats
    pooled: Floats
    total_bytes: int
    total_ns: int
    counts: dict[str, int]
    clock_share: float
    overhead_share: float
    effective_share: float
    subject: str = ""
    facts: CellFacts = field(default_factory=CellFacts)
    tails: dict[float, Floats] = field(default_factory=dict)
    values: dict[str, Floats] = field(default_factory=dict)
    gave_nothing: int = 0
    expected: int = 0
    lateness: tuple[CellLateness, ...] = ()
    """How late the emulated switch was in each launch that tells."""
    port_events: dict[PortEvent, Floats] = field(default_factory=dict)
    """What happened at the fabric's RDMA ports in each launch, how often; NaN where no port was read, empty where none ever was."""

    @property
    def log_values(self) -> Floats:
        """Logarithms of the launches' values; a rate of 0 (a stream that lost everything) has none and becomes NaN."""
        return log_of(self.launch_values)

    def happened(self, event: PortEvent) -> int | None:
        """Return how often something happened at the ports in all launches; None where no launch tells."""
        told = self.port_events.get(event)
        return None if told is None else int(np.nansum(told))

    def greatest(self, name: str) -> float | None:
        """Return the greatest over launches of what else the pattern found; None where no launch tells."""
        told = self.values.get(name)
        return None if told is None or np.isnan(told).all() else float(np.nanmax(told))


def blocks_of(launches: Sequence[StoredLaunch]) -> list[int]:
    """Return the blocks that these launches are of, in order, each once."""
    return sorted({launch.block for launch in launches})


def clock_deviation(a: CellMeasured, b: CellMeasured) -> float:
    """Return the deviation of a log ratio that the clock's resolution alone makes (uniform rounding on both sides)."""
    return float(np.hypot(a.clock_share, b.clock_share) / np.sqrt(12.0))


def log_of(values: Floats) -> Floats:
    """Return logarithms, NaN for what has none."""
    is_positive = values > 0
    return np.where(is_positive, np.log(np.where(is_positive, values, 1.0)), np.nan)


@dataclass
class Side:
    """One fabric of a run, or of several runs that count as one side, as comparisons see it. `name` tells the sides apart.

    `runs` are all its runs, `run` the first; `run_of` has for each of `blocks` the index of the run that it came from. Blocks of
    several runs are numbered on, run after run. `left_out` says which cells some of the runs lack: they are not in `cells`.
    """

    name: str
    fabric: Fabric
    run: Run
    launches: tuple[StoredLaunch, ...]
    invalid: tuple[StoredLaunch, ...]
    cells: dict[CellKey, CellMeasured]
    failed: tuple[tuple[str, str, str], ...]
    """Cells that could not be measured: what, reason, failure code; each once."""
    runs: tuple[Run, ...] = ()
    run_of: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.runs = self.runs or (self.run,)
        self.run_of = self.run_of or (0,) * len(self.blocks)

    @property
    def blocks(self) -> list[int]:
        """The blocks with launches on this side, in order: what is replicated, and what comparisons pair."""
        return blocks_of(self.launches)

    def launches_of(self, block: int) -> list[str]:
        """Return the names of a block's launches: one that measures, and one of each workload."""
        return [launch.launch_id for launch in self.launches if launch.block == block]

    def launches_of_run(self, run: int) -> list[StoredLaunch]:
        """Return the launches of one of `runs`, by its index; only within a run is a launch's name its own."""
        run_of_block = dict(zip(self.blocks, self.run_of, strict=True))
        return [launch for launch in self.launches if run_of_block[launch.block] == run]


def cell_name(key: CellKey) -> str:
    """Return what a cell is in a few words: `tcp pingpong of 64 B`, `mpi npb IS.W 4 ranks`."""
    return name_of_cell(key.layer, key.pattern, key.message_bytes, key.variant)


def name_of_cell(layer: Layer, pattern: Pattern, message_bytes: int, variant: str) -> str:
    """Return the same of one that need not have been measured."""
    size = f"of {message_bytes} B" if PATTERNS[pattern].has_size else ""
    return " ".join(filter(None, (layer.value, pattern.value, size, variant)))


def in_order(key: CellKey) -> tuple[int, str, str, str, str, int]:
    """Sort cells as a reader expects them: up the ladder, then by what is measured, then by size."""
    layer = list(Layer).index(key.layer)
    return layer, key.metric, key.pattern, key.receive, key.variant, key.message_bytes


def key_of(row: dict[str, Any], times: Times = NO_TIMES) -> CellKey:
    """Return the cell of a row of `Run.cells`; `times` are those that the run's applications are judged by."""
    pattern = Pattern(str(row["pattern"]))
    return CellKey(
        layer=Layer(str(row["layer"])),
        pattern=pattern,
        receive=Receive(str(row["receive"])),
        message_bytes=int(str(row["message_bytes"])),
        metric=Metric(str(row["metric"])),
        variant=str(row["variant"]),
        workload=_workload(row, times) if PATTERNS[pattern].family is Family.WORKLOAD else None,
    )


def _workload(row: dict[str, Any], times: Times) -> WorkloadName:
    parameters: dict[str, str | int | float] = json.loads(row["parameters"] or "{}")
    name = WorkloadName(ranks=len(row["ranks"] or ()), parameters=tuple(parameters.items()))
    return times.get(name, name)


def unjudged(key: CellKey) -> CellKey:
    """Return a cell as a launch that failed names it: it does not tell what it is judged by."""
    name = None if key.workload is None else key.workload.model_copy(update={"judged_by": None})
    return key.model_copy(update={"workload": name})


def workload_of(part: WorkloadPart) -> WorkloadName:
    """Return which workload a launch was, as cells name it."""
    time = next((figure.name for figure in part.figures[:1] if figure.better == "lower"), None)
    return WorkloadName(ranks=part.ranks, parameters=tuple(part.parameters.items()), judged_by=time)
