"""What a run directory from elsewhere can make `resume` do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign import run as running
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preflight import SKIPPED
from fabricbench.campaign.run import resume_run
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.trust import is_sealed, seal_plan
from fabricbench.campaign.venue import Standing
from fabricbench.errors import UsageError
from fabricbench.testbed.model import LauncherKind, Testbed

CAMPAIGN = Campaign(
    name="tiny", blocks=2, experiments=(Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,)),)
)
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[StoredPlan]:
    """The plans that were followed, and nothing starts."""
    found: list[StoredPlan] = []
    monkeypatch.setattr(running, "pass_preflight", lambda *_: SKIPPED)
    monkeypatch.setattr(running, "_execute", lambda _directory, stored, *_, **__: found.append(stored))
    return found


@pytest.fixture
def local(testbed: Testbed) -> Testbed:
    return testbed.model_copy(update={"launcher": LauncherKind.LOCAL})


def written(path: Path, testbed: Testbed) -> RunDirectory:
    """A run directory with a plan and without a seal."""
    directory = RunDirectory(path / "run")
    directory.create()
    plan = plan_run(CAMPAIGN, testbed, seed=1)
    directory.write_plan(StoredPlan(campaign=CAMPAIGN, plan=plan, venue=Standing(given=testbed)))
    return directory


def edit(directory: RunDirectory, change: Edit) -> None:
    path = directory.path / "plan.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def kernel(**fields: object) -> dict[str, object]:
    return {"benchmark": "IS", "problem_class": "S", "ranks": 2, "repetitions": 1, "program": "own", **fields}


def application(*command: str, **fields: object) -> dict[str, object]:
    figure = {"name": "t", "regex": "(x)", "unit": "s", "better": "lower"}
    return {
        "kind": "command",
        "ranks": 2,
        "application": {"name": "bad", "command": command, "figure": [figure], **fields},
    }


def first(change: dict[str, object]) -> Edit:
    return lambda data: data["plan"]["launches"][0].update(change)


@pytest.mark.parametrize(
    "launch_id",
    [
        "../../../../x",
        "b00-../x",
        "/etc/x",
        "b00-a/b",
        "b00-a\0b",
        "b00-..",
        "x",
        "",
        "b00-a\n",
        "b00-" + "a" * 300,
        "b" + "9" * 5000,
    ],
)
def test_a_launch_can_name_no_other_place(tmp_path: Path, local: Testbed, launch_id: str, started: list[StoredPlan]):
    directory = written(tmp_path, local)
    edit(directory, first({"launch_id": launch_id}))
    with pytest.raises(UsageError, match=r"launches\[1\].launch_id"):
        resume_run(directory.path, notify=print)
    assert started == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (first({"fabric": "none"}), "'none', which the plan does not have"),
        (first({"cells": [77]}), "a cell that the plan does not have"),
        (first({"cells": [-1]}), "a cell that the plan does not have"),
        (first({"cells": []}), "cells"),
        (first({"block": 77}), "block 77 of 2"),
        (first({"block": 10**4000}), "plan.json cannot be read"),
        (first({"estimated_seconds": float("nan")}), "estimated_seconds"),
        (first({"kernel": kernel(problem_class="../../x")}), "problem_class"),
        (first({"kernel": kernel(benchmark="sh")}), "benchmark"),
        (first({"kernel": kernel(program="/a\0b")}), "program"),
        (first({"workload": {"kind": "none", "ranks": 2}}), "found 'none'"),
        (first({"workload": application("a\0b")}), "command"),
        (first({"workload": application("a", files={"../../x": "y"})}), "files"),
        (first({"workload": application("a", files={"launch.json": "y"})}), "fabricbench's own"),
        (lambda data: data["plan"]["launches"].append(data["plan"]["launches"][0]), "planned 2 times"),
        (lambda data: data["plan"]["fabrics"][0].update(interface="../../x"), "interface"),
        (lambda data: data["plan"]["fabrics"][0].update(mpi_environment={"A=B": "c"}), "mpi_environment"),
        (lambda data: data["plan"]["fabrics"][0].update(mpi_environment={"A": "\0"}), "mpi_environment"),
        (lambda data: data["plan"]["fabrics"][0].update(mpi_arguments=["\0"]), "mpi_arguments"),
        (lambda data: data["venue"]["given"]["nodes"][0].update(name="-oProxyCommand=x"), "name"),
    ],
)
def test_a_plan_that_no_program_of_ours_wrote_is_refused(
    tmp_path: Path, local: Testbed, change: Edit, named: str, started: list[StoredPlan]
):
    directory = written(tmp_path, local)
    edit(directory, change)
    with pytest.raises(UsageError) as raised:
        resume_run(directory.path, notify=print)
    assert named in raised.value.message
    assert started == []


def test_a_plan_that_asks_for_our_own_programs_is_resumed_whoever_wrote_it(
    tmp_path: Path, local: Testbed, started: list[StoredPlan]
):
    resume_run(written(tmp_path, local).path, notify=print)
    assert len(started) == 1


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (first({"kernel": kernel(program="/tmp/evil")}), "is.S.x or is.S.2 of the folder /tmp/evil"),
        (first({"workload": application("sh", "-c", "evil")}), "application bad: sh -c evil"),
        (first({"workload": application("true", environment={"X": "$HOME"})}), "every rank gets X='$HOME'"),
        (lambda data: data["plan"]["fabrics"][0].update(mpi_environment={"LD_PRELOAD": "/e.so"}), "LD_PRELOAD=/e.so"),
        (
            lambda data: data["plan"]["fabrics"][1].update(mpi_arguments=["-launcher-exec", "/e"]),
            "told -launcher-exec /e",
        ),
        (lambda data: data["venue"]["given"].update(launcher="ssh"), "ssh logs in on a, b"),
        (lambda data: data["venue"]["given"].update(reach=["/e", "{node}", "{line}"]), "nodes are reached by /e"),
        (
            lambda data: data["venue"]["given"].update(starter=["/e", "{program}"]),
            "ranks are started by /e '{program}'",
        ),
        (lambda data: data["venue"]["given"].update(starter="srun"), "srun starts ranks on a, b"),
    ],
)
def test_what_goes_beyond_them_is_shown_and_started_only_if_the_user_says_so(
    tmp_path: Path, local: Testbed, change: Edit, shown: str, started: list[StoredPlan]
):
    directory = written(tmp_path, local)
    edit(directory, change)
    before = (directory.path / "journal.jsonl").read_bytes()
    with pytest.raises(UsageError, match="was not written here by you") as raised:
        resume_run(directory.path, notify=print)
    assert shown in raised.value.message
    assert "--trust-plan" in str(raised.value.hint)
    assert (directory.path / "journal.jsonl").read_bytes() == before
    assert started == []
    resume_run(directory.path, notify=print, is_trusted=True)
    resume_run(directory.path, notify=print)  # said once is enough
    assert len(started) == 2


def test_a_plan_of_ones_own_is_followed_until_somebody_changes_it(
    tmp_path: Path, testbed: Testbed, started: list[StoredPlan], monkeypatch: pytest.MonkeyPatch
):
    directory = written(tmp_path, testbed)
    seal_plan(directory)
    resume_run(directory.path, notify=print)
    assert (tmp_path / "state/fabricbench/plan.key").stat().st_mode & 0o777 == 0o600
    edit(directory, lambda data: data["plan"]["fabrics"][0].update(mpi_environment={"LD_PRELOAD": "/e.so"}))
    with pytest.raises(UsageError, match="LD_PRELOAD"):
        resume_run(directory.path, notify=print)
    seal_plan(directory)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert not is_sealed(directory)
    assert len(started) == 1


def test_the_plan_of_a_run_is_sealed_when_it_is_written(tmp_path: Path, testbed: Testbed, started: list[StoredPlan]):
    plan = plan_run(CAMPAIGN, testbed, seed=1)
    running.start_run(tmp_path / "run", CAMPAIGN, Standing(given=testbed), plan, notify=print, preflight=False)
    assert is_sealed(RunDirectory(tmp_path / "run"))
    assert len(started) == 1


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "launches", "launches/b00-slow", "launches/b00-slow/stderr.log", "manifest.json"]
)
def test_nothing_outside_is_written_through_a_link(
    tmp_path: Path, local: Testbed, name: str, started: list[StoredPlan]
):
    directory = written(tmp_path, local)
    outside = tmp_path / "outside"
    outside.mkdir()
    (directory.path / name).parent.mkdir(parents=True, exist_ok=True)
    (directory.path / name).unlink(missing_ok=True)
    (directory.path / name).symlink_to(outside)
    with pytest.raises(UsageError, match="outside of the run directory"):
        resume_run(directory.path, notify=print)
    assert list(outside.iterdir()) == []
    assert started == []


def test_a_pipe_in_the_place_of_a_file_does_not_hang(tmp_path: Path, local: Testbed, started: list[StoredPlan]):
    directory = written(tmp_path, local)
    (directory.path / "plan.json").unlink()
    os.mkfifo(directory.path / "plan.json")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        resume_run(directory.path, notify=print)
    assert started == []


def test_a_run_directory_may_itself_be_reached_by_a_link_and_hold_links_within(
    tmp_path: Path, local: Testbed, started: list[StoredPlan]
):
    directory = written(tmp_path, local)
    (directory.path / "latest").symlink_to("plan.json")
    (tmp_path / "today").symlink_to(directory.path)
    resume_run(tmp_path / "today", notify=print)
    assert len(started) == 1


@pytest.mark.parametrize("where", ["plan", "venue"])
def test_an_mpi_of_somebody_elses_testbed_is_told_of_and_nothing_of_it_runs(
    tmp_path: Path, local: Testbed, started: list[StoredPlan], where: str
):
    directory = written(tmp_path, local)
    told = {"name": "site", "load": [f"touch {tmp_path}/loaded"], "mpicxx": "/tmp/mpicxx", "inside": ["sh", "-c"]}

    def name_it(data: dict[str, Any]) -> None:
        (data["plan"] if where == "plan" else data["venue"]["given"])["mpis"] = [told]

    edit(directory, name_it)
    with pytest.raises(UsageError) as raised:
        resume_run(directory.path, notify=lambda _: None)
    assert f"MPI site: a login shell here runs 'touch {tmp_path}/loaded'" in raised.value.message
    assert "MPI site: programs built by /tmp/mpicxx, run inside 'sh -c'" in raised.value.message
    assert not (tmp_path / "loaded").exists()
    assert not started


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_key_that_somebody_else_has_put_there_seals_nothing(tmp_path: Path, testbed: Testbed):
    directory = written(tmp_path, testbed)
    seal_plan(directory)
    key = tmp_path / "state/fabricbench/plan.key"
    os.chown(key, 65534, 65534)
    assert not is_sealed(directory)
    seal_plan(directory)
    assert is_sealed(directory)
    assert (key.stat().st_uid, key.stat().st_mode & 0o777) == (os.geteuid(), 0o600)


def test_the_directory_of_the_key_is_nobody_elses_whatever_the_umask(tmp_path: Path, testbed: Testbed):
    directory = written(tmp_path, testbed)
    state = tmp_path / "state/fabricbench"
    before = os.umask(0o002)
    try:
        seal_plan(directory)
        assert (state.stat().st_mode & 0o777, (state / "plan.key").stat().st_mode & 0o777) == (0o700, 0o600)
        state.chmod(0o775)  # as earlier versions made it
        assert is_sealed(directory)
    finally:
        os.umask(before)
    assert state.stat().st_mode & 0o777 == 0o700
    (state / "plan.key").chmod(0o640)
    assert not is_sealed(directory)


@pytest.mark.parametrize("mode", [0o664, 0o644, 0o602])
def test_a_key_that_others_may_read_or_write_proves_nothing_and_it_is_said_what_to_do(
    tmp_path: Path, local: Testbed, started: list[StoredPlan], mode: int
):
    directory = written(tmp_path, local)
    edit(directory, lambda data: data["plan"]["fabrics"][0].update(mpi_environment={"LD_PRELOAD": "/e.so"}))
    seal_plan(directory)
    key = tmp_path / "state/fabricbench/plan.key"
    key.chmod(mode)
    with pytest.raises(UsageError, match=f"others may have read or written {re.escape(str(key))}") as raised:
        resume_run(directory.path, notify=print)
    assert f"`rm {key}`: the next run makes another" in str(raised.value.hint)
    assert not started
