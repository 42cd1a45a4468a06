"""Curves: medians joined by a line, their intervals as bands and strokes, the launches behind them; of fabrics or of any series.

A row has `value`, `low` and `high`, and `is course`: whether its curve has points enough for a line through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabricbench.report.drawing.axes import FEW_POINTS, HAS_INTERVAL, connection
from fabricbench.report.drawing.figure import Spec, mark

LAUNCH_LOOK: dict[str, Any] = {"size": 5, "opacity": 0.9, "clip": True}
"""Launches stand behind the medians, and do not stretch the axes where one of them is far off."""
IS_COURSE = "datum['is course']"


@dataclass(frozen=True)
class CourseChannels:
    """The channels of curves: places, what tells curves apart by looks, and what stands beside the pointer."""

    x: Spec
    y: Spec
    colour: Spec
    shape: Spec
    dash: Spec
    detail: Spec
    """What else tells curves apart."""
    hint: Sequence[Spec]

    @property
    def ends(self) -> Spec:
        """From the lower end of an interval to the upper one."""
        return {"x": self.x, "color": self.colour, "y": {**self.y, "field": "low"}, "y2": {"field": "high"}}


def course_layers(
    of: CourseChannels, launches: Sequence[Mapping[str, Any]], points: int, keep: Sequence[str] = ()
) -> list[Spec]:
    """Return the layers of curves with so many points, which have their rows from the view; `launches` are rows of their own."""
    shared: Spec = {"x": of.x, "color": of.colour}
    point: Spec = {**shared, "y": of.y, "shape": of.shape, "tooltip": list(of.hint)}
    line: Spec = {**shared, "y": of.y}
    return [
        mark("area", {**of.ends, "detail": of.detail}, keep=[*keep, HAS_INTERVAL], opacity=0.18),
        mark("rule", of.ends, keep=[*keep, HAS_INTERVAL], strokeWidth=1),
        mark("line", {**line, "strokeDash": of.dash}, keep=[*keep, IS_COURSE], **connection(points)),
        mark("line", {**line, "detail": of.detail}, keep=[*keep, f"!{IS_COURSE}"], **connection(FEW_POINTS)),
        *([mark("point", line, rows=launches, keep=keep, filled=True, **LAUNCH_LOOK)] if launches else []),
        mark("point", point, keep=[*keep, HAS_INTERVAL], filled=True, size=34, opacity=1),
        mark("point", point, keep=[*keep, f"!{HAS_INTERVAL}"], filled=False, size=34, strokeWidth=1.5, opacity=1),
    ]
