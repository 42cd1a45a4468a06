"""Numbers that were imported are marked wherever they are shown, as those of the lab are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.exchange.test_osu import ALLTOALL, LATENCY
from tests.exchange.test_storing import texts

from fabricbench.analysis import Findings, analyse
from fabricbench.analysis.gate import check_regressions
from fabricbench.analysis.selfcheck import analyse_selfcheck
from fabricbench.chapters.operations import operation_table
from fabricbench.cli.check_text import render as checked
from fabricbench.cli.compare_text import render as compared
from fabricbench.cli.output import OutputFormat
from fabricbench.cli.selfcheck_text import render as selfchecked
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer, Pattern
from fabricbench.record.export import summary_frame
from fabricbench.record.provenance import MARKS, Origin, Proof
from fabricbench.record.store import Run
from fabricbench.report import figures
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.tables import fabric_table
from fabricbench.report.terminal import render_terminal
from support.synthetic_run import SyntheticCell, write_synthetic_run

TWO_FABRICS = {"ib": (1.0, 1.1, 1.05), "eth": (9.0, 9.5, 9.2)}


def imported(folder: Path, name: str = "run", factor: float = 1.0) -> Run:
    folder = folder / name
    (folder / "texts").mkdir(parents=True)
    fabrics = {
        name: texts(folder / "texts", LATENCY, *(one * factor for one in factors))
        for name, factors in TWO_FABRICS.items()
    }
    import_run(folder / "stored", fabrics)
    return Run.open(folder / "stored")


@pytest.fixture
def findings(tmp_path: Path) -> Findings:
    return analyse([imported(tmp_path)])


def rendered(name: str, findings: Findings) -> str:
    form = FORMATS[name]
    assert isinstance(form, Format)
    return form.render(findings).decode()


def test_every_origin_but_measuring_here_has_its_mark():
    assert set(MARKS) == set(Origin) - {Origin.MEASURED}


@pytest.mark.slow
def test_the_first_screen_of_every_form_says_so(findings: Findings):
    assert "  IMPORTED numbers" in render_terminal(findings, 120, color=False).splitlines()[0]
    assert (
        "**Imported**: these numbers are measured by another program, not by fabricbench."
        in rendered("markdown", findings).splitlines()
    )
    page = rendered("html", findings)
    kicker = page.partition('class="kicker"')[2].partition("</p>")[0]
    assert '<span class="badge">imported</span>' in kicker
    assert "all fabrics imported from what another program wrote" in findings.headline.conditions


def test_the_table_of_fabrics_says_what_they_are_and_that_nobody_knows_their_path(findings: Findings):
    table = fabric_table(findings)
    assert {row[table.columns.index("Kind")] for row in table.rows} == {"imported, path unproven"}
    assert {row[table.columns.index(column)] for row in table.rows for column in ("Line rate", "MTU")} == {"–"}


def test_the_method_says_of_imported_numbers_what_is_known_and_no_more(tmp_path: Path):
    (tmp_path / "texts").mkdir()
    fabrics = {name: texts(tmp_path / "texts", LATENCY + ALLTOALL, *factors) for name, factors in TWO_FABRICS.items()}
    import_run(tmp_path / "run", fabrics, ImportOptions(ranks=4))
    found = analyse([Run.open(tmp_path / "run")])
    method = " ".join(found.method)
    for false in ("in an order drawn", "seed", "median of its round trips", "every sample is kept", "clocks agree on"):
        assert false not in method, false
    assert "Imported launches were measured by another program" in method
    assert not any("seed" in line for line in found.headline.reproduce[1:])
    facts = json.loads(rendered("json", found))["fabrics"]
    assert [(one["mtu"], one["layers"]) for one in facts] == [(None, ["mpi"])] * 2
    assert Findings.model_validate_json(rendered("json", found)) == found
    assert not any("resume" in step for step in found.headline.next_steps)
    columns = operation_table(found).columns
    assert "Time" in columns
    assert not {"Agreed start", "Late starts"} & set(columns)
    both = " ".join(analyse([measured(tmp_path), Run.open(tmp_path / "run")]).method)
    assert "in an order drawn" in both
    assert "Imported launches" in both


def test_every_figure_says_so(findings: Findings):
    found = figures.present(findings)
    assert found
    for figure in found.values():
        assert "Imported numbers: measured by another program" in figure.caption, figure.name


def test_data_for_programs_have_the_origin_of_each_side(findings: Findings):
    rows = list(csv.DictReader(io.StringIO(findings_csv(findings)["comparisons"])))
    assert {(row["origin_a"], row["origin_b"]) for row in rows} == {("imported", "imported")}
    (told,) = {
        (one["origin_a"], one["origin_b"]) for one in json.loads(compared(findings, OutputFormat.JSON)) if one["kind"]
    }
    assert told == ("imported", "imported")
    assert "origin_a,origin_b" in compared(findings, OutputFormat.CSV).splitlines()[0]
    fabrics = json.loads(rendered("json", findings))["fabrics"]
    assert [(one["origin"], one["proof"]) for one in fabrics] == [("imported", "unknown")] * 2
    assert Findings.model_validate_json(rendered("json", findings)) == findings


def test_a_summary_has_the_origin_and_the_proof_of_each_row(tmp_path: Path):
    frame = summary_frame(imported(tmp_path))
    assert set(frame["origin"]) == {"imported"}
    assert set(frame["proof"]) == {"unknown"}


def test_two_imported_runs_are_compared_and_marked(tmp_path: Path):
    findings = analyse([imported(tmp_path, "old"), imported(tmp_path, "new", factor=1.5)])
    assert findings.cells
    assert {fabric.origin for fabric in findings.fabrics} == {Origin.IMPORTED}
    assert "**Imported**: these numbers" in rendered("markdown", findings)
    assert "IMPORTED numbers" in render_terminal(findings, 120, color=False)


def measured(folder: Path) -> Run:
    cells = [
        SyntheticCell(Layer.MPI, pattern, 64, {"ib": 5e3 * factor, "eth": 50e3 * factor}, samples=20)
        for pattern, factor in ((Pattern.PINGPONG, 1.0), (Pattern.PINGPING, 1.2))
    ]
    return write_synthetic_run(folder / "measured", cells=cells, blocks=3)


def test_a_measured_run_and_an_imported_one_have_no_test_in_common_and_each_is_marked(tmp_path: Path):
    findings = analyse([measured(tmp_path), imported(tmp_path)])
    assert not findings.cells
    assert findings.marks == {
        Origin.EMULATED: tuple(one.name for one in findings.fabrics if "before" in one.name),
        Origin.IMPORTED: tuple(one.name for one in findings.fabrics if "after" in one.name),
    }
    assert {one.proof for one in findings.fabrics} == {Proof.PROVEN, Proof.UNKNOWN}
    page = rendered("html", findings)
    assert '<span class="badge">imported: ' in page
    assert '<span class="badge">emulated: ' in page
    text = rendered("markdown", findings)
    assert "**Imported**, ib (after), eth (after): these numbers are" in text
    assert "**Emulated**, ib (before), eth (before): these fabrics are" in text


def test_what_was_measured_has_no_new_field(tmp_path: Path):
    findings = analyse([measured(tmp_path)])
    (fields,) = {tuple(one) for one in json.loads(rendered("json", findings))["fabrics"]}
    assert not {"origin", "proof"} & set(fields)


def test_csv_and_json_have_origins_of_all_that_is_not_of_hardware(tmp_path: Path):
    emulated = analyse([measured(tmp_path)])
    rows = list(csv.DictReader(io.StringIO(findings_csv(emulated)["comparisons"])))
    assert {(row["origin_a"], row["origin_b"]) for row in rows} == {("emulated", "emulated")}
    assert {one["origin_b"] for one in json.loads(compared(emulated, OutputFormat.JSON))} == {"emulated"}
    real = emulated.model_copy(
        update={"fabrics": tuple(one.model_copy(update={"is_emulated": False}) for one in emulated.fabrics)}
    )
    assert "origin_a" not in findings_csv(real)["comparisons"].splitlines()[0]
    assert "origin_a" not in compared(real, OutputFormat.JSON)


UNPROVEN = "path unproven: ib, eth (no counter shows that the traffic took the fabric)"


def test_check_and_selfcheck_say_that_nobody_knows_the_path(tmp_path: Path):
    old, new = imported(tmp_path, "old"), imported(tmp_path, "new", factor=1.5)
    gate = check_regressions([old], [new], maximum=0.05)
    assert UNPROVEN in checked(gate, OutputFormat.TEXT).splitlines()
    assert json.loads(checked(gate, OutputFormat.JSON))["unproven"] == ["ib", "eth"]
    found = analyse_selfcheck(old)
    assert UNPROVEN in selfchecked(found, OutputFormat.TEXT).splitlines()
    assert json.loads(selfchecked(found, OutputFormat.JSON))["unproven"] == ["ib", "eth"]


def test_check_and_selfcheck_say_nothing_of_a_proven_path(tmp_path: Path):
    run = measured(tmp_path)
    assert run.unproven == ()
    assert "unproven:" not in selfchecked(analyse_selfcheck(run), OutputFormat.TEXT)


@pytest.mark.parametrize("name", ["round-trip", "round-trip-ratios", "verdict"])
def test_an_imported_sweep_is_drawn_over_its_sizes_with_its_program_named(findings: Findings, name: str):
    figure = figures.present(findings)[name]
    assert "by=osu" in " ".join([*(panel.title for panel in figure.panels), str(figure.panels[0].spec)])
