"""The tables of workloads, and the words that they share with the sentences and figures about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.loads import (
    WORKLOADS,
    Agreement,
    FarmOfStudy,
    FarmOnFabric,
    FigureOnFabric,
    FigureRatio,
    LoadExpectation,
    LoadOnFabric,
    LoadPrice,
    LoadRatio,
    LoadSpeedUp,
    PublishedBeside,
)
from fabricbench.chapters.chapter import NamedTables, Rows
from fabricbench.published import published_kernels
from fabricbench.published.kernels import PublishedKernel
from fabricbench.published.loads import published_flops_per_hertz
from fabricbench.quantity import format_bytes, format_seconds
from fabricbench.report.words import (
    NOTHING,
    WithInterval,
    counted,
    outcome_words,
    ratio_words,
    share_interval_words,
    share_words,
    with_bounds,
)
from fabricbench.table import Table, table

LOADS = Rows(WORKLOADS, LoadOnFabric)
RATIOS = Rows("workload-ratios", LoadRatio)
FIGURES = Rows("workload-figures", FigureOnFabric)
FIGURE_RATIOS = Rows("workload-figure-ratios", FigureRatio)
SPEED_UPS = Rows("workload-speed-up", LoadSpeedUp)
PRICES = Rows("workload-prices", LoadPrice)
PUBLISHED = Rows("workload-studies", PublishedBeside)
FARMS = Rows("farms", FarmOnFabric)
FARM_STUDY = Rows("farm_study", FarmOfStudy)
PER_HERTZ = "flops per hertz"
CALLS_SHOWN = 2
RATE_NOTE = "Mop/s are official counts over the time, whatever work a program does: compare times"


def workload_tables(findings: Findings) -> NamedTables:
    """Return all tables of the section with their titles."""
    has_rates = any(one.mops_total is not None for one in LOADS.of(findings))
    return [
        ("What the network is worth to each", ratio_table(findings)),
        ("Times and figures of merit", result_table(findings)),
        (f"Where their time goes{f' ({RATE_NOTE})' if has_rates else ''}", time_table(findings)),
        ("Further figures of merit, as the programs tell them", figure_table(findings)),
        ("How many times better further figures are, which explain", figure_ratio_table(findings)),
        ("Over ranks and nodes", speed_up_table(findings)),
        ("Expected from bytes and messages (predicted)", expectation_table(findings)),
        ("Price of the work", price_table(findings)),
        ("What became of the jobs of farms", farm_table(findings)),
        ("Beside published studies", study_table(findings)),
        ("Linpack per hertz beside the study of SKIF's nodes", per_hertz_table(findings)),
        ("The study of 2000: four nodes with 450 MHz processors, NPB of class A", npb_study_table(findings)),
        ("Published: speech recognition as independent jobs", farm_study_table(findings)),
    ]


READINGS = {
    Agreement.WITHIN: "as expected, within the margin",
    Agreement.NOT_TOLD_APART: "no difference shown",
    Agreement.TURNED: "the other way round: its wire takes longer on the faster fabric",
    Agreement.LESS: "less: overlapped, or bound by processors",
    Agreement.UNKNOWN: "not enough data to tell",
    Agreement.MORE: "more: contention, loss, or messages that wait for each other",
}


def ratio_table(findings: Findings) -> Table:
    """A row for each workload and pair of fabrics, the one that gains most first."""
    ratios = RATIOS.of(findings)
    rows = [
        (
            one.load,
            f"{one.faster} over {one.slower}",
            times_text(one),
            expected_text(one.expectation),
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
        for one in LOADS.of(findings)
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
        for one in SPEED_UPS.of(findings)
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
            times_text(one),
            NOTHING if what.measured_over_expected is None else interval_text(what.measured_over_expected),
            READINGS[what.agreement],
        )
        for one in RATIOS.of(findings)
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
        for one in PRICES.of(findings)
    ]
    return table(("Workload", "Fabric", "Cost", "Price of its work (interval)"), rows, (2, 3))


def study_table(findings: Findings) -> Table:
    """A row for each published workload of a kind that was measured."""
    rows = [(one.what, one.published, one.measured, one.condition, one.source) for one in PUBLISHED.of(findings)]
    columns = ("Study's workload", "Published", "Measured here", "Published under", "Source")
    return table(columns, rows, spare=("Published under",))


def per_hertz_table(findings: Findings) -> Table:
    """A row for each measured Linpack that knows its clock, then the published processors."""
    rows: list[tuple[str, str, str]] = [
        (f"{one.load}, {one.fabric}", figure_words(one.level, ""), "this run")
        for one in FIGURES.of(findings)
        if one.figure == PER_HERTZ
    ]
    if not rows:
        return table((), ())
    rows += [(one.processor, f"{one.flops_per_hertz:g}", one.source) for one in published_flops_per_hertz()]
    return table(("Processor", "Linpack, flop per hertz", "Source"), rows, (1,))


def time_table(findings: Findings) -> Table:
    """A row for each workload of ours on each fabric: where its time went, and the rates of kernels of NPB."""
    found = [one for one in LOADS.of(findings) if one.calls or one.mops_total is not None]
    rows = [
        (
            one.load,
            one.fabric,
            share_words(one.communication_share),
            ", ".join(f"{call} {share_words(share)}" for call, share in list(one.calls.items())[:CALLS_SHOWN])
            or NOTHING,
            rate_words(one.mops_total),
            rate_words(one.mops_per_process),
            NOTHING if one.of_reference is None else f"{one.of_reference:.3g}",
            str(one.launches),
        )
        for one in found
    ]
    columns = (
        "Workload",
        "Fabric",
        "Communication",
        "Most time in",
        "Mop/s total",
        "Mop/s a process",
        "Times the reference",
        "Launches",
    )
    made = table(columns, rows, (2, 4, 5, 6, 7), spare=("Launches",))
    made = made if any(one.of_reference is not None for one in found) else made.without(6)
    return made if any(one.mops_total is not None for one in found) else made.without(5).without(4)


def figure_table(findings: Findings) -> Table:
    """A row for each further figure of merit of each workload on each fabric."""
    rows = [
        (one.load, one.fabric, one.figure, figure_words(one.level, one.unit), str(one.launches))
        for one in FIGURES.of(findings)
    ]
    columns = ("Workload", "Fabric", "Figure of merit", "Median over launches", "Launches")
    return table(columns, rows, (3, 4), spare=("Launches",))


def figure_ratio_table(findings: Findings) -> Table:
    """A row for each further figure of merit of each workload and pair of fabrics: all of them explain, and none is judged."""
    found = FIGURE_RATIOS.of(findings)
    rows = [
        (one.load, one.figure, f"{one.better} over {one.worse}", _factor(one.times), counted(one.launches, "pair"))
        for one in found
    ]
    columns = ("Workload", "Figure of merit", "Of", f"Times better ({findings.confidence * 100:g} % interval)", "n")
    return table(columns, rows, (3, 4), range(len(rows)), spare=("n",))


def farm_table(findings: Findings) -> Table:
    """A row for each farm on each fabric."""
    rows = [
        (
            one.load,
            one.fabric,
            _jobs_per_hour(one.jobs_per_hour),
            f"{one.done:,} of {one.jobs:,}",
            share_interval_words(one.success),
            f"{one.retried:,}",
            f"{one.lost:,}",
            NOTHING if one.staging_share is None else share_interval_words(one.staging_share),
            str(one.launches),
        )
        for one in FARMS.of(findings)
    ]
    columns = ("Farm", "Fabric", "Jobs/h", "Jobs done", "Success", "Retried", "Failed", "Lost to staging", "Launches")
    return table(columns, rows, range(2, 9), spare=("Launches", "Success"))


def farm_study_table(findings: Findings) -> Table:
    """The published farm's figures."""
    rows = [
        (
            one.source,
            str(one.nodes),
            format_bytes(one.input_bytes) if one.input_bytes % 10**6 else f"{one.input_bytes // 10**6} MB",
            f"{one.done:,} of {one.jobs:,}",
            share_interval_words(one.success),
        )
        for one in FARM_STUDY.of(findings)
    ]
    columns = ("Study", "Nodes", "Input of a job", "Jobs done", "Success")
    return Table(columns, tuple(rows), frozenset({1, 2, 3, 4}), is_published=True)


