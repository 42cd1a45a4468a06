"""Tests over runs: like beside like, where they changed, and what else did."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from fabricbench.analysis.findings.trend import Trend
from fabricbench.errors import EnvironmentLacks
from fabricbench.model import Layer, Pattern
from fabricbench.record import last_good
from fabricbench.record.manifest import MANIFEST, Manifest, read_manifest, write_manifest
from fabricbench.record.provenance import Origin
from fabricbench.report.trend import limits
from support.calling import Call
from support.lost_runs import lost_run
from support.synthetic_run import Noise, SyntheticCell, write_synthetic_run

STEP = 7
"""The first run that is slower, of fourteen."""


def night(top: Path, number: int, *, slower: float = 1.0, unproven: tuple[str, ...] = (), **other: object) -> Manifest:
    """Write one night's run: a ping-pong on two fabrics, of which `fast` is so much slower."""
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"slow": 1e5, "fast": 2e4 * slower}, samples=20, warmup=1)]
    run = write_synthetic_run(
        top / f"n{number:02d}", cells=cells, blocks=3, seed=number + 1, noise=Noise(launch=0.005), unproven=unproven
    )
    manifest = read_manifest(run.path)
    changed = manifest.model_copy(
        update={"created": manifest.created + timedelta(days=number), "seed": number, **other}
    )
    write_manifest(run.path, changed)
    return changed


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen nights, the later seven with another kernel and 5 % slower; a copy, a stranger and a run that is damaged."""
    top = tmp_path_factory.mktemp("nights")
    for number in range(2 * STEP):
        is_later = number >= STEP
        inventory = {node: {"kernel.release": "6.5" if is_later else "6.1"} for node in ("n0", "n1")}
        night(top, number, slower=1.05 if is_later else 1.0, inventory=inventory)
    night(top, 20, slower=9.0, campaign_name="other")
    shutil.copytree(top / "n03", top / "again")
    shutil.copytree(top / "n04", top / "hurt")
    (top / "hurt" / MANIFEST).write_text("{")
    return top


def told(fabricbench: Call, *arguments: object) -> Trend:
    code, out, _ = fabricbench("trend", *arguments, "--format", "json")
    assert code == 0
    return Trend.model_validate_json(out)


@pytest.mark.slow
def test_a_change_is_told_where_it_is_with_what_else_changed(nights: Path, fabricbench: Call):
    found = told(fabricbench, nights, "--campaign", "synthetic")
    series = {one.fabric: one for one in found.series}
    assert found.tested == 2
    assert [len(one.points) for one in found.series] == [2 * STEP, 2 * STEP]
    assert series["slow"].changes == ()
    (change,) = series["fast"].changes
    assert (change.index, Path(change.before.run).name, Path(change.after.run).name) == (STEP, "n06", "n07")
    assert change.ratio.value == pytest.approx(1.05, abs=0.01)
    assert change.p_adjusted <= 0.05
    assert change.differences == ("n0 and n1: kernel.release 6.1 became 6.5",)
    assert [point.created for point in series["fast"].points] == sorted(
        point.created for point in series["fast"].points
    )


@pytest.mark.slow
def test_unlike_runs_are_not_set_beside_each_other(nights: Path, fabricbench: Call):
    found = told(fabricbench, nights, "--fabric", "fast")
    assert {one.campaign: len(one.points) for one in found.series} == {"other": 1, "synthetic": 2 * STEP}
    reasons = {Path(one.path).name: one.reason for one in found.passed_over}
    assert reasons["hurt"].startswith("damaged: ")
    assert {"again", "n03"} & reasons.keys()
    assert any(reason.startswith("a copy of ") for reason in reasons.values())


@pytest.mark.slow
def test_the_trend_is_shown_in_words_tables_and_a_page(nights: Path, fabricbench: Call, tmp_path: Path):
    code, out, _ = fabricbench("trend", nights, "--campaign", "synthetic", "--test", "tcp ping-pong*64 B")
    assert code == 0
    first, sentence, difference, *_ = out.splitlines()
    assert first == "1 of 2 tests changed over 14 runs."
    assert sentence.startswith("tcp ping-pong, blocking, 64 B on fast rose by ")
    assert f"%), slower, between 2026-11-05 and 2026-11-06 ({nights}/n06, {nights}/n07)" in sentence
    assert difference == "  changed between the two: n0 and n1: kernel.release 6.1 became 6.5"
    assert "emulated: fast, slow (the lab's switches, not hardware)" in out
    code, out, _ = fabricbench(
        "trend", nights, "--campaign", "synthetic", "--format", "html", "-o", tmp_path / "t.html"
    )
    page = (tmp_path / "t.html").read_text()
    assert (code, out) == (0, "")
    assert page.count("<svg") == 2
    assert sentence.split(" (")[0] in page
    code, out, _ = fabricbench("trend", nights, "--fabric", "fast", "--format", "markdown")
    assert (code, out.splitlines()[1].startswith("* tcp ping-pong")) == (0, True)


@pytest.mark.slow
def test_a_report_shows_how_its_tests_went_up_to_its_run(nights: Path, fabricbench: Call):
    code, out, _ = fabricbench("report", nights / "n12", "--history", nights, "--format", "json", "-o", "-")
    assert code == 0
    (trend,) = (Trend.model_validate(one) for one in json.loads(out)["chapters"]["trend"])
    assert {one.fabric: len(one.changes) for one in trend.series} == {"slow": 0, "fast": 1}
    for series in trend.series:
        names = [Path(point.run).name for point in series.points]
        assert names == [name if name != "n03" else names[3] for name in (f"n{number:02d}" for number in range(13))]
        assert names[3] in ("n03", "again")
    code, out, _ = fabricbench("report", nights / "n12", "--history", nights, "--format", "markdown", "-o", "-")
    assert (code, "rose by" in out, "kernel.release 6.1 became 6.5" in out) == (0, True, True)
    code, _, err = fabricbench("report", nights / "n12", nights / "n11", "--history", nights)
    assert (code, "goes with one run" in err) == (2, True)


@pytest.mark.slow
def test_what_was_not_asked_for_is_not_read(nights: Path, fabricbench: Call):
    code, _, err = fabricbench("trend", nights, "--test", "rdma*")
    assert (code, "has a test that was asked for" in err) == (2, True)
    code, _, err = fabricbench("trend", nights, "--since", "2030-01-01")
    assert (code, "is of these" in err) == (2, True)


def test_too_few_runs_have_no_change_and_say_so(nights: Path, fabricbench: Call):
    code, out, _ = fabricbench("trend", nights, "--until", "2026-11-02", "--campaign", "synthetic")
    assert (code, out.splitlines()[0]) == (
        0,
        "Too few runs to look for changes: 10 of a test are the least, and there are 4 runs.",
    )


@pytest.mark.slow
def test_a_gate_takes_the_last_run_that_is_complete_and_proven(tmp_path: Path, fabricbench: Call):
    for number in (0, 1, 2):
        night(tmp_path, number)
    night(tmp_path, 3, unproven=("fast",))
    night(tmp_path, 4)
    shutil.rmtree(tmp_path / "n04/launches/b02-fast")
    night(tmp_path, 5, campaign_name="other")
    night(tmp_path, 6)
    night(tmp_path, 7)
    new = tmp_path / "n06"
    code, out, err = fabricbench("check", new, "--last-good", tmp_path, "--format", "json")
    assert code in (0, 5)
    assert json.loads(out)["old_count"] == 3
    assert err.splitlines()[:3] == [
        f"passed over: {tmp_path}/n04: incomplete",
        f"passed over: {tmp_path}/n03: path unproven: fast",
        f"baseline: {tmp_path}/n02, begun 2026-11-01 22:40 (UTC): complete and proven",
    ]
    code, out, err = fabricbench("check", new, "--last-good", tmp_path, "--good-runs", "3", "--format", "json")
    assert json.loads(out)["replication"] == "runs"
    assert [line.split("/")[-1][:3] for line in err.splitlines() if line.startswith("baseline")] == [
        "n02",
        "n01",
        "n00",
    ]
    code, _, err = fabricbench("check", tmp_path / "n00", "--last-good", tmp_path)
    assert (code, "is a good one of campaign synthetic on synthetic" in err) == (5, True)
    assert fabricbench("check", new, new, "--last-good", tmp_path)[0] == 2
    assert fabricbench("check", new)[0] == 2


def test_a_run_that_was_slower_is_no_baseline_until_it_is_taken_for_the_usual(tmp_path: Path, fabricbench: Call):
    for number in range(4):
        night(tmp_path, number, slower=2.0 if number > 1 else 1.0)
    regressed = ("--last-good", tmp_path, "--max-regression", "10%")
    assert fabricbench("check", tmp_path / "n02", *regressed)[0] == 1
    code, _, err = fabricbench("check", tmp_path / "n03", *regressed)
    assert code == 1
    passed, taken = err.splitlines()[:2]
    assert (
        passed
        == f"passed over: {tmp_path}/n02: slower than its own baseline; to take it for the new usual, remove its gate.json"
    )
    assert taken.startswith(f"baseline: {tmp_path}/n01,")
    (tmp_path / "n02/gate.json").unlink()
    code, _, err = fabricbench("check", tmp_path / "n03", *regressed)
    assert code != 1
    assert err.splitlines()[0].startswith(f"baseline: {tmp_path}/n02,")
    assert "gate.json" not in fabricbench("verify", tmp_path / "n03")[1], "it is nothing that was measured"


def write_result(run: Path, **result: object) -> None:
    (run / "gate.json").write_text(json.dumps({"is_regressed": False, "baselines": [], "unix_ns": 0, **result}))


def test_a_run_that_may_be_slower_is_no_baseline_nor_is_one_of_which_nobody_can_read_whether_it_is(
    tmp_path: Path, fabricbench: Call
):
    for number in range(7):
        night(tmp_path, number)
    shutil.copytree(tmp_path / "n02", tmp_path / "a copy")
    write_result(tmp_path / "n01", of_a_later_version="text")
    write_result(tmp_path / "n02", is_regressed=True)
    write_result(tmp_path / "n03", is_inconclusive=True)
    (tmp_path / "n04/gate.json").write_text("{")
    (tmp_path / "n05/gate.json").mkdir()
    _, _, err = fabricbench("check", tmp_path / "n06", "--last-good", tmp_path)
    passed = {
        line.split(": ")[1].removeprefix(f"{tmp_path}/"): line for line in err.splitlines() if "passed over" in line
    }
    assert list(passed) == ["n05", "n04", "n03", "a copy", "n02"]
    assert "cannot be read (Is a directory)" in passed["n05"]
    assert "cannot be read (it is damaged, or of a version that this one cannot read)" in passed["n04"]
    assert "its own check could not exclude that it is slower" in passed["n03"]
    assert "slower than its own baseline" in passed["n02"]
    assert f"a copy of {tmp_path}/n02: slower than its own baseline" in passed["a copy"]
    assert f"baseline: {tmp_path}/n01," in err


def test_what_a_check_could_not_decide_is_kept(tmp_path: Path, fabricbench: Call):
    for number in range(2):
        night(tmp_path, number)
    assert fabricbench("check", tmp_path / "n01", "--last-good", tmp_path, "--max-regression", "0.1%")[0] == 5
    kept = json.loads((tmp_path / "n01/gate.json").read_text())
    assert (kept["is_regressed"], kept["is_inconclusive"]) == (False, True)
    assert fabricbench("check", tmp_path / "n01", "--last-good", tmp_path, "--max-regression", "90%")[0] == 0
    kept = json.loads((tmp_path / "n01/gate.json").read_text())
    assert (kept["is_regressed"], kept["is_inconclusive"]) == (False, False)


def test_where_a_result_cannot_be_kept_the_check_is_told_all_the_same(tmp_path: Path, fabricbench: Call):
    for number in range(2):
        night(tmp_path, number)
    (tmp_path / "n01/gate.json").mkdir()
    code, out, err = fabricbench("check", tmp_path / "n01", "--last-good", tmp_path, "--max-regression", "90%")
    assert (code, "passed" in out.lower()) == (0, True)
    assert f"what came of it is not kept, and {tmp_path}/n01 may be a later run's baseline: " in err


def test_a_result_that_cannot_be_kept_is_said(tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch):
    for number in range(3):
        night(tmp_path, number)

    def refuse(_path: Path, _text: str) -> None:
        raise EnvironmentLacks("the disk is full")

    monkeypatch.setattr(last_good, "replace_text", refuse)
    _, _, err = fabricbench("check", tmp_path / "n02", "--last-good", tmp_path)
    assert err.splitlines()[0].startswith(f"baseline: {tmp_path}/n01,")
    assert f"what came of it is not kept, and {tmp_path}/n02 may be a later run's baseline: the disk is full" in err


def test_numbers_of_another_origin_or_of_what_survived_are_not_set_beside_the_others(tmp_path: Path, fabricbench: Call):
    for number in range(3):
        night(tmp_path, number)
    for header in (tmp_path / "n00/launches").glob("*/launch.json"):
        header.write_text(header.read_text().replace('"origin": "emulated"', '"origin": "imported"'))
    lost_run(tmp_path / "lost", failed=["b00-fast"])
    found = told(fabricbench, tmp_path, "--fabric", "fast")
    names = {one.origins: [Path(point.run).name for point in one.points] for one in found.series}
    assert names == {(Origin.IMPORTED,): ["n00"], (Origin.EMULATED,): ["n01", "n02"]}
    reasons = [(Path(one.path).name, one.reason) for series in found.series for one in series.passed_over]
    assert reasons == [("lost", "2 of 7 starts gave nothing that counts: the rest may be a selection")]
    assert found.marks == {Origin.IMPORTED: ("fast",), Origin.EMULATED: ("fast",)}
    assert [line for line in limits(found) if "imported" in line] == [
        (
            "Imported runs whose texts do not tell when they were measured stand in the order in which they were "
            "imported, and their dates are those of that (fast)."
        )
    ]
