"""The waterfall of a round trip: its stages one below the other, each beginning where the one before ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, Findings
from fabricbench.analysis.findings.stages import (
    Direction,
    Parts,
    StageOnFabric,
)
from fabricbench.chapters.stage_tables import (
    CELL_ROWS,
    STAGE_ROWS,
    time_words,
)
from fabricbench.report.cause_words import stage_words
from fabricbench.report.drawing.axes import TIME_LABELS, colour_channel
from fabricbench.report.drawing.figure import Figure, Panel, Spec, mark, median_note, origin_note, sentences, tooltip
from fabricbench.report.words import (
    cell_words,
    share_words,
)
from fabricbench.table import Table, table

ROW_HEIGHT = 18


def waterfall(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return a panel for each test and fabric: its stages one below the other, each beginning where the one before ends."""
    del is_interactive  # the page needs no other figure than paper
    rows = [row for row in STAGE_ROWS.of(findings) if row.way is Direction.BOTH]
    if not rows:
        return None
    panels = []
    for key in dict.fromkeys(row.key for row in rows):
        bars = {
            one.name: list(_bars([row for row in rows if row.key == key and row.fabric == one.name]))
            for one in findings.fabrics
        }
        longest = max(bar["end"] for of_fabric in bars.values() for bar in of_fabric)
        labels = list(dict.fromkeys(bar["stage"] for of_fabric in bars.values() for bar in of_fabric))
        panels += [
            _panel(findings, key, name, of_fabric, labels, longest) for name, of_fabric in bars.items() if of_fabric
        ]
    cells = CELL_ROWS.of(findings)
    caption = sentences(
        "Bars: what each stage takes of a round trip, there and back together, in the order of the way; each begins where the one "
        "above ends.",
        median_note(
            (row.launches for row in cells), findings.confidence, any(row.median.low is not None for row in rows)
        ),
        origin_note(findings),
    )
    return Figure("stages", "Stages of a round trip", caption, tuple(panels), _figure_table(findings))


def _label(parts: Parts) -> str:
    """Return a stage's name beside its bar, which is narrow on a phone: of several that merge `softirq to wake-up`."""
    return f"{parts[0].value} to {parts[-1].value}" if len(parts) > 2 else stage_words(parts)


def _bars(rows: Sequence[StageOnFabric]) -> Iterator[dict[str, Any]]:
    begin = 0.0
    for row in sorted(rows, key=lambda one: one.place):
        end = begin + row.median.value
        yield {
            "stage": _label(row.parts),
            "fabric": row.fabric,
            "begin": begin,
            "end": end,
            "time": time_words(row.median),
            "share": share_words(row.share),
        }
        begin = end


def _panel(
    findings: Findings, key: CellKey, fabric: str, bars: list[dict[str, Any]], labels: list[str], longest: float
) -> Panel:
    """Return a panel; those of a test share their axis."""
    x: Spec = {
        "field": "begin",
        "type": "quantitative",
        "scale": {"domain": [0, 1.05 * longest], "nice": False},
        "axis": {
            "labelExpr": TIME_LABELS,
            "title": "since the call to send",
            "tickCount": 4,
            "labelOverlap": "greedy",
        },
    }
    y: Spec = {"field": "stage", "type": "nominal", "sort": labels, "title": None, "axis": {"grid": False}}
    encoding = {
        "y": y,
        "x": x,
        "x2": {"field": "end"},
        "color": colour_channel(findings),
        "tooltip": tooltip("stage", "fabric", "time", "share"),
    }
    spec: Spec = {"data": {"values": bars}, "layer": [mark("bar", encoding, opacity=0.9, height={"band": 0.7})]}
    tags = {"layer": key.layer.value, "left": fabric, "right": fabric}
    return Panel(f"{cell_words(key)}, {fabric}", spec, tags, height=ROW_HEIGHT * len(labels) + 6)


def _figure_table(findings: Findings) -> Table:
    """Return what the waterfall shows, a row for each stage of each test and fabric."""
    rows = [
        (
            cell_words(row.key),
            row.fabric,
            stage_words(row.parts),
            time_words(row.median),
            share_words(row.share),
        )
        for row in STAGE_ROWS.of(findings)
        if row.way is Direction.BOTH
    ]
    return table(("Test", "Fabric", "Stage", "Time", "Share"), rows, (3, 4))
