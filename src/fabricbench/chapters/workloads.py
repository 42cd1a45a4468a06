"""All workloads in one order: what the network is worth to each, what its bytes let expect, what else bounds it, what it costs.

They are what the reader buys for, so this stands before everything else that was measured. What only some tell of themselves (where
their time went, further figures of merit, what became of a farm's jobs) has tables of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fabricbench.analysis.farms import farms_on_fabrics
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.loads import FarmOfStudy, FarmOnFabric, LoadRatio, PublishedBeside
from fabricbench.analysis.load_results import figure_ratios, figures_on_fabrics, further_figures, loads_on_fabrics
from fabricbench.analysis.loads import launches_of_all, load_prices, load_ratios, load_speed_ups
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, OnPage, Records
from fabricbench.chapters.orders import Gain, order_line
from fabricbench.chapters.workload_figures import speed_up, time_split, workload_ratios
from fabricbench.chapters.workload_tables import (
    FARM_STUDY,
    FARMS,
    FIGURE_RATIOS,
    FIGURES,
    LOADS,
    PRICES,
    PUBLISHED,
    RATIOS,
    SPEED_UPS,
    leader_of,
    short_name,
    times_text,
    workload_tables,
)
from fabricbench.published.farms import published_farm
from fabricbench.published.loads import published_loads
from fabricbench.quantity import enumeration
from fabricbench.report.words import counted
from fabricbench.statistics.proportion import wilson_interval

METHOD = """
Kernels of the NAS Parallel Benchmarks time what their specification times, verify against its values, and count its operations
(NAS-95-020 and the official programs' counts). Other programs are judged by their own figure of merit, as they print it: a time, or
a rate of which more is better. A launch counts with that figure; one whose result fails a check, or of which the figure cannot be
found, is a failed test and counts nowhere. Further figures explain and enter no verdict; one that is 0 or less in any pair has no
ratio.
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
METHOD_OF_FARMS = """
A task farm is many independent jobs; rank 0 gives them out and sends each its input over the fabric, the other ranks run them. Jobs
an hour are the median over launches with its interval; so is the time lost to staging, the share of the slots' time in which a job
could have run and waited for its input; both are of the launches that did a job. Jobs are counted over every launch that came to
its end, also where none was done. The share done has an interval at {level} that does not take the same job in another launch as a
new one: Wilson's (1927) for as many jobs as a launch has, for fewer where launches differ by more than chance (Korn and Graubard
1998: launches are clusters). A farm's time is compared as every other cell is, paired by block, for as many jobs done: it is that
of all jobs at the rate at which a launch did those that it did. A side of which more than a tenth of the jobs failed for good wins
nothing.
"""


def find(material: Material) -> Found:
    """Return everything about workloads; nothing where none was run."""
    farms = farms_on_fabrics(material)
    jobs: Found = {FARMS.name: farms, FARM_STUDY.name: [_farm_of_study(material.confidence)] if farms else []}
    if not any(key.workload is not None for side in material.sides for key in side.cells):
        return jobs
    launches, figures = launches_of_all(material), further_figures(material.sides)
    ratios = load_ratios(material, launches)
    return {
        LOADS.name: loads_on_fabrics(material, launches),
        RATIOS.name: ratios,
        FIGURES.name: figures_on_fabrics(material, figures),
        FIGURE_RATIOS.name: figure_ratios(material, figures),
        SPEED_UPS.name: load_speed_ups(material, launches),
        PRICES.name: load_prices(material, launches),
        PUBLISHED.name: list(_beside(ratios)),
        **jobs,
    }


def _beside(ratios: Sequence[LoadRatio]) -> Iterator[PublishedBeside]:
    """Yield each published workload of a kind that was measured."""
    for one in published_loads():
        same = [ratio for ratio in ratios if not ratio.void and one.is_of(ratio.workload.name, _benchmark(ratio))]
        if same:
            measured = "; ".join(f"{short_name(ratio)}: {times_text(ratio)} with {ratio.faster}" for ratio in same)
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


def _farm_of_study(confidence: float) -> FarmOfStudy:
    farm = published_farm()
    success = wilson_interval(farm.done, farm.jobs, confidence)
    return FarmOfStudy(
        source=farm.source,
        nodes=farm.nodes,
        input_bytes=farm.input_bytes,
        jobs=farm.jobs,
        done=farm.done,
        success=Interval(value=farm.success, low=success.low, high=success.high),
    )


def workload_lines(findings: Findings) -> tuple[str, ...]:
    """Return in sentences which workloads gain most and least, and what the expected ratios are."""
    ratios = [one for one in RATIOS.of(findings) if not one.void]
    lines = [_order_line(list(group)) for _, group in groupby(ratios, lambda one: (one.slower, one.faster))]
    if any(one.expectation is not None for one in ratios):
        lines.append(PREDICTED_NOTE)
    lines.append(_limits_line(ratios))
    lines += _jobs_lines(FARMS.of(findings))
    return tuple(filter(None, lines))


def _order_line(group: Sequence[LoadRatio]) -> str:
    """Return who gains most by the faster network and who least; those whose order is not settled together."""
    gains = [
        Gain(short_name(one, group), one.ratio, leader_of(one) if one.verdict.is_decided else None, one.is_settled)
        for one in group
    ]
    return order_line(gains, group[0].faster, group[0].slower)


def _limits_line(ratios: Sequence[LoadRatio]) -> str:
    """Return what besides the fabrics is in which of the ratios, each bound once; how far stands beside each ratio."""
    of: dict[str, list[LoadRatio]] = {}
    for one in ratios:
        for limit in one.limits:
            of.setdefault(limit.what, []).append(one)
    names = {what: list(dict.fromkeys(short_name(one, ratios) for one in ones)) for what, ones in of.items()}
    told = [f"{what} ({'all' if len(ones) == len(ratios) else enumeration(names[what])})" for what, ones in of.items()]
    return f"Not the fabric's alone: {'; '.join(told)}." if told else ""


def _jobs_lines(rows: Sequence[FarmOnFabric]) -> Iterator[str]:
    """Yield what became of each farm's jobs."""
    for name in dict.fromkeys(one.load for one in rows):
        mine = [one for one in rows if one.load == name]
        is_same = len({one.launches for one in mine}) == 1
        told = [
            f"{one.done:,} done, {one.retried:,} retried"
            + (f", {one.lost:,} failed" if one.lost else "")
            + f" on {one.fabric}"
            + ("" if is_same else f" in {counted(one.launches, 'launch', 'launches')}")
            for one in mine
        ]
        each = f", in {counted(mine[0].launches, 'launch', 'launches')} each" if is_same else ""
        yield f"{name}: {enumeration(told)}{each}."
        for one in mine:
            if one.idle:
                yield f"No job was done in {one.idle} of {counted(one.launches, 'launch', 'launches')} on {one.fabric}."


def _records(findings: Findings) -> Records:
    rows = (RATIOS, FIGURES, FIGURE_RATIOS, SPEED_UPS, PRICES, PUBLISHED, FARMS)
    loads = [one.model_dump(mode="json", exclude={"calls"}) for one in LOADS.of(findings)]
    return {LOADS.name: loads, **{one.name: one.of(findings) for one in rows}}


CHAPTER = Chapter(
    name=LOADS.name,
    title="Workloads",
    needs="workloads: a campaign with [[workload]], [[npb]] or [[farm]]",
    find=find,
    method=METHOD,
    methods={FARMS.name: METHOD_OF_FARMS},
    tables=workload_tables,
    lines=workload_lines,
    figures={RATIOS.name: workload_ratios, "kernel-split": time_split, "speed-up": speed_up},
    records=_records,
    leads=True,
    on_page=OnPage(),
)
