"""The trend: how the first screen's tests went over the runs of the same campaign up to this one, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.trend import Trend
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.report import trend as words
from fabricbench.report.drawing.figure import Figure, origin_note, sentences
from fabricbench.report.palette import colour_range, fabric_names
from fabricbench.report.words import cell_words

NAME = "trend"
METHOD = """
Changes over runs are found by E-divisive with a permutation test (Matteson and James, JASA 2014), a value a run, and hold together
over all tests of the trend with {level}; a run's interval is that over its launches.
"""


ROWS = Rows(NAME, Trend)


def find(material: Material) -> Found:
    """Return the trend, where runs of before were given."""
    return {NAME: material.trend}


def _trend_of(findings: Findings) -> Trend | None:
    return ROWS.first_of(findings)


def lines(findings: Findings) -> Sequence[str]:
    """Return what the trend comes to, each change with what else changed then, and which runs are passed over."""
    trend = _trend_of(findings)
    return [] if trend is None else list(_lines(trend))


def _lines(trend: Trend) -> Iterator[str]:
    yield words.headline(trend)
    for series in trend.series:
        for change in series.changes:
            yield f"{words.change_sentence(series, change)}; {'; '.join(words.reasons(series, change))}."
    yield from words.limits(trend)
    yield from (f"Passed over: {line}" for line in words.passed_over(trend))


def tables(findings: Findings) -> NamedTables:
    """Return a row for each test, then the runs of each that changed."""
    trend = _trend_of(findings)
    if trend is None:
        return []
    changed = [one for one in trend.series if one.changes]
    return [("", words.overview(trend)), *((words.series_title(one), words.points_table(one)) for one in changed)]


def trend_figure(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return a panel for each test and fabric: every run with its interval, the levels, the changes."""
    del is_interactive  # the page needs no other figure than paper
    trend = _trend_of(findings)
    if trend is None:
        return None
    caption = sentences(
        "Each point is a run, its line the interval over its launches; grey lines are the levels between changes, dashed lines "
        "the changes.",
        origin_note(findings),
    )
    colours = dict(zip(fabric_names(findings), colour_range(findings), strict=True))
    panels = tuple(
        words.panel(one, f"{cell_words(one.key)} on {one.fabric}", colours[one.fabric])
        for one in trend.series
        if one.points
    )
    return Figure(NAME, "The tests of the first screen over runs", caption, panels, words.overview(trend))


CHAPTER = Chapter(
    name=NAME,
    title="Over runs",
    needs="runs of the same campaign on the same testbed: `report --history FOLDER`",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    figures={NAME: trend_figure},
    on_page=OnPage(entry="Over runs"),
)
