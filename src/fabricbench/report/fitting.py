"""How a table fits into the columns of text that there are: what goes, in which order, and how wide each column is. Pure."""

from __future__ import annotations

from dataclasses import replace

from fabricbench.report.words import WithInterval
from fabricbench.table import Table

GAP = 2
"""Blanks between two columns."""


def fitted(content: Table, width: int) -> Table:
    """Return a table that is readable at a width.

    Where it is too wide intervals go, from the left, but for those of the result; then what matters least; then these as well.
    """
    intervals = [
        column
        for column, _ in enumerate(content.columns)
        if any(isinstance(row[column], WithInterval) for row in content.rows)
    ]
    result = content.columns.index(content.result) if content.result else min(intervals, default=-1)
    levels = [column for column in intervals if column != result]
    for column in levels:
        if _wanted_width(content) > width:
            content = _without_intervals(content, column)
    for name in content.spare:
        if _wanted_width(content) > width and name in content.columns:
            gone = content.columns.index(name)
            content, result = content.without(gone), result - (gone < result)
    is_too_wide = _wanted_width(content, may_break=result) > width and result >= 0
    return _without_intervals(content, result) if is_too_wide else content


def _without_intervals(content: Table, column: int) -> Table:
    """Return a table with the values of a column alone."""

    def short(row: tuple[str, ...]) -> tuple[str, ...]:
        cell = row[column]
        return (*row[:column], cell.value, *row[column + 1 :]) if isinstance(cell, WithInterval) else row

    return replace(content, rows=tuple(map(short, content.rows)))


def _wanted_width(content: Table, may_break: int | None = None) -> int:
    """Return the columns of text that a table takes if no cell breaks, or none but in names and words.

    Headings may, between words. `may_break` is the column of the result, if all but numbers and the result may.
    """
    columns = zip(content.columns, *content.rows, strict=True)
    return (
        sum(
            max([0, *map(len, head.split()), *(_least_width(cell, is_whole=is_whole) for cell in cells)]) + GAP
            for index, (head, *cells) in enumerate(columns)
            for is_whole in [may_break is None or index == may_break or index in content.numeric]
        )
        - GAP
    )


def column_widths(content: Table, width: int) -> list[int]:
    """Return the width of each column: what its cells take, less where it is the widest of those whose words may still break."""
    columns = list(zip(content.columns, *content.rows, strict=True))
    words = [max(map(len, head.split()), default=0) for head, *_ in columns]
    least = [
        max([0, word, *(_least_width(cell, is_whole=isinstance(cell, WithInterval)) for cell in cells)])
        for word, (_, *cells) in zip(words, columns, strict=True)
    ]
    widths = [max([word, *map(len, cells)]) for word, (_, *cells) in zip(words, columns, strict=True)]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        slack = [wide - few for wide, few in zip(widths, least, strict=True)]
        if max(slack) <= 0:
            break
        widths[slack.index(max(slack))] -= 1
    return widths


def _least_width(cell: str, *, is_whole: bool) -> int:
    return len(cell) if is_whole else max(map(len, cell.split()), default=0)
