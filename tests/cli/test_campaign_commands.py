"""`run`, `plan` and `resume` as a shell sees them: exit codes, what is on stdout, what is said of errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabricbench.cli import main
from fabricbench.model import Layer, Pattern
from support.processes import FABRICBENCH, marked_processes, new_mark
from support.synthetic_run import SyntheticCell, write_synthetic_run
from support.tiny_campaign import tiny_campaign

CAMPAIGN = tiny_campaign(("memory", "tcp"), blocks=2)

TESTBED = """
[testbed]
name = "here"
launcher = "local"
nodes = ["localhost"]

[[fabric]]
name = "loopback"
interface = "lo"
subnet = "127.0.0.0/8"
mtu = 65536
condition_of = "loopback"

[[fabric]]
name = "again"
interface = "lo"
subnet = "127.0.0.0/8"
mtu = 65536
condition_of = "loopback"
"""


def fabricbench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FABRICBENCH, *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


class Inside:
    """Runs a command in this process, which is faster, where nothing but its words are of interest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        self._monkeypatch.setattr(sys, "argv", ["fabricbench", *arguments])
        self._monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as raised:
            main()
        said = self._capsys.readouterr()
        code = raised.value.code if isinstance(raised.value.code, int) else 0
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    return Inside(monkeypatch, capsys)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    campaign, testbed = tmp_path / "tiny.toml", tmp_path / "here.toml"
    campaign.write_text(CAMPAIGN)
    testbed.write_text(TESTBED)
    return str(campaign), str(testbed)


def test_a_plan_starts_nothing_and_says_everything_as_json(files: tuple[str, str], inside: Inside):
    answer = inside("plan", files[0], "--testbed", files[1], "--seed", "7", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    plan = json.loads(answer.stdout)
    assert (plan["seed"], plan["blocks"], len(plan["launches"])) == (7, 2, 4)
    assert plan["estimated_seconds"] == pytest.approx(sum(launch["estimated_seconds"] for launch in plan["launches"]))
    first = plan["launches"][0]
    assert first["command"][-1] == f"RUNDIR/launches/{first['launch_id']}/plan.json"
    assert any(token.endswith("mpiexec") for token in first["command"])


def test_a_plan_reads_well_too(files: tuple[str, str], inside: Inside):
    answer = inside("plan", files[0], "--testbed", files[1], "--seed", "7")
    assert "2 blocks, 4 launches of 2 ranks, 2 tests, about" in answer.stdout
    assert "RUNDIR/launches/LAUNCH/plan.json" in answer.stdout
    assert answer.stderr == ""


def test_a_plan_says_what_difference_it_will_find_and_what_a_gate_would_need(inside: Inside):
    arguments = ("plan", "standard", "--testbed", "lab:fast-ethernet,myrinet", "--gate", "5%")
    text = inside(*arguments).stdout
    assert "44 blocks find with 80 %" in text
    assert "called faster" in text
    assert "named ahead" in text
    assert "times up to 1 KiB over frame, ip, udp, tcp" in text
    assert "noise of the quiet lab" in text
    assert "blocks that each run needs for a gate of 5 % to pass an unchanged system with 80 %" in text
    plan = json.loads(inside(*arguments, "--format", "json").stdout)
    tcp = next(one for one in plan["finds"]["found"] if "tcp" in one["layers"] and "up to 1 KiB" in one["kind"])
    assert 0.02 < tcp["faster"] < 0.1
    assert tcp["ahead"] < tcp["faster"]
    assert plan["gate"]["all_cells"] > plan["gate"]["by_kind"][-1][2]


def test_a_plan_takes_its_noise_from_a_run(inside: Inside, tmp_path: Path):
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 5e4, "b": 6e4})]
    write_synthetic_run(tmp_path / "before", cells=cells, blocks=10)
    answer = inside("plan", "quick", "--testbed", "lab:fast-ethernet,myrinet", "--noise-from", str(tmp_path / "before"))
    assert "times up to 1 KiB over tcp" in answer.stdout
    assert "noise of the run before" in answer.stdout
    missing = inside("plan", "quick", "--testbed", "local", "--noise-from", str(tmp_path / "nowhere"))
    assert missing.returncode == 2
    assert "what to do:" in missing.stderr


def test_a_budget_raises_the_number_of_blocks_and_a_plan_says_so(inside: Inside):
    answer = inside("plan", "quick", "--testbed", "lab:fast-ethernet,myrinet", "--budget", "10min")
    assert "blocks instead of 18 to use 10 min 00 s" in answer.stdout


