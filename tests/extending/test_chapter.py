"""One more chapter, by the file of examples/extending and the line that lists it: every format shows it, and none knows it."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import fabricbench
from fabricbench import chapters
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import workloads
from fabricbench.errors import UsageError
from fabricbench.report.figures import FIRST, LAST, draw, paper_spec
from fabricbench.report.formats import FORMATS, FigureFormat, Format
from support.example_findings import small_findings
from support.synthetic_run import ladder_cells, write_synthetic_run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "extending" / "chapter.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's module, as if it lay in the package, and in the list."""
    spec = spec_from_file_location("fabricbench.chapters.launch_times", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(chapters, "CHAPTERS", (*chapters.CHAPTERS, module.CHAPTER))
    return module


@pytest.fixture
def findings(example: ModuleType, tmp_path: Path) -> Findings:
    assert example.CHAPTER in chapters.CHAPTERS
    write_synthetic_run(tmp_path / "run", cells=ladder_cells({"slow": 1e8, "fast": 1e9}, samples=20), blocks=6)
    return fabricbench.compare(tmp_path / "run")


def rendered(name: str, findings: Findings) -> str:
    form = FORMATS[name]
    assert isinstance(form, Format)
    return form.render(findings).decode()


def test_what_it_found_stands_under_its_name(example: ModuleType, findings: Findings):
    assert "launch-times" in findings.chapters
    times = example.LAUNCH_TIMES.of(findings)
    assert {(one.fabric, one.launches) for one in times} == {("slow", 6), ("fast", 6)}
    assert all(one.time.value == 15e9 for one in times)
    table = fabricbench.frame(findings.chapters["launch-times"])
    assert table["fabric"].to_list() == ["slow", "fast"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_forms_for_people_have_its_title_its_line_and_its_table(name: str, findings: Findings):
    body = rendered(name, findings)
    assert "Times of launches" in body
    assert "took longest" in body
    assert "Time of a launch" in body
    assert ('<figure id="figure-launch-times"' in body) is (name == "html")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["html", "markdown", "json"])
def test_the_method_has_its_paragraph_with_the_level_of_the_report(name: str, findings: Findings):
    assert "starting MPI is not in it" in rendered(name, findings)
    assert any("its 95 % interval from order statistics" in one for one in findings.method if "starting MPI" in one)


def test_json_has_what_it_found_and_is_read_back(example: ModuleType, findings: Findings):
    written = rendered("json", findings)
    assert json.loads(written)["chapters"]["launch-times"][0]["time"]["value"] == 15e9
    again = Findings.model_validate_json(written)
    assert again == findings
    assert rendered("markdown", again) == rendered("markdown", findings)
    assert example.tables(again) == example.tables(findings)


def test_csv_has_a_file_of_its_rows_at_full_precision(findings: Findings):
    form = FORMATS["csv"]
    assert isinstance(form, Format)
    assert form.render_files is not None
    rows = list(csv.DictReader(io.StringIO(form.render_files(findings, "x.csv")["x-launch-times.csv"].decode())))
    assert [(row["fabric"], float(row["time"])) for row in rows] == [("slow", 15e9), ("fast", 15e9)]


@pytest.mark.slow
def test_its_figure_is_one_of_all(findings: Findings):
    assert draw("launch-times", findings).to_dict(validate=True)["concat"]
    form = FORMATS["svg"]
    assert isinstance(form, FigureFormat)
    assert b"<svg" in form.render(findings, "launch-times")


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_a_run_without_it_has_no_such_chapter_and_a_figure_says_what_it_needs():
    bare = small_findings()
    for name in ("html", "markdown", "text", "json"):
        assert "launch-times" not in rendered(name, bare)
        assert "Times of launches" not in rendered(name, bare)
    with pytest.raises(UsageError) as raised:
        paper_spec("launch-times", bare)
    assert "launches that came to their end" in str(raised.value.hint)


def test_every_chapter_says_what_it_is_and_what_it_needs():
    names = [one.name for one in chapters.CHAPTERS]
    assert len(set(names)) == len(names)
    assert all(one.title and one.needs for one in chapters.CHAPTERS)
    drawn = [name for one in chapters.CHAPTERS for name in one.figures]
    assert len(set(drawn)) == len(drawn)
    assert not {*drawn} & {*FIRST, *LAST}


def test_two_chapters_that_find_under_one_name_are_refused(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chapters, "CHAPTERS", (*chapters.CHAPTERS, replace(example.CHAPTER, name="again")))
    write_synthetic_run(tmp_path / "run", cells=ladder_cells({"slow": 1e8}, samples=20), blocks=2)
    with pytest.raises(ValueError, match="again finds 'launch-times', as another does"):
        fabricbench.compare(tmp_path / "run")


def test_a_chapter_has_nothing_to_say_where_nothing_was_found():
    bare = small_findings().model_copy(update={"chapters": {}})
    assert list(workloads.CHAPTER.methods_of({"workloads": []})) == []
    assert list(workloads.CHAPTER.methods_of({"workloads": [], "farms": [object()]})) == [workloads.METHOD_OF_FARMS]
    assert workloads.CHAPTER.tables_with_rows(bare) == []
    assert "What the network is worth" not in rendered("text", bare)


def test_the_recipe_in_contributing_is_the_example_to_the_letter():
    recipe = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"```python\n{EXAMPLE.read_text()}```" in recipe
