from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fabricbench.campaign.presets import PRESETS
from fabricbench.cli import completion
from support.processes import FABRICBENCH
from support.synthetic_run import ladder_cells, write_synthetic_run


@pytest.fixture(autouse=True)
def labs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fabricbench.lab.running_labs", lambda: ["demo", "play"])
    monkeypatch.chdir(tmp_path)


def test_presets_and_files_are_campaigns(tmp_path: Path):
    (tmp_path / "query.toml").touch()
    assert completion.campaigns("") == [*PRESETS, "query.toml"]
    assert completion.campaigns("qu") == ["quick", "query.toml"]


def test_a_testbed_is_a_file_a_lab_or_its_fabrics():
    assert "local" in completion.testbeds("")
    assert completion.testbeds("lab:pl") == ["lab:play"]
    assert completion.testbeds("lab:fast-ethernet,myr") == ["lab:fast-ethernet,myrinet"]
    assert "lab:myrinet,myrinet" not in completion.testbeds("lab:myrinet,")


def test_fabrics_patterns_and_labs_are_offered_as_far_as_they_are_typed():
    assert completion.fabrics("myrinet") == ["myrinet"]
    assert completion.measurable("pingp") == ["pingpong", "pingping"]
    assert completion.measurable("tc") == ["tcp"]
    assert completion.labs("d") == ["demo"]


def test_run_directories_are_offered_and_the_folders_on_the_way(tmp_path: Path):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    write_synthetic_run(tmp_path / "runs" / "a", cells=ladder_cells({"x": 1e8}, sizes=(64,), samples=2), blocks=2)
    (tmp_path / "runs" / "notes.txt").touch()
    assert completion.run_directories("") == ["runs/"]
    assert completion.run_directories("runs/") == ["runs/a"]
    assert completion.run_directories("nowhere/") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("run qui", "quick"), ("plan quick --testbed loc", "local"), ("list ping", "pingpong"), ("show ru", "runs/")],
)
def test_the_shell_is_offered_them(typed: str, offered: str, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    words = f"fabricbench {typed}"
    environment = {
        **os.environ,
        "_FABRICBENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([FABRICBENCH], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert offered in done.stdout.splitlines(), done.stderr
