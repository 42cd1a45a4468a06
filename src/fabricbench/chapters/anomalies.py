"""Anomalies of curves over message size: sizes that are slow, jumps that stay, launches in groups; and what lies at these sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from fabricbench.analysis.curves import MeasuredCurve, plain
from fabricbench.analysis.findings import CellKey, CellSummary, Findings, Interval
from fabricbench.analysis.findings.stages import Stage
from fabricbench.analysis.findings.thresholds import Threshold, ThresholdKind
from fabricbench.analysis.headline import sizes_inside
from fabricbench.analysis.material import Material
from fabricbench.analysis.stage_rows import stage_of_excess
from fabricbench.analysis.summary import geometric_mean
from fabricbench.analysis.thresholds import thresholds_between
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, Rows
from fabricbench.model import Metric, Model
from fabricbench.quantity import enumeration
from fabricbench.report.drawing.axes import HAS_INTERVAL, colour_channel, plotted_size, size_channel, value_channel
from fabricbench.report.drawing.figure import (
    MEDIAN,
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    interval_note,
    mark,
    origin_note,
    sentences,
    tooltip,
)
from fabricbench.report.words import (
    counted,
    interval_words,
    p_words,
    probe_words,
    share_interval_words,
    share_words,
    size_words,
    value_words,
)
from fabricbench.statistics.curves import Anomaly, number_of_tests
from fabricbench.table import table

NAME = "anomalies"
METHOD = """
Anomalies of curves over message size: within each launch a size is set against the straight line between its neighbours, or
against lines through two sizes on either side, so that a latency with a cost for each byte, and whatever bends one way only,
is none. Tested over launches by a moderated t (Smyth, 2004) against 3 %, corrected after Holm over all curves of the report:
where all are clean, any is named in at most {error} of reports. Where first packets become full only a message that takes
longer than its parts, or than a larger one, counts. What lies at the same size may have another cause.
"""
MOST_LINES = 4
MOST_ROWS = 20
MOST_PANELS = 6


class AnomalyKind(StrEnum):
    """What an anomaly is."""

    SLOW = "slow"
    """Sizes take longer than those on either side say."""
    JUMP = "jump"
    """Time jumps up between two sizes, and stays up."""
    PARTS = "parts"
    """A message takes longer than its parts, one after the other."""
    DROP = "drop"
    """A message takes longer than a larger one."""
    GROUPS = "groups"
    """Launches fall into two groups at these sizes alone."""
    DRIFT = "drift"
    """Time changes over launches at these sizes alone."""


BETWEEN = (AnomalyKind.JUMP, AnomalyKind.PARTS, AnomalyKind.DROP)


class CurveAnomaly(Model):
    """An anomaly of one curve of one fabric. `key` is that of the cell at `first_bytes`.

    `first_bytes` to `last_bytes` are the sizes that are slow or fall into groups, or those on either side of a jump; it lies
    somewhere between `above_bytes` and `below_bytes`. `excess` is by how much time is longer, relative (0.1: 10 %), of a drift from
    the first launch to the last; `value` what was measured at `last_bytes` (`first_bytes` of a drop), in the metric's unit.
    `slow_launches` are those in the slower group. `p_value` is corrected over all `tests`. `coincides` is what changes by
    design in that range, `to_measure` are sizes that would show where in it the anomaly lies. Where messages were stamped `stage`
    is the one in which slow sizes take longer, by `stage_excess` (ns, there and back).
    """

    fabric: str
    key: CellKey
    kind: AnomalyKind
    first_bytes: int
    last_bytes: int
    above_bytes: int
    below_bytes: int
    excess: Interval
    value: Interval | None
    launches: int
    slow_launches: int | None
    p_value: float
    tests: int
    coincides: tuple[Threshold, ...]
    to_measure: tuple[int, ...]
    stage: tuple[Stage, ...] = ()
    stage_excess: Interval | None = None


ROWS = Rows(NAME, CurveAnomaly)


def find(material: Material) -> Found:
    """Return the anomalies of every curve, the one that costs most first."""
    found = any(anomalies for _, anomalies in material.curves)
    tests = number_of_tests([plain(curve) for curve, _ in material.curves]) if found else 0
    rows = [_row(material, curve, one, tests) for curve, anomalies in material.curves for one in anomalies]
    return {NAME: tuple(sorted(rows, key=lambda row: -abs(row.excess.value)))}


def _row(material: Material, curve: MeasuredCurve, one: Anomaly, tests: int) -> CurveAnomaly:
    confidence = material.confidence
    sizes = [int(size) for size in curve.sizes]
    kind = AnomalyKind(one.kind.value)
    above, below = (
        (one.first, one.last) if kind in BETWEEN else (max(one.first - 1, 0), min(one.last + 1, len(sizes) - 1))
    )
    shown = curve.cells[one.first if kind is AnomalyKind.DROP else one.last]
    stage = _stage(material, curve, one) if kind is AnomalyKind.SLOW else None
    logs = np.array(one.of_launches)
    ratio = geometric_mean(logs, confidence) if logs.size else None
    launches = int(np.count_nonzero(~np.isnan(shown.launch_values)))
    return CurveAnomaly(
        fabric=curve.side.name,
        key=curve.cells[one.first].key,
        kind=kind,
        first_bytes=sizes[one.first],
        last_bytes=sizes[one.last],
        above_bytes=sizes[above],
        below_bytes=sizes[below],
        excess=Interval(value=one.excess, low=None, high=None) if ratio is None else _share(ratio),
        value=geometric_mean(np.log(shown.launch_values), confidence),
        launches=launches,
        slow_launches=sum(one.is_slow) if one.is_slow else None,
        p_value=one.p_value,
        tests=tests,
        to_measure=tuple(
            size
            for low, high in (((one.first, one.last),) if kind in BETWEEN else ((above, one.first), (one.last, below)))
            for size in sizes_inside(sizes[low], sizes[high])
        ),
        stage=() if stage is None else stage[0],
        stage_excess=None if stage is None else stage[1],
        coincides=thresholds_between(curve, sizes[above], sizes[one.last if kind not in BETWEEN else below]),
    )


def _stage(material: Material, curve: MeasuredCurve, one: Anomaly) -> tuple[tuple[Stage, ...], Interval] | None:
    """Return the stage in which slow sizes take longer than those on either side say; None where stamps do not tell."""
    stages = material.stages.get(curve.side.name)
    if stages is None:
        return None
    keys = [cell.key for cell in curve.cells]
    around = keys[one.first - 1], keys[one.last + 1]
    return stage_of_excess(curve.side, stages, keys[one.first : one.last + 1], around, material.confidence)


def _share(ratio: Interval) -> Interval:
    """Return a ratio as what it is above 1."""
    low, high = (None if end is None else end - 1.0 for end in (ratio.low, ratio.high))
    return Interval(value=ratio.value - 1.0, low=low, high=high)


THRESHOLD_WORDS: Mapping[ThresholdKind, str] = {
    ThresholdKind.PAGE: "a page of memory",
    ThresholdKind.INITIAL_WINDOW: "TCP's initial window",
    ThresholdKind.SEND_BUFFER: "the socket's send buffer",
    ThresholdKind.RECEIVE_BUFFER: "the socket's receive buffer",
}


def _threshold(one: Threshold) -> str:
    """Return `the payload of 2 packets (2,896 B)`."""
    if one.kind is ThresholdKind.PACKETS:
        what = f"the payload of {counted(one.number or 1, 'packet')}"
    elif one.kind is ThresholdKind.EAGER_LIMIT:
        what = f"a usual eager limit of {one.library}"
    else:
        what = THRESHOLD_WORDS[one.kind]
    return f"{what} ({size_words(one.bytes)})"


def _stage_words(one: CurveAnomaly) -> str:
    """Return where slow sizes take longer: `400 µs in the switch: delay of the last segment`."""
    if one.stage_excess is None:
        return ""
    # What a row of the switch tells is the last frame's of a message, beside what links and frames before it take.
    named = ": delay of the last segment" if one.stage == (Stage.SWITCH,) else ""
    stage = enumeration([each.value for each in one.stage])
    return f"{value_words(Metric.ROUND_TRIP_TIME, one.stage_excess.value)} of it in {stage}{named}"


def _sizes(one: CurveAnomaly) -> str:
    first, last = size_words(one.first_bytes), size_words(one.last_bytes)
    return first if first == last else f"{first} to {last}"


def _what(one: CurveAnomaly) -> str:
    """Return what is odd in a few words, without by how much."""
    first, last = size_words(one.first_bytes), size_words(one.last_bytes)
    changes = "grows" if one.excess.value > 0 else "falls"
    return {
        AnomalyKind.SLOW: f"{_sizes(one)}: longer than the sizes on either side say",
        AnomalyKind.JUMP: f"between {first} and {last} time jumps up and stays up",
        AnomalyKind.PARTS: f"{last}: longer than {-(-one.last_bytes // one.first_bytes)} times {first}",
        AnomalyKind.DROP: f"{first}: longer than {last}",
        AnomalyKind.GROUPS: f"{_sizes(one)}: {one.slow_launches} of {one.launches} launches are slower here alone",
        AnomalyKind.DRIFT: f"{_sizes(one)}: time {changes} from the first launch to the last, here alone",
    }[one.kind]


def tables(findings: Findings) -> NamedTables:
    """Return the one table: a row for each anomaly, the largest first."""
    found = ROWS.of(findings)
    rows = [
        (
            probe_words(one.key),
            one.fabric,
            _what(one),
            _by(one),
            interval_words(one.key.metric, one.value),
            ", ".join(map(_threshold, one.coincides)),
            _stage_words(one),
            p_words(one.p_value),
            f"{one.launches}",
        )
        for one in found[:MOST_ROWS]
    ]
    columns = ("Curve", "Fabric", "What", "By", "Measured", "There lies", "Stage", "p", "Launches")
    title = "" if len(found) <= MOST_ROWS else f"the {MOST_ROWS} largest of {len(found)}"
    made = table(columns, rows, (3, 4, 7, 8), spare=("Launches", "p", "Measured"), result="By")
    if not any(one.stage for one in found):
        made = made.without(columns.index("Stage"))
    if not any(one.coincides for one in found):
        made = made.without(columns.index("There lies"))
    return [(title, made.without(1) if len(findings.fabrics) == 1 else made)]


def lines(findings: Findings) -> Sequence[str]:
    """Return the largest anomalies, a sentence each, and how many there are."""
    found = ROWS.of(findings)
    several = len(findings.fabrics) > 1
    told = [_line(one, with_fabric=several) for one in found[:MOST_LINES]]
    if found and found[0].to_measure:
        sizes = ", ".join(map(str, sorted({size for one in found[:MOST_LINES] for size in one.to_measure})))
        told.append(f"Sizes in between would show where, in a campaign file: message_bytes = [{sizes}].")
    if len(found) > MOST_LINES:
        told.append(f"{counted(len(found) - MOST_LINES, 'smaller anomaly', 'smaller anomalies')} beside.")
    return told


def sizes_to_measure(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the next step that shows more of the largest anomaly, of the rows of NAME; nothing without one."""
    if not rows or not (one := CurveAnomaly.model_validate(rows[0])).to_measure:
        return ""
    sizes = ", ".join(map(str, one.to_measure))
    return f"sizes around the anomaly at {_sizes(one)} ({probe_words(one.key)}), in a campaign file: message_bytes = [{sizes}]"


