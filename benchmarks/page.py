"""Puts what a benchmark printed into a page of the documentation, between markers that name it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def show(lines: Sequence[str], name: str, page: Path | None) -> None:
    """Print what was found, and put it into the page where one is given."""
    print("\n".join(lines))
    if page is not None:
        write_between_markers(page, name, lines)


def write_between_markers(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what stands between `<!-- NAME -->` and `<!-- /NAME -->`; ValueError where the page has no such place."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = page.read_text()
    head, found_begin, rest = text.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{page} has no place for {name}: give it the lines {begin} and {end}")
    page.write_text("\n".join([f"{head}{begin}", "", *lines, "", f"{end}{tail}"]))
