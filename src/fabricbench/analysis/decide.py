"""Which fabric to take: a score over all that the user weighs, what each costs, where it pays, and how sure all that is. Pure.

What counts, `weighing`; costs and break-evens, `costing`; the statistics, `statistics.scores`. Two runs set against each other are
no choice between fabrics and get no decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fabricbench.analysis.costing import Terms, break_evens, system_cost
from fabricbench.analysis.findings import CellKey, DecisionFindings, FabricScore, Interval, SystemCost, WeighedTest
from fabricbench.analysis.measured import Side
from fabricbench.analysis.ranking import places, ranks
from fabricbench.analysis.weighing import Floats, Weighed, name_of, weigh
from fabricbench.analysis.wording import enumeration
from fabricbench.quantity import count
from fabricbench.record.decision_table import DecisionTable, FabricPrice, prices_of
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Ratios, paired_ratios
from fabricbench.statistics.scores import PairTests, chances_of_first, mean_draws, pair_tests

EXACTLY_ONE = Interval(value=1.0, low=1.0, high=1.0)
"""The first fabric's score, which the others' are multiples of."""


def find_decision(
    sides: Sequence[Side], table: DecisionTable | None, confidence: float, rows: Sequence[CellKey] | None = None
) -> DecisionFindings | None:
    """Return the decision between the fabrics of one run; None without a table, with one fabric, or for two runs.

    `rows` are the tests that count equally where the table gives no weights: those of the first screen. UsageError where prices are
    in different currencies or are those of no fabric.
    """
    if table is None or len(sides) < 2 or any(side.run is not sides[0].run for side in sides):
        return None
    prices, currency = prices_of(table, [side.fabric for side in sides])
    nodes = table.nodes or len(sides[0].run.manifest.testbed.nodes)
    weighed = weigh(sides, table, rows)
    names = [side.name for side in sides]
    common = {
        "left_out": weighed.left_out,
        "has_weights": bool(table.weight),
        "nodes": nodes,
        "currency": currency,
        "years": table.years,
        "network_share": table.network_share,
        "confidence": confidence,
    }
    if not weighed.keys or not weighed.scores.size:
        return DecisionFindings(tests=(), blocks=0, fabrics=(), ranks=(), notes=weighed.notes, **common)
    costs = _costs(names, prices, nodes, table)
    scored = _Scored(names, weighed, table.network_share, costs, confidence)
    terms = Terms(names, prices, nodes, table, confidence)
    return DecisionFindings(
        tests=_tests(weighed, confidence),
        blocks=len(weighed.scores),
        fabrics=scored.fabrics(),
        ranks=scored.tiers(scored.tests),
        cost_ranks=scored.tiers(scored.cost_tests) if scored.cost_tests is not None else (),
        break_evens=tuple(break_evens(terms, weighed, scored.tests, scored.work_tests)),
        notes=(*weighed.notes, *_other_size(sides[0], nodes), *_notes(names, prices, table, weighed)),
        **common,
    )


class _Scored:
    """The scores of all fabrics and, where that can be said, the work that each does for its money."""

    def __init__(
        self,
        names: Sequence[str],
        weighed: Weighed,
        network_share: float | None,
        costs: Sequence[SystemCost] | None,
        confidence: float,
    ) -> None:
        self.names = names
        self.costs = costs
        self._confidence = confidence
        logs, floors = weighed.scores, weighed.score_deviations
        self.tests = pair_tests(logs, floors, confidence)
        self._first = _chances(logs, floors)
        self._cheapest: Floats | None = None
        self.work_tests = self.cost_tests = None
        work = weighed.work_scores(network_share)
        if work is not None:
            self.work_tests = pair_tests(work, floors, confidence)
        if work is not None and costs is not None:
            # Subtracting a constant from each column: what is spent is exact, what was measured keeps its scatter.
            for_money = work - np.log([one.total / costs[0].total for one in costs])
            self.cost_tests = pair_tests(for_money, floors, confidence)
            self._cheapest = _chances(for_money, floors)

    def fabrics(self) -> tuple[FabricScore, ...]:
        """Return each fabric with its score and cost."""
        return tuple(
            FabricScore(
                fabric=name,
                score=self._against_first(self.tests.ratios, index),
                probability_first=None if self._first is None else float(self._first[index]),
                places=self._places(self.tests)[name],
                cost=None if self.costs is None else self.costs[index],
                cost_of_work=self._cost_of_work(index),
                probability_cheapest=None if self._cheapest is None else float(self._cheapest[index]),
                cost_places=None if self.cost_tests is None else self._places(self.cost_tests)[name],
            )
            for index, name in enumerate(self.names)
        )

    def tiers(self, tests: PairTests) -> tuple[tuple[str, ...], ...]:
        """Return the tiers, the best first."""
        values = [self._against_first(tests.ratios, index).value for index in range(len(self.names))]
        ordered = [self.names[index] for index in sorted(range(len(values)), key=lambda index: -values[index])]
        return ranks(ordered, self._better(tests))

    def _against_first(self, ratios: Ratios, index: int) -> Interval:
        """Return how many times better than the first fabric: the pairs with it come first, in order."""
        return EXACTLY_ONE if index == 0 else _interval(ratios, index - 1)

    def _cost_of_work(self, index: int) -> Interval | None:
        if self.cost_tests is None:
            return None
        for_money = self._against_first(self.cost_tests.ratios, index)
        return Interval(
            value=1.0 / for_money.value,
            low=None if for_money.high is None else 1.0 / for_money.high,
            high=None if for_money.low is None else 1.0 / for_money.low,
        )

    def _better(self, tests: PairTests) -> Mapping[tuple[str, str], bool]:
        better = {}
        for (one, other), p_value, ratio in zip(tests.pairs, tests.adjusted, tests.ratios.ratio, strict=True):
            winner, loser = (other, one) if ratio > 1.0 else (one, other)
            better[self.names[winner], self.names[loser]] = bool(p_value < 1.0 - self._confidence)
        return better

    def _places(self, tests: PairTests) -> dict[str, tuple[int, int]]:
        return places(self.names, self._better(tests))


def _chances(logs: Floats, floors: Floats) -> Floats | None:
    draws = mean_draws(logs, floors)
    return None if draws is None else chances_of_first(draws)


def _interval(ratios: Ratios, index: int) -> Interval:
    low, high = float(ratios.low[index]), float(ratios.high[index])
    return Interval(
        value=float(ratios.ratio[index]), low=None if np.isnan(low) else low, high=None if np.isnan(high) else high
    )


def _tests(weighed: Weighed, confidence: float) -> tuple[WeighedTest, ...]:
    found = []
    for key, share, logs, floors in zip(
        weighed.keys, weighed.shares, weighed.logs, weighed.clock_deviations, strict=True
    ):
        rows = logs[1:] - logs[:1]
        ratios = paired_ratios(rows, confidence, least_deviation=np.hypot(floors[1:], floors[0]))
        times = (EXACTLY_ONE, *(_interval(ratios, index) for index in range(len(rows))))
        found.append(WeighedTest(what=name_of(key), share=float(share), times=times))
    return tuple(sorted(found, key=lambda one: -one.share))


def _costs(
    names: Sequence[str], prices: Mapping[str, FabricPrice], nodes: int, table: DecisionTable
) -> list[SystemCost] | None:
    """Return what each system costs; None unless all are known and cost something."""
    found = [system_cost(prices[name], nodes, table) if name in prices else None for name in names]
    costs = [one for one in found if one is not None and one.total > 0]
    return costs if len(costs) == len(names) else None


def _other_size(side: Side, nodes: int) -> list[str]:
    """Return what to know where more or fewer nodes are bought than were measured on."""
    measured = len(side.run.manifest.testbed.nodes)
    if nodes == measured:
        return []
    return [
        f"measured on {count(measured, 'node')} and weighed for {nodes}: on so many the fabrics may compare otherwise"
    ]


def _notes(
    names: Sequence[str], prices: Mapping[str, FabricPrice], table: DecisionTable, weighed: Weighed
) -> list[str]:
    """Return what keeps the decision from saying more."""
    notes, blocks = [], len(weighed.scores)
    unpriced = [name for name in names if name not in prices]
    if unpriced:
        notes.append(
            f"no price is known for {enumeration(unpriced)}: give price_per_node in the testbed, or [decision.price]"
        )
    elif table.node_price is None:
        notes.append("costs of whole systems need node_price in [decision]: a fabric alone does no work")
    elif table.network_share is None and not weighed.is_work.all():
        notes.append(
            "network tests do not tell what a job gains: what the same work costs needs network_share in [decision], the share of "
            "your jobs' time that they stand for, or kernels as the only tests"
        )
    if table.years is None and any(price.power_per_node_watt for price in prices.values()):
        notes.append("power is not counted: its cost needs years and electricity_price_per_kwh in [decision]")
    if blocks < MINIMUM_LAUNCHES:
        notes.append(f"{count(blocks, 'block')} give no interval and no probability: at least {MINIMUM_LAUNCHES} do")
    return notes
