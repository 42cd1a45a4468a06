"""All that a report shows: the first screen, the decision, the warnings, the method, and every finding.

The first screen holds the answer, what bears it out, what is in doubt, what to do next. It is the same in the dossier, in the
terminal and in Markdown: renderers set these words and numbers, and add none. A decision has scores over all that the user weighs,
costs, where one fabric pays, and how sure it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from fabricbench.analysis.findings.cells import (
    CellKey,
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    Interval,
    LadderStep,
    OfWorkload,
    Verdict,
    WithoutNone,
)
from fabricbench.analysis.findings.doubts import Doubt
from fabricbench.analysis.findings.earlier import as_today
from fabricbench.model import Layer, Metric, Model, Receive
from fabricbench.record.decision_table import Counting
from fabricbench.record.provenance import Marks, Origin, Proof, marks_of
from fabricbench.record.run_account import RunAccount
from fabricbench.testbed.model import BuiltFrom

DEFAULT_CONFIDENCE = 0.95
"""Of all intervals and verdicts of a report, where nobody asks for another."""


def _is_empty(value: object) -> bool:
    return not value


def _is_one(value: object) -> bool:
    return value == 1


def _is_none(value: object) -> bool:
    return value is None


class Grade(StrEnum):
    """How far the evidence behind an effect can be trusted."""

    CLEAR = "clear"
    """Decided, and the verdict would be the same whatever speaks against it: `doubts` are remarks."""
    DOUBTFUL = "doubtful"
    """Decided by the numbers; of what `doubts` tell, something would leave who leads and not by how much, or cannot be weighed."""
    ALARM = "alarm"
    """Decided by the numbers; of what `doubts` tell, something would leave nothing of it."""
    OPEN = "open"
    """Not decided: grey wherever it is drawn."""
    VOID = "void"
    """The numbers cannot be right, or hardly any launch gave one."""


class Reading(Model):
    """What one fabric showed: the geometric mean over launches, of all fabrics the same blocks, with its interval.

    `launches` are the values of all of them (None: gave nothing), `slow` the places among them of a slower group.
    """

    fabric: str
    value: float | None
    low: float | None
    high: float | None
    launches: tuple[float | None, ...]
    slow: tuple[int, ...] = Field(default=(), exclude_if=_is_empty)
    is_impossible: bool = False
    """More than the wire can carry, or less time than light needs: struck where it stands."""
    is_beyond_wire: bool = False
    """A little more than the wire can carry, by what was in buffers: cautioned where it stands."""
    note: str = ""
    share_of_line_rate: Interval | None = Field(default=None, exclude_if=_is_none)
    """Of a stream on a fabric whose wire is known, where nothing else stands beside the fabric to be measured by."""


class PairEffect(WithoutNone):
    """Two fabrics in one row. `times` is how many times better B is than A (above 1: B is), with its interval.

    The interval is simultaneous: those of all ratios of the first screen hold together with the report's confidence.
    """

    not_written: ClassVar[tuple[str, ...]] = ("printed_step",)
    fabric_a: str
    fabric_b: str
    times: float
    low: float | None
    high: float | None
    verdict: Verdict
    """Corrected over the first screen's rows so that any wrong one has at most the report's chance (Bonferroni)."""
    words: str
    """`half the time: 64 instead of 130 us`."""
    value_a: float | None = None
    """Geometric means over the very blocks of this pair: their ratio is `times`; means over other blocks need not agree with it."""
    value_b: float | None = None
    more_blocks_needed: int | None = None
    printed_step: float | None = None
    """What the last digit of the values counts, in the metric's unit, where a program printed them."""


