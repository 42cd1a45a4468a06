"""A matrix of so many cells that each is a pixel: an image, with frames drawn over it where something was found.

As marks of their own a million cells would be a document of gigabytes; the numbers are beside it, in a file to save.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.printable import printable
from fabricbench.report.drawing.figure import Spec, mark, tooltip
from fabricbench.report.drawing.heat import NEUTRAL

SHADES = 100
"""Of each colour, to what it is in full."""
NOTHING = "#ffffff"
"""Where there is no value: on the diagonal, say."""
LABELS = 9
"""Names on each axis, about: there is no room for all."""


def raster_spec(
    heat: NDArray[np.float64],
    names: Sequence[str],
    colours: tuple[str, str],
    frames: Sequence[dict[str, Any]],
    x_title: str,
) -> Spec:
    """Return the matrix as an image, coloured by heat from -1 (first colour) over 0 to 1; NaN: no value.

    `frames` are rows with `x`, `x_end`, `y`, `y_end` in cells, how `framed` (`whole`, `dashed`, `dotted`), and what `found`.
    """
    members = len(names)
    step = max(members // LABELS, 1)
    shown = {place: printable(names[place]) for place in range(0, members, step)}
    axis = {"values": list(shown), "labelExpr": f"({json.dumps(shown)})[datum.value]", "grid": False}
    scale = {"domain": [0, members], "nice": False}
    x: Spec = {"field": "x", "type": "quantitative", "scale": scale, "axis": {**axis, "title": x_title}}
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "scale": {**scale, "reverse": True},
        "axis": {**axis, "title": None},
    }
    image = {"url": f"data:image/png;base64,{base64.b64encode(_png(heat, colours)).decode()}"}
    whole: dict[str, Any] = {
        "width": {"expr": "width"},
        "height": {"expr": "height"},
        "align": "left",
        "baseline": "top",
    }
    corner: Spec = {"x": {"value": 0}, "y": {"value": 0}, "url": {"field": "url", "type": "nominal"}}
    layers = [mark("image", corner, rows=[image], aspect=False, smooth=False, **whole)]
    place = {"x": x, "x2": {"field": "x_end"}, "y": y, "y2": {"field": "y_end"}, "tooltip": tooltip("found")}
    for kind, dash in (("whole", [1, 0]), ("dashed", [4, 3]), ("dotted", [1, 2])):
        keep = [f"datum.framed === '{kind}'"]
        look: dict[str, Any] = {"fillOpacity": 0, "style": "frame", "strokeWidth": 1.5, "strokeDash": dash}
        layers.append(mark("rect", place, rows=frames, keep=keep, **look))
    return {"layer": layers}


def _png(heat: NDArray[np.float64], colours: tuple[str, str]) -> bytes:
    """Return a pixel for each cell as a PNG with a palette, whose last colour is that of no value."""
    place = np.nan_to_num(np.rint((np.clip(heat, -1.0, 1.0) + 1.0) * SHADES), nan=2 * SHADES + 1).astype(np.uint8)
    neutral, *full = ([int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (NEUTRAL, *colours))
    share = np.arange(-SHADES, SHADES + 1)[:, None] / SHADES
    shades = np.where(share < 0, full[0], full[1]) * np.abs(share) + np.array(neutral) * (1 - np.abs(share))
    palette = bytes(np.rint(shades).astype(np.uint8).ravel()) + bytes.fromhex(NOTHING[1:])
    lines = np.pad(place, ((0, 0), (1, 0))).tobytes()  # each line begins with how it is filtered: not at all
    rows, columns = heat.shape
    header = columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes((8, 3, 0, 0, 0))
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(name, content) for name, content in parts)


def _part(name: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")
