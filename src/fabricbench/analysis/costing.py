"""What the systems cost, and where one fabric begins to pay against another. Pure arithmetic over prices and scores.

With p the cost of a node (its energy within), a and b the costs of two fabrics per node (the fixed part and energy spread over the
nodes) and r how many times better the first is, it pays where (p + a) / r < p + b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fabricbench.analysis.findings import BreakEven, BreakEvenKind, Interval, SystemCost
from fabricbench.analysis.weighing import Weighed, name_of
from fabricbench.record.decision_table import DecisionTable, FabricPrice
from fabricbench.statistics.scores import PairTests, share_of_no_difference

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


def break_evens(
    names: Sequence[str],
    tests: PairTests,
    weighed: Weighed,
    prices: Mapping[str, FabricPrice],
    nodes: int,
    table: DecisionTable,
    confidence: float,
) -> list[BreakEven]:
    """Return for every two fabrics where the better one pays: the price of a node, its own price, the share of the weight."""
    found: list[BreakEven | None] = []
    for index, (first, second) in enumerate(tests.pairs):
        ratio = tuple(float(one[index]) for one in (tests.ratios.ratio, tests.ratios.low, tests.ratios.high))
        better, other = second, first
        if ratio[0] < 1.0:
            ratio, better, other = (1.0 / ratio[0], 1.0 / ratio[2], 1.0 / ratio[1]), first, second
        times = Interval(value=ratio[0], low=_known(ratio[1]), high=_known(ratio[2]))
        pair = (names[better], names[other])
        if all(name in prices for name in pair):
            found.append(_node_price(pair, times, prices, nodes, table))
            found.append(_fabric_price(pair, times, prices, nodes, table))
        found.append(_weight(pair, (better, other), weighed, _log_cost_ratio(pair, prices, nodes, table), confidence))
    return [one for one in found if one is not None]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _per_node(price: FabricPrice, nodes: int, table: DecisionTable) -> float:
    """Return all that a fabric costs, for each node."""
    return price.per_node + price.fixed / nodes + energy_cost(price.power_per_node_watt, table)


def _node_price(
    pair: tuple[str, str], times: Interval, prices: Mapping[str, FabricPrice], nodes: int, table: DecisionTable
) -> BreakEven | None:
    """Return the price of a node above which the better fabric pays; 0 where it does whatever a node costs."""
    mine, theirs = (_per_node(prices[name], nodes, table) for name in pair)

    def above(ratio: float | None) -> float | None:
        if ratio is None or ratio <= 1.0:  # it may not be better at all, and then no dearer node makes it pay
            return None
        return max((mine - ratio * theirs) / (ratio - 1.0) - energy_cost(table.node_power_watt, table), 0.0)

    value = above(times.value)
    if value is None:
        return None
    bounds = Interval(value=value, low=above(times.high), high=above(times.low))
    return BreakEven(kind=BreakEvenKind.NODE_PRICE, fabric=pair[0], against=pair[1], value=bounds, now=table.node_price)


def _fabric_price(
    pair: tuple[str, str], times: Interval, prices: Mapping[str, FabricPrice], nodes: int, table: DecisionTable
) -> BreakEven | None:
    """Return the price per node below which the better fabric pays; None where no node price is given, or none is low enough."""
    if table.node_price is None:
        return None
    node = table.node_price + energy_cost(table.node_power_watt, table)
    price = prices[pair[0]]
    rest, theirs = _per_node(price, nodes, table) - price.per_node, _per_node(prices[pair[1]], nodes, table)

    def below(ratio: float | None) -> float | None:
        return None if ratio is None else max(node * (ratio - 1.0) + ratio * theirs - rest, 0.0)

    value = below(times.value)
    if not value:
        return None
    bounds = Interval(value=value, low=below(times.low), high=below(times.high))
    return BreakEven(kind=BreakEvenKind.FABRIC_PRICE, fabric=pair[0], against=pair[1], value=bounds, now=price.per_node)


def _log_cost_ratio(
    pair: tuple[str, str], prices: Mapping[str, FabricPrice], nodes: int, table: DecisionTable
) -> float:
    """Return the logarithm of one system's cost over the other's; 0, performance alone, where they are not known."""
    costs = [system_cost(prices[name], nodes, table) if name in prices else None for name in pair]
    mine, theirs = (None if one is None else one.total for one in costs)
    return float(np.log(mine / theirs)) if mine and theirs else 0.0


def _weight(
    pair: tuple[str, str], columns: tuple[int, int], weighed: Weighed, offset: float, confidence: float
) -> BreakEven | None:
    """Return the share of the weight that the tests in which a fabric is better must have; None where all tests agree.

    Within both groups the given weights keep their proportions.
    """
    ratios = weighed.logs[:, columns[0]] - weighed.logs[:, columns[1]]
    is_ahead = ratios.mean(axis=1) > 0
    if is_ahead.all() or not is_ahead.any():
        return None
    groups = [
        weighed.shares[chosen] @ ratios[chosen] / weighed.shares[chosen].sum() for chosen in (is_ahead, ~is_ahead)
    ]
    share = share_of_no_difference(groups[0], groups[1], offset, confidence)
    if share is None:
        return None
    return BreakEven(
        kind=BreakEvenKind.WEIGHT,
        fabric=pair[0],
        against=pair[1],
        value=Interval(value=share[0], low=share[1], high=share[2]),
        now=float(weighed.shares[is_ahead].sum()),
        tests=tuple(name_of(key) for key, chosen in zip(weighed.keys, is_ahead, strict=True) if chosen),
    )
