"""The trend of tests over runs in words, tables and figures, for every format alike."""

from __future__ import annotations

from datetime import datetime

from fabricbench.analysis.findings import Interval
from fabricbench.analysis.findings.trend import Trend, TrendChange, TrendPoint, TrendSeries
from fabricbench.model import Metric
from fabricbench.quantity import count
from fabricbench.report.drawing.axes import value_channel
from fabricbench.report.drawing.figure import UNDECIDED, Panel, Spec, mark, tooltip
from fabricbench.report.palette import COLOURS
from fabricbench.report.words import NOTHING, cell_words, interval_parts, share_interval_words
from fabricbench.table import Table, table


def headline(trend: Trend) -> str:
    """Return what the trend comes to, in a sentence."""
    changed = sum(bool(one.changes) for one in trend.series)
    runs = len({point.run for one in trend.series for point in one.points})
    if not trend.tested:
        least = 2 * trend.minimum_segment
        return f"Too few runs to look for changes: {least} of a test are the least, and there are {count(runs, 'run')}."
    untested = len(trend.series) - trend.tested
    of = (
        f"{changed} of {count(trend.tested, 'test')} changed"
        if changed
        else f"None of {count(trend.tested, 'test')} is seen to change"
    )
    rest = f"; {untested} more have too few runs to tell" if untested else ""
    return f"{of} over {count(runs, 'run')}{rest}."


def limits(trend: Trend) -> list[str]:
    """Return what the changes say and what they do not, a sentence each."""
    level = f"{(1.0 - trend.confidence) * 100:g} %"
    said = (
        "If nothing changed and no run depended on the one before it, any of these changes would be shown with a probability of "
        f"{level} at most; a change is seen once {trend.minimum_segment} runs follow it, and where it happened is an estimate."
    )
    undated = dict.fromkeys(one.fabric for one in trend.series if any(point.is_dated_by_import for point in one.points))
    of_import = (
        "Imported runs whose texts do not tell when they were measured stand in the order in which they were imported, and their "
        f"dates are those of that ({', '.join(undated)})."
        if undated
        else ""
    )
    return [one for one in (of_import, said if trend.tested else "") if one]


def change_sentence(series: TrendSeries, change: TrendChange) -> str:
    """Return a change in a sentence: `tcp ping-pong, 64 B on fe rose by 4.1 % (3.2 to 5.0 %), slower, between ... and ...`."""
    ratio, first, second = change.ratio, *_days(change.before, change.after)
    where = f"between {first} and {second} ({change.before.run}, {change.after.run})"
    what = f"{cell_words(series.key)} on {series.fabric}"
    if ratio.low is None or ratio.high is None or ratio.low <= 1.0 <= ratio.high:
        level = share_interval_words(_less_one(ratio, 1.0), is_signed=True)
        return f"{what} scattered otherwise, its level by {level}, from {where}"
    is_rise = ratio.value > 1.0
    by = share_interval_words(_less_one(ratio, 1.0 if is_rise else -1.0))
    is_slower = is_rise == series.key.metric.is_lower_better
    return f"{what} {'rose' if is_rise else 'fell'} by {by}, {'slower' if is_slower else 'faster'}, {where}"


def _less_one(ratio: Interval, sign: float) -> Interval:
    """Return by what share a ratio is above 1, or below it where the sign is negative."""
    bounds = [None if one is None else sign * (one - 1.0) for one in (ratio.low, ratio.high)]
    low, high = bounds if sign > 0 else reversed(bounds)
    return Interval(value=sign * (ratio.value - 1.0), low=low, high=high)


def _days(before: TrendPoint, after: TrendPoint) -> tuple[str, str]:
    """Return when two runs began, to the day, or to the minute where that is the same."""
    form = "%Y-%m-%d %H:%M" if before.created.date() == after.created.date() else "%Y-%m-%d"
    return before.created.strftime(form), after.created.strftime(form)


def reasons(series: TrendSeries, change: TrendChange) -> list[str]:
    """Return what the runs around a change tell of it, and what speaks against it, a line each."""
    told = [f"changed between the two: {difference}" for difference in change.differences]
    doubt = (
        f"in doubt: each run resembles the one before it (autocorrelation {series.autocorrelation:.2f}), so that this may be drift"
        if series.autocorrelation is not None
        else ""
    )
    return [
        *(told or ["nothing that the two runs recorded of the fabric and the machines is another"]),
        *filter(None, [doubt]),
    ]