def test_a_plan_for_a_lab_needs_no_lab(inside: Inside):
    answer = inside("plan", "quick", "--testbed", "lab:fast-ethernet,myrinet:delay=5us", "--format", "json")
    plan = json.loads(answer.stdout)
    assert [fabric["name"] for fabric in plan["testbed"]["fabrics"]] == ["fast-ethernet", "myrinet"]
    assert plan["launches"][0]["command"][:6] == ["fabricbench", "lab", "exec", "LAB", "n0", "--"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("quick", "--testbed", "lab:token-ring"), 2, "lab:token-ring is neither a fabric nor a running lab"),
        (("quick", "--testbed", "lab:fast-ethernt,myrinet"), 2, "did you mean 'fast-ethernet'?"),
        (("quick", "--testbed", "lab:token-ring", "--nodes", "4"), 2, "lab:token-ring is neither a fabric nor a"),
        (("quick", "--testbed", "nowhere.toml"), 2, "there is no file nowhere.toml"),
        (("fastest", "--testbed", "local"), 2, "no preset 'fastest'"),
        (("application", "--testbed", "local"), 2, "no preset 'application'; did you mean 'applications'?"),
        (("quick", "--testbed", "local", "--nodes", "4"), 2, "--nodes says how large a lab is to be built"),
        (("quick", "--testbed", "local", "--budget", "soon"), 2, "--budget: 'soon' is not a time"),
        (("quick", "--testbed", "local", "--budget", "3s"), 2, "a budget of 3 s is too small"),
        (("quick", "--testbed", "local", "--blocks", "1"), 2, "--blocks 1 is too few"),
        (
            ("quick", "--testbed", "local", "--blocks", "90", "--budget", "1min"),
            2,
            "90 blocks of 43 tests take at least",
        ),
        (("quick", "--testbed", "local", "--gate", "wide"), 2, "--gate"),
    ],
)
def test_what_cannot_be_is_said_with_what_to_do(arguments: tuple[str, ...], code: int, said: str, inside: Inside):
    answer = inside("plan", *arguments)
    assert answer.returncode == code
    assert said in answer.stderr
    assert "what to do:" in answer.stderr
    assert answer.stdout == ""


@pytest.mark.mpi
@pytest.mark.alone  # what other tests send over loopback would make its launches invalid
def test_a_run_ends_with_its_verdict_on_stdout_and_is_not_run_over(files: tuple[str, str], tmp_path: Path):
    directory = str(tmp_path / "run")
    answer = fabricbench("run", files[0], "--testbed", files[1], "--seed", "1", "-o", directory)
    assert answer.returncode == 0, answer.stderr
    assert "loopback" in answer.stdout
    assert f"fabricbench report {directory}" in answer.stderr
    assert answer.stderr.count("tests measured") == 4
    again = fabricbench("run", files[0], "--testbed", files[1], "-o", directory)
    assert again.returncode == 2
    assert "it holds a run" in again.stderr
    resumed = fabricbench("resume", directory)
    assert resumed.returncode == 0
    assert "4 of them done already" in resumed.stderr
    assert "tests measured" not in resumed.stderr
    more = fabricbench("resume", directory, "--blocks", "3")
    assert more.returncode == 0, more.stderr
    assert more.stderr.count("tests measured") == 2
    assert "blocks were added when 2 had been measured, so this is look number 2" in more.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_run_exits_with_130_and_leaves_no_process(
    number: signal.Signals, files: tuple[str, str], tmp_path: Path
):
    directory = tmp_path / "run"
    mark, environment = new_mark()
    arguments = ["run", files[0], "--testbed", files[1], "--blocks", "50", "-o", str(directory)]
    run = subprocess.Popen(
        [FABRICBENCH, *arguments], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(directory.glob("launches/*/launch.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(number)
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130, said
    assert f"fabricbench resume {directory}" in said
    assert "Traceback" not in said
    assert marked_processes(mark) == []


@pytest.mark.slow
def test_where_no_lab_can_be_had_it_says_what_to_do_instead(tmp_path: Path):
    answer = fabricbench("run", "quick", "--testbed", "lab:fast-ethernet", "-o", str(tmp_path / "run"), PATH="/nowhere")
    assert answer.returncode == 3
    assert "no lab can be had on this machine" in answer.stderr
    assert "--testbed local" in answer.stderr


def test_what_is_no_run_cannot_be_resumed(tmp_path: Path, inside: Inside):
    answer = inside("resume", str(tmp_path / "none"))
    assert answer.returncode == 2
    assert "there is no run directory" in answer.stderr


@pytest.mark.parametrize("command", ["run", "plan", "resume"])
def test_each_command_shows_an_example(command: str, inside: Inside):
    answer = inside(command, "--help")
    assert answer.returncode == 0
    assert f"Example: fabricbench {command}" in " ".join(answer.stdout.replace("│", " ").split())
