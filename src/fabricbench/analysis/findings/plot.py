"""What stands on one pair of axes: tests of one run or of several as points, in series that are told apart by their traits.

A trait is anything that tells tests apart, by name: where it was measured (`run`, `fabric`), what it is (`layer`, `pattern`,
`size`, `load`, `ranks`, ...), and every parameter under its own name.
"""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import Interval
from fabricbench.analysis.findings.whole import FabricFacts
from fabricbench.model import Model
from fabricbench.record.provenance import Marks
from fabricbench.record.run_account import RunAccount

RUN, FABRIC, LAYER, PATTERN, RECEIVE, SIZE = "run", "fabric", "layer", "pattern", "receive", "size"
LOAD, RANKS, NODES, DATE, BESIDE, MEMBERS, WITHOUT = "load", "ranks", "nodes", "date", "beside", "members", "without"
FLOWS = "flows"
PROCESSOR, BOARD, KERNEL, MPI = "processor", "board", "kernel", "mpi"
"""Traits of the machines of a run, from its inventory."""
ALONE = "alone"
"""Beside whom a test without a congestor is measured."""

Trait = str | int | float
Traits = dict[str, Trait]


class PlotY(StrEnum):
    """What stands on the axis of a plot. A load is any workload: a kernel, an application, a farm."""

    ROUND_TRIP = "round-trip"
    HALF_ROUND_TRIP = "half-round-trip"
    OPERATION_TIME = "time"
    THROUGHPUT = "throughput"
    """Of streams; of a ping-pong bytes over half the round trip, of others that exchange messages as Intel's benchmarks count."""
    MESSAGE_RATE = "message-rate"
    SECONDS = "seconds"
    """Of one run of a load."""
    RATE = "rate"
    """A load's own figure of merit."""
    SPEED_UP = "speed-up"
    EFFICIENCY = "efficiency"
    COEFFICIENT = "coefficient"
    """(t_B - t_A) / t_A of any time, on fabric B against the baseline A."""

    @property
    def is_paired(self) -> bool:
        """Whether it is made of ratios, each launch against that of its block: geometric means, not medians."""
        return self in (PlotY.SPEED_UP, PlotY.EFFICIENCY, PlotY.COEFFICIENT)


class PlotPoint(Model):
    """A test at its place: the median over `launches`, whose own `values` are there where it is made of them."""

    x: Trait
    y: Interval
    launches: int
    values: tuple[float, ...] = ()
    traits: Traits


class PlotSeries(Model):
    """Points with the same `traits`: those that tell series apart, as far as these tests have them."""

    traits: Traits
    points: tuple[PlotPoint, ...]


class Plot(Model):
    """The series of a plot and what they share.

    `y` is in ns, bit/s, message/s or s; in `unit` where it is a load's own rate; a plain number where it is a ratio or a share.

    `fabrics` are those that are drawn, `places` the order of all fabrics of the runs: that of their colours. `common` has the
    traits that all points share. What is `left_out` cannot be true.
    """

    x: str
    y: PlotY
    unit: str = ""
    baseline: str | None = None
    told_apart_by: tuple[str, ...]
    series: tuple[PlotSeries, ...]
    common: Traits
    fabrics: tuple[FabricFacts, ...]
    places: tuple[str, ...]
    marks: Marks
    confidence: float
    left_out: tuple[str, ...] = ()
    run_directories: tuple[str, ...]
    accounts: tuple[RunAccount, ...]

    @property
    def points(self) -> list[PlotPoint]:
        """The points of all series."""
        return [point for series in self.series for point in series.points]
