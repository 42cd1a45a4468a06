"""What the figures share in encoding fabrics and in letting a reader choose: colours, shapes, dashes, filters, zoom."""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import Findings
from fabricbench.model import Receive
from fabricbench.report.palette import colour_range, fabric_names, shape_range
from fabricbench.report.words import RECEIVE_WORDS

CHOSEN = "indexof(fabrics, datum.fabric) >= 0 && indexof(receives, datum.receive) >= 0"
"""Keeps what the reader chose; the page sets the two parameters, on paper everything is chosen."""
HAS_INTERVAL = "isValid(datum.low)"

DASHES = {"waits": [1, 0], "spins": [5, 3]}
"""Solid where the receiver sleeps or does as its library does, dashed where it spins."""
FEW_POINTS = 2
"""A straight line through no more than these would look like a measured course."""
ZOOM_EVENT = "wheel![event.ctrlKey || event.shiftKey]"
"""A plain wheel scrolls the page, as everywhere else."""
PAN_EVENT = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
"""A finger scrolls the page; a mouse drags the plot."""


def colour_channel(findings: Findings, *, has_legend: bool = False) -> dict[str, Any]:
    """Return the colour channel: the fabric, the same colour everywhere."""
    return _fabric_channel(fabric_names(findings), colour_range(findings), has_legend)


def shape_channel(findings: Findings, *, has_legend: bool = False) -> dict[str, Any]:
    """Return the shape channel: the fabric once more, for print without colour."""
    return _fabric_channel(fabric_names(findings), shape_range(findings), has_legend)


def _fabric_channel(names: list[str], looks: list[str], has_legend: bool) -> dict[str, Any]:
    legend = {"title": None, "orient": "bottom"} if has_legend else None
    return {"field": "fabric", "type": "nominal", "legend": legend, "scale": {"domain": names, "range": looks}}


def dash_channel() -> dict[str, Any]:
    """Return the dash channel: how the receiver waits."""
    scale = {"domain": list(DASHES), "range": list(DASHES.values())}
    return {"field": "dash", "type": "nominal", "legend": None, "scale": scale}


def dash_key(receive: Receive) -> str:
    """Return the dash channel's value for a way to receive."""
    return "spins" if receive is Receive.POLLING else "waits"


def reader_params(findings: Findings) -> list[dict[str, Any]]:
    """Return the parameters that a page sets when the reader chooses; at first, everything."""
    return [
        {"name": "fabrics", "value": fabric_names(findings)},
        {"name": "receives", "value": list(RECEIVE_WORDS.values())},
    ]


def zoom(*channels: str) -> list[dict[str, Any]]:
    """Return a zoom over the named channels: Ctrl or Shift and the wheel zooms, dragging pans, a double click resets."""
    select = {"type": "interval", "encodings": list(channels), "zoom": ZOOM_EVENT, "translate": PAN_EVENT}
    return [{"name": "zoom", "select": select, "bind": "scales"}]


def connection(points: int) -> dict[str, Any]:
    """Return how points are joined: two of them say nothing of what lies between, so that they are hardly joined at all."""
    if points > FEW_POINTS:
        return {"strokeWidth": 1.75}
    return {"strokeWidth": 1.25, "strokeDash": [1, 4], "opacity": 0.6}
