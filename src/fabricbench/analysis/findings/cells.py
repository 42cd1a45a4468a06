"""The words of every finding (a verdict, a value with its interval, what is measured), and what was found of single cells.

These are summaries, comparisons, crossovers, the ladder and distributions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.record.manifest import WITHOUT
from fabricbench.record.provenance import BY
from fabricbench.statistics.crossing import CLOSE

BASIC_PATTERNS = (Pattern.PINGPONG, Pattern.STREAM)


class Verdict(StrEnum):
    """What a comparison comes to.

    Faster: by more than the margin that matters. Ahead: faster, and it may be by less than matters.
    """

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    A_AHEAD = "A ahead"
    B_AHEAD = "B ahead"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"

    @property
    def is_decided(self) -> bool:
        """Whether one side is faster by more than the margin."""
        return self in (Verdict.A_FASTER, Verdict.B_FASTER)

    @property
    def is_ahead(self) -> bool:
        """Whether one side leads and the margin is not shown to be exceeded."""
        return self in (Verdict.A_AHEAD, Verdict.B_AHEAD)

    @property
    def leader(self) -> str | None:
        """The letter of the side that is faster or ahead."""
        return self.value[0] if self.is_decided or self.is_ahead else None


class Replication(StrEnum):
    """What is repeated in a comparison, and so what its errors are errors of."""

    BLOCKS = "blocks"
    """Both sides in each block of one run: pairs close in time."""
    RUNS = "runs"
    """Several runs a side: the mean of each run is one value."""
    LAUNCHES = "launches"
    """One run a side: launches within them; what differs from session to session cannot be told from a change."""


class Interval(Model):
    """A point with its confidence interval; the bounds are None where too few launches give one."""

    value: float
    low: float | None
    high: float | None


class WithoutNone(Model):
    """A finding of which some fields are not written where they are None: those that most runs have nothing of."""

    not_written: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = written(self)
        return {name: value for name, value in fields.items() if value is not None or name not in self.not_written}


class WorkloadName(WithoutNone):
    """Which workload a cell is: its parameters as they were planned, columns and no text to be read back.

    `judged_by` is the name of the time that it is judged by, where the program told several or might have; a rate is a parameter.
    """

    not_written: ClassVar[tuple[str, ...]] = ("judged_by",)
    ranks: int
    parameters: tuple[tuple[str, str | int | float], ...] = ()
    judged_by: str | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return str(dict(self.parameters).get("workload", ""))

    @property
    def unit(self) -> str:
        """Of the rate that it is judged by; empty of a time."""
        return str(dict(self.parameters).get("unit", ""))

    @property
    def own(self) -> dict[str, str | int | float]:
        """The parameters that are its own."""
        return {name: value for name, value in self.parameters if name not in ("workload", "figure", "unit")}

    def __str__(self) -> str:
        """Return `hpl, n=1000, on 4 ranks (GFLOP/s)`."""
        own = "".join(f", {name}={value}" for name, value in self.own.items())
        rate = f" ({self.unit})" if self.unit else ""
        return f"{self.name}{own}{',' if own else ''} on {self.ranks} rank{'' if self.ranks == 1 else 's'}{rate}"


class OfWorkload(WithoutNone):
    """What may be a workload's."""

    not_written: ClassVar[tuple[str, ...]] = ("workload",)
    workload: WorkloadName | None = None


class CellKey(OfWorkload):
    """What is measured, whatever the fabric. `variant` tells probes apart that differ in their parameters (`triad`), else ''."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    message_bytes: int
    metric: Metric
    variant: str = ""


class CellSummary(Model):
    """One cell on one fabric. `median` is over launches: the median, with its interval, of one value each.

    The value of a launch is the median of its times, or its total bits over total time of a rate (windows arrive in bursts).
    `quantiles` maps probabilities (as text: "0.01", "0.5", "0.999") to values over all measured samples, where
    at least one sample lies beyond. `mean` is the arithmetic mean of times, or total bits over total time of rates (the harmonic
    mean). Shares of the line rate and of the physically possible payload rate are given for throughput on fabrics whose wire is
    known. `doubt` says in words why the instrument cannot be believed here (empty: it can); what `is_impossible` is shown struck,
    never as a result.
    """

    fabric: str
    key: CellKey
    launches: int
    samples: int
    warmup_samples: int
    median: Interval
    mean: float
    minimum: float
    maximum: float
    quantiles: dict[str, float]
    lost: int
    sent: int
    reordered: int
    duplicated: int
    corrupted: int
    verified: int
    share_of_line_rate: float | None = None
    share_of_payload_rate: float | None = None
    values: tuple[float, ...] = ()
    """The launches' own values, in the order of blocks: what figures draw as points."""
    doubt: str = ""
    is_impossible: bool = False
    is_beyond_wire: bool = False
    """A little more than the wire can carry, by what was in buffers."""


