"""What follows from the parameters that a start declares: keys, combinations, names, columns, options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, ValidationError

from fabricbench.campaign.members import SeatPlan
from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.adapter import Output, Place, Unseated, WorkloadResult
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import (
    Argument,
    Arrangement,
    InName,
    Instead,
    ParametricStart,
    declared,
)
from fabricbench.workload.registry import WORKLOADS
from support.applications import lab_of


class StencilStart(ParametricStart):
    kind: Literal["stencil"] = "stencil"
    arrangement: ClassVar[Arrangement] = Arrangement(("rows", "columns"), lambda ranks: (1, ranks), "ranks", "1x2")
    rows: Annotated[int, Argument("rows of ranks", short="grid")]
    columns: Annotated[int, Argument("columns of ranks", short="grid")]
    points: Annotated[
        int,
        Field(ge=1),
        Argument(
            "points of all ranks",
            instead=Instead("each", int, "points of each rank", lambda each, chosen: each * chosen["ranks"]),
        ),
    ] = 100
    width: Annotated[int, Field(ge=1), Argument("of the halo", key="halo", in_name=InName.UNUSUAL)] = 1
    depth: Annotated[int, Argument("of the halo; as wide where not told", short="deep", like="width")]
    order: Annotated[Literal["rows", "columns"], Argument("of points", in_name=InName.NEVER, is_listed=False)] = "rows"
    tile_bytes: Annotated[
        int | None, Argument("in place of order", instead_of="order", is_listed=False, words=lambda one: f"{one}B")
    ] = None

    @property
    def figure(self) -> FigureOfMerit:
        return FigureOfMerit(name="time", unit="s", better="lower")

    def expected_seconds(self, pace: Pace) -> float:
        del pace
        return 1.0

    def tokens(self, place: Place) -> list[str]:
        return [f"{name}={value}" for name, value in self.options(place).items()]

    def parse(self, output: Output) -> WorkloadResult | None:
        del output
        return None


STENCIL = declared(StencilStart, "for tests")


def starts(**keys: Any) -> list[StencilStart]:
    table = STENCIL.table.model_validate({"kind": "stencil", **keys})
    return [one for one in table.plan(SeatPlan(lab_of(4))) if isinstance(one, StencilStart)]


def test_of_lists_every_combination_is_planned_the_last_one_varying_fastest():
    found = starts(halo=[1, 2], depth=[3, 4], ranks=[2, 4], points=7)
    assert [(one.ranks, one.width, one.depth) for one in found] == [
        (ranks, halo, depth) for ranks in (2, 4) for halo in (1, 2) for depth in (3, 4)
    ]


def test_what_is_not_told_is_its_default_or_as_another_field():
    (one,) = starts(halo=3)
    assert (one.points, one.width, one.depth, one.order) == (100, 3, 3, "rows")


def test_a_key_in_place_of_another_is_computed_from_what_was_chosen_before():
    assert [one.points for one in starts(each=10, ranks=[2, 4])] == [20, 40]


def test_ranks_are_arranged_as_asked_or_as_usual():
    assert [(one.rows, one.columns) for one in starts(ranks=[2, 4])] == [(1, 2), (1, 4)]
    assert [(one.rows, one.columns, one.ranks) for one in starts(grid=["2x2", "2x1", "9x9"])] == [(2, 2, 4), (2, 1, 2)]
    (left_out,) = STENCIL.table.model_validate({"grid": "9x9"}).plan(SeatPlan(lab_of(4)))
    assert isinstance(left_out, Unseated)


def test_names_have_what_tells_cells_apart_and_fields_of_one_short_name_together():
    (one,) = starts()
    assert one.values == {"grid": "1x4", "points": 100, "deep": 1}
    assert one.name == "stencil-grid1x4-points100-deep1.4"
    (wide,) = starts(halo=2)
    assert wide.values["width"] == 2


def test_options_are_those_fields_that_have_a_value(tmp_path: Any):
    (one,) = starts(tile_bytes=8)
    assert one.tokens(Place(tmp_path, lab_of(4).fabrics[0])) == [
        "rows=1",
        "columns=4",
        "points=100",
        "width=1",
        "depth=1",
        "order=rows",
        "tile-bytes=8",
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"each": 1, "points": 1}, "each: it stands in place of points, which is there as well"),
        ({"tile_bytes": 1, "order": "columns"}, "tile_bytes: it stands in place of order"),
        ({"grid": "2x2", "ranks": [4]}, '"2x2" is 4 ranks'),
        ({"grid": "2"}, "needed ranks such as"),
        ({"halo": 0}, "greater than or equal to 1"),
        ({"each": -1}, "greater than or equal to 1"),
        ({"width": 1}, "Extra inputs"),
    ],
)
def test_what_contradicts_itself_is_refused_when_it_is_read(keys: dict[str, Any], said: str):
    with pytest.raises(ValidationError) as refused:
        starts(**keys)
    assert said in str(refused.value)


def test_a_stored_table_is_read_as_it_was():
    table = STENCIL.table.model_validate({"grid": ["2x2"], "halo": [1, 2], "each": 3})
    assert STENCIL.table.model_validate_json(table.model_dump_json()) == table


DECLARED = [name for name, one in WORKLOADS.items() if issubclass(one.start, ParametricStart)]


@pytest.mark.parametrize("kind", DECLARED)
def test_every_key_of_a_kind_stands_in_the_documentation(kind: str):
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "workloads.md").read_text() + (docs / "npb.md").read_text()
    keys = [field.alias or name for name, field in WORKLOADS[kind].table.model_fields.items()]
    assert [key for key in keys if not re.search(rf"\b{re.escape(key)}\b", text)] == []
