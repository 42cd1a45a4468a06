"""Applications: their own figures of merit on each fabric, and how many times better on which."""

from __future__ import annotations

from fabricbench.analysis.applications import find_applications
from fabricbench.analysis.findings import ApplicationRatio, Findings, Interval
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, Records
from fabricbench.report.words import NOTHING, counted, outcome_words, share_words
from fabricbench.table import Table, table

METHOD = """
Applications are judged by their own figure of merit, as they print it: a time, or a rate of which more is better. A launch counts
with that figure; one whose result fails a check, or of which the figure cannot be found, is a failed test and counts nowhere.
Further figures explain and enter no verdict.
"""


def find(material: Material) -> Found:
    """Return the figures of merit of every application; nothing where none was run."""
    sides, pairings, cells = material.sides, material.pairings, material.cells
    return {"applications": find_applications(sides, pairings, cells, material.confidence)}


def application_table(findings: Findings) -> Table:
    """A row for each figure of merit of each application on each fabric."""
    results = findings.applications.results if findings.applications is not None else ()
    rows = [
        (
            f"{one.application}",
            one.fabric,
            one.figure,
            figure_words(one.level, one.unit),
            share_words(one.communication_share) if one.is_primary else NOTHING,
            str(one.launches),
        )
        for one in results
    ]
    columns = ("Application", "Fabric", "Figure of merit", "Median over launches", "Communication", "Launches")
    return table(columns, rows, (3, 4, 5), spare=("Launches",))


def application_ratio_table(findings: Findings) -> Table:
    """A row for each figure of merit of each application and pair of fabrics."""
    ratios = findings.applications.ratios if findings.applications is not None else ()
    rows = [
        (
            f"{one.application}",
            one.figure,
            f"{one.better} over {one.worse}",
            _times(one),
            "explains" if one.verdict is None else outcome_words(one.verdict, one.better, one.better, findings.margin),
            counted(one.launches, "pair"),
        )
        for one in ratios
    ]
    times = f"Times better ({findings.confidence * 100:g} % interval, unadjusted)"
    undecided = [index for index, one in enumerate(ratios) if one.verdict is None or one.verdict.leader is None]
    columns = ("Application", "Figure of merit", "Of", times, "Verdict", "n")
    return table(columns, rows, (3, 5), undecided, spare=("n",))


def application_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    return [
        ("What the network is worth to each", application_ratio_table(findings)),
        ("Figures of merit, as the programs tell them", application_table(findings)),
    ]


def figure_words(level: Interval, unit: str) -> str:
    """Return `1,014 MFLOP/s (1,002 to 1,020)`."""
    value = f"{_number(level.value)} {unit}"
    if level.low is None or level.high is None:
        return f"{value} (no interval)"
    return f"{value} ({_number(level.low)} to {_number(level.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _times(one: ApplicationRatio) -> str:
    bounds = "no interval" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"
    return f"{one.times:.3f} ({bounds})"


def _records(findings: Findings) -> Records:
    found = findings.applications
    return {} if found is None else {"applications": found.results, "application-ratios": found.ratios}


CHAPTER = Chapter(
    name="applications",
    title="Applications",
    needs="applications: a campaign with [[workload]]",
    find=find,
    method=METHOD,
    tables=application_tables,
    records=_records,
)
