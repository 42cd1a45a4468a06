"""`fabricbench trend`: each test's value over the runs in a folder, and where it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.trend import Trend
from fabricbench.analysis.trend import find_trend
from fabricbench.cli.output import check_output, share_option, write_output
from fabricbench.cli.searching import (
    CampaignPattern,
    FabricPattern,
    HostPattern,
    RunsFolder,
    SinceOption,
    UntilOption,
    search_of,
)
from fabricbench.errors import UsageError
from fabricbench.record.past_runs import past_runs
from fabricbench.record.run_search import is_any_of
from fabricbench.report import trend as words
from fabricbench.report.html.trend import render_trend
from fabricbench.report.words import cell_words
from fabricbench.table import Table, as_markdown, as_text, markdown_text


class TrendFormat(StrEnum):
    """How `trend` writes."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


TestPattern = Annotated[
    list[str] | None,
    typer.Option(
        "--test",
        metavar="PATTERN",
        help="Tests of this name as the table writes it, `tcp ping-pong*` say; repeat it for several.",
    ),
]


app = typer.Typer()


@app.command()
def trend(
    folder: RunsFolder = Path(),
    test: TestPattern = None,
    fabric: FabricPattern = None,
    campaign: CampaignPattern = None,
    host: HostPattern = None,
    since: SinceOption = None,
    until: UntilOption = None,
    confidence: Annotated[str, typer.Option(help="Confidence of intervals and changes: 0.95 or 95%.")] = "0.95",
    form: Annotated[TrendFormat, typer.Option("--format", help="How to write it.")] = TrendFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Show the tests of a folder's runs in order of time, and where they changed, by how much and with what else.

    Only runs of one campaign on one testbed are set beside each other. Changes are found by E-divisive, a permutation test over
    runs, corrected for all tests that are shown: choose few, and smaller changes are found. Ten runs are the least.

    Example: `fabricbench trend runs --test 'tcp ping-pong*' --fabric myrinet`

    As a page with figures: `fabricbench trend runs --since 2026-01-01 --format html -o trend.html`
    """
    check_output(output)
    level = share_option(confidence, "--confidence")
    search = search_of(fabric, campaign, host, since, until)
    runs = [run for run in past_runs(folder) if search.matches(run) or run.is_untold]
    if all(run.is_untold for run in runs):
        raise UsageError(
            f"no run in {folder.absolute()} is of these", hint="`fabricbench runs` lists the runs that there are"
        )
    found = find_trend(str(folder), runs, wanted_by(test or (), fabric or ()), level)
    write_output(render(found, form, shows_all=bool(test)) + "\n", output)


def wanted_by(tests: Sequence[str], fabrics: Sequence[str]) -> Callable[[str, CellKey], bool]:
    """Return what tells whether a test on a fabric was asked for: all are where no pattern is given."""

    def is_wanted(fabric: str, key: CellKey) -> bool:
        return is_any_of(fabrics, (fabric,)) and is_any_of(tests, (cell_words(key),))

    return is_wanted


def render(trend: Trend, form: TrendFormat, *, shows_all: bool) -> str:
    """Return the trend in a format; text and Markdown have the runs of tests that changed, or of all that are shown."""
    if form is TrendFormat.JSON:
        return trend.model_dump_json(indent=2)
    if form is TrendFormat.HTML:
        return render_trend(trend)
    is_markdown = form is TrendFormat.MARKDOWN
    written: Callable[[Table], str] = as_markdown if is_markdown else as_text
    quoted: Callable[[str], str] = markdown_text if is_markdown else str
    lines = [quoted(words.headline(trend))]
    for series in trend.series:
        for change in series.changes:
            lines.append(("* " if is_markdown else "") + quoted(words.change_sentence(series, change)))
            lines += [f"  {'* ' if is_markdown else ''}{quoted(reason)}" for reason in words.reasons(series, change)]
    tables = [words.overview(trend)]
    tables += [words.points_table(one) for one in trend.series if one.changes or shows_all]
    said = [*trend.notes, *words.limits(trend), *(f"passed over: {line}" for line in words.passed_over(trend))]
    ending = "\n\n" if is_markdown else "\n"
    return "\n\n".join(["\n".join(lines), *map(written, tables), ending.join(map(quoted, said))])
