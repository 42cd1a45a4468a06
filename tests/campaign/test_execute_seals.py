"""What `verify` says of runs that did not go well: every launch.json that is stored has its hash in the journal."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from fabricbench.campaign import execute
from fabricbench.campaign.events import Event, GroupAgain
from fabricbench.campaign.execute import Execution
from fabricbench.errors import EnvironmentLacks, Interrupted, RunIncomplete
from fabricbench.record.verification import RunVerdict, verify
from fabricbench.testbed.model import Lost
from support.execution import Setting


@pytest.mark.slow
@pytest.mark.parametrize("word", ["dies midway", "dies at the end 3"])
def test_a_run_with_a_failed_launch_is_incomplete_and_its_launch_json_is_sealed(setting: Setting, word: str):
    failing = setting.ids[1]
    setting.launcher.behave(failing, word, word)
    with pytest.raises(RunIncomplete):
        setting.run()
    setting.write_manifest()
    found = verify(setting.directory.path)
    assert (found.verdict, found.without_hash, found.missing) == (RunVerdict.INCOMPLETE, (), (failing,))
    path = setting.directory.launch(failing) / "launch.json"
    path.write_text(path.read_text() + "\n")
    assert [one.path for one in verify(setting.directory.path).altered] == [f"launches/{failing}/launch.json"]


def test_a_launch_whose_testbed_ended_under_it_is_sealed(setting: Setting):
    setting.launcher.behave(setting.ids[0], "dies midway")
    setting.launcher.lost_in[setting.ids[0]] = Lost(
        what="the keeper of lab x (process 7) has ended, and the lab with it", action="`lab up x`"
    )
    with pytest.raises(EnvironmentLacks, match="the keeper of lab x"):
        setting.run()
    setting.write_manifest()
    assert verify(setting.directory.path).verdict is RunVerdict.INCOMPLETE


def test_an_interrupted_launch_is_sealed(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    real = execute.run_watched

    def interrupted(*given: Any, **named: Any) -> NoReturn:
        real(*given, **named)
        raise KeyboardInterrupt

    setting.launcher.behave(setting.ids[0], "dies midway")
    monkeypatch.setattr(execute, "run_watched", interrupted)
    with pytest.raises(Interrupted):
        setting.run()
    setting.write_manifest()
    found = verify(setting.directory.path)
    assert (found.verdict, found.without_hash) == (RunVerdict.INCOMPLETE, ())


def test_a_run_that_ends_while_a_group_is_run_again_is_incomplete_and_nothing_is_called_gone(setting: Setting):
    """Both halves were set aside, the first of them whole, and only one has begun again."""
    setting.launcher.behave(setting.ids[1], "dies midway")

    def end(event: Event) -> None:
        if isinstance(event, GroupAgain):
            raise Interrupted("ended here", hint="")

    with pytest.raises(Interrupted):
        Execution(setting.directory, setting.plan, setting.launcher, end).run()
    setting.write_manifest()
    found = verify(setting.directory.path)
    assert (found.verdict, found.altered) == (RunVerdict.INCOMPLETE, ())
    (aside,) = setting.directory.launch(setting.ids[0]).glob("attempt-1")
    (aside / "launch.json").unlink()
    assert [one.path for one in verify(setting.directory.path).altered] == [f"launches/{setting.ids[0]}/launch.json"]