class Comparison(OfWorkload):
    """Two fabrics in one cell, or along one curve (then `message_bytes` is None and the ratio is the geometric mean over sizes)."""

    kind: Literal["cell", "curve"]
    layer: Layer
    pattern: Pattern
    receive: Receive
    variant: str
    message_bytes: int | None
    metric: Metric
    unit: str
    fabric_a: str
    fabric_b: str
    value_a: float | None = None
    """Geometric mean of the very values that the ratio is made of, with its interval: `value_b / value_a` is the ratio."""
    low_a: float | None = None
    high_a: float | None = None
    value_b: float | None = None
    low_b: float | None = None
    high_b: float | None = None
    ratio: float
    ratio_low: float | None
    """The interval is of this comparison alone, not adjusted for the number of comparisons; so is `ratio_high`."""
    ratio_high: float | None
    p_value: float | None
    p_adjusted: float | None
    """Of "there is no difference", for the false discovery rate over all comparisons of the report."""
    p_margin: float | None = None
    """Of "the difference is at most the margin"; `p_margin_adjusted` for the false discovery rate."""
    p_margin_adjusted: float | None = None
    verdict: Verdict
    launches: int
    """Pairs of launches (blocks), runs of the smaller side, or launches of the smaller side: as `replication` says."""
    replication: Replication = Replication.BLOCKS
    met: int = 0
    """Launches a side, of all its runs: what a rare slow mode had to escape before anything is called equivalent."""
    more_blocks_needed: int | None
    """How many more blocks would settle it, where the verdict is open and an estimate can be made."""
    deviation: float | None = None
    """Standard deviation of a per-block log ratio; `freedom` are its degrees of freedom: what another level's interval needs."""
    freedom: float | None = None
    thin_sides: tuple[str, ...] = ()
    """Fabrics of which so many launches gave nothing that they win nothing by those that are left."""
    is_mixed: bool = False
    """Whether the launches of one side fall into two groups; the verdict then holds of the median pair as well."""
    notes: tuple[str, ...] = ()
    """What qualifies the verdict: `3 of 6 launches on myrinet gave nothing`."""

    @property
    def is_paired(self) -> bool:
        """Whether both sides were measured in the same blocks."""
        return self.replication is Replication.BLOCKS

    @property
    def leader(self) -> str | None:
        """The name of the side that is faster or ahead."""
        return {"A": self.fabric_a, "B": self.fabric_b}.get(self.verdict.leader or "")


class Crossover(Model):
    """Two measured sizes between which one fabric overtakes the other: each was decided, for another fabric.

    Where in between is told only if a `model` of both curves earned it: `message_bytes` with its interval, `low` to `high`, fitted
    to the sizes `fitted_bytes`. It mispredicts none of them, on either fabric, by more than the share `worst_misfit`.
    """

    layer: Layer
    pattern: Pattern
    receive: Receive
    variant: str
    metric: Metric
    fabric_a: str
    fabric_b: str
    lower_bytes: int
    upper_bytes: int
    message_bytes: float | None = None
    low: float | None = None
    high: float | None = None
    model: str = ""
    worst_misfit: float | None = None
    fitted_bytes: tuple[int, ...] = ()
    faster_below: str
    faster_above: str

    @property
    def is_close(self) -> bool:
        """Whether the two sizes are near enough for the crossover to be worth quoting."""
        return self.upper_bytes <= CLOSE * self.lower_bytes


def is_basic(one: CellKey | Comparison | Crossover) -> bool:
    """Whether it is a plain ping-pong or stream: what the answer, the ladder and the curves over message size are about.

    Over a network a variant is another thing: beside a congestor, say. Over memory it is the kernel. On the nodes that are left
    since some failed it is the same test.
    """
    return one.pattern in BASIC_PATTERNS and (not on_all_nodes(one.variant) or one.layer is Layer.MEMORY)


def on_all_nodes(variant: str) -> str:
    """Return a variant without what it says of nodes that failed: `3 ranks` of `3 ranks,without c3`."""
    parts = variant.split(",")
    return ",".join(parts[:-1]) if parts[-1].startswith(WITHOUT) else variant


def is_sweep(one: CellKey | Comparison | Crossover) -> bool:
    """Whether it belongs into the figures over message size: a basic one, or what another program measured of the same.

    No answer and no ladder is made of the latter: its number has a definition of its own.
    """
    return is_basic(one) or (one.pattern in BASIC_PATTERNS and on_all_nodes(one.variant).startswith(f"{BY}="))


class LadderStep(Model):
    """One layer of one fabric: round trip of the smallest common message, and the best throughput, each beside the layer below."""

    fabric: str
    layer: Layer
    receive: Receive
    round_trip_message_bytes: int | None
    round_trip: Interval | None
    added_round_trip: Interval | None
    """What the layer adds to the round trip of the layer below (paired by launch)."""
    throughput_message_bytes: int | None
    throughput: Interval | None
    share_of_line_rate: float | None
    share_of_payload_rate: float | None
    lost_at_message_bytes: int | None = None
    lost_share_of_line_rate: float | None
    """Share of the line rate lost against the layer below, at the largest message size that both have."""


class Distribution(Model):
    """All measured samples of one cell on one fabric as a density: bin edges (n + 1) and counts (n), edges in the metric's unit."""

    fabric: str
    key: CellKey
    edges: tuple[float, ...]
    counts: tuple[int, ...]
