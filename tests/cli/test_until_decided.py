"""`check --until-decided`: measuring on until the gate can say, and the options that take several runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.test_applications import application_run

from fabricbench.analysis.gate import check_regressions
from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.cli import check as running
from fabricbench.cli.check import blocks_to_add
from fabricbench.cli.several_runs import spread
from fabricbench.model import Layer, Pattern
from fabricbench.record.manifest import Extension
from fabricbench.record.store import Run, write_manifest
from support.calling import Call
from support.synthetic_run import Noise, SyntheticCell, write_synthetic_run

NOISE = Noise(launch=0.02, sample=0.02)


def measured(path: Path, blocks: int, seed: int, slower: float = 1.0) -> Path:
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, {"one": 50e3 * slower}, samples=30) for size in (64, 1024)
    ]
    write_synthetic_run(path, cells=cells, blocks=blocks, seed=seed, noise=NOISE)
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return measured(tmp_path / "old", 20, seed=1)


@pytest.fixture
def resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stands in for measuring: launches of a longer synthetic run come in, as `resume` writes it down. Holds what was asked."""
    asked: list[int] = []

    def resume(path: Path, *, notify: Any, blocks: int, preflight: bool) -> None:
        del notify, preflight
        had = Run.open(path)
        longer = measured(tmp_path / f"longer{blocks}", blocks, seed=2, slower=1.2 if "worse" in path.name else 1.0)
        extension = Extension(blocks=blocks, planned=len(had.manifest.planned), measured=had.looks[-1], unix_ns=0)
        grown = Run.open(longer).manifest.model_copy(update={"extensions": (*had.manifest.extensions, extension)})
        for launch in (longer / "launches").iterdir():
            if not (path / "launches" / launch.name).exists():
                launch.rename(path / "launches" / launch.name)
        write_manifest(path, grown)
        asked.append(blocks)

    monkeypatch.setattr(running, "resume_run", resume)
    return asked


@pytest.mark.slow
def test_an_unchanged_system_is_measured_on_until_it_passes(
    old: Path, tmp_path: Path, fabricbench: Call, resumed: list[int]
):
    new = measured(tmp_path / "new", 3, seed=2)
    assert fabricbench("check", "--baseline", old, new, "--max-regression", "5%")[0] == 5
    code, out, err = fabricbench(
        "check", "--baseline", old, new, "--until-decided", "--budget", "2h", "--format", "json"
    )
    report = json.loads(out)
    assert (code, report["verdict"]) == (0, "passed")
    assert resumed
    assert "3 blocks do not decide" in err
    assert report["new_count"] == resumed[-1]
    assert report["look_confidence"] > 0.98  # a second look has less of the error to spend


def test_a_regression_ends_it_with_exit_code_1(old: Path, tmp_path: Path, fabricbench: Call, resumed: list[int]):
    new = measured(tmp_path / "worse", 2, seed=2, slower=1.2)
    code, _, err = fabricbench("check", "--baseline", old, new, "--until-decided", "--budget", "2h")
    assert (code, resumed != []) == (1, True)
    assert "slower by more than 5 %" in err


