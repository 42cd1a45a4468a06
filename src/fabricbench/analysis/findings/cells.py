"""The words of every finding (a verdict, a value with its interval, what is measured), and what was found of single cells.

These are summaries, comparisons, crossovers, the ladder and distributions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import ModelWrapValidatorHandler, SerializerFunctionWrapHandler, model_serializer, model_validator

from fabricbench.analysis.findings.doubts import Doubt
from fabricbench.model import Layer, Metric, Model, Pattern, Receive
from fabricbench.record.provenance import BY
from fabricbench.record.setup import SETUP_FIELDS, Setup, variant_of, words_of
from fabricbench.statistics.decision import LogRatio

BASIC_PATTERNS = (Pattern.PINGPONG, Pattern.STREAM)


T = TypeVar("T")


class Letter(StrEnum):
    """A side of a comparison."""

    A = "A"
    B = "B"


class Strength(StrEnum):
    """How strongly a comparison is decided."""

    FASTER = "faster"
    AHEAD = "ahead"
    EQUIVALENT = "equivalent"
    OPEN = "open"


class Verdict(StrEnum):
    """What a comparison comes to.

    Faster: by more than the margin that matters. Ahead: faster, and it may be by less than matters. Not resolvable: the sides are
    nearer to each other than the steps in which their values are told (printed digits, ticks of a clock), and these are too coarse
    for an equivalence; no number of launches would settle it.
    """

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    A_AHEAD = "A ahead"
    B_AHEAD = "B ahead"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"
    NOT_RESOLVABLE = "not resolvable"

    @property
    def strength(self) -> Strength:
        """How strongly somebody leads, or that nobody does."""
        return MEANING[self][0]

    @property
    def leader(self) -> Letter | None:
        """The side that is faster or ahead."""
        return MEANING[self][1]

    @property
    def is_decided(self) -> bool:
        """Whether one side is faster by more than the margin."""
        return self.strength is Strength.FASTER

    @property
    def is_ahead(self) -> bool:
        """Whether one side leads and the margin is not shown to be exceeded."""
        return self.strength is Strength.AHEAD

    @property
    def is_open(self) -> bool:
        """Whether it is not known which side leads, nor that neither does."""
        return self.strength is Strength.OPEN

    def of_leader(self, of_a: T, of_b: T) -> T | None:
        """Return what is the leader's of what the sides have; None where nobody leads."""
        return None if self.leader is None else of_a if self.leader is Letter.A else of_b

    def of_other(self, of_a: T, of_b: T) -> T | None:
        """Return what is the other side's."""
        return self.of_leader(of_b, of_a)


MEANING = {
    Verdict.A_FASTER: (Strength.FASTER, Letter.A),
    Verdict.B_FASTER: (Strength.FASTER, Letter.B),
    Verdict.A_AHEAD: (Strength.AHEAD, Letter.A),
    Verdict.B_AHEAD: (Strength.AHEAD, Letter.B),
    Verdict.EQUIVALENT: (Strength.EQUIVALENT, None),
    Verdict.NOT_ENOUGH_DATA: (Strength.OPEN, None),
    Verdict.NOT_RESOLVABLE: (Strength.OPEN, None),
}


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


def is_nothing(value: Any) -> bool:
    """Whether a value is None, or holds nothing."""
    return value is None or (isinstance(value, Collection) and not value)


class WithoutNone(Model):
    """A finding of which some fields are not written where they hold nothing: those that most runs have nothing of."""

    not_written: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = written(self)
        return {name: value for name, value in fields.items() if name not in self.not_written or not is_nothing(value)}


OWN_PROGRAM = "own"
"""What the parameters of a kernel of NPB say of fabricbench-npb, if anything."""


