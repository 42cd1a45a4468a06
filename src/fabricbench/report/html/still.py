"""A panel as a still picture: what a page shows before its script has run, and where none ever does.

Mail previews, stored artifacts of a CI, browsers without JavaScript: all show these; the script draws the same panel again, alive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup

from fabricbench.report.drawing.drawer import DRAWER, Drawing
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


def still(panel: Panel, place: str, *, is_alone: bool) -> Callable[[], Markup]:
    """Have the panel drawn, beside what this process goes on with, and return what waits for it and gives it, as SVG.

    `place` is its element's id, which what it defines inside is named after.
    """
    spec = {
        **_of_first_size(panel.spec),
        "width": min(WIDE if is_alone else WIDTH, panel.widest or WIDE),
        "height": panel.height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {**vega_config(LIGHT), "aria": False},
    }
    drawing, is_svg = _ordered(json.dumps(spec))
    return lambda: _inside(drawing, place) if is_svg else _as_image(drawing)


@lru_cache(maxsize=KEPT)
def _ordered(spec: str) -> tuple[Drawing, bool]:
    """Have a view drawn, and tell whether as SVG; pixels have a white ground of their own, whatever the page's scheme."""
    read = json.loads(spec)
    pixels = read["width"] * read["height"] * PIXELS**2
    if _marks(read) * BYTES_OF_A_MARK > max(pixels * BYTES_OF_A_PIXEL, LEAST_AS_PIXELS):
        return DRAWER.order("png", spec={**read, "background": LIGHT.background}, scale=PIXELS), False
    return DRAWER.order("svg", spec=read), True


def _inside(drawing: Drawing, place: str) -> Markup:
    drawn = LONG_NUMBER.sub(r"\1", SURPLUS.sub("", drawing.text)).replace("<svg ", '<svg aria-hidden="true" ', 1)
    return Markup(OWN_NAME.sub(f"{place}-", drawn))  # noqa: S704 - Vega escapes what it draws


def _as_image(drawing: Drawing) -> Markup:
    return Markup('<img alt="" aria-hidden="true" src="data:image/png;base64,{}">').format(Markup(drawing.text))  # noqa: S704


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
