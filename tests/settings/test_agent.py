"""What writes on a node obeys one run at a time, and none that was restored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabricbench.lab.process import identify
from fabricbench.settings.agent import AgentAnswer, AgentRequest, Problem, Task, obey
from fabricbench.settings.setting import SettingsHost, as_json
from fabricbench.settings.turn import NotItsTurnError, turn
from support.settings import SIDES, Cluster, condition


def test_what_a_command_started_keeps_the_turn_though_its_agent_is_killed(tmp_path: Path):
    host = SettingsHost()
    with turn(5.0, tmp_path) as mine:
        host.handed_on = (mine.descriptor,)
        host.run(("sh", "-c", "sleep 0.5 >/dev/null 2>&1 &"))  # outlives the agent
    with pytest.raises(NotItsTurnError, match="still writing"), turn(0.0, tmp_path):
        pass
    with turn(5.0, tmp_path):
        pass


def test_an_order_that_comes_after_its_run_was_restored_writes_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLACE", str(cluster.root / "a"))
    run = os.urandom(8).hex()
    late = AgentRequest(task=Task.WRITE, settings=SIDES["one"], run=run)
    back = AgentRequest(task=Task.WRITE, settings=condition(x="0"), run=run, restores=True)
    assert obey(late, SettingsHost()).values == {"x": "1"}
    assert obey(back, SettingsHost()).values == {"x": "0"}
    assert obey(late, SettingsHost()).refused == "its run was restored, so nothing more is written"
    assert cluster.state()["a.x"] == "0"
    assert obey(back, SettingsHost()).values == {"x": "0"}  # restoring is tried again
    assert obey(late.model_copy(update={"run": "another"}), SettingsHost()).values == {"x": "1"}


def test_a_folder_of_somebody_else_holds_no_turn(tmp_path: Path):
    (tmp_path / f"fabricbench-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(NotItsTurnError, match="not a folder of this user's alone"), turn(0.0, tmp_path):
        pass


def test_an_order_and_an_answer_pass_as_one_line():
    order = AgentRequest(task=Task.WRITE, settings=SIDES["both"], node="x")
    assert AgentRequest.model_validate_json(as_json(order)) == order
    assert "\n" not in as_json(order)
    told = AgentAnswer(node="x", values={"x": "1"}, problems=(Problem(setting="x", found="a", needed="b", action="c"),))
    assert AgentAnswer.model_validate_json(as_json(told)) == told
    mine = identify(os.getpid())
    assert mine is not None
    assert mine.is_alive