def series_title(series: TrendSeries) -> str:
    """Return what a series is: the test, its fabric, and of which campaign on which testbed."""
    return f"{cell_words(series.key)} on {series.fabric} ({series.campaign} on {series.testbed})"


def overview(trend: Trend) -> Table:
    """Return a row for each series: how many runs, the first and the last value, and how often it changed."""
    rows = [
        (
            cell_words(one.key),
            one.fabric,
            one.campaign,
            one.testbed,
            str(len(one.points)),
            _value(one, one.points[0]) if one.points else NOTHING,
            _value(one, one.points[-1]) if one.points else NOTHING,
            str(len(one.changes)) if len(one.points) >= 2 * trend.minimum_segment else "too few runs",
        )
        for one in trend.series
    ]
    columns = ("test", "fabric", "campaign", "testbed", "runs", "first", "last", "changes")
    return table(columns, rows, (4, 5, 6, 7))


def points_table(series: TrendSeries) -> Table:
    """Return a row for each run of a series; the first run after a change says so."""
    changed = {one.index for one in series.changes}
    rows = [
        (
            point.created.strftime("%Y-%m-%d %H:%M"),
            _value(series, point),
            str(point.launches),
            "changed" if index in changed else "",
            point.run,
        )
        for index, point in enumerate(series.points)
    ]
    return table(("date (UTC)", "value", "launches", "", "run"), rows, (1, 2), title=series_title(series))


def _value(series: TrendSeries, point: TrendPoint) -> str:
    unit = series.unit if series.key.metric is Metric.WORK_RATE else ""
    return str(interval_parts(series.key.metric, point.value, unit))


def passed_over(trend: Trend) -> list[str]:
    """Return which runs are not shown, wholly or in a test, and why, a line each."""
    lines = [f"{one.path}: {one.reason}" for one in trend.passed_over]
    for series in trend.series:
        lines += [
            f"{one.path}: {cell_words(series.key)} on {series.fabric}: {one.reason}" for one in series.passed_over
        ]
    return lines


def panel(series: TrendSeries, title: str = "", colour: str = COLOURS[0]) -> Panel:
    """Return a series drawn over time: each run with its interval, the level of each part, a line at each change.

    `title` is that of the panel; by default it tells the campaign and the testbed as well.
    """
    rows = [
        {
            "when": _moment(point.created),
            "value": point.value.value,
            "low": point.value.low,
            "high": point.value.high,
            "run": point.run,
            "level": _value(series, point),
        }
        for point in series.points
    ]
    ends = [end for point in series.points for end in (point.value.value, point.value.low, point.value.high) if end]
    x: Spec = {
        "field": "when",
        "type": "temporal",
        "scale": {"type": "utc"},
        "axis": {"title": "date (UTC)", "grid": False, "labelOverlap": "greedy"},
    }
    y = value_channel(series.key.metric, ends)
    until = {"x2": {"field": "until"}}
    layers = [
        mark("rule", {"x": x}, rows=_borders(series), color=UNDECIDED, strokeDash=[4, 3]),
        mark("rule", {"x": x, "y": y} | until, rows=_levels(series), color=UNDECIDED, strokeWidth=2),
        mark(
            "rule",
            {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            keep=["isValid(datum.low)"],
            opacity=0.5,
        ),
        mark(
            "point",
            {"x": x, "y": y, "tooltip": tooltip("run", "level")},
            filled=True,
            size=30,
            opacity=1,
            color=colour,
        ),
    ]
    return Panel(title or series_title(series), {"data": {"values": rows}, "layer": layers}, {}, height=180)


def _moment(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


def _borders(series: TrendSeries) -> list[dict[str, object]]:
    """Return where the lines of changes stand: half-way between the two runs."""
    return [
        {"when": _moment(one.before.created + (one.after.created - one.before.created) / 2)} for one in series.changes
    ]


def _levels(series: TrendSeries) -> list[dict[str, object]]:
    """Return the parts between changes, each with its first and last run and its level."""
    starts = [0, *(one.index for one in series.changes)]
    ends = [*starts[1:], len(series.points)]
    return [
        {
            "when": _moment(series.points[start].created),
            "until": _moment(series.points[end - 1].created),
            "value": level,
        }
        for start, end, level in zip(starts, ends, series.levels, strict=True)
    ]
