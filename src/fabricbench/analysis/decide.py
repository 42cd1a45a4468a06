"""Which fabric to take: a score over all that the user weighs, what each costs, where it pays, and how sure all that is. Pure.

What counts, `weighing`; costs and where a fabric pays, `break_evens`; the statistics, `statistics.scores`. Before and after a
change there is no choice between fabrics, and no decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fabricbench.analysis.break_evens import Terms, break_evens, system_cost
from fabricbench.analysis.findings import (
    Basis,
    CellKey,
    DecisionFindings,
    FabricScore,
    Interval,
    SystemCost,
    WeighedTest,
)
from fabricbench.analysis.measured import Side
from fabricbench.analysis.ranking import places, ranks
from fabricbench.analysis.weighing import Floats, Weighed, name_of, weigh
from fabricbench.quantity import count, enumeration
from fabricbench.record.decision_table import DecisionTable, FabricPrice, prices_of
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Fitted, Ratios, Rounding, ratios_over_sessions
from fabricbench.statistics.scores import PairTests, chances_of_first, mean_draws, pair_tests

EXACTLY_ONE = Interval(value=1.0, low=1.0, high=1.0)
"""The first fabric's score, which the others' are multiples of."""


def find_decision(
    sides: Sequence[Side], table: DecisionTable | None, confidence: float, rows: Sequence[CellKey] | None = None
) -> DecisionFindings | None:
    """Return the decision between the fabrics of one run, or between configurations; None without a table, or with one.

    `rows` are the tests that count equally where the table gives no weights: those of the first screen. UsageError where prices are
    in different currencies or are those of no fabric.
    """
    if table is None or len({side.bought_as for side in sides}) < 2:
        return None
    if not sides[0].factors and any(side.run is not sides[0].run for side in sides):
        return None
    prices, currency = _prices(table, sides)
    nodes = nodes_bought(table, sides[0])
    weighed = weigh(sides, table, rows)
    names = weighed.fabrics
    common = {
        "left_out": weighed.left_out,
        "missing_share": weighed.missing_share,
        "has_weights": bool(table.weight),
        "counting": table.counting,
        "nodes": nodes,
        "currency": currency,
        "years": table.years,
        "network_share": table.network_share,
        "confidence": confidence,
    }
    if not weighed.keys or not weighed.scores.size:
        return DecisionFindings(tests=(), blocks=0, fabrics=(), ranks=(), notes=weighed.notes, **common)
    costs = _costs(names, prices, nodes, table)
    scored = _Scored(weighed, table.network_share, costs, confidence)
    terms = Terms(names, prices, nodes, table, confidence)
    return DecisionFindings(
        tests=_tests(weighed, confidence),
        basis=Basis.GEOMETRIC if scored.times is None else Basis.WORK,
        blocks=len(weighed.scores),
        are_runs=weighed.are_runs,
        fabrics=scored.fabrics(),
        ranks=scored.tiers(scored.tests),
        cost_ranks=scored.tiers(scored.cost_tests) if scored.cost_tests is not None else (),
        break_evens=tuple(break_evens(terms, weighed, scored.tests, scored.times)),
        notes=(
            *weighed.notes,
            *_of_conditions(sides),
            *_other_size(sides[0], nodes),
            *_notes(names, prices, table, weighed),
        ),
        **common,
    )


def _prices(table: DecisionTable, sides: Sequence[Side]) -> tuple[dict[str, FabricPrice], str]:
    """Return the price of what is bought, by its name; one that is given for a fabric is that of each configuration with it."""
    if not sides[0].factors:
        return prices_of(table, [side.fabric for side in sides])
    given = dict(table.price)
    for side in sides:
        own = (table.price.get(name) for name in (side.name, side.fabric.name, side.fabric.network))
        if (price := next((one for one in own if one is not None), None)) is not None:
            given[side.name] = price
    known = {side.name for side in sides}
    others = {name for side in sides for name in (side.fabric.name, side.fabric.network)} - known
    expanded = table.model_copy(update={"price": {name: one for name, one in given.items() if name not in others}})
    return prices_of(
        expanded, [side.fabric.model_copy(update={"name": side.name, "network": side.name}) for side in sides]
    )


def nodes_bought(table: DecisionTable, side: Side) -> int:
    """Return for how many nodes one buys: as many as it was measured on, where the table does not say."""
    return table.nodes or _measured_on(side)


def _measured_on(side: Side) -> int:
    return len(side.run.manifest.testbed.nodes_of(side.fabric))


class _Scored:
    """The scores of all fabrics: by the work done in the same time where that is known, else by the geometric mean of the tests.

    Fewer than FEWEST_PAIRS blocks, or MINIMUM_LAUNCHES runs, separate nobody and have no probabilities.
    """

    def __init__(
        self, weighed: Weighed, network_share: float | None, costs: Sequence[SystemCost] | None, confidence: float
    ) -> None:
        self.names = weighed.fabrics
        self.costs = costs
        self._confidence = confidence
        self._weighed = weighed
        self._is_enough = len(weighed.scores) >= _fewest(weighed)
        self._geometric = self._tests_of(weighed.scores, weighed.score_rounding)
        self.times = weighed.times(network_share)
        logs, rounding = (
            (weighed.scores, weighed.score_rounding)
            if self.times is None
            else (weighed.work_scores(self.times), weighed.work_rounding(self.times))
        )
        self.tests = self._tests_of(logs, rounding)
        self._first = self._chances(logs, rounding)
        self._cheapest: Floats | None = None
        self.cost_tests = None
        if self.times is not None and costs is not None:
            # Subtracting a constant from each column: what is spent is exact, what was measured keeps its scatter.
            for_money = logs - np.log([one.total / costs[0].total for one in costs])
            self.cost_tests = self._tests_of(for_money, rounding)
            self._cheapest = self._chances(for_money, rounding)

    def fabrics(self) -> tuple[FabricScore, ...]:
        """Return each fabric with its score and cost."""
        return tuple(
            FabricScore(
                fabric=name,
                score=self._against_first(self.tests.ratios, index),
                geometric=self._against_first(self._geometric.ratios, index),
                probability_first=None if self._first is None else float(self._first[index]),
                places=self._places(self.tests)[name],
                cost=None if self.costs is None else self.costs[index],
                cost_of_work=self._cost_of_work(index),
                probability_cheapest=None if self._cheapest is None else float(self._cheapest[index]),
                cost_places=None if self.cost_tests is None else self._places(self.cost_tests)[name],
            )
            for index, name in enumerate(self.names)
        )

    def _tests_of(self, logs: Floats, rounding: Rounding) -> PairTests:
        return pair_tests(logs, rounding, self._confidence, self._weighed.sessions, self._weighed.fitted)

    def _chances(self, logs: Floats, rounding: Rounding) -> Floats | None:
        if not self._is_enough:
            return None
        most = Fitted.largest(self._weighed.paid.values())
        draws = mean_draws(logs, rounding, sessions=self._weighed.sessions, fitted=most)
        return None if draws is None else chances_of_first(draws, rounding)

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
            better[self.names[winner], self.names[loser]] = self._is_enough and bool(p_value < 1.0 - self._confidence)
        return better

    def _places(self, tests: PairTests) -> dict[str, tuple[int, int]]:
        return places(self.names, self._better(tests))


def _interval(ratios: Ratios, index: int) -> Interval:
    low, high = float(ratios.low[index]), float(ratios.high[index])
    return Interval(
        value=float(ratios.ratio[index]), low=None if np.isnan(low) else low, high=None if np.isnan(high) else high
    )


def _tests(weighed: Weighed, confidence: float) -> tuple[WeighedTest, ...]:
    found = []
    for index, (key, share, logs) in enumerate(zip(weighed.keys, weighed.shares, weighed.logs, strict=True)):
        rows = logs[1:] - logs[:1]
        others, first = (weighed.rounding.part((index, which)) for which in (slice(1, None), 0))
        fitted = Fitted.joined([weighed.fitted(0, other) for other in range(1, len(logs))])
        ratios = ratios_over_sessions(rows, weighed.sessions, confidence, others.against(first), fitted)
        times = (EXACTLY_ONE, *(_interval(ratios, index) for index in range(len(rows))))
        found.append(WeighedTest(what=name_of(key), share=float(share), times=times))
    return tuple(sorted(found, key=lambda one: -one.share))


def _costs(
    names: Sequence[str], prices: Mapping[str, FabricPrice], nodes: int, table: DecisionTable
) -> list[SystemCost] | None:
    """Return what each system costs; None unless all are known and cost something."""
    found = [system_cost(prices[name], nodes, table, nodes) if name in prices else None for name in names]
    costs = [one for one in found if one is not None and one.total > 0]
    return costs if len(costs) == len(names) else None


def _of_conditions(sides: Sequence[Side]) -> list[str]:
    """Return what to know where a fabric was measured in several conditions: settings are no purchase."""
    conditions = list(dict.fromkeys(side.fabric.condition for side in sides if side.fabric.condition))
    if len(sides) == len({side.bought_as for side in sides}):
        return []
    return [
        f"a fabric counts by the mean over the conditions that it was measured in ({enumeration(conditions)}), each alike"
    ]


def _other_size(side: Side, nodes: int) -> list[str]:
    """Return what to know where more or fewer nodes are bought than were measured on."""
    measured = _measured_on(side)
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
    elif not weighed.is_of_time:
        notes.append(
            "weights of a geometric mean are neither time nor cost: what the same work costs needs share_of_time in every "
            f'[[decision.weight]] (share_of_time = "50%" of the machine\'s time on {names[0]}), or runs = 3, say, in every one'
        )
    if table.years is None and any(price.power_per_node_watt for price in prices.values()):
        notes.append("power is not counted: its cost needs years and electricity_price_per_kwh in [decision]")
    if blocks < _fewest(weighed):
        replicates = f"{count(blocks, 'run')} of each" if weighed.are_runs else count(blocks, "block")
        notes.append(f"{replicates} put no fabric before another: at least {_fewest(weighed)} do")
    return notes


def _fewest(weighed: Weighed) -> int:
    """Return how many blocks, or runs, tell of a difference."""
    return MINIMUM_LAUNCHES if weighed.are_runs else FEWEST_PAIRS