def npb_study_table(findings: Findings) -> Table:
    """The table of the Fast Ethernet and Myrinet study, as it gives it."""
    if not any(one.mops_total is not None for one in LOADS.of(findings)):
        return table((), ())
    rows = [
        (
            f"{one.benchmark}.A on 4 ranks",
            *(number for fabric in one.seconds for number in _study_numbers(one, fabric)),
            f"{one.ratio:.2f}",
        )
        for one in published_kernels()
    ]
    fabrics = list(published_kernels()[0].seconds)
    each = [f"{what}, {fabric}" for fabric in fabrics for what in ("Time", "Mop/s total", "Mop/s a process")]
    return replace(table(("Kernel", *each, "Ratio of times"), rows, range(1, 8)), is_published=True)


def seconds_words(interval: Interval) -> str:
    """Return `12.3 s (12.1 to 12.6)`."""
    return with_bounds(f"{interval.value:.4g} s", interval.low, interval.high, "{:.4g}".format)


def rate_words(value: float | None) -> str:
    """Return a rate in Mop/s, or the sign for nothing."""
    return NOTHING if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def interval_text(interval: Interval) -> str:
    """Return `3.14 (3.05 to 3.20)`."""
    return with_bounds(f"{interval.value:.2f}", interval.low, interval.high, "{:.2f}".format)