class Effect(OfWorkload):
    """One row of the first screen. `what` reads `TCP round trip, 64 B`; `layer` is None for an application, which `workload` is.

    `key` is the cell without what all of its kind have in common.
    """

    not_written: ClassVar[tuple[str, ...]] = (*OfWorkload.not_written, "key")
    key: CellKey | None = None
    what: str
    layer: Layer | None
    metric: Metric
    message_bytes: int | None = Field(default=None, exclude_if=_is_none)
    """Of what has a size."""
    is_typical: bool = True
    """False for a tail (p99, p99.9) of the samples, and for their mean."""
    is_mean: bool = Field(default=False, exclude_if=_is_empty)
    """Of the mean of the samples, where the others are of their median."""
    readings: tuple[Reading, ...]
    """One for each fabric, in the order of `Findings.fabrics`."""
    pairs: tuple[PairEffect, ...]
    ranks: tuple[tuple[str, ...], ...] = ()
    """The fabrics from the best on; each two that cannot be told apart share a tier, and a fabric may stand in several."""
    grade: Grade
    doubts: tuple[Doubt, ...] = ()
    unseen_share: float | None = Field(default=None, exclude_if=_is_none)
    """Of a fabric's launches: what could be a slow mode that so few would have missed, of a row that is clear all the same."""
    losses: tuple[Doubt, ...] = Field(default=(), exclude_if=_is_empty)
    """How many of a fabric's starts gave nothing that counts, where some did: a doubt beyond a share of them, else a remark."""


class Changes(Model):
    """Before and after, counted over all compared rows."""

    slower: int
    faster: int
    same: int
    ahead: int = 0
    """Slower or faster, perhaps by less than the margin."""
    unknown: int
    configuration: tuple[str, ...]
    """What differs between the two: `myrinet: switch latency 0.5 us became 5 us`."""


class Evidence(Model):
    """A line of the evidence: what may change, what bounds the answer, or what is clear, and the doubts behind it."""

    words: str
    doubts: tuple[Doubt, ...] = Field(default=(), exclude_if=_is_empty)


class Headline(Model):
    """The first screen: the answer in a sentence, exceptions, effects, doubts, the next step."""

    sentence: str
    exceptions: tuple[str, ...] = ()
    """`raw 64 B frames, 24 % slower (15 to 32 %)`: shown after "Except:"."""
    detail: str = ""
    """How far the answer reaches: which layers and sizes bear it out, which do not show it."""
    evidence: tuple[Evidence, ...] = ()
    """What is in doubt, what the numbers are of, and what is clear: at most three lines, the gravest first."""
    in_doubt: bool = False
    """Whether the instrument is in doubt for what the sentence says."""
    effects: tuple[Effect, ...] = ()
    more_effects: tuple[Effect, ...] = ()
    """Layers that explain and never lead, and further tails: folded away where there is a fold."""
    changes: Changes | None = None
    where: str = Field(default="", exclude_if=_is_empty)
    """Of the first clear effect whose stages were measured: in which of them fabrics differ."""
    next_steps: tuple[str, ...] = ()
    reproduce: tuple[str, ...] = ()
    """The command, the seed, the version, the beginning of the data's hash."""
    data_sha256: tuple[str, ...] = Field(default=(), exclude_if=_is_empty)
    """Of each run, as `fabricbench verify` tells it; of findings that an earlier version wrote the hash stands in `reproduce`."""
    conditions: str = ""
    system: str = Field(default="", exclude_if=_is_empty)
    """What it was measured on, in a line."""


class WeighedTest(Model):
    """A test and its share of the time on the first fabric, or of the weight (`DecisionFindings.basis`), of all that have data.

    `times` is how many times better each fabric is than the first, in their order.
    """

    what: str
    share: float
    times: tuple[Interval, ...]


class LeftOut(Model):
    """A test that was to be weighed and was left out for all fabrics, and why. `share` is that of the whole weight, where given."""

    what: str
    why: str
    share: float | None = Field(default=None, exclude_if=_is_none)


class SystemCost(Model):
    """What all nodes with one fabric cost, in `DecisionFindings.currency`: the nodes, the fabric, its fixed part, electricity."""

    nodes: float
    fabric: float
    fixed: float
    energy: float

    @property
    def total(self) -> float:
        """All together."""
        return self.nodes + self.fabric + self.fixed + self.energy


