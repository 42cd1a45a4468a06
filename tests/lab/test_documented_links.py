"""The example of docs/lab.md for links that differ runs as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from shutil import which

import pytest

from support.lab_outside import RunCli

pytestmark = pytest.mark.lab

PAGE = Path(__file__).parents[2] / "docs" / "lab.md"


def documented_commands() -> list[list[str]]:
    section = PAGE.read_text().partition("### Single links")[2]
    example = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert example is not None
    return [shlex.split(line.removeprefix("$ ")) for line in example.group(1).splitlines()]


@pytest.mark.usefixtures("lab_mode")
@pytest.mark.skipif(which("iperf3") is None, reason="iperf3 is not installed")
def test_the_documented_example_of_single_links_runs(run_cli: RunCli):
    (up, status, *entered, down) = documented_commands()
    assert up[:3] == ["fabricbench", "lab", "up"]
    done = run_cli(*up[1:])
    try:
        assert done.returncode == 0, done.stderr
        shown = " ".join(run_cli(*status[1:]).stdout.split())
        assert "link of n1: 20.0 µs up; link of n2: 80.0 Mbit/s" in shown
        for command in entered:
            done = run_cli(*command[1:])
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "receiver" in done.stdout
    finally:
        done = run_cli(*down[1:])
    assert done.returncode == 0, done.stderr