def figure_words(level: Interval, unit: str) -> WithInterval:
    """Return `1,014 MFLOP/s (1,002 to 1,020)`."""
    value = f"{_number(level.value)} {unit}".rstrip()
    return with_bounds(value, level.low, level.high, _number)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def short_name(one: LoadRatio, among: Sequence[LoadRatio] = ()) -> str:
    """Return `hpl`, with the parameters by which it is told from others of that name beside it: `hpl n=2000`."""
    if not one.workload.name:
        return one.workload.short or one.load
    others = [other.workload.parameters for other in among if other.workload.name == one.workload.name]
    own = [pair for pair in one.workload.parameters if not all(pair in other for other in others)]
    return " ".join([one.workload.name, *(f"{what}={value}" for what, value in own)])


def leader_of(one: LoadRatio) -> str | None:
    """Return the fabric that is faster or ahead, None where neither is."""
    if one.verdict.leader is None:
        return None
    return one.faster if one.ratio >= 1 else one.slower


def times_text(one: LoadRatio) -> str:
    """Return how many times better a workload is, with its interval; `void` where that is no ratio to believe."""
    if one.void:
        return "void"
    return _factor(Interval(value=one.ratio, low=one.low, high=one.high))


def _factor(factor: Interval) -> WithInterval:
    return ratio_words(factor.value, factor.low, factor.high, is_of_a=False)


def expected_text(what: LoadExpectation | None) -> str:
    """Return the predicted ratio with its mark."""
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


def _study_numbers(one: PublishedKernel, fabric: str) -> tuple[str, str, str]:
    return f"{one.seconds[fabric]:g} s", f"{one.mops_total[fabric]:g}", f"{one.mops_per_process[fabric]:g}"


def _jobs_per_hour(level: Interval | None) -> str:
    if level is None or isnan(level.value):
        return NOTHING
    return with_bounds(f"{level.value:,.0f}", level.low, level.high, "{:,.0f}".format)
