"""`compare`, `check` and `selfcheck` as a user meets them: output, formats, exit codes."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fabricbench.analysis.findings import Comparison
from fabricbench.model import Metric
from fabricbench.pattern_facts import USUAL_LAYERS
from support.calling import Call
from support.synthetic_run import Noise, ladder_cells

from .conftest import MakeRun, scaled, twin_cells, twin_testbed, two


def test_compare_writes_one_json_object_for_each_cell_and_curve(make_run: MakeRun, fabricbench: Call):
    code, out, _ = fabricbench("compare", make_run(two(1.1)).path, "--format", "json")
    found = json.loads(out)
    assert code == 0
    of_some = {"workload", "congestor", "lost_nodes", "members", "parameters", "ranks"}  # written where there is one
    of_cells = frozenset(Comparison.model_fields) - of_some
    assert {frozenset(one) - of_some for one in found} == {of_cells | {"origin_a", "origin_b", "variant"}}
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


@pytest.mark.slow
def test_compare_text_tells_no_difference_from_too_few_samples(make_run: MakeRun, fabricbench: Call):
    cells = two(lambda cell: 1.0 if cell.metric is Metric.ROUND_TRIP_TIME else 1.015)
    _, out, err = fabricbench("compare", make_run(cells, blocks=40, noise=Noise(launch=0.012, sample=0.02)).path)
    assert "= equivalent" in out
    assert re.search(r"(one|other) ahead, |\? not enough data", out)
    assert "memory (control: no fabric changes it; geometric means of launches)" in out
    assert "note" not in err


def test_compare_markdown_has_a_table_for_each_layer(make_run: MakeRun, fabricbench: Call):
    _, out, _ = fabricbench("compare", make_run(two(1.1)).path, "--format", "markdown", "--margin", "3%")
    assert out.startswith("# one or other?")
    assert out.count("### ") == len(USUAL_LAYERS)
    assert "one faster" in out


def run_together(markdown: str) -> list[str]:
    """Return the lines that Markdown takes for one with the line above: neither items nor rows of a table."""
    return [
        line for above, line in pairwise(markdown.splitlines()) if above and line and not line.startswith(("- ", "|"))
    ]


@pytest.mark.slow
def test_sentences_in_markdown_stay_apart(make_run: MakeRun, fabricbench: Call):
    old, worse = make_run(two(1.1), "old").path, make_run(two(1.4), "worse", seed=2).path
    of_one = make_run(scaled(ladder_cells({"slow": 100e6}, samples=80), {"one": lambda _: 1.0}), "alone").path
    for words in (("compare", old), ("compare", of_one), ("check", "--baseline", old, worse), ("selfcheck", old)):
        _, out, err = fabricbench(*words, "--format", "markdown")
        assert "\n- " in out, err
        assert not run_together(out), words


@pytest.mark.slow
def test_compare_of_two_runs_refuses_a_baseline_and_a_third_run(make_run: MakeRun, fabricbench: Call):
    old, new = make_run(two(1.0), "old").path, make_run(two(1.0), "new", seed=2).path
    assert fabricbench("compare", old, new)[0] == 0
    code, _, err = fabricbench("compare", old, new, "--baseline", "one")
    assert code == 2
    assert "what was before is the baseline" in err
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


@pytest.mark.slow
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
    assert code == 0
    assert out.startswith("passed: 68 of 68 tests within 5 %\n")
    code, out, err = fabricbench("check", "--baseline", old, worse)
    assert "would need" not in out, "it has decided"
    assert code == 1
    assert "tcp round trip time blocking 64 B" in out
    assert "slower by more than 5 %" in err
    code, _, err = fabricbench("check", "--baseline", old, same, "--max-regression", "0.1%")
    assert code == 5
    assert "measure more blocks" in err


@pytest.mark.slow
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
    ratios = [one["new"] / one["old"] if one["unit"] == "ns" else one["old"] / one["new"] for one in report["cells"]]
    assert ratios == pytest.approx([one["slowdown"] for one in report["cells"]]), "levels divide to what is judged"
    assert fabricbench("check", "--baseline", old, worse, "--format", "csv")[1].startswith("layer,pattern,")


@pytest.mark.slow
def test_selfcheck_passes_where_nothing_differs_and_says_what_it_could_have_found(make_run: MakeRun, fabricbench: Call):
    run = make_run(two(1.3)).path
    code, out, _ = fabricbench("selfcheck", run, "--fabric", "one")
    assert code == 0
    assert out.startswith("passed: no fabric differs from itself")
    assert "finds with 80 %" in out
    assert "a check of the method, which hides any bias" in out
    found = json.loads(fabricbench("selfcheck", run, "--format", "json")[1])
    assert [one["fabric"] for one in found["results"]] == ["one", "other"]
    assert (found["failures"], found["outcome"][:6]) == ([], "passed")
    assert 0 <= found["wrong_trials"] <= 0.2
    assert fabricbench("selfcheck", run, "--format", "csv")[1].count("\n") == 3


def test_selfcheck_exits_1_naming_the_cells_and_5_without_data(make_run: MakeRun, fabricbench: Call):
    code, out, err = fabricbench("selfcheck", make_run(twin_cells(1.5), "twins", testbed=twin_testbed()).path)
    assert code == 1
    assert re.search(r"one differs from again, which is the same fabric, in 28 of 28 tests, by (50|49\.\d) %", out)
    assert "a second failure decides" in err
    assert "fails in 5 % of checks by chance" in out
    code, out, err = fabricbench("selfcheck", make_run(two(1.0), "short", blocks=4).path)
    assert code == 5
    assert "4 valid launches, 6 are needed to split them" in err


@pytest.mark.slow
def test_check_says_what_it_can_decide_and_what_it_needs(make_run: MakeRun, fabricbench: Call):
    noisy = Noise(launch=0.04, sample=0.02)
    runs = [make_run(two(1.0), f"noisy{seed}", seed=seed, noise=noisy).path for seed in (1, 2)]
    code, out, err = fabricbench("check", "--baseline", *runs)
    assert code == 5
    assert re.search(r"can decide: with 8 and 8 launches it catches a test that became [\d.]+ % slower with 80 %", out)
    assert re.search(r"would need about \d+ blocks a side to decide", out)
    assert "limit: one run a side" in out
    assert "the old one has too few for any number of new ones to decide" in err
    power = json.loads(fabricbench("check", "--baseline", *runs, "--format", "json")[1])["power"]
    assert 1.05 < power["caught_typical"] <= power["caught_worst"]
    assert power["needed"] > 8
    assert 0 < power["unchanged_worst"] <= power["unchanged_typical"] < 1


@pytest.mark.slow
def test_check_takes_several_runs_a_side_and_then_runs_are_what_is_repeated(make_run: MakeRun, fabricbench: Call):
    runs = [make_run(two(1.0), f"r{seed}", seed=seed, blocks=3).path for seed in range(6)]
    baselines = [word for run in runs[:3] for word in ("--baseline", run)]
    code, out, _ = fabricbench("check", *baselines, *runs[3:], "--format", "json")
    report = json.loads(out)
    assert (code, report["verdict"], report["replication"]) == (0, "passed", "runs")
    assert (report["old_count"], report["new_count"]) == (3, 3)
    (limit,) = report["limits"]  # nothing of sessions, which runs account for
    assert limit.startswith("limit: 9 new launches may have missed a slow mode")
    assert fabricbench("check", *baselines, runs[0])[0] == 2  # one run on both sides would agree with itself


@pytest.mark.slow
def test_compare_of_one_run_a_side_promises_nothing_that_it_cannot_hold(make_run: MakeRun, fabricbench: Call):
    old, new = make_run(two(1.0), "old").path, make_run(two(1.0), "new", seed=2).path
    code, out, err = fabricbench("compare", old, new)
    assert code == 0
    assert "cannot be told from a change" in err
    assert "compare three runs a side or more" in err
    assert "5 %" not in out
    assert "cannot be told from a change" not in fabricbench("compare", old)[2]


def test_compare_refuses_half_a_comparison_and_runs_given_both_ways(make_run: MakeRun, fabricbench: Call):
    old, new = make_run(two(1.0), "old").path, make_run(two(1.0), "new", seed=2).path
    for arguments in (("--before", old), ("--after", new), (old, "--before", old, "--after", new)):
        code, _, err = fabricbench("compare", *arguments)
        assert code == 2
        assert "what to do:" in err


def test_every_command_has_an_example_in_its_help(fabricbench: Call):
    for command in ("compare", "check", "selfcheck"):
        code, out, _ = fabricbench(command, "--help")
        assert code == 0
        assert f"fabricbench {command}" in out
        assert "Example" in out


@pytest.mark.slow
def test_the_gate_and_the_selfcheck_say_of_numbers_what_they_are(make_run: MakeRun, fabricbench: Call):
    old, new = make_run(two(1.0), "old", blocks=8).path, make_run(two(1.0), "new", seed=2, blocks=8).path
    mark = "emulated: one, other (the lab's switches, not hardware)"
    for command in (("check", "--baseline", old, new), ("selfcheck", new)):
        assert mark in fabricbench(*command)[1].splitlines()
        assert json.loads(fabricbench(*command, "--format", "json")[1])["marks"] == {"emulated": ["one", "other"]}
        rows = list(csv.DictReader(fabricbench(*command, "--format", "csv")[1].splitlines()))
        assert {row["origin"] for row in rows} == {"emulated"}
