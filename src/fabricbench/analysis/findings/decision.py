"""What the analysis found of a decision: scores over all that the user weighs, costs, where one fabric pays, and how sure it is."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import Interval
from fabricbench.model import Model


class WeighedTest(Model):
    """A test and its share of the whole weight. `times` is how many times better each fabric is than the first, in their order."""

    what: str
    share: float
    times: tuple[Interval, ...]


class LeftOut(Model):
    """A test that was to be weighed and was left out for all fabrics, and why."""

    what: str
    why: str


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

    Places are the best and the worst that the tests leave it, counted from 1. `cost_of_work` is what the same work costs with it,
    as a multiple of the first fabric's: 0.8 is a fifth cheaper. None where it is not known.
    """

    fabric: str
    score: Interval
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
    """It pays if the tests in which it is better have more than this share of the weight: where all tests are whole work."""
    LEAD = "share of the weight for the lead"
    """It is ahead if the tests in which it is better have more than this share of the weight: nothing is said of costs."""


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


class DecisionFindings(Model):
    """All of it. `fabrics` are in the order of `Findings.fabrics`, the first is what the others are measured by.

    `ranks` and `cost_ranks` are tiers from the best on; two fabrics share one unless a test over all pairs separates them (Holm),
    and tiers may overlap. The intervals of scores are each for itself. Costs count as exact: only what was measured is uncertain.
    """

    tests: tuple[WeighedTest, ...]
    left_out: tuple[LeftOut, ...]
    has_weights: bool
    """Whether the user gave weights; without, all tests count equally."""
    blocks: int
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
