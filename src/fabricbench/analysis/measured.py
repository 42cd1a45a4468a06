"""What the analysis works on: the values of each fabric's launches, cell by cell, as `analysis.sides` reads them from runs.

A side may be several runs of a fabric: their launches stand one run after the other, and `Side.run_of` tells which is whose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, WorkloadName
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.pattern_facts import STAGES, STAGES_BY_USER, Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.launch import CellLateness
from fabricbench.record.lines import RdmaAttachment
from fabricbench.record.port_counters import PortEvent
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.run_account import SubjectAccount
from fabricbench.record.setup import stored_setup
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.record.workload_cells import Measures, WorkloadPart
from fabricbench.statistics.order_effects import OrderEffects
from fabricbench.statistics.ratios import NOTHING_FITTED, Fitted, Rounding
from fabricbench.testbed.model import Fabric

Floats = NDArray[np.float64]

COUNTS = ("sent", "lost", "reordered", "duplicated", "corrupted", "verified", "warmup", "missed")

Times = Mapping[WorkloadName, WorkloadName]
"""Names of workloads as cells have them -> with the time that they are judged by."""

NO_TIMES: Times = MappingProxyType({})

TAILS = (0.99, 0.999)
"""How bad it gets, kept for each launch: as good or better are so many of its samples."""

LOWER = 0.25
"""Of a launch's times, kept beside their median: what others on the hosts add moves it less, and it is no extreme, which would
depend on how many samples there are."""

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


@dataclass(frozen=True)
class CellOrder:
    """What the order of launches did to the values of a cell: `removed` is log, of each of the side's `blocks`.

    `effects` are those of the whole run, `index` the side's place in them.
    """

    removed: Floats
    effects: OrderEffects
    index: int


@dataclass
class CellMeasured:
    """One cell on one side. Arrays over launches follow the side's `blocks`: one launch of a block measures a cell; NaN where none.

    `tails` maps each of TAILS to the launches' own: the time that so many samples stay below, the rate that they stay above.
    `means` are the launches' arithmetic means of their samples, of times: what stalls move, and medians do not show. `lower`
    are their lower quartiles, of times too. `values` are what else the pattern found in each launch. `pooled` holds all
    measured samples, sorted, in the metric's unit. `step_share` is the step in which its values are told relative to them: that
    of the clock, or of the last digit that a program printed. `overhead_share` is the cost of reading the clock, relative to a
    sample. `effective_share` is the median over launches of the share of its samples that count as independent. Of the
    `expected` launches (valid ones that were to measure the cell) `gave_nothing` failed at it, found a rate or a time of 0, or
    took no sample: the values are of the others alone. `subject` is what these launches measure, alike on every fabric: a
    workload's name, empty for the measurer.
    """

    key: CellKey
    launch_values: Floats
    pooled: Floats
    total_bytes: int
    total_ns: int
    counts: dict[str, int]
    step_share: float
    overhead_share: float
    effective_share: float
    subject: str = ""
    facts: CellFacts = field(default_factory=CellFacts)
    tails: dict[float, Floats] = field(default_factory=dict)
    means: Floats | None = None
    lower: Floats | None = None
    values: dict[str, Floats] = field(default_factory=dict)
    gave_nothing: int = 0
    expected: int = 0
    lateness: tuple[CellLateness, ...] = ()
    """How late the emulated switch was in each launch that tells."""
    printed_step: float | None = None
    """The step of the last digit that was printed of any value, in the metric's unit; None where nothing was, or nobody told."""
    port_events: dict[PortEvent, Floats] = field(default_factory=dict)
    """What happened at the fabric's RDMA ports in each launch, how often; NaN where no port was read, empty where none ever was."""

    rdma: tuple[RdmaAttachment, ...] = ()
    """How its ranks were attached by RDMA, each way once, over all launches."""

    order: CellOrder | None = None
    """What the order of launches did to its values, where that was found: comparisons are made without it."""

    @cached_property
    def log_values(self) -> Floats:
        """Logarithms of the launches' values, without what their order did to them.

        A rate of 0 (a stream that lost everything) has none and becomes NaN.
        """
        logs = log_of(self.launch_values)
        return logs if self.order is None else np.asarray(logs - self.order.removed, dtype=np.float64)

    @cached_property
    def rounding(self) -> Rounding:
        """What the step of its values makes of their logarithms."""
        return Rounding.of(self.step_share)

    @cached_property
    def typical(self) -> tuple[float, float]:
        """The median of its launches' values, and their geometric mean."""
        return float(np.nanmedian(self.launch_values)), float(np.exp(np.nanmean(self.log_values)))

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


