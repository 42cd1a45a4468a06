"""The numbers that a figure draws, exactly those, as CSV: what lies beside a figure in a paper, so that others can draw it again.

A row is a point, a bar or an interval with all that its marks show of it, in the units of the axes; what only rules how it looks is
left out. `table` of a figure is for readers: it is rounded, and has more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabricbench.report.drawing.axes import OF_SIZES, size_at, unit_of
from fabricbench.report.drawing.figure import Figure, Panel, Spec
from fabricbench.report.words import Shown, badge_words
from fabricbench.table import rows_csv

POSITIONS = ("x", "y")
"""Each has a second end, `x2` and `y2`, on the same axis."""
LOOKS = ("order", "strokeDash", "fillOpacity")
"""Channels that only rule how a mark looks."""
BETWEEN = "+"
"""Between the marks of one row."""
ORIGIN = "numbers of this run"
"""The column that says whether they were measured on hardware; a study's own figures stand beside them in one figure."""


def drawn_csv(figure: Figure, shown: Shown) -> str:
    """Return every row that any panel draws, with its panel, the marks it is drawn as, and where the numbers come from."""
    origin = ", ".join(badge_words(shown)) or "measured"
    rows = [row | {ORIGIN: origin} for panel in figure.panels for row in _rows(panel)]
    columns = dict.fromkeys(name for row in rows for name in row if name != ORIGIN)
    return rows_csv(rows, (*columns, ORIGIN))


def _rows(panel: Panel) -> Iterator[dict[str, Any]]:
    """Yield the rows of a panel, one that several marks are made of once."""
    marks: dict[str, dict[str, None]] = {}
    shown: dict[str, dict[str, Any]] = {}
    for layer in _layers(panel.spec):
        units = _units(layer["encoding"])
        fields = list(dict.fromkeys(_fields(layer["encoding"])))
        for row in _unfolded(layer):
            if all(row.get(name, 0) is not None for name in _placed_by(layer["encoding"])):
                key = json.dumps(row)
                marks.setdefault(key, {})[layer["mark"]["type"]] = None
                for name in fields:
                    if name in row:
                        unit = units.get(name)
                        shown.setdefault(key, {})[name] = size_at(row[name]) if unit == OF_SIZES else row[name]
                        shown[key] |= {f"{name} in": unit} if unit is not None else {}
    for key, row in shown.items():
        yield {"panel": panel.title, "drawn as": BETWEEN.join(marks[key])} | row


def _layers(spec: Spec, data: Spec | None = None) -> Iterator[Spec]:
    """Yield the marks of a view, each with its own data or those of what it is a layer of."""
    data = spec.get("data", data)
    if "layer" in spec:
        for layer in spec["layer"]:
            yield from _layers(layer, data)
    else:
        yield spec | {"data": data}


def _unfolded(layer: Spec) -> Iterator[dict[str, Any]]:
    """Yield the rows of a mark's data; one that holds lists stands for as many rows as these are long."""
    for row in layer["data"]["values"] if layer["data"] else ():
        lists = {name: value for name, value in row.items() if isinstance(value, list)}
        if not lists:
            yield dict(row)
        for values in zip(*lists.values(), strict=True):
            yield row | dict(zip(lists, values, strict=True))


def _fields(encoding: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all that a mark shows, by its place, its colour or the words beside the pointer."""
    for name, channel in encoding.items():
        for part in channel if isinstance(channel, list) else (channel,):
            if "field" in part and name not in LOOKS:
                yield part["field"]


def _placed_by(encoding: Mapping[str, Any]) -> list[str]:
    """Return what a mark cannot be drawn without."""
    channels = (encoding.get(f"{axis}{end}", {}) for axis in POSITIONS for end in ("", "2"))
    return [channel["field"] for channel in channels if "field" in channel]


def _units(encoding: Mapping[str, Any]) -> dict[str, str]:
    """Return the unit of each field that stands on an axis whose labels have one."""
    found: dict[str, str] = {}
    for axis in POSITIONS:
        unit = unit_of((encoding.get(axis, {}).get("axis") or {}).get("labelExpr", ""))
        if unit is not None:
            channels = (encoding[axis], encoding.get(f"{axis}2", {}))
            found |= {channel["field"]: unit for channel in channels if "field" in channel}
    return found
