"""What the analysis found of single cells: summaries, comparisons, crossovers, the ladder, distributions."""

from __future__ import annotations

from typing import Literal

from fabricbench.analysis.findings.terms import CellKey, Interval, Verdict
from fabricbench.model import Layer, Metric, Model, Pattern, Receive

BASIC_PATTERNS = (Pattern.PINGPONG, Pattern.STREAM)


class CellSummary(Model):
    """One cell on one fabric. `median` is over launches: the median, with its interval, of one value each.

    The value of a launch is the median of its times, or its total bits over total time of a rate (windows arrive in bursts).
    `quantiles` maps probabilities (as text: "0.01", "0.5", "0.999") to values over all measured samples. `mean` is the arithmetic
    mean of times, or total bits over total time of rates (the harmonic mean). Shares of the line rate and of the physically
    possible payload rate are given for throughput on fabrics whose wire is known. `doubt` says in words why the instrument
    cannot be believed here (empty: it can); what `is_impossible` is shown struck, never as a result.
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
    doubt: str = ""
    is_impossible: bool = False


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
