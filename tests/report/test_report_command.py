"""`fabricbench report`: where each format goes, and what is refused. The analysis is replaced by findings that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import fabricbench.cli.report
from fabricbench.cli import app
from fabricbench.errors import FabricbenchError, UsageError
from fabricbench.record.store import Run
from fabricbench.report import formats
from support.example_findings import small_findings

CALLS: list[dict[str, object]] = []


@pytest.fixture(autouse=True)
def faked_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()

    def analyse(
        runs: list[Any],
        *,
        baseline: str | None,
        margin: float | None = None,
        reference: object = None,
        decision: object = None,
        history: object = None,
    ) -> object:
        others = {"margin": margin, "reference": reference, "decision": decision, "history": history}
        known = {name: value for name, value in others.items() if value is not None}
        CALLS.append({"runs": [run.path for run in runs], "baseline": baseline} | known)
        return small_findings()

    monkeypatch.setattr(fabricbench.cli.report, "analyse", analyse)
    monkeypatch.setattr(Run, "open", lambda path: SimpleNamespace(path=path))


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.mark.slow
def test_the_dossier_stands_beside_the_run_and_its_path_is_printed(tmp_path: Path):
    result = report(tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "dossier.html")
    assert (tmp_path / "dossier.html").read_text().startswith("<!DOCTYPE html>")
    assert [{"runs": [tmp_path], "baseline": None}] == CALLS


@pytest.mark.slow
def test_a_report_of_several_runs_leaves_the_dossier_of_each(tmp_path: Path):
    runs = [tmp_path / name for name in ("old", "new")]
    for run in runs:
        run.mkdir()
        assert report(run).exit_code == 0
    own = (runs[0] / "dossier.html").read_bytes()
    assert report(*runs).stdout.strip() == str(runs[0] / "comparison.html")
    assert (
        report(*runs, "--format", "svg", "--figure", "ladder").stdout.split()[0].endswith("old/comparison-ladder.svg")
    )
    assert (runs[0] / "dossier.html").read_bytes() == own


def test_two_runs_and_a_baseline_reach_the_analysis(tmp_path: Path):
    after = tmp_path / "after"
    assert report(tmp_path, after, "--baseline", "myrinet", "-o", tmp_path / "x.html").exit_code == 0
    assert [{"runs": [tmp_path, after], "baseline": "myrinet"}] == CALLS


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("file", "start"),
    [
        ("a.md", "# fast-ethernet"),
        ("a.json", "{"),
        ("a.csv", "kind,layer"),
        ("a.txt", "fast-ethernet and myrinet on lab demo"),
        ("a", "<!DOCTYPE"),
    ],
)
def test_the_name_of_the_file_chooses_the_format(file: str, start: str, tmp_path: Path):
    assert report(tmp_path, "-o", tmp_path / file).exit_code == 0
    assert (tmp_path / file).read_text().startswith(start)


def test_an_ending_that_no_format_has_is_refused(tmp_path: Path):
    result = report(tmp_path, "-o", tmp_path / "a.docx")
    assert isinstance(result.exception, UsageError)
    assert "end in .docx" in str(result.exception)
    assert list(tmp_path.iterdir()) == []
    assert report(tmp_path, "--format", "html", "-o", tmp_path / "a.docx").exit_code == 0


def test_csv_has_its_other_tables_beside_it(tmp_path: Path):
    result = report(tmp_path, "-o", tmp_path / "a.csv")
    names = [Path(line).name for line in result.stdout.split()]
    assert names[:3] == ["a.csv", "a-workloads.csv", "a-workload-ratios.csv"]
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    assert (tmp_path / "a-one-way.csv").read_text().startswith("fabric,layer,pattern")
    piped = report(tmp_path, "--format", "csv", "-o", "-")
    assert piped.stdout.startswith("kind,layer")
    assert len(list(tmp_path.iterdir())) == len(names)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are not drawn, which takes ten seconds for all of a report."""
    monkeypatch.setattr(formats, "_svg", lambda _: b"<svg/>")