def test_launches_that_failed_while_it_measured_on_leave_the_gate_its_verdict(
    old: Path, tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    def resume(*_: Any, **__: Any) -> None:
        raise LaunchesFailed("1 of 6 launches failed", "no answer", hint="resume it")

    monkeypatch.setattr(running, "resume_run", resume)
    new = measured(tmp_path / "new", 3, seed=2)
    code, out, err = fabricbench("check", "--baseline", old, new, "--until-decided", "--budget", "2h")
    assert code == 5
    assert "1 of 6 launches failed" in err
    assert "cannot say" in out or "inconclusive" in out


def test_a_budget_that_no_block_fits_into_leaves_it_open(
    old: Path, tmp_path: Path, fabricbench: Call, resumed: list[int]
):
    new = measured(tmp_path / "new", 3, seed=2)  # blocks of 15 s
    assert fabricbench("check", "--baseline", old, new, "--until-decided", "--budget", "20s")[0] == 5
    assert resumed == []


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Measures nothing. Holds the runs of which more was asked."""
    asked: list[Path] = []
    monkeypatch.setattr(running, "resume_run", lambda path, **_: asked.append(path))
    return asked


def judged_by(name: str) -> list[dict[str, str]]:
    return [{"name": name, "regex": "(x)", "unit": "s", "better": "lower"}]


@pytest.mark.slow
def test_a_test_that_the_new_run_does_not_measure_is_not_waited_for(
    tmp_path: Path, fabricbench: Call, asked_for: list[Path]
):
    before = application_run(tmp_path / "before", figure=judged_by("loop"))
    after = application_run(tmp_path / "after", figure=judged_by("total"))
    options = ("--until-decided", "--budget", "2h")
    code, out, _ = fabricbench("check", "--baseline", before.path, after.path, *options)
    assert (code, asked_for) == (5, [])
    assert "not in all runs: fast-ethernet: mpi workload lu 4 ranks,n=800 (loop)" in out


@pytest.mark.slow
def test_a_test_that_the_new_run_is_to_measure_and_that_failed_so_far_is_measured_on(
    tmp_path: Path, fabricbench: Call, asked_for: list[Path]
):
    before = application_run(tmp_path / "before", figure=judged_by("loop"))
    after = application_run(tmp_path / "after", figure=judged_by("loop"), wrong_on="fast-ethernet", seed=4)
    code, _, _ = fabricbench("check", "--baseline", before.path, after.path, "--until-decided", "--budget", "2h")
    assert (code, asked_for) == (5, [after.path])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--until-decided",), "--budget 30min"),
        (("--budget", "5min"), "add --until-decided"),
        (("--until-decided", "--budget", "0s"), "5min, 90s or 2h"),
    ],
)
def test_options_that_need_each_other_say_so(
    old: Path, tmp_path: Path, fabricbench: Call, arguments: tuple[str, ...], told: str
):
    new = measured(tmp_path / "new", 3, seed=2)
    code, _, err = fabricbench("check", "--baseline", old, new, *arguments)
    assert code == 2
    assert told in err
    other = measured(tmp_path / "other", 3, seed=3)
    several = ("--baseline", old, new, other, "--until-decided", "--budget", "5min")
    assert "give one new run" in fabricbench("check", *several)[2]
    several = ("--baseline", old, "--baseline", other, new, "--until-decided", "--budget", "5min")
    assert "a run is one value, and no block decides" in fabricbench("check", *several)[2]


def test_blocks_are_added_up_to_what_should_decide_and_no_more_than_fit(old: Path, tmp_path: Path):
    report = check_regressions([Run.open(old)], [Run.open(measured(tmp_path / "new", 3, seed=2))], maximum=0.05)
    assert report.power is not None
    needed = report.power.needed_of_new
    assert needed is not None
    assert blocks_to_add(report, 3, 10.0, 1e6) == max(needed - 3, 2)
    assert blocks_to_add(report, 3, 10.0, 25.0) == 2
    assert blocks_to_add(report, 3, 10.0, 15.0) == 0
    assert blocks_to_add(report, 3, 0.0, 1e6) == 0
    hopeless = report.model_copy(update={"power": report.power.model_copy(update={"needed_of_new": None})})
    assert blocks_to_add(hopeless, 12, 10.0, 1e6) == 6


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("--before a b --after c", "--before a --before b --after c"),
        ("--before=a b -o x --after c d", "--before=a --before b -o x --after c --after d"),
        ("one two --margin 2%", "one two --margin 2%"),
        ("--before a --format json", "--before a --format json"),
        ("--before --after c", "--before --after c"),
    ],
)
def test_options_of_several_runs_are_written_out_once_for_each(given: str, written: str):
    assert spread(given.split(), ("--before", "--after")) == written.split()
