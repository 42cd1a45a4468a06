"""Tables and other parts of text as a terminal of a width shows them."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable

from fabricbench.printable import PrintableConsole
from fabricbench.report.fitting import GAP, column_widths, fitted
from fabricbench.table import Table

NARROWEST = 60
"""Below this many columns a table is of no use, so it is drawn this wide and wraps."""


def console_of(width: int, *, color: bool) -> Console:
    """Return a console that writes nowhere, for `lines_on`."""
    return PrintableConsole(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )


def table_text(content: Table, width: int) -> str:
    """Return a table as text of so many columns, under its title; what has no room goes: intervals first, then what is spare."""
    whole = max(width, NARROWEST)
    indent = GAP if content.title else 0
    shown = as_rich(fitted(content, whole - indent), whole - indent)
    lines = lines_on(console_of(whole, color=False), [Padding(shown, (0, 0, 0, indent))])
    return "\n".join([*([content.title] if content.title else []), *lines])


def lines_on(console: Console, parts: Sequence[RenderableType]) -> list[str]:
    """Return parts as the lines that a terminal shows."""
    with console.capture() as capture:
        console.print(Group(*parts))
    return [line.rstrip() for line in capture.get().splitlines()] if parts else []


def as_rich(content: Table, width: int) -> RichTable:
    """Return a table that fits into so many columns."""
    table = rich_table(*map(escape, content.columns))
    for index, (column, wide) in enumerate(zip(table.columns, column_widths(content, width), strict=True)):
        column.justify = "right" if index in content.numeric else "left"
        column.width = wide
    for row in content.rows:
        table.add_row(*map(escape, row))
    return table


def rich_table(*columns: str) -> RichTable:
    """Return a table without rows, in the style of all."""
    return RichTable(*columns, box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
