from __future__ import annotations

import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.record.frames import variant
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe


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
