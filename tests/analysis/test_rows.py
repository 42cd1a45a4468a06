"""Which rows the first screen has where neither a ping-pong nor a stream was measured."""

from __future__ import annotations

from fabricbench.analysis.rows import _operations
from fabricbench.model import Layer, Pattern
from fabricbench.record.probe_plan import PlanCongestor
from support.cell_keys import cell_key

CONGESTOR = PlanCongestor(layer=Layer.MPI, pattern=Pattern.INCAST, message_bytes=65536, ranks=(2, 3))


def test_an_operation_beside_a_congestor_is_no_row_though_its_message_is_smaller():
    """It says what a loaded network does, and its chapter shows it beside the same operation alone."""
    alone = cell_key(Layer.MPI, Pattern.ALLREDUCE, 1024, 4)
    beside = cell_key(Layer.MPI, Pattern.ALLREDUCE, 8, 4, congestor=CONGESTOR)
    assert _operations([beside, alone]) == [alone]
    assert _operations([beside]) == []


def test_of_a_pattern_the_smallest_message_of_a_time_is_a_row():
    small, large = (cell_key(Layer.MPI, Pattern.ALLREDUCE, size, 4) for size in (8, 1024))
    assert _operations([large, small]) == [small]