class WorkloadName(WithoutNone):
    """Which workload a cell is: its parameters as they were planned, columns and no text to be read back.

    `judged_by` is the name of the time that it is judged by, where the program told several or might have; a rate is a parameter.
    `is_network_test` is True of one that is judged by a latency or a bandwidth, and None of all others.
    """

    not_written: ClassVar[tuple[str, ...]] = ("judged_by", "is_network_test")
    ranks: int
    parameters: tuple[tuple[str, str | int | float], ...] = ()
    judged_by: str | None = None
    is_network_test: bool | None = None

    @property
    def untold(self) -> WorkloadName:
        """The same as a launch that failed names it: it does not tell what it is judged by."""
        return self.model_copy(update={"judged_by": None, "is_network_test": None})

    @property
    def name(self) -> str:
        """What it is called."""
        return str(dict(self.parameters).get("workload", ""))

    @property
    def short(self) -> str:
        """What it is called, whatever its parameters: `hpl`; of NPB the kernel and its class, `IS.W`."""
        known = dict(self.parameters)
        return self.name or ".".join(str(known[one]) for one in ("benchmark", "class") if one in known)

    @property
    def unit(self) -> str:
        """Of the rate, or of the time for each of something, that it is judged by; empty of a plain time."""
        return str(dict(self.parameters).get("unit", ""))

    @property
    def own(self) -> dict[str, str | int | float]:
        """The parameters that are its own."""
        return {name: value for name, value in self.parameters if name not in ("workload", "figure", "unit")}

    def __str__(self) -> str:
        """Return `hpl, n=1000, on 4 ranks (GFLOP/s)`, of NPB `IS.W on 4 ranks` with the program where that is not our own."""
        on = f"on {self.ranks} rank{'' if self.ranks == 1 else 's'}"
        if not self.name and self.short:
            program = self.own.get("program", OWN_PROGRAM)
            return f"{self.short} {on}" + ("" if program == OWN_PROGRAM else f" ({program})")
        own = "".join(f", {name}={value}" for name, value in self.own.items())
        rate = f" ({self.unit})" if self.unit else ""
        return f"{self.name}{own}{',' if own else ''} {on}{rate}"


class OfWorkload(WithoutNone):
    """What may be a workload's."""

    not_written: ClassVar[tuple[str, ...]] = ("workload",)
    workload: WorkloadName | None = None


