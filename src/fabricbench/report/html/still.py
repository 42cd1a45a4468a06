"""A panel as a still picture: what a page shows before its script has run, and where none ever does.

Mail previews, stored artifacts of a CI, browsers without JavaScript: all show these; the script draws the same panel again, alive.
"""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache

from markupsafe import Markup

from fabricbench.report.drawing.engine import drawn_png, drawn_svg
from fabricbench.report.drawing.figure import LIGHT, Panel, Spec, vega_config
from fabricbench.report.figures.distributions import ANY_SIZE

WIDTH, WIDE = 300, 620
"""Pixels: of a panel among others, and of one that stands alone. The page scales them down, never up."""
KEPT = 512
"""Pictures kept by one process, a few reports' worth: a panel alike is drawn once."""
SURPLUS = re.compile(
    r' (?:font-family|aria-[a-z]+|role|pointer-events|xmlns:xlink|stroke-miterlimit|version)="[^"]*"'
    r'| opacity="1"|<path class="foreground"[^>]*/>|<path class="background"(?![^>]*fill)[^>]*/>'
)
"""What Vega writes and a page's own style says, or nobody sees: half of the text."""
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")
OWN_NAME = re.compile(r'(?<=id=")(?=(?:clip|gradient)_?\d)|(?<=url\(#)(?=(?:clip|gradient)_?\d)')


BYTES_OF_A_MARK, BYTES_OF_A_PIXEL = 120, 0.8
"""About, in SVG and in PNG: a panel of thousands of points is smaller, and made as fast, as pixels."""
LEAST_AS_PIXELS = 64 * 1024
PIXELS = 1.5
"""Of such a picture for each of the page's."""


def still(panel: Panel, place: str, *, is_alone: bool) -> Markup:
    """Return the panel as SVG; `place` is its element's id, which what it defines inside is named after."""
    spec = {
        **_of_first_size(panel.spec),
        "width": min(WIDE if is_alone else WIDTH, panel.widest or WIDE),
        "height": panel.height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {**vega_config(LIGHT), "aria": False},
    }
    return Markup(OWN_NAME.sub(f"{place}-", _drawn(json.dumps(spec))))  # noqa: S704 - Vega escapes what it draws


@lru_cache(maxsize=KEPT)
def _drawn(spec: str) -> str:
    read = json.loads(spec)
    pixels = read["width"] * read["height"] * PIXELS**2
    if _marks(read) * BYTES_OF_A_MARK > max(pixels * BYTES_OF_A_PIXEL, LEAST_AS_PIXELS):
        return _as_pixels(read)
    drawn = LONG_NUMBER.sub(r"\1", SURPLUS.sub("", drawn_svg(read)))
    return drawn.replace("<svg ", '<svg aria-hidden="true" ', 1)


def _of_first_size(spec: Spec) -> Spec:
    """Return a view without the rows of other message sizes than the one that it shows first, where it has a choice of them."""
    sizes = {ANY_SIZE, *(one["value"] for one in spec.get("params", ()) if one["name"] == "size")}
    if len(sizes) == 1:
        return spec

    def kept(layer: Spec) -> Spec:
        if "data" not in layer:
            return layer
        return {
            **layer,
            "data": {"values": [row for row in layer["data"]["values"] if row.get("bytes", ANY_SIZE) in sizes]},
        }

    return {**spec, "layer": [kept(layer) for layer in spec["layer"]]}


def _marks(spec: Spec) -> int:
    """Return how many rows a view draws, those of its layers among them."""
    return len(spec.get("data", {}).get("values", ())) + sum(map(_marks, spec.get("layer", ())))


def _as_pixels(spec: Spec) -> str:
    """Return a picture on its own white ground, which no scheme of the page's colours changes."""
    image = base64.b64encode(drawn_png({**spec, "background": LIGHT.background}, PIXELS))
    return f'<img alt="" aria-hidden="true" src="data:image/png;base64,{image.decode()}">'
