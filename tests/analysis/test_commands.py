"""`compare`, `check` and `selfcheck` as a user meets them: output, formats, exit codes."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench import cli
from fabricbench.analysis.findings import Comparison
from fabricbench.model import Layer, Metric

from .conftest import MakeRun, two

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fabricbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fabricbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        streams = capsys.readouterr()
        return int(end.value.code or 0), streams.out, streams.err

    return call


def test_compare_writes_one_json_object_for_each_cell_and_curve(make_run: MakeRun, fabricbench: Call):
    code, out, _ = fabricbench("compare", make_run(two(1.1)).path, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert {frozenset(one) for one in found} == {frozenset(Comparison.model_fields)}
    wanted = {
        "layer",
        "pattern",
        "message_bytes",
        "metric",
        "unit",
        "ratio",
        "ratio_low",
        "ratio_high",
        "p_value",
        "verdict",
        "launches",
    }
    assert wanted <= set(found[0])
    assert {one["verdict"] for one in found if one["layer"] != "memory"} == {"A faster"}
    assert [one["kind"] for one in found].count("curve") == 12


def test_compare_csv_has_a_row_for_each_and_goes_to_a_file(make_run: MakeRun, fabricbench: Call, tmp_path: Path):
    target = tmp_path / "out.csv"
    code, out, _ = fabricbench("compare", make_run(two(1.1)).path, "--format", "csv", "-o", target)
    rows = list(csv.DictReader(target.open()))
    assert (code, out) == (0, "")
    assert len(rows) == 34 + 12
    assert float(rows[-1]["ratio"]) > 0


def test_compare_text_tells_no_difference_from_too_few_samples(make_run: MakeRun, fabricbench: Call):
    cells = two(lambda cell: 1.0 if cell.metric is Metric.ROUND_TRIP_TIME else 1.015)
    _, out, err = fabricbench("compare", make_run(cells).path)
    assert "= equivalent" in out
    assert "? not enough data (about " in out
    assert "memory (control: no fabric changes it)" in out
    assert "note" not in err


def test_compare_markdown_has_a_table_for_each_layer(make_run: MakeRun, fabricbench: Call):
    _, out, _ = fabricbench("compare", make_run(two(1.1)).path, "--format", "markdown", "--margin", "3%")
    assert out.startswith("# other against one")
    assert out.count("### ") == len(Layer)
    assert "A faster: one" in out


def test_compare_of_two_runs_refuses_a_baseline_and_a_third_run(make_run: MakeRun, fabricbench: Call):
    old, new = make_run(two(1.0), "old").path, make_run(two(1.0), "new").path
    assert fabricbench("compare", old, new)[0] == 0
    code, _, err = fabricbench("compare", old, new, "--baseline", "one")
    assert code == 2
    assert "the first is the baseline" in err
    assert fabricbench("compare", old, new, old)[0] == 2


@pytest.mark.parametrize(
    "arguments", [("--margin", "wide"), ("--margin", "0"), ("--confidence", "2"), ("--baseline", "sci")]
)
def test_compare_refuses_what_makes_no_sense_with_a_hint(
    make_run: MakeRun, fabricbench: Call, arguments: tuple[str, str]
):
    code, out, err = fabricbench("compare", make_run(two(1.0), blocks=1).path, *arguments)
    assert (code, out) == (2, "")
    assert "what to do:" in err


def test_check_exits_0_1_and_5(make_run: MakeRun, fabricbench: Call):
    old = make_run(two(1.0), "old").path
    same = make_run(two(1.0), "same", seed=2).path
    worse = make_run(
        [
            replace(c, medians={n: m * 1.2 for n, m in c.medians.items()})
            for c in two(1.0)
            if c.metric is Metric.ROUND_TRIP_TIME
        ],
        "worse",
    ).path
    code, out, _ = fabricbench("check", "--baseline", old, same, "--max-regression", "5%")
    assert (code, out) == (0, "passed: 68 of 68 cells within 5 %\n")
    code, out, err = fabricbench("check", "--baseline", old, worse)
    assert code == 1
    assert "tcp round trip time blocking 64 B" in out
    assert "slower by more than 5 %" in err
    code, _, err = fabricbench("check", "--baseline", old, same, "--max-regression", "0.1%")
    assert code == 5
    assert "measure more blocks" in err


def test_check_writes_json_also_when_it_fails(make_run: MakeRun, fabricbench: Call, tmp_path: Path):
    old = make_run(two(1.0), "old").path
    worse = make_run(
        [
            replace(
                c, medians={n: m * (1.2 if c.metric is Metric.ROUND_TRIP_TIME else 1) for n, m in c.medians.items()}
            )
            for c in two(1.0)
        ],
        "worse",
    ).path
    code, _, _ = fabricbench("check", "--baseline", old, worse, "--format", "json", "-o", tmp_path / "gate.json")
    report = json.loads((tmp_path / "gate.json").read_text())
    assert (code, report["verdict"]) == (1, "regressed")
    assert len(report["cells"]) == 68
    assert fabricbench("check", "--baseline", old, worse, "--format", "csv")[1].startswith("layer,pattern,")


def test_selfcheck_reports_the_share_of_wrong_verdicts(make_run: MakeRun, fabricbench: Call):
    run = make_run(two(1.3)).path
    code, out, _ = fabricbench("selfcheck", run, "--fabric", "one")
    assert code == 0
    assert "of trials where nothing differs (at most 5 % expected)" in out
    found = json.loads(fabricbench("selfcheck", run, "--format", "json")[1])
    assert [one["fabric"] for one in found["results"]] == ["one", "other"]
    assert 0 <= found["wrong_trials"] <= 0.2
    assert fabricbench("selfcheck", run, "--format", "csv")[1].count("\n") == 3


def test_every_command_has_an_example_in_its_help(fabricbench: Call):
    for command in ("compare", "check", "selfcheck"):
        code, out, _ = fabricbench(command, "--help")
        assert code == 0
        assert f"fabricbench {command}" in out
        assert "Example" in out
