"""All workloads together: what the network is worth to each, over ranks and nodes, and what their work costs.

Ratios are those of the cells (`measured`, `comparing`): the same launches, pairs, verdicts, for times and rates alike. What is
expected of them is `expectation`'s, what else bounds them `limits`'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from fabricbench.analysis.break_evens import system_cost
from fabricbench.analysis.decide import nodes_bought
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.expectation import (
    Launches,
    LoadLaunch,
    expect,
    launches_of,
    network_of,
    ratio_interval,
    traffic_of,
)
from fabricbench.analysis.findings import CellKey, Comparison, WorkloadName
from fabricbench.analysis.findings.loads import LoadExpectation, LoadPrice, LoadRatio, LoadSpeedUp
from fabricbench.analysis.limits import limits_of
from fabricbench.analysis.load_results import OfSides, by_load, over_launches
from fabricbench.analysis.load_subjects import GRID, on_most_ranks, subject_of
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side, ratio_rounding
from fabricbench.analysis.node_sets import blocks_of
from fabricbench.analysis.order_of_gains import MeasuredGain, joint_confidence, leads, settled
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.summary import geometric_mean
from fabricbench.record.decision_table import DecisionTable, prices_of
from fabricbench.statistics.ratios import EXACT
from fabricbench.units import parse_unit

OF_EACH_RANK = frozenset({"hpcg"})
"""Workloads whose size is that of each rank: the work grows with the ranks, and their rate counts it."""
OF_EACH_REPLICA = "training-step"
"""The workload whose step has a batch of each of its replicas, the first number of its grid; its rate counts steps."""
OF_EACH_CLIENT = "shared-data"
"""The workload that moves as many bytes for each client. All its ranks are, but the first where that serves: not of a path."""
SCALING_RULE = "scaling "
"""Begins what the definition of an application says that grows with its ranks (`workload.application`)."""


def named(key: CellKey) -> WorkloadName:
    """Return which workload a cell is; ValueError if it is none."""
    if key.workload is None:
        raise ValueError(f"{key} is no workload")
    return key.workload


def launches_of_all(material: Material) -> OfSides:
    """Return the launches of every workload on every side."""
    return {side.name: launches_of(side) for side in material.sides}


def load_ratios(material: Material, launches: OfSides) -> list[LoadRatio]:
    """Return what the network is worth to each workload, pair by pair, the one that gains most first."""
    cells: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for cell in material.cells:
        if cell.workload is not None and cell.workload.ranks > 1:
            cells[cell.fabric_a, cell.fabric_b].append(cell)
    found: list[LoadRatio] = []
    for pairing in material.pairings:
        of_pair = cells.get((pairing.a.name, pairing.b.name), [])
        if of_pair:
            found += _of_pair(material, pairing, of_pair, launches)
    return found


def _of_pair(material: Material, pairing: Pairing, cells: Sequence[Comparison], launches: OfSides) -> list[LoadRatio]:
    keys = {_key_in(pairing, cell): cell for cell in cells}
    most = on_most_ranks([key for key in keys if key is not None], blocks_of(material.sides))
    void = {key: told for key in most for told in [unequal_work((pairing.a, pairing.b), (key,))] if told}
    # Together they say which fabric is the slower one, so that all ratios have one sense; what is void says nothing.
    is_b_faster = fmean(_gain(keys[key]) for key in most if key not in void) >= 0 if len(void) < len(most) else True
    slower, faster = (pairing.a, pairing.b) if is_b_faster else (pairing.b, pairing.a)
    ordered = sorted(most, key=lambda key: (key in void, -_gain(keys[key]) if is_b_faster else _gain(keys[key])))
    gains = [_gains(pairing, key, is_b_faster=is_b_faster) for key in ordered if key not in void]
    joint = joint_confidence(len(gains), material.confidence)
    nothing = len(ordered) - len(gains)
    of_all = [*leads(gains, joint), *[None] * nothing], [*settled(gains, joint), *[False] * nothing]
    made = []
    for key, lead, is_settled in zip(ordered, *of_all, strict=True):
        cell = keys[key]
        # Of a time b / a is how many times worse B is, of a rate how many times better.
        measured = ratio_interval(cell, is_turned=cell.metric.is_time == is_b_faster)
        expected = None if key in void else _expected(material, pairing, key, launches, slower, faster)
        placed = [(side, launches[side.name].get(key, ())) for side in (slower, faster)]
        made.append(
            LoadRatio(
                load=str(named(key)),
                workload=named(key),
                slower=slower.name,
                faster=faster.name,
                ratio=measured.value,
                low=measured.low,
                high=measured.high,
                verdict=cell.verdict,
                launches=cell.launches,
                lead=lead,
                expectation=expected,
                is_settled=is_settled,
                void="; ".join(void[key]) if key in void else None,
                limits=tuple(limits_of(key, placed, cell.verdict, expected)),
            )
        )
    return made


def _expected(
    material: Material, pairing: Pairing, key: CellKey, launches: OfSides, slower: Side, faster: Side
) -> LoadExpectation | None:
    """Return what bytes let expect of two networks in one run; of one network in two runs, or two conditions, they tell nothing."""
    if not pairing.is_paired or slower.fabric.network == faster.fabric.network:
        return None
    runs = traffic_of(launches[faster.name].get(key, ()), faster.fabric)
    gains = _gains(pairing, key, is_b_faster=faster is pairing.b)
    measured = {} if gains is None else dict(zip(pairing.shared_blocks, map(float, gains.logs), strict=True))
    return expect(
        runs,
        network_of(faster),
        network_of(slower),
        measured,
        material.margin,
        material.confidence,
        rounding=EXACT if gains is None else gains.rounding,
    )


def _key_in(pairing: Pairing, cell: Comparison) -> CellKey | None:
    """Return the key of a compared cell, as both sides have it."""
    key = cell.key
    return key if key in pairing.a.cells and key in pairing.b.cells else None


def _gain(cell: Comparison) -> float:
    """Return the logarithm of how many times better B is."""
    return float(-np.log(cell.ratio) if cell.metric.is_time else np.log(cell.ratio))


def _gains(pairing: Pairing, key: CellKey, *, is_b_faster: bool) -> MeasuredGain | None:
    """Return how many times better the faster fabric is, block by block; None where nothing pairs."""
    if not pairing.is_paired or key not in pairing.keys:
        return None
    b_over_a = pairing.log_ratios(key)
    rounding = ratio_rounding(pairing.a.cells[key], pairing.b.cells[key])
    return MeasuredGain(-b_over_a if key.metric.is_time == is_b_faster else b_over_a, rounding)


def load_speed_ups(material: Material, launches: OfSides) -> list[LoadSpeedUp]:
    """Return how every workload that was run on several numbers of ranks does more on more of them."""
    return by_load(
        one for side in material.sides for one in speed_ups_of(side, launches[side.name], material.confidence)
    )


def speed_ups_of(side: Side, launches: Launches, confidence: float) -> Iterable[LoadSpeedUp]:
    """Yield how the workloads of one side do more on more ranks."""
    subjects: dict[object, list[CellKey]] = defaultdict(list)
    for key in side.cells:
        if key.workload is not None:
            subjects[subject_of(key)].append(key)
    for keys in subjects.values():
        base, *others = sorted(keys, key=lambda one: named(one).ranks)
        fewest = named(base).ranks
        has_rule = any(_has_scaling_rule(one) for one in launches.get(base, ()))
        for key in others:
            ranks = named(key).ranks
            if ranks == fewest:
                continue  # another arrangement of as many ranks
            growth = growth_of_work(named(base), named(key), has_rule=has_rule)
            logs = side.cells[key].log_values - side.cells[base].log_values
            logs = (-logs if key.metric.is_time else logs) + np.log(growth if _counts_no_work(key) else 1.0)
            rounding = ratio_rounding(side.cells[base], side.cells[key])
            times = geometric_mean(logs, confidence, rounding)
            efficiency = geometric_mean(logs - np.log(ranks / fewest), confidence, rounding)
            if times is not None and efficiency is not None:
                yield LoadSpeedUp(
                    load=str(named(key)),
                    workload=named(key),
                    fabric=side.name,
                    ranks=ranks,
                    nodes=nodes_of(launches.get(key, ())),
                    fewest=fewest,
                    is_weak=growth > 1,
                    times=times,
                    efficiency=efficiency,
                    subject=_subject(key),
                )


def _subject(key: CellKey) -> str:
    """Return what a workload is called whatever its ranks: `IS.W`, `hpl, n=2000, nb=192`."""
    if not named(key).name:
        return named(key).short
    _, parameters = subject_of(key)
    own = [f"{name}={value}" for name, value in parameters if name in named(key).own]
    return ", ".join([named(key).short, *own])


def growth_of_work(base: WorkloadName, more: WorkloadName, *, has_rule: bool = False) -> float:
    """Return how many times the work of `base` the same workload does on more ranks; `has_rule`: it grows as they do."""
    if has_rule or base.name in OF_EACH_RANK:
        return more.ranks / base.ranks
    if base.name == OF_EACH_REPLICA:
        few, many = (int(str(one.own[GRID]).partition("x")[0]) for one in (base, more))
        return many / few
    if base.name == OF_EACH_CLIENT:
        servers = 0 if "path" in base.own else 1
        return (more.ranks - servers) / (base.ranks - servers)
    return 1.0


def _counts_no_work(key: CellKey) -> bool:
    """Whether a figure is of one run, however large: a time, or a rate of runs."""
    return key.metric.is_time or named(key).name == OF_EACH_REPLICA


def _has_scaling_rule(one: LoadLaunch) -> bool:
    part = one.launch.summary.workload
    return part is not None and any(what.startswith(SCALING_RULE) for what in part.definition)


def nodes_of(launches: Sequence[LoadLaunch]) -> int | None:
    """Return on how many hosts a workload ran; None where no launch tells."""
    headers = [one.launch.summary.header for one in launches]
    hosts = [len({info.host for info in one.ranks}) for one in headers if one is not None and one.ranks]
    return max(hosts, default=None)


def load_prices(material: Material, launches: OfSides) -> list[LoadPrice]:
    """Return what the work of each workload on its most ranks costs on each fabric: a unit of a rate, or a run an hour of a time.

    Nothing where there is no price of a node: a fabric alone does no work. Nor does a network test, a latency say.
    """
    table = material.decision
    if table is None or table.node_price is None or any(one.run is not material.sides[0].run for one in material.sides):
        return []
    return by_load(
        one
        for side in material.sides
        for key in on_most_ranks(side.cells, blocks_of(material.sides))
        if not named(key).is_network_test
        for one in _prices(material, side, side.cells[key], nodes_of(launches[side.name].get(key, ())), table)
    )


def _prices(
    material: Material, side: Side, cell: CellMeasured, nodes: int | None, table: DecisionTable
) -> Iterable[LoadPrice]:
    prices, currency = prices_of(table, [one.fabric for one in material.sides])
    network = side.fabric.network
    cost = (
        system_cost(prices[network], nodes, table, nodes_bought(table, side)) if nodes and network in prices else None
    )
    if cost is None:
        return
    is_time = cell.key.metric.is_time
    # Of a time: what stands idle for an hour while one run of it is done.
    work = cell.launch_values / 3600e9 if is_time else 1.0 / cell.launch_values
    yield LoadPrice(
        load=str(named(cell.key)),
        workload=named(cell.key),
        fabric=side.name,
        nodes=nodes or 0,
        currency=currency,
        cost=cost.total,
        per=_unit_of_work(named(cell.key)) if is_time else named(cell.key).unit,
        price=over_launches(cost.total * work, material.confidence),
    )


def _unit_of_work(name: WorkloadName) -> str:
    """Return what is done in the time that a workload is judged by, an hour of it: a run, or of `s/step` a step."""
    unit = parse_unit(name.unit)
    return f"{unit.per[0].text if unit is not None and unit.per else 'run'} an hour"
