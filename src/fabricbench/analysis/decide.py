"""Which fabric to take: a score over all that the user weighs, what each costs, where it pays, and how sure all that is. Pure.

What counts, `weighing`; the statistics, `statistics.scores`. Two runs set against each other are no choice between fabrics and get
no decision. Costs and break-evens are arithmetic over prices and scores: with p the cost of a node (its energy within), a and b the
costs of two fabrics per node (the fixed part and energy spread over the nodes) and r how many times better the first is, it pays
where (p + a) / r < p + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabricbench.analysis.comparing import places, ranks
from fabricbench.analysis.findings import (
    BreakEven,
    BreakEvenKind,
    CellKey,
    DecisionFindings,
    FabricScore,
    Interval,
    SystemCost,
    WeighedTest,
)
from fabricbench.analysis.measured import Side
from fabricbench.analysis.weighing import Floats, Weighed, name_of, weigh
from fabricbench.analysis.wording import enumeration
from fabricbench.quantity import count
from fabricbench.record.decision_table import DecisionTable, FabricPrice, prices_of
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Ratios, paired_ratios
from fabricbench.statistics.scores import PairTests, chances_of_first, mean_draws, pair_tests, share_of_no_difference

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


HOURS_PER_YEAR = 8766.0
"""Of 365.25 days."""


def energy_cost(watt: float, table: DecisionTable) -> float:
    """Return what so much power costs over the years; 0 where the table gives none."""
    if table.years is None or table.electricity_price_per_kwh is None:
        return 0.0
    return watt / 1000.0 * HOURS_PER_YEAR * table.years * table.electricity_price_per_kwh


def system_cost(price: FabricPrice, nodes: int, table: DecisionTable) -> SystemCost | None:
    """Return what all nodes cost with a fabric; None without the price of a node: the fabric alone does no work."""
    if table.node_price is None:
        return None
    return SystemCost(
        nodes=nodes * table.node_price,
        fabric=nodes * price.per_node,
        fixed=price.fixed,
        energy=nodes * energy_cost(price.power_per_node_watt + table.node_power_watt, table),
    )


@dataclass(frozen=True)
class Terms:
    """What a decision is made on: the fabrics' names and prices (of those that have one), for how many nodes, the user's table."""

    names: Sequence[str]
    prices: Mapping[str, FabricPrice]
    nodes: int
    table: DecisionTable
    confidence: float

    def per_node(self, name: str) -> float:
        """Return all that a fabric costs, for each node."""
        price = self.prices[name]
        return price.per_node + price.fixed / self.nodes + energy_cost(price.power_per_node_watt, self.table)

    def cost_ratio(self, better: str, other: str) -> float | None:
        """Return one system's cost over the other's; None where they are not known."""
        costs = [
            system_cost(self.prices[name], self.nodes, self.table) if name in self.prices else None
            for name in (better, other)
        ]
        mine, theirs = (None if one is None else one.total for one in costs)
        return mine / theirs if mine and theirs else None


def break_evens(terms: Terms, weighed: Weighed, tests: PairTests, work_tests: PairTests | None) -> list[BreakEven]:
    """Return for every two fabrics where the better one pays: by prices, by the network's share of a job's time, by the weights.

    Prices are for the work that the systems do (`work_tests`); the share of the time is what to know where that cannot be said.
    """
    found: list[BreakEven | None] = []
    for index in range(len(tests.pairs)):
        better, other, _ = _turned(tests, index)
        pair = (terms.names[better], terms.names[other])
        if work_tests is not None and all(name in terms.prices for name in pair):
            *columns, times = _turned(work_tests, index)
            best_first = (terms.names[columns[0]], terms.names[columns[1]])
            found += [_node_price(best_first, times, terms), _fabric_price(best_first, times, terms)]
        found.append(_time(pair, (better, other), weighed, terms))
        found.append(_weight(pair, (better, other), weighed, terms))
    return [one for one in found if one is not None]


def _turned(tests: PairTests, index: int) -> tuple[int, int, Interval]:
    """Return the better one of a pair, the other, and how many times better it is."""
    first, second = tests.pairs[index]
    value, low, high = (float(one[index]) for one in (tests.ratios.ratio, tests.ratios.low, tests.ratios.high))
    if value < 1.0:
        first, second, value, low, high = second, first, 1.0 / value, 1.0 / high, 1.0 / low
    return second, first, Interval(value=value, low=_known(low), high=_known(high))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _node_price(pair: tuple[str, str], times: Interval, terms: Terms) -> BreakEven | None:
    """Return the price of a node above which the better fabric pays; 0 where it does whatever a node costs."""
    mine, theirs = (terms.per_node(name) for name in pair)

    def above(ratio: float | None) -> float | None:
        if ratio is None or ratio <= 1.0:  # it may not be better at all, and then no dearer node makes it pay
            return None
        price = (mine - ratio * theirs) / (ratio - 1.0) - energy_cost(terms.table.node_power_watt, terms.table)
        return max(price, 0.0)

    value = above(times.value)
    if value is None:
        return None
    interval = Interval(value=value, low=above(times.high), high=above(times.low))
    return _of(pair, BreakEvenKind.NODE_PRICE, interval, terms.table.node_price)


def _fabric_price(pair: tuple[str, str], times: Interval, terms: Terms) -> BreakEven | None:
    """Return the price per node below which the better fabric pays; None where no node price is given, or none is low enough."""
    table, price = terms.table, terms.prices[pair[0]]
    if table.node_price is None:
        return None
    node = table.node_price + energy_cost(table.node_power_watt, table)
    rest, theirs = terms.per_node(pair[0]) - price.per_node, terms.per_node(pair[1])

    def below(ratio: float | None) -> float | None:
        return None if ratio is None else max(node * (ratio - 1.0) + ratio * theirs - rest, 0.0)

    value = below(times.value)
    if not value:
        return None
    interval = Interval(value=value, low=below(times.low), high=below(times.high))
    return _of(pair, BreakEvenKind.FABRIC_PRICE, interval, price.per_node)


def _time(pair: tuple[str, str], columns: tuple[int, int], weighed: Weighed, terms: Terms) -> BreakEven | None:
    """Return the share x of a job's time that has to go as the network tests do: 1 / (1 - x + x / r) is then the ratio of costs.

    None without network tests or costs, where the better fabric costs no more, and where even the whole time would not do.
    """
    cost, chosen = terms.cost_ratio(*pair), ~weighed.is_work
    if cost is None or cost <= 1.0 or not chosen.any():
        return None
    ratios = weighed.logs[chosen, columns[0]] - weighed.logs[chosen, columns[1]]
    rows = weighed.shares[chosen] @ ratios / weighed.shares[chosen].sum()
    times = paired_ratios(rows[np.newaxis], terms.confidence)

    def share(ratio: float) -> float | None:
        return None if np.isnan(ratio) or ratio <= cost else (1.0 - 1.0 / cost) / (1.0 - 1.0 / ratio)

    value = share(float(times.ratio[0]))
    if value is None:
        return None
    interval = Interval(value=value, low=share(float(times.high[0])), high=share(float(times.low[0])))
    # The share of the time was given of that on the first fabric.
    return _of(pair, BreakEvenKind.TIME, interval, terms.table.network_share if columns[1] == 0 else None)


def _weight(pair: tuple[str, str], columns: tuple[int, int], weighed: Weighed, terms: Terms) -> BreakEven | None:
    """Return the share of the weight that the tests in which a fabric is better must have; None where all tests agree.

    Within both groups the given weights keep their proportions. Where every test is whole work and costs are known it is where the
    same work costs the same, else where the two are equally good.
    """
    cost = terms.cost_ratio(*pair) if weighed.is_work.all() else None
    ratios = weighed.logs[:, columns[0]] - weighed.logs[:, columns[1]]
    is_ahead = ratios.mean(axis=1) > 0
    if is_ahead.all() or not is_ahead.any():
        return None
    groups = [
        weighed.shares[chosen] @ ratios[chosen] / weighed.shares[chosen].sum() for chosen in (is_ahead, ~is_ahead)
    ]
    offset = 0.0 if cost is None else float(np.log(cost))
    share = share_of_no_difference(groups[0], groups[1], offset, terms.confidence)
    if share is None:
        return None
    kind = BreakEvenKind.LEAD if cost is None else BreakEvenKind.WEIGHT
    interval = Interval(value=share[0], low=share[1], high=share[2])
    ahead = tuple(name_of(key) for key, chosen in zip(weighed.keys, is_ahead, strict=True) if chosen)
    return _of(pair, kind, interval, float(weighed.shares[is_ahead].sum()), ahead)


def _of(
    pair: tuple[str, str], kind: BreakEvenKind, value: Interval, now: float | None, tests: tuple[str, ...] = ()
) -> BreakEven:
    return BreakEven(kind=kind, fabric=pair[0], against=pair[1], value=value, now=now, tests=tests)
