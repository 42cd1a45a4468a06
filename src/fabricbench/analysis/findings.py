"""What the analysis found: the values that every report shows. Renderers take these as they are and compute nothing.

Ratios are always `b / a` of the metric in its unit; a verdict names the faster fabric by its letter, as scripts rely on.
Intervals are at `Findings.confidence`. Numbers are in the metric's unit (ns, bit/s, message/s).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from fabricbench.model import Layer, Metric, Model, Pattern, Receive


class Verdict(StrEnum):
    """What a comparison comes to."""

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"


BASIC_PATTERNS = (Pattern.PINGPONG, Pattern.STREAM)


class Interval(Model):
    """A point with its confidence interval; the bounds are None where too few launches give one."""

    value: float
    low: float | None
    high: float | None


class CellKey(Model):
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
    `quantiles` maps probabilities (as text: "0.01", "0.5", "0.999") to values over all measured samples. `mean` is the arithmetic
    mean of times, or total bits over total time of rates (the harmonic mean). Shares of the line rate and of the physically
    possible payload rate are given for throughput on fabrics whose wire is known.
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


class Comparison(Model):
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
    median_a: float | None
    low_a: float | None
    high_a: float | None
    median_b: float | None
    low_b: float | None
    high_b: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    p_adjusted: float | None
    verdict: Verdict
    launches: int
    """Pairs of launches (blocks) where the comparison is paired, else launches of the smaller side."""
    is_paired: bool
    more_blocks_needed: int | None
    """How many more blocks would settle it, where the verdict is `not enough data` and an estimate can be made."""


class Crossover(Model):
    """The message size where one fabric overtakes the other; the interval inverts a paired t test over blocks."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    variant: str
    metric: Metric
    fabric_a: str
    fabric_b: str
    message_bytes: float
    low: float
    high: float
    faster_below: str
    faster_above: str


def is_basic(one: CellKey | Comparison | Crossover) -> bool:
    """Whether it is a plain ping-pong or stream: what the answer, the ladder and the curves over message size are about.

    Over a network a variant is another thing: beside a congestor, say. Over memory it is the kernel.
    """
    return one.pattern in BASIC_PATTERNS and (not one.variant or one.layer is Layer.MEMORY)


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
    lost_share_of_line_rate: float | None
    """Share of the line rate lost against the layer below, at the largest message size that both have."""


class Distribution(Model):
    """All measured samples of one cell on one fabric as a density: bin edges (n + 1) and counts (n), edges in the metric's unit."""

    fabric: str
    key: CellKey
    edges: tuple[float, ...]
    counts: tuple[int, ...]


class Severity(StrEnum):
    """How much a warning weighs: does it invalidate, weaken, or only inform?"""

    INVALID = "invalid"
    WARNING = "warning"
    NOTE = "note"


class Warning(Model):  # noqa: A001 - the field's word, and never used beside the built-in
    """Something the reader must know before believing a number."""

    severity: Severity
    subject: str
    text: str


class FabricFacts(Model):
    """A fabric as the report describes it."""

    name: str
    letter: str
    description: str
    line_rate_bit_s: float | None
    mtu: int
    is_emulated: bool
    layers: tuple[Layer, ...]
    price_per_node: float | None
    currency: str


class Headline(Model):
    """The first screen: the answer in a short sentence, what bears it out, how sure, under which conditions."""

    sentence: str
    detail: str = ""
    """Who wins where and by how much, with intervals; exceptions and crossovers."""
    effects: tuple[str, ...]
    """One line an effect, with its interval: `tcp round trip of 64 B: myrinet 3.10 x faster (3.05 to 3.14)`."""
    conditions: str


class Findings(Model):
    """Everything that a report shows about a run, or about two runs set against each other."""

    title: str
    run_directories: tuple[str, ...]
    campaign: str
    testbed: str
    started: str
    seconds_measured: float
    blocks: int
    launches: int
    launches_invalid: int
    samples: int
    confidence: float
    margin: float
    is_emulated: bool
    fabrics: tuple[FabricFacts, ...]
    headline: Headline
    summaries: tuple[CellSummary, ...]
    cells: tuple[Comparison, ...]
    curves: tuple[Comparison, ...]
    crossovers: tuple[Crossover, ...]
    ladder: tuple[LadderStep, ...]
    distributions: tuple[Distribution, ...]
    warnings: tuple[Warning, ...]
    method: tuple[str, ...]
    """The method in words, a paragraph each, with sources."""
    inventory: dict[str, dict[str, str]]
    """`doctor`'s facts for each host: host -> what -> value."""
