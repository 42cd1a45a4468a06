"""What a system costs, and where the better of two fabrics pays: by prices, shares of the time, weights. Pure.

Arithmetic over prices and scores: with p the cost of a node (its energy within), a and b the costs of two fabrics per node (the
fixed part and energy spread over the nodes) and r how many times better the first is, it pays where (p + a) / r < p + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import BreakEven, BreakEvenKind, Interval, SystemCost
from fabricbench.analysis.weighing import Floats, Times, Weighed, name_of
from fabricbench.record.decision_table import DecisionTable, FabricPrice
from fabricbench.statistics.ratios import Rounding, ratios_over_sessions
from fabricbench.statistics.scores import PairTests, share_of_no_difference

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
    times = ratios_over_sessions(rows, weighed.sessions, terms.confidence, rounding, weighed.fitted(*columns))

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
    share = share_of_no_difference(
        groups[0], groups[1], 0.0, terms.confidence, rounding, weighed.sessions, weighed.fitted(*columns)
    )
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
    rounding, fitted = (roundings[0], roundings[1]), weighed.fitted(*columns)
    share = share_of_no_difference(groups[0], groups[1], even, terms.confidence, rounding, weighed.sessions, fitted)
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
