"""A chapter: how long the launches of each fabric took, from their first line of record to their last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.material import Material
from fabricbench.analysis.summary import interval
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, Rows
from fabricbench.model import Metric, Model
from fabricbench.record.store import StoredLaunch
from fabricbench.report.drawing.axes import HAS_INTERVAL, TIME_LABELS, colour_channel
from fabricbench.report.drawing.figure import Figure, Panel, Spec, mark, origin_note, sentences, tooltip
from fabricbench.report.words import interval_words, value_words
from fabricbench.statistics.order import median_interval
from fabricbench.table import table

NAME = "launch-times"
METHOD = """
A launch takes from the first line of its record to the last, by the clock of rank 0: starting MPI is not in it. Shown is the
median over launches with its {level} interval from order statistics.
"""


class LaunchTime(Model):
    """What the launches of one fabric took, over launches; `time` is in ns."""

    fabric: str
    launches: int
    time: Interval


LAUNCH_TIMES = Rows(NAME, LaunchTime)


def find(material: Material) -> Found:
    """Return the time of each fabric's launches."""
    found = []
    for side in material.sides:
        times = np.array([taken for launch in side.launches if (taken := _time_ns(launch)) is not None])
        if times.size:
            median = interval(median_interval(times, material.confidence))
            found.append(LaunchTime(fabric=side.name, launches=times.size, time=median))
    return {NAME: found}


def _time_ns(launch: StoredLaunch) -> float | None:
    header, footer = launch.summary.header, launch.summary.footer
    return float(footer.finished_unix_ns - header.started_unix_ns) if header and footer else None


def tables(findings: Findings) -> NamedTables:
    """Return the table: a row for each fabric."""
    rows = [
        (one.fabric, str(one.launches), interval_words(Metric.OPERATION_TIME, one.time))
        for one in LAUNCH_TIMES.of(findings)
    ]
    return [("", table(("Fabric", "Launches", "Time of a launch"), rows, (1, 2), spare=("Launches",)))]


def lines(findings: Findings) -> Sequence[str]:
    """Return which fabric's launches took longest."""
    longest = max(LAUNCH_TIMES.of(findings), key=lambda one: one.time.value, default=None)
    if longest is None:
        return ()
    return (
        f"The launches of {longest.fabric} took longest, {value_words(Metric.OPERATION_TIME, longest.time.value)}.",
    )


def launch_times(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the times as points with their intervals."""
    del is_interactive  # the page needs no other figure than paper
    found = LAUNCH_TIMES.of(findings)
    if not found:
        return None
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "axis": {"labelExpr": TIME_LABELS, "title": "time of a launch"},
    }
    y: Spec = {"field": "fabric", "type": "nominal", "title": None}
    rows = [
        {"fabric": one.fabric, **one.time.model_dump(), "time": interval_words(Metric.OPERATION_TIME, one.time)}
        for one in found
    ]
    look = {"y": y, "color": colour_channel(findings)}
    layers = [
        mark("rule", {**look, "x": {**x, "field": "low"}, "x2": {"field": "high"}}, keep=[HAS_INTERVAL]),
        mark("point", {**look, "x": x, "tooltip": tooltip("fabric", "time")}, filled=True),
    ]
    panel = Panel("All fabrics", {"data": {"values": rows}, "layer": layers}, {}, height=24 * len(rows))
    caption = sentences("Medians over launches with their intervals.", origin_note(findings))
    ((_, behind),) = tables(findings)
    return Figure(NAME, "What a launch takes", caption, (panel,), behind)


CHAPTER = Chapter(
    name=NAME,
    title="Times of launches",
    needs="launches that came to their end",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    figures={NAME: launch_times},
)