def ratio_rounding(a: CellMeasured, b: CellMeasured) -> Rounding:
    """Return what the steps of both sides' values make of a log ratio of a launch on each."""
    return a.rounding.against(b.rounding)


def fitted_to(*contrast: tuple[CellMeasured, float]) -> Fitted:
    """Return what was fitted to a contrast of log values: (cell, weight) pairs of sides measured in the same blocks."""
    orders = [(cell.order, weight) for cell, weight in contrast]
    known = [(order, weight) for order, weight in orders if order is not None]
    if len(known) < len(orders):
        return NOTHING_FITTED
    return known[0][0].effects.fitted([(order.index, weight) for order, weight in known])


def log_of(values: Floats) -> Floats:
    """Return logarithms, NaN for what has none."""
    is_positive = values > 0
    return np.where(is_positive, np.log(np.where(is_positive, values, 1.0)), np.nan)


@dataclass(frozen=True, order=True)
class FailedCell:
    """A cell that could not be measured: its name, the reason, the failure's code."""

    name: str
    reason: str
    code: str
    layer: Layer
    pattern: Pattern


@dataclass(frozen=True)
class Configuration:
    """What is to become a side: what it is called, its fabric, and the runs that measured it.

    `factors` are what it is called by, the value of each by its trait, where it is one of several that nobody put in an order:
    without them it is a fabric of a run, or one before or after a change. `traits` are all that is known of it; of a fabric of
    a run its machines, where others of the run are on other nodes.
    """

    name: str
    fabric: str
    runs: tuple[Run, ...]
    factors: Mapping[str, str] = field(default_factory=dict)
    traits: Mapping[str, str] = field(default_factory=dict)


FactKey = tuple[tuple[str, ...], WorkloadName, str, bool, str, str | None, str]
"""Of what a launch's fact about its work is: runs, workload, its name, whether it was asked for, what, the MPI asked for, jobs."""
PlaceKey = tuple[tuple[str, ...], WorkloadName, str, int]
"""Of what a place is: runs, workload, its name, block."""


