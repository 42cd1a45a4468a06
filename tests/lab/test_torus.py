from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricbench.errors import UsageError
from fabricbench.lab.torus import Torus, torus_of


@pytest.mark.parametrize(
    ("nodes", "rows", "columns"), [(2, 1, 2), (4, 2, 2), (6, 2, 3), (7, 1, 7), (12, 3, 4), (16, 4, 4), (200, 10, 20)]
)
def test_a_torus_is_as_square_as_its_number_of_nodes_lets_it(nodes: int, rows: int, columns: int):
    assert torus_of(nodes, None) == Torus(rows=rows, columns=columns)


def test_columns_that_do_not_divide_the_nodes_are_refused_with_those_that_do():
    assert torus_of(8, 8) == Torus(rows=1, columns=8)
    assert torus_of(8, 1) == Torus(rows=8, columns=1)
    with pytest.raises(UsageError, match="8 nodes make no torus of 3 columns") as refused:
        torus_of(8, 3)
    assert "1, 2, 4, 8" in str(refused.value.hint)


def test_a_route_goes_along_the_row_and_then_along_the_column_in_one_direction():
    torus = Torus(rows=3, columns=4)
    assert torus.route(0, 0) == []
    assert torus.route(0, 1) == [0]
    assert torus.route(1, 0) == [1, 2, 3]
    assert torus.route(0, 4) == [12]
    assert torus.route(4, 0) == [12 + 4, 12 + 8]
    assert torus.route(5, 11) == [5, 6, 12 + 7]


def where_it_leads(torus: Torus, segment: int) -> int:
    """The node behind a segment, by what the module says of their numbers."""
    row, column = divmod(segment % torus.nodes, torus.columns)
    if segment < torus.nodes:
        return row * torus.columns + (column + 1) % torus.columns
    return (row + 1) % torus.rows * torus.columns + column


@given(rows=st.integers(1, 6), columns=st.integers(1, 6), data=st.data())
def test_each_segment_of_a_route_begins_where_the_one_before_it_ended(rows: int, columns: int, data: st.DataObject):
    torus = Torus(rows=rows, columns=columns)
    nodes = st.integers(0, torus.nodes - 1)
    source, destination = data.draw(nodes), data.draw(nodes)
    node = source
    for segment in torus.route(source, destination):
        assert segment < torus.segments
        assert segment % torus.nodes == node
        node = where_it_leads(torus, segment)
    assert node == destination


def test_there_and_back_on_one_ring_is_once_around_it():
    torus = Torus(rows=4, columns=4)
    for other in range(1, 4):
        assert len(torus.route(0, other)) + len(torus.route(other, 0)) == 4
    assert len(torus.route(0, 5)) + len(torus.route(5, 0)) == 8
