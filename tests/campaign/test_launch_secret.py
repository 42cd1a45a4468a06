"""The secret of a launch: its user's alone while it runs, and in no file of the run directory once it has ended, however it did."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, Interrupted, RunIncomplete
from fabricbench.launch.launcher import Command
from fabricbench.launch.staging import STAGED, NotStaged
from fabricbench.record.launch_files import PLAN_FILE
from fabricbench.record.probe_plan import NO_SECRET, plan_beside, write_secret_plan
from fabricbench.testbed.model import Fabric
from support.execution import Setting, make_record


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def secret_in(directory: Path) -> str:
    plan = plan_beside(directory)
    assert plan is not None
    return plan.secret


class Watched:
    """What the plan of each launch was when it was started: its secret and its mode."""

    def __init__(self, setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[tuple[str, int]] = []
        command = setting.launcher.command

        def noting(fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
            self.found.append((secret_in(directory), permissions(directory / PLAN_FILE)))
            return command(fabric, program, directory, ranks)

        monkeypatch.setattr(setting.launcher, "command", noting)


def check_forgotten(setting: Setting, watched: Watched | None = None) -> None:
    """Look at every file of the run directory: it may be given to anybody."""
    plans = [path for path in setting.directory.path.rglob(PLAN_FILE) if path.parent != setting.directory.path]
    assert plans
    readable = 0o666 & ~_umask()
    assert {(secret_in(path.parent), permissions(path)) for path in plans} == {(NO_SECRET, readable)}
    secrets = [secret for secret, _ in watched.found] if watched is not None else []
    for path in setting.directory.path.rglob("*"):
        assert not path.is_file() or not any(secret.encode() in path.read_bytes() for secret in secrets), path


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_each_launch_has_a_secret_of_its_own_that_only_its_user_can_read_while_it_runs(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    watched = Watched(setting, monkeypatch)
    setting.run()
    assert {mode for _, mode in watched.found} == {0o600}
    assert len({secret for secret, _ in watched.found} - {NO_SECRET}) == len(setting.ids)
    check_forgotten(setting, watched)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no start", "dies midway", "wrong way", "hang", "full disk"])
def test_a_launch_that_ended_badly_keeps_no_secret(setting: Setting, monkeypatch: pytest.MonkeyPatch, how: str):
    watched = Watched(setting, monkeypatch)
    setting.launcher.behave(setting.ids[1], how, how)
    with suppress(RunIncomplete, EnvironmentLacks):
        setting.run(limit_seconds=2.0 if how == "hang" else 30.0)
    check_forgotten(setting, watched)


def test_a_launch_that_was_interrupted_keeps_no_secret(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    watched = Watched(setting, monkeypatch)
    setting.launcher.behave(setting.ids[0], "slow")
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted):
        setting.run()
    timer.join()
    check_forgotten(setting, watched)


@pytest.mark.parametrize("has_record", [True, False])
def test_what_a_crash_left_of_a_launch_keeps_no_secret_once_the_run_is_resumed(setting: Setting, has_record: bool):
    setting.run()
    directory = setting.directory.launch(setting.ids[2])
    plan = plan_beside(directory)
    assert plan is not None
    for path in directory.iterdir():
        path.unlink()
    write_secret_plan(directory, plan)
    if has_record:
        make_record(setting, setting.ids[2])
    setting.launcher.started.clear()
    setting.run()
    assert setting.launcher.started == ([] if has_record else [setting.ids[2]])
    assert (directory / "attempt-1" / PLAN_FILE).exists() is not has_record
    check_forgotten(setting)


def test_a_launch_that_rank_0s_node_was_not_given_keeps_no_secret(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    def stage(directory: Path, _fabric: Fabric) -> Path:
        raise NotStaged(f"a could not be given {directory.name}: no space left")

    monkeypatch.setattr(setting.launcher, "stage", stage)
    with pytest.raises(EnvironmentLacks, match="no space left"):
        setting.run()
    check_forgotten(setting)


def test_a_plan_that_comes_back_late_from_rank_0s_node_brings_no_secret(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    """Its node did not answer when the launch ended: the next session fetches what is there, and that is the plan as well."""
    failing = setting.ids[0]
    there: list[bytes] = []
    refusals = [NotStaged("connection refused"), NotStaged("connection refused")]

    def stage(directory: Path, _fabric: Fabric) -> Path:
        if directory.name == failing and not there:
            there.append((directory / PLAN_FILE).read_bytes())
            (directory / STAGED).touch()
        return directory

    def collect(directory: Path) -> None:
        if not (directory / STAGED).exists():
            return
        if refusals:
            for record in directory.glob("records.jsonl"):
                record.unlink()
            raise refusals.pop()
        (directory / PLAN_FILE).unlink(missing_ok=True)
        (directory / PLAN_FILE).write_bytes(there[0])
        (directory / STAGED).unlink()

    monkeypatch.setattr(setting.launcher, "stage", stage)
    monkeypatch.setattr(setting.launcher, "collect", collect)
    setting.run()
    aside = setting.directory.launch(failing) / "attempt-1"
    assert (aside / STAGED).exists()
    setting.run()
    assert not (aside / STAGED).exists()
    check_forgotten(setting)


def test_a_plan_of_an_earlier_version_has_no_secret_and_is_left_as_it_is(setting: Setting):
    setting.run()
    path = setting.directory.launch(setting.ids[0]) / PLAN_FILE
    old = path.read_text().replace(f' "secret": "{NO_SECRET}",\n', "")
    assert old != path.read_text()
    path.write_text(old)
    setting.run()
    assert path.read_text() == old
