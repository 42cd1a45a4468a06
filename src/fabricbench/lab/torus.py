"""A torus of rings: its rows and columns, and the segments that a frame crosses from node to node. Pure.

Nodes are numbered row by row. Each has a ring along its row and one along its column, both in one direction only (IEEE 1596's
ringlets), and is followed on each by a segment to the next node. A frame goes along its row to the column of its receiver, then
along that column.
"""

from __future__ import annotations

from math import isqrt

from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.quantity import count


class Torus(Model):
    """How many nodes a torus has down and across."""

    rows: int
    columns: int

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.rows * self.columns

    @property
    def segments(self) -> int:
        """How many segments the rings have: node k is followed by segment k on its row, by `nodes` + k on its column."""
        return 2 * self.nodes

    def route(self, source: int, destination: int) -> list[int]:
        """Return the segments from node to node in their order; none to itself."""
        row, column = divmod(source, self.columns)
        last_row, last_column = divmod(destination, self.columns)
        along_row = ((column + step) % self.columns for step in range((last_column - column) % self.columns))
        along_column = ((row + step) % self.rows for step in range((last_row - row) % self.rows))
        return [
            *(row * self.columns + each for each in along_row),
            *(self.nodes + each * self.columns + last_column for each in along_column),
        ]


def torus_of(nodes: int, columns: int | None) -> Torus:
    """Return the torus of so many nodes: with the columns asked for, else the most square one. Raises UsageError."""
    across = columns or nodes // max(rows for rows in range(1, isqrt(nodes) + 1) if nodes % rows == 0)
    if nodes % across:
        fitting = ", ".join(str(each) for each in range(1, nodes + 1) if nodes % each == 0)
        raise UsageError(
            f"{count(nodes, 'node')} make no torus of {count(across, 'column')}",
            hint=f"columns must divide the number of nodes: {fitting}; without columns= the torus is the most square one",
        )
    return Torus(rows=nodes // across, columns=across)
