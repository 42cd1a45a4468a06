"""Pictures are drawn in a child process; whatever becomes of it, they are drawn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabricbench.report.drawing import drawer
from fabricbench.report.drawing.drawer import Drawer

SPEC = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}


@pytest.fixture
def own() -> Iterator[Drawer]:
    made = Drawer()
    yield made
    made.end()


def test_a_child_draws_what_this_process_would(own: Drawer):
    assert own.order("svg", spec=SPEC).text == drawer.TASKS["svg"](spec=SPEC)


def test_what_a_child_that_has_ended_does_not_draw_is_drawn_here(own: Drawer):
    drawn = own.order("svg", spec=SPEC).text
    own.end()
    assert own.order("svg", spec=SPEC).text == drawn


def test_where_no_child_can_be_started_this_process_draws(own: Drawer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawer, "python", lambda _: ["/nowhere/python"])
    assert own.order("svg", spec=SPEC).text.startswith("<svg")


def test_what_cannot_be_drawn_is_said_by_the_engine(own: Drawer):
    with pytest.raises(ValueError, match="Vega"):
        _ = own.order("svg", spec={"mark": "no such mark"}).text
