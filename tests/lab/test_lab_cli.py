from __future__ import annotations

import json

import pytest

from fabricbench.lab import PRESETS, Lab
from support.lab_outside import RunCli

pytestmark = pytest.mark.lab


@pytest.mark.usefixtures("lab_mode")
def test_a_lab_is_started_shown_entered_and_ended_from_the_command_line(run_cli: RunCli):
    up = run_cli(
        "lab", "up", "shown", "--nodes", "2", "--fabric", "fast-ethernet", "--fabric", "myrinet:delay=5us,mtu=9000"
    )
    assert (up.returncode, up.stdout) == (0, ""), up.stderr
    try:
        status = json.loads(run_cli("lab", "status", "shown", "--format", "json").stdout)
        assert [node["addresses"] for node in status["nodes"]] == [
            {"fast-ethernet": "10.98.1.1", "myrinet": "10.98.2.1"},
            {"fast-ethernet": "10.98.1.2", "myrinet": "10.98.2.2"},
        ]
        assert [fabric["switch"]["state"] for fabric in status["fabrics"]] == ["idle", "idle"]
        assert status["fabrics"][1]["asked"]["delay_s"] == pytest.approx(5e-6)
        assert all(fabric["is_emulated"] for fabric in status["fabrics"])
        assert "myrinet" in run_cli("lab", "status").stdout
        assert run_cli("lab", "list").stdout == "shown\n"
        entered = run_cli("lab", "exec", "shown", "n1", "--", "sh", "-c", "hostname; cat; exit 9", given="a line\n")
        assert (entered.returncode, entered.stdout) == (9, "n1\na line\n")
        again = run_cli("lab", "up", "shown", "--fabric", "sci")
        assert again.returncode == 2
        assert "runs already" in again.stderr
    finally:
        down = run_cli("lab", "down", "shown")
    assert down.returncode == 0
    assert run_cli("lab", "list").stdout.strip() == ""


@pytest.mark.usefixtures("lab_mode")
def test_all_labs_are_ended_at_once(run_cli: RunCli):
    for name in ("one", "two"):
        assert run_cli("lab", "up", name, "--nodes", "2", "--fabric", "sci").returncode == 0
    assert run_cli("lab", "down", "--all").returncode == 0
    assert json.loads(run_cli("lab", "list", "--format", "json").stdout) == []


@pytest.mark.usefixtures("lab_mode")
def test_what_a_killed_lab_left_is_dropped_and_said(run_cli: RunCli):
    assert run_cli("lab", "up", "left", "--nodes", "2", "--fabric", "sci").returncode == 0
    keeper = Lab.open("left").entry.keeper
    assert keeper.kill()
    assert keeper.wait(10)
    listed = run_cli("lab", "list")
    assert listed.stdout.strip() == ""
    assert "dropped what a killed process left of lab left" in listed.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("up", "x"), "no fabric is asked for"),
        (("up", "x", "--fabric", "token-ring"), "no fabric preset 'token-ring'"),
        (("up", "x", "--fabric", "sci", "--nodes", "0"), "cannot be"),
        (("up", "x", "--fabric", "gigabit-crossover"), "a cable between two nodes, and the lab has 4"),
        (("up", "x", "--fabric", "sci-torus:columns=3"), "4 nodes make no torus of 3 columns"),
        (("up", "Not A Name", "--fabric", "sci"), "cannot be a lab's name"),
        (("down", "nowhere"), "no lab 'nowhere'"),
        (("down",), "which lab"),
        (("status", "nowhere"), "no lab 'nowhere'"),
        (("exec", "nowhere", "n0", "--", "true"), "no lab 'nowhere'"),
    ],
)
def test_wrong_use_is_told_with_exit_code_2_and_what_to_do(run_cli: RunCli, arguments: tuple[str, ...], said: str):
    done = run_cli("lab", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "what to do" in done.stderr


def test_presets_are_shown_with_their_sources(run_cli: RunCli):
    assert "salamon-mink-nist" in run_cli("lab", "presets").stdout
    presets = json.loads(run_cli("lab", "presets", "--format", "json").stdout)
    assert [preset["name"] for preset in presets] == list(PRESETS)
    assert "scaled 1:80: 1.25 Gbit/s of 100 Gbit/s" in " ".join(run_cli("lab", "presets").stdout.split())
