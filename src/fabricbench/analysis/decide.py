"""Which fabric to take: a score over all that the user weighs, what each costs, where it pays, and how sure all that is. Pure.

What counts, `weighing`; the statistics, `statistics.scores`. Before and after a change there is no choice between fabrics, and no
decision. Costs and break-evens are arithmetic over prices and scores: with p the cost of a node (its energy within), a and b the
costs of two fabrics per node (the fixed part and energy spread over the nodes) and r how many times better the first is, it pays
where (p + a) / r < p + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import (
    Basis,
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
from fabricbench.analysis.ranking import places, ranks
from fabricbench.analysis.weighing import Floats, Times, Weighed, name_of, weigh
from fabricbench.quantity import count, enumeration
from fabricbench.record.decision_table import DecisionTable, FabricPrice, prices_of
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Ratios, Rounding, ratios_over_sessions
from fabricbench.statistics.scores import PairTests, chances_of_first, mean_draws, pair_tests, share_of_no_difference

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
        self._sessions = weighed.sessions
        self._is_enough = len(weighed.scores) >= _fewest(weighed)
        self._geometric = pair_tests(weighed.scores, weighed.score_rounding, confidence, weighed.sessions)
        self.times = weighed.times(network_share)
        logs, rounding = (
            (weighed.scores, weighed.score_rounding)
            if self.times is None
            else (weighed.work_scores(self.times), weighed.work_rounding(self.times))
        )
        self.tests = pair_tests(logs, rounding, confidence, weighed.sessions)
        self._first = self._chances(logs, rounding)
        self._cheapest: Floats | None = None
        self.cost_tests = None
        if self.times is not None and costs is not None:
            # Subtracting a constant from each column: what is spent is exact, what was measured keeps its scatter.
            for_money = logs - np.log([one.total / costs[0].total for one in costs])
            self.cost_tests = pair_tests(for_money, rounding, confidence, weighed.sessions)
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

    def _chances(self, logs: Floats, rounding: Rounding) -> Floats | None:
        draws = mean_draws(logs, rounding, sessions=self._sessions) if self._is_enough else None
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
        ratios = ratios_over_sessions(rows, weighed.sessions, confidence, rounding=others.against(first))
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


HOURS_PER_YEAR = 8766.0
"""Of 365.25 days."""


def energy_cost(watt: float, table: DecisionTable) -> float:
    """Return what so much power costs over the years; 0 where the table gives none."""
    if table.years is None or table.electricity_price_per_kwh is None:
        return 0.0
    return watt / 1000.0 * HOURS_PER_YEAR * table.years * table.electricity_price_per_kwh


def system_cost(price: FabricPrice, nodes: int, table: DecisionTable, bought: int) -> SystemCost | None:
    """Return what so many nodes of those that are bought cost with a fabric, each with its part of what is paid once.

    None without the price of a node: the fabric alone does no work.
    """
    if table.node_price is None:
        return None
    return SystemCost(
        nodes=nodes * table.node_price,
        fabric=nodes * price.per_node,
        fixed=price.fixed * nodes / bought,
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
            system_cost(self.prices[name], self.nodes, self.table, self.nodes) if name in self.prices else None
            for name in (better, other)
        ]
        mine, theirs = (None if one is None else one.total for one in costs)
        return mine / theirs if mine and theirs else None


def break_evens(terms: Terms, weighed: Weighed, tests: PairTests, times: Times | None) -> list[BreakEven]:
    """Return for every two fabrics where the better one pays: by prices, by the network's share of a job's time, by the weights.

    Prices are for the work that the systems do, where its `times` are known; the share of the time is what to know where they are
    not.
    """
    found: list[BreakEven | None] = []
    for index in range(len(tests.pairs)):
        better, other, ratio = _turned(tests, index)
        pair = (terms.names[better], terms.names[other])
        if times is not None and all(name in terms.prices for name in pair):
            found += [_node_price(pair, ratio, terms), _fabric_price(pair, ratio, terms)]
        found.append(_time(pair, (better, other), weighed, terms))
        if times is None:
            found.append(_lead(pair, (better, other), weighed, terms))
        elif weighed.is_work.all():
            found.append(_share(pair, (better, other), weighed, times, terms))
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
    rounding = _pair_rounding(weighed, columns, chosen)
    times = ratios_over_sessions(rows, weighed.sessions, terms.confidence, rounding=rounding)

    def share(ratio: float) -> float | None:
        return None if np.isnan(ratio) or ratio <= cost else (1.0 - 1.0 / cost) / (1.0 - 1.0 / ratio)

    value = share(float(times.ratio[0]))
    if value is None:
        return None
    interval = Interval(value=value, low=share(float(times.high[0])), high=share(float(times.low[0])))
    # The share of the time was given of that on the first fabric.
    return _of(pair, BreakEvenKind.TIME, interval, terms.table.network_share if columns[1] == 0 else None)


def _pair_rounding(weighed: Weighed, columns: tuple[int, int], chosen: NDArray[np.bool_]) -> Rounding:
    """Return what the steps of values make of the weighted mean log ratio of two fabrics over the tests that are chosen."""
    weights = weighed.shares[chosen] / weighed.shares[chosen].sum()
    one, other = (weighed.rounding.part((chosen, column)).mean(weights) for column in columns)
    return one.against(other)


def _lead(pair: tuple[str, str], columns: tuple[int, int], weighed: Weighed, terms: Terms) -> BreakEven | None:
    """Return the share of the weight, in the geometric score, from which on a fabric is ahead; None where all tests agree.

    The tests in which it is better must have it. Within both groups the given weights keep their proportions.
    """
    ratios = weighed.logs[:, columns[0]] - weighed.logs[:, columns[1]]
    is_ahead = ratios.mean(axis=1) > 0
    if is_ahead.all() or not is_ahead.any():
        return None
    groups = [
        weighed.shares[chosen] @ ratios[chosen] / weighed.shares[chosen].sum() for chosen in (is_ahead, ~is_ahead)
    ]
    rounding = (_pair_rounding(weighed, columns, is_ahead), _pair_rounding(weighed, columns, ~is_ahead))
    share = share_of_no_difference(groups[0], groups[1], 0.0, terms.confidence, rounding, weighed.sessions)
    return _of_share(pair, BreakEvenKind.LEAD, share, weighed, is_ahead, weighed.shares)


def _share(
    pair: tuple[str, str], columns: tuple[int, int], weighed: Weighed, times: Times, terms: Terms
) -> BreakEven | None:
    """Return the share of the time on the other fabric from which on a fabric pays, or is ahead where costs are not known.

    The tests in which it is better must have it; within both groups times keep their proportions. With x that share, A and B the
    times that the groups take on the fabric as multiples of the other's, x A + (1 - x) B is then one cost over the other.
    """
    ratios = weighed.logs[:, columns[0]] - weighed.logs[:, columns[1]]
    is_ahead = ratios.mean(axis=1) > 0
    if is_ahead.all() or not is_ahead.any():
        return None
    cost, shares = terms.cost_ratio(*pair), times.own[:, columns[1]]
    groups, roundings = [], []
    for chosen in (is_ahead, ~is_ahead):
        own = times.parts[chosen, columns[0]]
        multiple = float(own.sum() / times.parts[chosen, columns[1]].sum())
        off = ratios[chosen] - ratios[chosen].mean(axis=1, keepdims=True)
        groups.append(-multiple * (1.0 - own @ off / own.sum()))
        of_own, of_other = (weighed.rounding.part((chosen, column)).mean(own / own.sum()) for column in columns)
        both = of_own.against(of_other)
        roundings.append(Rounding(np.multiply(both.deviation, multiple), np.multiply(both.bound, multiple)))
    even = -1.0 if cost is None else -1.0 / cost
    share = share_of_no_difference(
        groups[0], groups[1], even, terms.confidence, (roundings[0], roundings[1]), weighed.sessions
    )
    kind = BreakEvenKind.LEAD if cost is None else BreakEvenKind.WEIGHT
    return _of_share(pair, kind, share, weighed, is_ahead, shares)


def _of_share(
    pair: tuple[str, str],
    kind: BreakEvenKind,
    share: tuple[float, float, float] | None,
    weighed: Weighed,
    is_ahead: NDArray[np.bool_],
    shares: Floats,
) -> BreakEven | None:
    if share is None:
        return None
    interval = Interval(value=share[0], low=share[1], high=share[2])
    ahead = tuple(name_of(key) for key, chosen in zip(weighed.keys, is_ahead, strict=True) if chosen)
    return _of(pair, kind, interval, float(shares[is_ahead].sum()), ahead)


def _of(
    pair: tuple[str, str], kind: BreakEvenKind, value: Interval, now: float | None, tests: tuple[str, ...] = ()
) -> BreakEven:
    return BreakEven(kind=kind, fabric=pair[0], against=pair[1], value=value, now=now, tests=tests)