@dataclass
class Side:
    """One fabric of a run, or of several runs that count as one side, as comparisons see it. `name` tells the sides apart.

    `runs` are all its runs, `run` the first; `run_of` has for each of `blocks` the index of the run that it came from. Blocks of
    several runs are numbered on, run after run. `left_out` says which cells some of the runs lack: they are not in `cells`.
    `accounts` tell of each subject what was started and what of it was lost, over all runs. `factors` and `traits` are those of
    its `Configuration`.
    """

    name: str
    fabric: Fabric
    run: Run
    launches: tuple[StoredLaunch, ...]
    invalid: tuple[StoredLaunch, ...]
    cells: dict[CellKey, CellMeasured]
    failed: tuple[FailedCell, ...]
    """Cells that could not be measured, each reason once."""
    runs: tuple[Run, ...] = ()
    run_of: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    accounts: tuple[SubjectAccount, ...] = ()
    factors: Mapping[str, str] = field(default_factory=dict)
    traits: Mapping[str, str] = field(default_factory=dict)
    stamped: Mapping[CellKey, CellMeasured] = field(default_factory=dict)
    """Cells whose messages were stamped on their way, by the key of the same without stamps: no comparison has them."""
    lost_starts: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict, init=False, repr=False)
    """Of a subject, beside the sides named: how many of its starts gave nothing, and of how many; kept by `lost_launches`."""

    facts_of_work: dict[FactKey, dict[str, None]] = field(default_factory=dict, init=False, repr=False)
    places_of_work: dict[PlaceKey, dict[str, None]] = field(default_factory=dict, init=False, repr=False)
    """What its launches note of their work and where their ranks were, each text once; kept by `equal_work`."""

    def __post_init__(self) -> None:
        self.runs = self.runs or (self.run,)
        self.run_of = self.run_of or (0,) * len(self.blocks)

    @cached_property
    def blocks(self) -> list[int]:
        """The blocks with launches on this side, in order: what is replicated, and what comparisons pair."""
        return blocks_of(self.launches)

    @property
    def bought_as(self) -> str:
        """What a decision calls it: its fabric in all conditions, of several runs the configuration."""
        return self.name if self.factors else self.fabric.network

    def is_beside(self, other: Side) -> bool:
        """Whether another side is of the same runs, so that both were measured in the same blocks."""
        return [id(run) for run in self.runs] == [id(run) for run in other.runs]

    def account_of(self, subject: str) -> SubjectAccount | None:
        """Return the account of what its launches measure; None where nothing is known of it."""
        return next((one for one in self.accounts if one.subject == subject), None)

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
    """Return the name of a cell by its parts, measured or not."""
    size = f"of {message_bytes} B" if PATTERNS[pattern].has_size else ""
    return " ".join(filter(None, (layer.value, pattern.value, size, variant)))


def in_order(key: CellKey) -> tuple[Any, ...]:
    """Sort cells as a reader expects them: up the ladder, then by what is measured, then by size."""
    layer = list(Layer).index(key.layer)
    return layer, key.metric, key.pattern, key.receive, key.order, key.message_bytes


def key_of(row: dict[str, Any], times: Times = NO_TIMES) -> CellKey:
    """Return the cell of a row of `Run.cells`; `times` are those that the run's applications are judged by."""
    pattern = Pattern(str(row["pattern"]))
    return CellKey(
        layer=Layer(str(row["layer"])),
        pattern=pattern,
        receive=Receive(str(row["receive"])),
        message_bytes=int(str(row["message_bytes"])),
        metric=Metric(str(row["metric"])),
        workload=_workload(row, times) if PATTERNS[pattern].family is Family.WORKLOAD else None,
        **dict(stored_setup(row)),
    )


def plain_key(key: CellKey) -> CellKey | None:
    """Return the cell that a stamped one was measured beside; None of a cell whose messages were not stamped."""
    if (STAGES, STAGES_BY_USER) not in key.parameters:
        return None
    return key.model_copy(update={"parameters": tuple(one for one in key.parameters if one[0] != STAGES)})


def _workload(row: dict[str, Any], times: Times) -> WorkloadName:
    parameters: dict[str, str | int | float] = json.loads(row["parameters"] or "{}")
    name = WorkloadName(ranks=len(row["ranks"] or ()), parameters=tuple(parameters.items()))
    return times.get(name, name)


def unjudged(key: CellKey) -> CellKey:
    """Return a cell as a launch that failed names it: it does not tell what it is judged by."""
    name = None if key.workload is None else key.workload.untold
    return key.model_copy(update={"workload": name})


def workload_of(part: WorkloadPart) -> WorkloadName:
    """Return which workload a launch was, as cells name it."""
    first = next(iter(part.figures), None)
    return WorkloadName(
        ranks=part.ranks,
        parameters=tuple(part.parameters.items()),
        judged_by=first.name if first is not None and first.better == "lower" else None,
        is_network_test=True if first is not None and first.kind is Measures.NETWORK else None,
    )
