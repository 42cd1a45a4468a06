from __future__ import annotations

import json

import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe
from fabricbench.record.setup import Setup, setup_of, stored_setup, variant


def probe(pattern: Pattern, ranks: int = 2, congestor: PlanCongestor | None = None, **parameters: object) -> PlanProbe:
    return PlanProbe.model_validate(
        {
            "id": 0,
            "layer": Layer.MPI,
            "pattern": pattern,
            "message_bytes": 64,
            "ranks": tuple(range(ranks)),
            "parameters": parameters,
            "congestor": congestor,
        }
    )


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (probe(Pattern.PINGPONG), ""),
        (probe(Pattern.STREAM, 1, kernel="copy"), "copy"),
        (probe(Pattern.STREAM, 1, kernel="triad"), "triad"),
        (probe(Pattern.BURST, messages=8), ""),
        (probe(Pattern.BURST, messages=64), "messages=64"),
        (probe(Pattern.INCAST, 4), "4 ranks"),
        (probe(Pattern.INCAST, 4, flows=1), "4 ranks"),
        (probe(Pattern.BISECTION, 8, seed=7, matchings=16), "8 ranks,matchings=16,seed=7"),
        (probe(Pattern.PUT, sync="lock"), "sync=lock"),
    ],
)
def test_a_variant_names_the_ranks_and_the_parameters_that_are_not_as_usual(cell: PlanProbe, name: str):
    assert variant(cell) == name


def test_a_variant_names_the_congestor():
    congestor = PlanCongestor(layer=Layer.UDP, pattern=Pattern.INCAST, message_bytes=1472, ranks=(5, 2, 3))
    beside = "beside incast udp 1472 B of 3 ranks"
    assert variant(probe(Pattern.PINGPONG, congestor=congestor)) == beside
    many = congestor.model_copy(update={"parameters": {"flows": 16}})
    assert variant(probe(Pattern.RING, 2, many)) == f"2 ranks,{beside} flows=16"


def test_a_variant_names_ranks_that_are_not_the_first_ones():
    assert variant(probe(Pattern.PINGPONG).model_copy(update={"ranks": (0, 3)})) == "ranks 0 3"
    assert variant(probe(Pattern.INCAST).model_copy(update={"ranks": (3, 0, 1)})) == "ranks 3 0 1"


def row(cell: PlanProbe, lost_nodes: tuple[str, ...] = ()) -> dict[str, object]:
    """The columns of a stored cell that tell its setup, as every version has them."""
    return {
        "pattern": cell.pattern.value,
        "ranks": list(cell.ranks),
        "parameters": json.dumps(cell.parameters),
        "congestor": None if cell.congestor is None else cell.congestor.model_dump_json(),
        "lost_nodes": list(lost_nodes),
    }


def test_a_stored_cell_has_the_setup_that_was_planned():
    incast = PlanCongestor(layer=Layer.UDP, pattern=Pattern.INCAST, message_bytes=1472, ranks=(2, 3))
    for cell in (
        probe(Pattern.PINGPONG),
        probe(Pattern.INCAST, 4, flows=16),
        probe(Pattern.PINGPONG, congestor=incast),
        probe(Pattern.NPB, 4, benchmark="IS", **{"class": "W"}),
    ):
        assert stored_setup(row(cell)) == setup_of(cell)
        assert stored_setup(row(cell, ("c3",))) == setup_of(cell, ("c3",)) != setup_of(cell)


def test_what_holds_commas_spaces_and_signs_of_its_own_is_one_parameter_all_the_same():
    one = probe(Pattern.WORKLOAD, 4, workload="hpl, without c3,by=osu", shape="1,mode=blocking 4 ranks")
    setup = setup_of(one)
    assert dict(setup.parameters) == one.parameters
    assert (setup.ranks, setup.lost_nodes) == (4, ())
    assert Setup.model_validate_json(setup.model_dump_json()) == setup


def test_setups_are_sorted_by_their_numbers_and_not_by_their_words():
    many = [setup_of(probe(Pattern.INCAST, ranks, flows=flows)) for ranks, flows in ((16, 1), (4, 16), (4, 2), (4, 1))]
    assert sorted(many, key=lambda one: one.order) == many[::-1]
    assert len({*many, *many}) == len(many)
    mixed = [setup_of(probe(Pattern.WORKLOAD, 4, workload="x", n=value)) for value in ("many", 3)]
    assert sorted(mixed, key=lambda one: one.order) == mixed[::-1]