class FabricScore(Model):
    """One fabric. `score` is how many times better it is than the first fabric over all tests (the first has 1).

    It is the work that the fabric does in the same time, or where that is not known `geometric`, the weighted mean of the tests.
    Places are the best and the worst that the tests leave it, counted from 1. `cost_of_work` is what the same work costs with it,
    as a multiple of the first fabric's: 0.8 is a fifth cheaper. None where it is not known.
    """

    fabric: str
    score: Interval
    geometric: Interval | None = None
    probability_first: float | None
    places: tuple[int, int]
    cost: SystemCost | None = None
    cost_of_work: Interval | None = None
    probability_cheapest: float | None = None
    cost_places: tuple[int, int] | None = None


class BreakEvenKind(StrEnum):
    """What a break-even is a value of."""

    NODE_PRICE = "price of a node"
    """It pays if a node without a fabric costs more than this."""
    FABRIC_PRICE = "price of the fabric per node"
    """It pays if the fabric costs less than this for each node."""
    TIME = "share of a job's time"
    """It pays if more than this share of the time of a job, on the other fabric, goes as the network tests do (Amdahl)."""
    WEIGHT = "share of the weight"
    """It pays if the tests in which it is better have more than this share of the time on the other fabric."""
    LEAD = "share of the weight for the lead"
    """It is ahead if the tests in which it is better have more than this share of the time, or of the weight: nothing of costs."""


class BreakEven(Model):
    """Where `fabric` begins to pay against `against`. `value.low` and `high` bound it; a bound of None is not known to exist."""

    kind: BreakEvenKind
    fabric: str
    against: str
    value: Interval
    now: float | None
    """What it is in this decision."""
    tests: tuple[str, ...] = ()
    """For a share of the weight: the tests in which the fabric is better."""


class Basis(StrEnum):
    """What a score is: the work that is done in the same time, or a geometric mean of tests, which is neither time nor cost."""

    WORK = "work in the same time"
    GEOMETRIC = "geometric mean"


class DecisionFindings(Model):
    """All of it. `fabrics` are in the order of `Findings.fabrics`, the first is what the others are measured by.

    `ranks` and `cost_ranks` are tiers from the best on; two fabrics share one unless a test over all pairs separates them (Holm),
    and tiers may overlap. The intervals of scores are each for itself. Costs count as exact: only what was measured is uncertain.
    """

    tests: tuple[WeighedTest, ...]
    left_out: tuple[LeftOut, ...]
    missing_share: float = Field(default=0.0, exclude_if=_is_empty)
    """Of the whole weight, what is on tests that are left out: the scores are over the rest alone."""
    has_weights: bool
    """Whether the user gave weights; without, all tests count equally."""
    basis: Basis = Basis.GEOMETRIC
    """What scores, ranks and shares are of."""
    counting: Counting = Counting.SCORE
    blocks: int
    are_runs: bool = Field(default=False, exclude_if=lambda one: not one)
    """Whether `blocks` counts runs of each configuration."""
    fabrics: tuple[FabricScore, ...]
    ranks: tuple[tuple[str, ...], ...]
    cost_ranks: tuple[tuple[str, ...], ...] = ()
    break_evens: tuple[BreakEven, ...] = ()
    nodes: int
    currency: str
    years: float | None = None
    network_share: float | None = None
    notes: tuple[str, ...] = ()
    confidence: float


def _is_proven(value: object) -> bool:
    return value is Proof.PROVEN


class Severity(StrEnum):
    """How much a warning weighs: does it invalidate, weaken, or only inform?"""

    INVALID = "invalid"
    WARNING = "warning"
    NOTE = "note"


class Caution(Model):
    """Something the reader must know before believing a number."""

    severity: Severity
    subject: str
    text: str


class StartsOfFabric(Model):
    """How many of a fabric's starts of a test gave nothing that counts."""

    fabric: str
    lost: int
    starts: int


class UnequalStarts(Model):
    """A test whose starts came to nothing more often on `worse` than on `better`, beyond what chance makes: a finding by itself."""

    subject: str
    """A workload's name, empty for the network tests."""
    worse: StartsOfFabric
    better: StartsOfFabric
    p_value: float


