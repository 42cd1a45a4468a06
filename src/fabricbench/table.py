"""A table of text: one class for commands and reports alike, and how it is written as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabricbench.printable import one_line, shortened

SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"})
"""What Markdown, or the HTML inside it, would take for a sign: names come from people's files."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of text. `numeric` columns are set flush right; of one that `is_published`, no figure is the run's own.

    `undecided` rows name no leader: they are set in grey. `spare` are titles of columns that a narrow terminal goes without, the
    first ones first; of its intervals those of the column `result` go last (default: of the first column that has some).
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    is_published: bool = False
    undecided: frozenset[int] = frozenset()
    spare: tuple[str, ...] = ()
    title: str = ""
    result: str = ""

    def without(self, column: int) -> Table:
        """Return the table without a column that would say the same in every row."""
        return self.only([index for index in range(len(self.columns)) if index != column])

    def only(self, columns: Sequence[int]) -> Table:
        """Return the table with some of its columns, in that order."""
        return replace(
            self,
            columns=tuple(self.columns[index] for index in columns),
            rows=tuple(tuple(row[index] for index in columns) for row in self.rows),
            numeric=frozenset(place for place, index in enumerate(columns) if index in self.numeric),
        )

    def with_cells(self, change: Callable[[str], str]) -> Table:
        """Return the table with every cell and heading changed."""
        rows = tuple(tuple(map(change, row)) for row in self.rows)
        return replace(self, columns=tuple(map(change, self.columns)), rows=rows)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Iterable[int] = (),
    undecided: Iterable[int] = (),
    *,
    spare: Iterable[str] = (),
    title: str = "",
    result: str = "",
) -> Table:
    """Return a table from any sequences; all rows have as many entries as there are columns."""
    return Table(
        tuple(columns),
        tuple(tuple(row) for row in rows),
        frozenset(numeric),
        undecided=frozenset(undecided),
        spare=tuple(spare),
        title=title,
        result=result,
    )


def as_text(content: Table) -> str:
    """Return the table in columns as wide as their longest cell; under a title, which stands above, they are set in."""
    lines = [[one_line(cell) for cell in row] for row in (content.columns, *content.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(content.columns))]

    def set_in_columns(line: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if index in content.numeric else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    if not content.title:
        return "\n".join(map(set_in_columns, lines))
    return "\n".join([content.title, *(f"  {set_in_columns(line)}" for line in lines)])


def as_markdown(content: Table) -> str:
    """Return the table in Markdown, its title as a heading."""
    heading = [f"### {markdown_text(content.title)}", ""] if content.title else []
    return "\n".join([*heading, *markdown_lines(content)])


def markdown_lines(content: Table) -> Iterator[str]:
    """Yield the table's own lines in Markdown."""
    yield "| " + " | ".join(map(markdown_text, content.columns)) + " |"
    marks = ("---:" if index in content.numeric else "---" for index in range(len(content.columns)))
    yield "| " + " | ".join(marks) + " |"
    yield from ("| " + " | ".join(map(markdown_text, row)) + " |" for row in content.rows)


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return shortened(" ".join(text.split())).translate(SPECIAL)


def rows_csv(rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> str:
    """Return rows as CSV under a header: all columns that any row has, or those named; what a row lacks is an empty field."""
    names = list(columns) if columns is not None else list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