class OfCell(Setup, OfWorkload):
    """What is measured, whatever the fabric and the size. Setup says what tells it from others of its layer and pattern.

    What is written of it has `variant`, the words for its setup; of the setup's fields those that hold something.
    """

    not_written: ClassVar[tuple[str, ...]] = (*OfWorkload.not_written, *SETUP_FIELDS)
    written_first: ClassVar[tuple[str, ...]] = ("workload", "layer", "pattern", "receive", "variant")
    """The order in which tables have their first columns; those of the setup are the last."""
    layer: Layer
    pattern: Pattern
    receive: Receive
    metric: Metric

    @property
    def variant(self) -> str:
        """The words for its setup, in one text."""
        return variant_of(self.pattern, self)

    @property
    def variant_words(self) -> tuple[str, ...]:
        """The words for each part of its setup."""
        return words_of(self.pattern, self)

    @property
    def of_any_size(self) -> dict[str, Any]:
        """Its fields but for the size: what a curve has in common."""
        return {name: getattr(self, name) for name in OfCell.model_fields}

    @property
    def curve(self) -> CellKey:
        """What it has in common with other sizes of the same."""
        return CellKey.model_construct(message_bytes=0, **self.of_any_size)

    @property
    def on_any_nodes(self) -> Setup:
        """Its setup without the nodes that failed meanwhile."""
        return self.setup.model_copy(update={"lost_nodes": ()})

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = super()._without_none(written)
        setup = {name: fields.pop(name) for name in SETUP_FIELDS if name in fields}
        fields["variant"] = self.variant
        return {name: fields[name] for name in self.written_first if name in fields} | fields | setup

    @model_validator(mode="wrap")
    @classmethod
    def _without_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Check the words for a setup where they are given: they are made of its fields, and no field is made of them."""
        if not isinstance(given, Mapping) or "variant" not in given:
            return validate(given)
        made = validate({name: value for name, value in given.items() if name != "variant"})
        if made.variant != given["variant"]:
            raise ValueError(f"found the variant {given['variant']!r} where the setup is called {made.variant!r}")
        return made


class CellKey(OfCell):
    """A cell: what is measured at one size, whatever the fabric."""

    written_first: ClassVar[tuple[str, ...]] = ("workload", "layer", "pattern", "receive", "message_bytes", "metric")
    message_bytes: int


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


FEW_SHARE = 0.1
"""Of the launches: so few may be apart from the others without being a mode of their own."""


class LaunchGroups(Model):
    """The launches of one `fabric` in two groups, and what a comparison shows in each, as log ratios `b / a`.

    The launches of `slow_blocks` are `slower` than its others by that share (0.22: 22 %), over all tests that they hold.
    `deviation` is that of a block's log ratio within the groups, with its degrees of `freedom`.
    """

    fabric: str
    slower: float
    slow_blocks: tuple[int, ...]
    launches: int
    slow_launches: int
    log_ratio_of_slow: float
    log_ratio_of_others: float
    deviation: float
    freedom: float

    @property
    def are_few_that_agree(self) -> bool:
        """Whether one of the groups is a single launch, or a tenth of all, and the same side is ahead in both."""
        few = min(self.slow_launches, self.launches - self.slow_launches)
        return few <= max(1.0, FEW_SHARE * self.launches) and self.log_ratio_of_slow * self.log_ratio_of_others > 0

    def parts(self, rounding_bound: float) -> tuple[LogRatio, LogRatio]:
        """Return the comparison in the slow launches, and in the others."""
        slow, others = (
            LogRatio(mean, self.deviation, launches, self.freedom, rounding_bound=rounding_bound)
            for mean, launches in (
                (self.log_ratio_of_slow, self.slow_launches),
                (self.log_ratio_of_others, self.launches - self.slow_launches),
            )
        )
        return slow, others


class Comparison(OfCell):
    """Two fabrics in one cell, or along one curve (then `message_bytes` is None and the ratio is the geometric mean over sizes)."""

    written_first: ClassVar[tuple[str, ...]] = ("workload", "kind", *OfCell.written_first[1:], "message_bytes")
    kind: Literal["cell", "curve"]
    message_bytes: int | None
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
    rounding_bound: float | None = None
    """By how much the log ratio may be off as values are told in steps (a clock's, or printed digits), whatever the launches."""
    printed_step: float | None = None
    """What the last digit of the values counts, in `unit`, where a program printed them."""
    thin_sides: tuple[str, ...] = ()
    """Fabrics of which so many launches gave nothing that they win nothing by those that are left."""
    is_mixed: bool = False
    """Whether the launches of one side fall into two groups; the verdict then holds in both."""
    groups: LaunchGroups | None = None
    """These two groups."""
    notes: tuple[Doubt, ...] = ()
    """What qualifies the verdict: `3 of 6 launches on myrinet gave nothing`."""

    @cached_property
    def key(self) -> CellKey:
        """The cell, or what the cells of a curve have in common."""
        return CellKey.model_construct(message_bytes=self.message_bytes or 0, **self.of_any_size)

    @property
    def coefficient(self) -> Interval:
        """The comparison coefficient (t_B - t_A) / t_A of times, which is the ratio less 1: below 0, B takes less time."""
        low, high = (None if end is None else end - 1.0 for end in (self.ratio_low, self.ratio_high))
        return Interval(value=self.ratio - 1.0, low=low, high=high)

    @property
    def is_paired(self) -> bool:
        """Whether both sides were measured in the same blocks."""
        return self.replication is Replication.BLOCKS

    @property
    def leader(self) -> str | None:
        """The name of the side that is faster or ahead."""
        return self.verdict.of_leader(self.fabric_a, self.fabric_b)


class Crossover(OfCell):
    """Two measured sizes between which one fabric overtakes the other: each was decided, for another fabric.

    Where in between is told only if a `model` of both curves earned it: `message_bytes` with its interval, `low` to `high`, fitted
    to the sizes `fitted_bytes`. It mispredicts none of them, on either fabric, by more than the share `worst_misfit`.
    """

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


def is_plain(one: OfCell) -> bool:
    """Whether nothing tells it from others of its layer and pattern, but perhaps the nodes that are left since some failed."""
    return (one.ranks, one.members, one.parameters, one.congestor) == (None, (), (), None)


def is_basic(one: OfCell) -> bool:
    """Whether it is a plain ping-pong or stream: what the answer, the ladder and the curves over message size are about.

    Over a network one with a setup is another thing: beside a congestor, say. Over memory it is the kernel. On the nodes that are
    left since some failed it is the same test.
    """
    return one.pattern in BASIC_PATTERNS and (is_plain(one) or one.layer is Layer.MEMORY)


def is_sweep(one: OfCell) -> bool:
    """Whether it belongs into the figures over message size: a basic one, or what another program measured of the same.

    No answer and no ladder is made of the latter: its number has a definition of its own.
    """
    return is_basic(one) or (one.pattern in BASIC_PATTERNS and BY in dict(one.parameters))


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