def _by(one: CurveAnomaly) -> str:
    """Return `12.1 % (10.2 to 14.0 %)`."""
    return share_interval_words(one.excess) if one.excess.low is not None else share_words(abs(one.excess.value))


def _line(one: CurveAnomaly, *, with_fabric: bool) -> str:
    curve = f"{one.fabric}, {probe_words(one.key)}" if with_fabric else probe_words(one.key)
    by, first, last = _by(one), size_words(one.first_bytes), size_words(one.last_bytes)
    take = "takes" if first == last else "take"
    changes = "grows" if one.excess.value > 0 else "falls"
    told = {
        AnomalyKind.SLOW: f"{_sizes(one)} {take} {by} longer than the sizes on either side say",
        AnomalyKind.JUMP: f"between {first} and {last} time jumps up by {by} and stays up",
        AnomalyKind.PARTS: f"{last} takes {by} longer than {-(-one.last_bytes // one.first_bytes)} times {first}",
        AnomalyKind.DROP: f"{first} takes {by} longer than {last}",
        AnomalyKind.GROUPS: f"at {_sizes(one)}, and there alone, {one.slow_launches} of {one.launches} launches are slower by {by}",
        AnomalyKind.DRIFT: f"at {_sizes(one)}, and there alone, time {changes} by {by} from the first launch to the last",
    }[one.kind]
    there = f"; there lies {' and '.join(map(_threshold, one.coincides))}" if one.coincides else ""
    stage = f"; {_stage_words(one)}" if one.stage else ""
    return f"{curve}: {told}{stage}{there}."


