"""All workloads in one order: what the network is worth to each, what its bytes let expect, what else bounds it, what it costs.

They are what the reader buys for, so this stands before everything else that was measured. What only kernels of NPB, applications
or farms tell of themselves is in chapters of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.loads import (
    Agreement,
    LoadExpectation,
    LoadOnFabric,
    LoadPrice,
    LoadRatio,
    LoadSpeedUp,
    PublishedBeside,
)
from fabricbench.analysis.loads import launches_of_all, load_prices, load_ratios, load_speed_ups, loads_on_fabrics
from fabricbench.analysis.material import Material
from fabricbench.chapters.applications import figure_words
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, rows_of
from fabricbench.chapters.kernels import interval_text, seconds_words
from fabricbench.chapters.orders import Gain, order_line
from fabricbench.published.loads import published_flops_per_hertz, published_loads
from fabricbench.quantity import enumeration, format_seconds
from fabricbench.report.drawing.axes import HAS_INTERVAL, colour_channel, ratio_ticks, shape_channel
from fabricbench.report.drawing.figure import (
    AHEAD_OPACITY,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    mark,
    origin_note,
    ratio_note,
    sentences,
    tooltip,
)
from fabricbench.report.words import (
    NOTHING,
    WithInterval,
    counted,
    outcome_words,
    ratio_words,
    share_words,
    with_bounds,
)
from fabricbench.table import Table, table

NAME, RATIOS, SPEED_UPS, PRICES = "workloads", "workload-ratios", "workload-speed-up", "workload-prices"
PUBLISHED = "workload-studies"
PER_HERTZ = "flops per hertz"
ROW_HEIGHT, LABEL_EXTENT, LABEL_LIMIT = 24, 64, 190

METHOD = """
Workloads stand in one order, by how many times better each is on the faster network on the most ranks that it was run on: times
shorter, or a rate higher. By how much one gains more than the next is the ratio of their gains, paired by block; these intervals
hold together. Speed-up is against the fewest ranks of the same run, efficiency its share of what so many ranks could do; where
the work grows with the ranks (weak), as many times the work in the same time is all.
The expected ratio is PREDICTED from the runs on the faster fabric alone: T their time, B the payload that the busiest host sends
and m the messages of a rank, on average, one after the other, N = 8 B / R + m t what they take on a fabric of payload rate R (line
rate less headers) and t for a message (half the smallest MPI round trip, where this run measured it): (T - N_fast + N_slow) / T,
as if nothing of it were overlapped (Hockney, Parallel Computing 20 (1994)). It is no measurement, and no bound on either side:
overlap makes less of it; queues, loss and messages that wait for each other make more. Its interval is of the scatter of T alone,
at {level}. The measured ratio over the expected one is paired by block, since both share T: "less" and "more" are of intervals of
it, each at {level}, that lie beyond the margin. Of programs that are not ours B is what crossed rank 0's host, and m is not known.
"""
PREDICTED_NOTE = (
    "Expected ratios are PREDICTED from bytes on the faster fabric, and from messages where their number stands beside them, as if "
    "no communication were overlapped and none waited for another: no measurements."
)
READINGS = {
    Agreement.WITHIN: "as expected, within the margin",
    Agreement.NOT_TOLD_APART: "no difference shown",
    Agreement.TURNED: "the other way round: its wire takes longer on the faster fabric",
    Agreement.LESS: "less: overlapped, or bound by processors",
    Agreement.UNKNOWN: "not enough data to tell",
    Agreement.MORE: "more: contention, loss, or messages that wait for each other",
}


def find(material: Material) -> Found:
    """Return everything about workloads together; nothing where none was run."""
    if not any(key.workload is not None for side in material.sides for key in side.cells):
        return {}
    launches = launches_of_all(material)
    ratios = load_ratios(material, launches)
    return {
        NAME: loads_on_fabrics(material, launches),
        RATIOS: ratios,
        SPEED_UPS: load_speed_ups(material, launches),
        PRICES: load_prices(material, launches),
        PUBLISHED: list(_beside(ratios)),
    }


def _beside(ratios: Sequence[LoadRatio]) -> Iterator[PublishedBeside]:
    """Yield each published workload of a kind that was measured."""
    for one in published_loads():
        same = [ratio for ratio in ratios if not ratio.void and one.is_of(ratio.workload.name, _benchmark(ratio))]
        if same:
            measured = "; ".join(f"{_short(ratio)}: {_times(ratio)} with {ratio.faster}" for ratio in same)
            yield PublishedBeside(
                what=one.what,
                published=one.published,
                measured=measured,
                condition=one.condition,
                source=one.source,
            )


def _benchmark(one: LoadRatio) -> str | None:
    found = dict(one.workload.parameters).get("benchmark")
    return None if found is None else str(found)


def ratio_table(findings: Findings) -> Table:
    """A row for each workload and pair of fabrics, the one that gains most first."""
    ratios = rows_of(findings, RATIOS, LoadRatio)
    rows = [
        (
            one.load,
            f"{one.faster} over {one.slower}",
            _times(one),
            _expected(one.expectation),
            NOTHING if one.lead is None else interval_text(one.lead),
            outcome_words(one.verdict, leader, leader, findings.margin),
            "; ".join([*([one.void] if one.void else []), *(each.words for each in one.limits)]) or NOTHING,
            counted(one.launches, "pair"),
        )
        for one in ratios
        for leader in (leader_of(one) or "",)
    ]
    columns = (
        "Workload",
        "Of",
        f"Times better ({findings.confidence * 100:g} % interval, unadjusted)",
        "Expected, predicted",
        "Over the next",
        "Verdict",
        "Bounded by",
        "n",
    )
    undecided = [index for index, one in enumerate(ratios) if one.verdict.leader is None]
    made = table(columns, rows, (2, 3, 4, 7), undecided, spare=("n", "Over the next", "Of"))
    if not any(one.limits or one.void for one in ratios):
        made = made.without(6)
    return made if any(one.expectation is not None for one in ratios) else made.without(3)


def result_table(findings: Findings) -> Table:
    """A row for each workload on each fabric."""
    rows = [
        (
            one.load,
            one.fabric,
            _figure_of_merit(one),
            NOTHING if one.seconds is None else seconds_words(one.seconds),
            share_words(one.communication_share),
            str(one.launches),
        )
        for one in rows_of(findings, NAME, LoadOnFabric)
    ]
    columns = ("Workload", "Fabric", "Figure of merit, median", "Time of a run", "Communication", "Launches")
    return table(columns, rows, (2, 3, 4, 5), spare=("Launches",))


def speed_up_table(findings: Findings) -> Table:
    """A row for each workload on more ranks than its fewest."""
    rows = [
        (
            one.load,
            one.fabric,
            NOTHING if one.nodes is None else str(one.nodes),
            "weak" if one.is_weak else "strong",
            interval_text(one.times),
            f"{one.ranks / one.fewest:g}",
            _share_interval(one.efficiency),
        )
        for one in rows_of(findings, SPEED_UPS, LoadSpeedUp)
    ]
    columns = ("Workload", "Fabric", "Nodes", "Scaling", "Speed-up (interval)", "Of", "Efficiency (interval)")
    return table(columns, rows, (2, 4, 5, 6), spare=("Nodes",))


def expectation_table(findings: Findings) -> Table:
    """A row for each workload of which bytes are known: what they take on each wire, and how the measured ratio lies to that."""
    rows = [
        (
            one.load,
            _payload_words(what.payload_bytes),
            NOTHING if what.messages is None else f"{what.messages:,.0f}",
            f"{format_seconds(what.network_seconds_slower)}; {format_seconds(what.network_seconds_faster)}",
            format_seconds(what.seconds_faster),
            format_seconds(what.expected_seconds_slower),
            _factor(what.ratio),
            _times(one),
            NOTHING if what.measured_over_expected is None else interval_text(what.measured_over_expected),
            READINGS[what.agreement],
        )
        for one in rows_of(findings, RATIOS, LoadRatio)
        for what in (one.expectation,)
        if what is not None
    ]
    columns = (
        "Workload",
        "Busiest host sends",
        "Messages",
        "On the wires, slower; faster",
        "Measured on the faster",
        "Predicted on the slower",
        "Predicted ratio",
        "Measured ratio",
        "Measured over predicted",
        "Measured is",
    )
    seconds = ("On the wires, slower; faster", "Measured on the faster", "Predicted on the slower")
    return table(columns, rows, range(1, 9), spare=("Messages", *seconds))


def price_table(findings: Findings) -> Table:
    """A row for each workload on each fabric with a price."""
    rows = [
        (
            one.load,
            one.fabric,
            f"{one.cost:,.0f} {one.currency} ({counted(one.nodes, 'node')})",
            f"{_money(one.price)} {one.currency} per {one.per}",
        )
        for one in rows_of(findings, PRICES, LoadPrice)
    ]
    return table(("Workload", "Fabric", "Cost", "Price of its work (interval)"), rows, (2, 3))


def study_table(findings: Findings) -> Table:
    """A row for each published workload of a kind that was measured."""
    rows = [
        (one.what, one.published, one.measured, one.condition, one.source)
        for one in rows_of(findings, PUBLISHED, PublishedBeside)
    ]
    columns = ("Study's workload", "Published", "Measured here", "Published under", "Source")
    return table(columns, rows, spare=("Published under",))


def per_hertz_table(findings: Findings) -> Table:
    """A row for each measured Linpack that knows its clock, then the published processors."""
    results = findings.applications.results if findings.applications is not None else ()
    rows: list[tuple[str, str, str]] = [
        (f"{one.application}, {one.fabric}", figure_words(one.level, ""), "this run")
        for one in results
        if one.figure == PER_HERTZ
    ]
    if not rows:
        return table((), ())
    rows += [(one.processor, f"{one.flops_per_hertz:g}", one.source) for one in published_flops_per_hertz()]
    return table(("Processor", "Linpack, flop per hertz", "Source"), rows, (1,))


def workload_tables(findings: Findings) -> NamedTables:
    """Return all tables of the section with their titles."""
    return [
        ("What the network is worth to each", ratio_table(findings)),
        ("Times and figures of merit", result_table(findings)),
        ("Over ranks and nodes", speed_up_table(findings)),
        ("Expected from bytes and messages (predicted)", expectation_table(findings)),
        ("Price of the work", price_table(findings)),
        ("Beside published studies", study_table(findings)),
        ("Linpack per hertz beside the study of SKIF's nodes", per_hertz_table(findings)),
    ]


def workload_lines(findings: Findings) -> tuple[str, ...]:
    """Return in sentences which workloads gain most and least, and what the expected ratios are."""
    ratios = [one for one in rows_of(findings, RATIOS, LoadRatio) if not one.void]
    lines = [_order_line(list(group)) for _, group in groupby(ratios, lambda one: (one.slower, one.faster))]
    if any(one.expectation is not None for one in ratios):
        lines.append(PREDICTED_NOTE)
    lines.append(_limits_line(ratios))
    return tuple(filter(None, lines))


def _order_line(group: Sequence[LoadRatio]) -> str:
    """Return who gains most by the faster network and who least; those whose order is not settled together."""
    gains = [
        Gain(_short(one, group), one.ratio, leader_of(one) if one.verdict.is_decided else None, one.is_settled)
        for one in group
    ]
    return order_line(gains, group[0].faster, group[0].slower)


def _limits_line(ratios: Sequence[LoadRatio]) -> str:
    """Return what besides the fabrics is in which of the ratios, each bound once; how far stands beside each ratio."""
    of: dict[str, list[LoadRatio]] = {}
    for one in ratios:
        for limit in one.limits:
            of.setdefault(limit.what, []).append(one)
    told = [
        f"{what} ({'all' if len(ones) == len(ratios) else enumeration(list(dict.fromkeys(_short(one, ratios) for one in ones)))})"
        for what, ones in of.items()
    ]
    return f"Not the fabric's alone: {'; '.join(told)}." if told else ""


def _short(one: LoadRatio, among: Sequence[LoadRatio] = ()) -> str:
    """Return `hpl`, with the parameters by which it is told from others of that name beside it: `hpl n=2000`."""
    if not one.workload.name:
        known = one.workload.own
        return ".".join(str(known[name]) for name in ("benchmark", "class") if name in known) or one.load
    others = [other.workload.parameters for other in among if other.workload.name == one.workload.name]
    own = [pair for pair in one.workload.parameters if not all(pair in other for other in others)]
    return " ".join([one.workload.name, *(f"{what}={value}" for what, value in own)])


def leader_of(one: LoadRatio) -> str | None:
    """Return the fabric that is faster or ahead, None where neither is."""
    if one.verdict.leader is None:
        return None
    return one.faster if one.ratio >= 1 else one.slower


def _times(one: LoadRatio) -> str:
    if one.void:
        return "void"
    return _factor(Interval(value=one.ratio, low=one.low, high=one.high))


def _factor(factor: Interval) -> WithInterval:
    return ratio_words(factor.value, factor.low, factor.high, is_of_a=False)


def _expected(what: LoadExpectation | None) -> str:
    return NOTHING if what is None else _factor(what.ratio).after("predicted ")


def _figure_of_merit(one: LoadOnFabric) -> str:
    """Return what a workload is judged by, with its value: also where that rounds to the time that stands beside it."""
    return figure_words(one.level, one.unit).after(f"{one.figure}: ")


def _payload_words(payload_bytes: float) -> str:
    """Return bytes to three digits, as what a wire carries is written: `20.1 MB`."""
    unit, factor = next((one for one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if payload_bytes >= one[1]), ("B", 1.0))
    return f"{payload_bytes / factor:.3g} {unit}"


def _share_interval(share: Interval) -> str:
    if share.low is None or share.high is None:
        return share_words(share.value)
    return with_bounds(share_words(share.value), share.low, share.high, share_words)


def _money(price: Interval) -> str:
    if price.low is None or price.high is None:
        return f"{price.value:,.4g}"
    return with_bounds(f"{price.value:,.4g}", price.low, price.high, "{:,.4g}".format)


def workload_ratios(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return how many times better each workload is, measured and predicted, the one that gains most on top."""
    del is_interactive
    ratios = [one for one in rows_of(findings, RATIOS, LoadRatio) if not one.void]
    if not ratios:
        return None
    groups = [(pair, list(group)) for pair, group in groupby(ratios, lambda one: (one.slower, one.faster))]
    panels = tuple(_panel(findings, pair, group, _ends(ratios)) for pair, group in groups)
    has_expected = any(one.expectation is not None for one in ratios)
    rests_on = ratio_note(findings, (one.launches for one in ratios))
    caption = sentences(
        "How many times better on the faster fabric; 1: the network makes no difference. Filled: faster; paler: ahead, perhaps by "
        "less than matters; hollow and grey: equivalent, or not enough data.",
        "Upright strokes: PREDICTED from bytes and messages as if nothing were overlapped." if has_expected else "",
        rests_on,
        origin_note(findings),
    )
    title = "What the network is worth to each workload"
    return Figure(RATIOS, title, caption, panels, ratio_table(findings), rests_on=rests_on)