class FabricFacts(Model):
    """A fabric as the report describes it.

    `origin` is given where its numbers are not of measurements here: imported, simulated, predicted; its MTU is not known then, and
    `layers` are those of its numbers. `proof` tells of the path of
    its launches, the least sure one; it is written where that is not proven. `mpi` is the library that it was measured with, where
    the testbed names its MPIs. Rates of one with a `scale` are so many times lower than of what it is named after, delays longer.
    `built_from` are published figures that it was made by. `nodes` are those that it was measured over, where they differ.
    """

    name: str
    letter: str
    description: str
    line_rate_bit_s: float | None
    mtu: int | None
    is_emulated: bool
    layers: tuple[Layer, ...]
    price_per_node: float | None
    currency: str
    origin: Origin | None = Field(default=None, exclude_if=_is_none)
    proof: Proof = Field(default=Proof.PROVEN, exclude_if=_is_proven)
    mpi: str = Field(default="", exclude_if=_is_empty)
    nodes: str = Field(default="", exclude_if=_is_empty)
    scale: int = Field(default=1, exclude_if=_is_one)
    built_from: tuple[BuiltFrom, ...] = Field(default=(), exclude_if=_is_empty)

    @property
    def mark(self) -> Origin | None:
        """What its numbers are marked as in every report; None for what was measured on hardware."""
        return self.origin or (Origin.EMULATED if self.is_emulated else None)


ROW_MODELS: dict[str, type[Model]] = {}
"""The model of the rows of each name in `Findings.chapters`; chapters say it as they are loaded (`chapters.chapter.Rows`)."""


class Findings(Model):
    """Everything that a report shows about a run, or about two runs set against each other."""

    title: str
    run_directories: tuple[str, ...]
    campaign: str
    testbed: str
    started: str
    """When the first run was begun; of one that was imported when its texts say, and when it was imported where they do not."""
    is_dated_by_import: bool = False
    """Whether `started` is when it was imported."""
    seconds_measured: float
    blocks: int
    launches: int
    launches_invalid: int
    samples: int
    confidence: float
    margin: float
    is_emulated: bool
    fabrics: tuple[FabricFacts, ...]
    accounts: tuple[RunAccount, ...] = Field(default=(), exclude_if=_is_empty)
    """What each run started, and what of it was lost: one for each of `run_directories`."""
    unequal_starts: tuple[UnequalStarts, ...] = Field(default=(), exclude_if=_is_empty)
    """Where starts came to nothing more often on one fabric than chance makes, in all runs."""
    headline: Headline
    summaries: tuple[CellSummary, ...]
    cells: tuple[Comparison, ...]
    curves: tuple[Comparison, ...]
    crossovers: tuple[Crossover, ...]
    ladder: tuple[LadderStep, ...]
    distributions: tuple[Distribution, ...]
    chapters: dict[str, tuple[Any, ...]] = Field(default={}, exclude_if=_is_empty)
    """What chapters found, by name: rows, each the model that its chapter says; of a name that no chapter has, plain values."""
    warnings: tuple[Caution, ...]
    method: tuple[str, ...]
    """The method in words, a paragraph each, with sources."""
    inventory: dict[str, dict[str, str]]
    """`doctor`'s facts for each host: host -> what -> value."""

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, data: Any) -> Any:
        return as_today(data) if isinstance(data, Mapping) else data

    @field_validator("chapters", mode="before")
    @classmethod
    def _rows_are_models(cls, chapters: Any) -> Any:
        if not isinstance(chapters, Mapping):
            return chapters
        return {
            name: tuple(ROW_MODELS[name].model_validate(row) if name in ROW_MODELS else row for row in rows)
            for name, rows in chapters.items()
        }

    @cached_property
    def receives(self) -> frozenset[Receive]:
        """How probes waited for messages; what a library does itself is left out."""
        return frozenset(summary.key.receive for summary in self.summaries) - {Receive.LIBRARY}

    @property
    def marks(self) -> Marks:
        """What numbers here are marked as, each mark with its fabrics in their order."""
        return marks_of((fabric.name, fabric.mark) for fabric in self.fabrics)

    def __repr__(self) -> str:
        """Name the comparison in a line."""
        fabrics = ", ".join(fabric.name for fabric in self.fabrics)
        return f"<Findings {self.title!r}: {fabrics}; {len(self.cells)} comparisons, {len(self.warnings)} warnings>"