@pytest.mark.usefixtures("undrawn")
def test_markdown_has_its_figures_beside_it(tmp_path: Path):
    result = report(tmp_path, "-o", tmp_path / "x.md")
    assert result.stdout.split() == [str(tmp_path / "x.md"), str(tmp_path / "x.figures")]
    text = (tmp_path / "x.md").read_text()
    assert "](x.figures/ladder.svg)" in text
    assert (tmp_path / "x.figures" / "ladder.svg").read_text().startswith("<svg")
    assert "](" not in report(tmp_path, "--format", "markdown", "-o", "-").stdout.partition("## The ladder")[2]


@pytest.mark.usefixtures("undrawn")
def test_figures_go_through_no_link_and_into_no_file(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "x.figures").symlink_to(elsewhere)
    (tmp_path / "y.figures").write_text("mine")
    for name in ("x.md", "y.md"):
        assert isinstance(report(tmp_path, "-o", tmp_path / name).exception, FabricbenchError)
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "x.md").exists()


@pytest.mark.parametrize("taken", ["a.csv", "a-one-way.csv"])
def test_nothing_is_written_before_it_is_sure_that_all_of_it_may_be(taken: str, tmp_path: Path):
    (tmp_path / taken).mkdir()
    refused = report(tmp_path, "-o", tmp_path / "a.csv")
    assert isinstance(refused.exception, UsageError)
    assert [path.name for path in tmp_path.iterdir()] == [taken]


def test_the_reports_own_file_beside_the_run_is_renewed(tmp_path: Path):
    for _ in range(2):
        assert report(tmp_path).exit_code == 0
    assert (tmp_path / "dossier.html").exists()


def test_a_minus_writes_to_stdout_and_no_path(tmp_path: Path):
    result = report(tmp_path, "--format", "markdown", "-o", "-")
    assert result.stdout.startswith("# fast-ethernet")
    assert list(tmp_path.iterdir()) == []


def test_text_goes_to_the_terminal_unless_a_file_is_named(tmp_path: Path):
    result = report(tmp_path, "--format", "text")
    assert result.stdout.startswith("fast-ethernet and myrinet on lab demo")
    assert "\x1b" not in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_one_figure_goes_to_one_file_and_all_of_them_to_a_folder(tmp_path: Path):
    one = report(tmp_path, "--figure", "ladder", "-o", tmp_path / "ladder.svg")
    assert one.exit_code == 0, one.output
    assert (tmp_path / "ladder.svg").read_text().startswith("<svg")
    every = report(tmp_path, "--format", "svg")
    assert every.stdout.strip() == str(tmp_path / "figures")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"first-screen.svg", "verdict.svg", "ladder.svg", "published.svg", "published-data.csv"} <= names
    assert "first-screen-data.csv" not in names


def test_the_numbers_that_a_figure_draws_lie_beside_it(tmp_path: Path):
    assert report(tmp_path, "--figure", "ladder", "-o", tmp_path / "one.svg").exit_code == 0
    assert (tmp_path / "one-data.csv").read_text().startswith("panel,drawn as,layer,fabric,value,value in")


@pytest.mark.parametrize("arguments", [["--format", "svg", "--figure", "ladder"], ["--format", "csv"]])
def test_nothing_lies_beside_what_is_no_file(arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from fabricbench.cli import output as command

    written: list[Path] = []

    @contextmanager
    def opened(path: Path) -> Iterator[BytesIO]:
        written.append(path)
        yield BytesIO()

    monkeypatch.setattr(command, "opened_output", opened)
    assert report(tmp_path, *arguments, "-o", "/dev/null").exit_code == 0
    assert written == [Path("/dev/null")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "ladder"], "--figure is for svg, png and pdf, not for html"),
        (["--width", "85"], "--width is for svg, png and pdf, not for html"),
        (["--format", "svg", "--figure", "pie"], "there is no figure 'pie'"),
        (["--format", "svg", "-o", "-"], "figures do not fit into stdout"),
        (["-o", "all.png"], "figures do not fit into one file"),
        (["-o", "-", "--open"], "--open needs a file"),
        (["second", "third"], "is given twice, or is a copy of another"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(arguments: list[str], message: str, tmp_path: Path):
    result = report(tmp_path, *arguments)
    assert isinstance(result.exception, UsageError), result.output
    assert message in result.exception.message
    assert result.exception.hint
