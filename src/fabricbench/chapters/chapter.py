"""What a chapter of a report is: one matter, what is found of it, and how it is shown.

The file of a chapter has two halves. `find` computes: it takes what the analysis has made of the runs (`analysis.material`) and
returns what was found as models with units in their names. The rest shows: `tables`, `figures` and `lines` take `Findings` and set
text, plots and sentences. They compute no statistics: a test holds them to what `find` leaves in the findings.

`analyse` calls every `find` and keeps what it returns in `Findings.chapters`, by its name, as the rows that they are. The page,
Markdown, terminal, CSV and JSON show every chapter of `chapters.CHAPTERS`, in that order, that has anything to show; they know none
by name. CONTRIBUTING.md adds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.whole import ROW_MODELS
from fabricbench.analysis.material import Material
from fabricbench.model import Model
from fabricbench.report.drawing.figure import Builder
from fabricbench.table import Table

Found = Mapping[str, Sequence[Model] | Model | None]
"""What was found, by name; nothing, an empty sequence or None where the runs hold nothing of it."""
NamedTables = Sequence[tuple[str, Table]]
"""Tables with their titles, which are empty where a chapter has one table only. One without rows is left out."""
Records = Mapping[str, Iterable[Model | Mapping[str, Any]]]
"""Rows at full precision by the name of their CSV file."""
Row = TypeVar("Row", bound=Model)


def no_tables(findings: Findings) -> NamedTables:
    """Return none."""
    del findings
    return ()


def no_lines(findings: Findings) -> Sequence[str]:
    """Return none."""
    del findings
    return ()


@dataclass(frozen=True)
class OnPage:
    """What the HTML page does otherwise than text.

    `entry` is the chapter's name in the contents (its title if empty). `tables` replace the chapter's own, of which the page shows
    those that none of its figures has behind it. `lines` stand on the page alone. A chapter that is not open folds away.
    """

    entry: str = ""
    tables: Callable[[Findings], NamedTables] | None = None
    lines: Callable[[Findings], Sequence[str]] = no_lines
    is_open: bool = True


@dataclass(frozen=True)
class Rows(Generic[Row]):
    """What a chapter finds under one name: rows of one model. Whoever shows them asks this for them."""

    name: str
    kind: type[Row]

    def __post_init__(self) -> None:
        """Say what the rows of that name are, also of findings that are read from a file."""
        ROW_MODELS[self.name] = self.kind

    def of(self, findings: Findings) -> tuple[Row, ...]:
        """Return the rows of findings."""
        return rows_of(findings, self.name, self.kind)

    def first_of(self, findings: Findings) -> Row | None:
        """Return the first row of findings, None where there is none: of what is found once."""
        return next(iter(self.of(findings)), None)


@dataclass(frozen=True)
class Chapter:
    """One chapter. `name` is a short one, `needs` says what a run must hold for it.

    Without anything under the name `about` (default: the chapter's) among what was found, the method says nothing of it.
    """

    name: str
    title: str
    needs: str
    find: Callable[[Material], Found]
    tables: Callable[[Findings], NamedTables]
    lines: Callable[[Findings], Sequence[str]] = no_lines
    """Sentences above the tables."""
    method: str = ""
    """A paragraph with its sources; `{level}`, `{error}` and `{margin}` stand for those of the report."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """Further paragraphs, each on what was found under a name."""
    is_of_measuring: bool = False
    """Whether `method` says how fabricbench measures, so that it is false of what was imported."""
    figures: Mapping[str, Builder] = field(default_factory=dict)
    records: Callable[[Findings], Records] | None = None
    """Default: `rows`, or what was found under the chapter's name."""
    rows: tuple[Rows[Any], ...] = ()
    """What it finds, in the order of its CSV files."""
    about: str = ""
    on_page: OnPage = field(default_factory=OnPage)
    leads: bool = False
    """Whether it stands right after the first screen, before the ladder of layers and the curves over message size."""

    def methods_of(self, found: Found) -> Iterator[str]:
        """Yield its paragraphs on what was found."""
        on = {self.about or self.name: self.method, **self.methods}
        yield from (text for name, text in on.items() if text and found.get(name))

    def records_of(self, findings: Findings) -> Records:
        """Return the rows for CSV files, by their names."""
        if self.records is not None:
            return self.records(findings)
        return {name: findings.chapters.get(name, ()) for name in [one.name for one in self.rows] or [self.name]}

    def tables_with_rows(self, findings: Findings) -> list[tuple[str, Table]]:
        """Return the tables that text formats show."""
        return [(title, content) for title, content in self.tables(findings) if content.rows]


def rows_of(findings: Findings, name: str, kind: type[Row]) -> tuple[Row, ...]:
    """Return the rows that a chapter found under a name, as the models that they were."""
    return tuple(kind.model_validate(row) for row in findings.chapters.get(name, ()))
