"""Settings are written as root, or through sudo by the very command that was shown."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from fabricbench.settings import writes_of
from fabricbench.settings.agent import AgentRequest, Problem, Task, obey
from fabricbench.settings.setting import SettingsHost, sudo_rule
from support.settings import SIDES, Cluster


def test_who_may_not_write_as_root_is_told_the_command(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    sudo = tmp_path / "refusing/sudo"
    sudo.parent.mkdir()
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PLACE", str(cluster.root / "a"))
    told = obey(AgentRequest(task=Task.EXAMINE, settings=SIDES["one"]), SettingsHost())
    assert told.values == {"x": "0"}
    problem = told.problems[0]
    assert isinstance(problem, Problem)
    assert "that this user may not run `sh -c" in problem.found
    assert "a password is required" in problem.found
    # The very command with its value, and the one that restores: no wildcard, which would allow anything behind it.
    rules = [one.action.partition("NOPASSWD: ")[2] for one in told.problems]
    assert all(rule.startswith(shutil.which("sh") or "") for rule in rules)
    assert {rule.rstrip("`").rpartition(" ")[2] for rule in rules} == {"1", "0"}
    assert not any(re.search(r"(?<!\\)[*?\[]", rule) for rule in rules)


def test_a_rule_for_sudo_allows_one_command_and_quotes_what_sudoers_takes_for_its_own():
    rule = sudo_rule(("nowhere", "-w", "net.core.busy_poll=50", "a*b,c:d\\e"))
    assert rule == r"USER ALL=(root) NOPASSWD: /PATH/OF/nowhere -w net.core.busy_poll\=50 a\*b\,c\:d\\e"
    assert sudo_rule(("nowhere",)) == 'USER ALL=(root) NOPASSWD: /PATH/OF/nowhere ""'  # else any argument is allowed


def test_who_is_not_root_writes_through_sudo_with_the_very_command_that_the_plan_shows(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    sudo = tmp_path / "asking/sudo"
    sudo.parent.mkdir()
    sudo.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n[ "$2" = -l ] && exit 0\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PLACE", str(cluster.root / "a"))
    assert obey(AgentRequest(task=Task.EXAMINE, settings=SIDES["one"]), SettingsHost()).problems == ()
    told = obey(AgentRequest(task=Task.WRITE, settings=SIDES["one"]), SettingsHost())
    assert told.values == {"x": "1"}
    (planned,) = writes_of(SIDES["one"])
    assert told.written == (planned.words(with_sudo=True),)
    written = " ".join(("-n", *planned.tokens))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == written.replace("-n ", "-n -l ", 1)
    assert asked[-1] == written
    assert obey(AgentRequest(task=Task.WRITE, settings=SIDES["one"]), SettingsHost()).written == ()