def records(findings: Findings) -> Records:
    """Return the anomalies; what lies there as two lists, of kinds and of sizes."""
    return {
        NAME: [
            one.model_dump(mode="json")
            | {
                "stage": [each.value for each in one.stage],
                "coincides": [each.kind.value for each in one.coincides],
                "coincides_bytes": [each.bytes for each in one.coincides],
            }
            for one in ROWS.of(findings)
        ]
    }


def marked_curves(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the curves that have an anomaly, with a strip where it lies."""
    del is_interactive  # the page needs no other figure than paper
    found = ROWS.of(findings)
    groups: dict[tuple[str, CellKey], list[CurveAnomaly]] = {}
    for one in found:
        groups.setdefault((one.fabric, one.key.curve), []).append(one)
    panels = tuple(
        _panel(findings, [one for one in findings.summaries if one.fabric == fabric and one.key.curve == curve], group)
        for (fabric, curve), group in list(groups.items())[:MOST_PANELS]
    )
    if not panels:
        return None
    rest = f"The {MOST_PANELS} curves with the largest of {len(groups)}." if len(groups) > MOST_PANELS else ""
    caption = sentences(
        "Grey: where an anomaly lies, between these measured sizes.",
        rest,
        interval_note(findings),
        origin_note(findings),
    )
    ((_, behind),) = tables(findings)
    return Figure(NAME, "Curves with anomalies", caption, panels, behind)


def _panel(findings: Findings, summaries: Sequence[CellSummary], group: Sequence[CurveAnomaly]) -> Panel:
    metric = summaries[0].key.metric
    rows: list[dict[str, Any]] = [
        {
            "fabric": one.fabric,
            "size": plotted_size(one.key.message_bytes),
            "message": size_words(one.key.message_bytes),
            "median": interval_words(metric, one.median),
            **one.median.model_dump(),
        }
        for one in summaries
    ]
    x = size_channel([row["size"] for row in rows])
    y = value_channel(metric, [end for row in rows for end in (row["value"], row["low"], row["high"]) if end], MEDIAN)
    strips = [
        {"low": plotted_size(one.above_bytes), "high": plotted_size(one.below_bytes), "anomaly": _what(one)}
        for one in group
    ]
    strip: Spec = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "tooltip": tooltip("anomaly")}
    shared: Spec = {"x": x, "color": colour_channel(findings)}
    layers = [
        mark("rect", strip, rows=strips, opacity=0.18, color=UNDECIDED),
        mark("rule", {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}, keep=[HAS_INTERVAL]),
        mark("line", {**shared, "y": y}, strokeWidth=1.75),
        mark("point", {**shared, "y": y, "tooltip": tooltip("fabric", "message", "median")}, filled=True, size=30),
    ]
    spec: Spec = {"data": {"values": rows}, "layer": layers}
    return Panel(f"{group[0].fabric}: {probe_words(group[0].key)}", spec, {"layer": group[0].key.layer.value})


CHAPTER = Chapter(
    name=NAME,
    title="Anomalies of curves over message size",
    needs="curves of four sizes or more with five launches, and an anomaly on one of them",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    figures={NAME: marked_curves},
    records=records,
    on_page=OnPage(entry="Anomalies of curves"),
)