def _ends(ratios: Sequence[LoadRatio]) -> list[float]:
    measured = [end for one in ratios for end in (one.ratio, one.low, one.high) if end]
    return measured + [one.expectation.ratio.value for one in ratios if one.expectation is not None]


def _panel(findings: Findings, pair: tuple[str, str], group: Sequence[LoadRatio], ends: Sequence[float]) -> Panel:
    slower, faster = pair
    rows = [
        {
            "workload": one.load
            if (short := _short(one, group)) == one.load
            else f"{short}, {counted(one.workload.ranks, 'rank')}",
            "load": one.load,
            "value": one.ratio,
            "low": one.low,
            "high": one.high,
            "ratio": _times(one),
            "verdict": outcome_words(one.verdict, leader, leader, findings.margin),
            "fabric": leader,
            "strength": 1.0 if one.verdict.is_decided else AHEAD_OPACITY if one.verdict.is_ahead else 0.0,
            "expected": None if one.expectation is None else one.expectation.ratio.value,
            "predicted": _expected(one.expectation),
            "bounded by": "; ".join(each.words for each in one.limits) or NOTHING,
        }
        for one in group
        for leader in (leader_of(one) or "",)
    ]
    domain = min(0.95, *ends) / 1.03, max(1.05, *ends) * 1.03
    scale: Spec = {"type": "log", "domain": list(domain), "nice": False}
    axis: Spec = {"title": "times better", "values": ratio_ticks(*domain), "labelOverlap": "greedy", "format": ".4~g"}
    x: Spec = {"field": "value", "type": "quantitative", "scale": scale, "axis": axis}
    labels: Spec = {"grid": False, "minExtent": LABEL_EXTENT, "labelLimit": LABEL_LIMIT}
    names = list(dict.fromkeys(str(row["workload"]) for row in rows))
    y: Spec = {"field": "workload", "type": "nominal", "sort": names, "title": None, "axis": labels}
    strength: Spec = {"field": "strength", "type": "quantitative", "scale": None, "legend": None}
    look: Spec = {"condition": {**colour_channel(findings), "test": "datum.fabric !== ''"}, "value": UNDECIDED}
    shape: Spec = {"condition": {**shape_channel(findings), "test": "datum.fabric !== ''"}, "value": "diamond"}
    hint = tooltip("load", "ratio", "predicted", "verdict", "bounded by")
    one_line = {"x": {"datum": 1.0, "type": "quantitative", "scale": scale}}
    layers = [
        mark("rule", one_line, rows=[{}], strokeDash=[3, 3], opacity=0.6),
        mark(
            "tick",
            {"y": y, "x": {**x, "field": "expected"}, "tooltip": hint},
            keep=["isValid(datum.expected)"],
            thickness=2,
        ),
        mark(
            "rule",
            {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": look},
            keep=[HAS_INTERVAL],
            strokeWidth=1.5,
        ),
        mark(
            "point",
            {"y": y, "x": x, "tooltip": hint, "fill": look, "stroke": look, "shape": shape, "fillOpacity": strength},
            size=55,
            strokeWidth=1.5,
            opacity=1,
        ),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    return Panel(f"{faster} over {slower}", spec, {}, height=ROW_HEIGHT * len(names) + 6)


def _records(findings: Findings) -> Records:
    return {name: findings.chapters.get(name, ()) for name in (NAME, RATIOS, SPEED_UPS, PRICES, PUBLISHED)}


CHAPTER = Chapter(
    name=NAME,
    title="Workloads",
    needs="workloads: a campaign with [[workload]] or [[npb]]",
    find=find,
    method=METHOD,
    tables=workload_tables,
    lines=workload_lines,
    figures={RATIOS: workload_ratios},
    records=_records,
    leads=True,
    # The figure has what the network is worth to each behind it.
    on_page=OnPage(),
)
