"""A lab whose nodes are guests: RDMA over its emulated switches, and nothing left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis.sides import read_sides
from fabricbench.lab import lab_support
from fabricbench.pattern_facts import Layer
from fabricbench.record.store import Run
from support.lab_outside import becomes_true
from support.processes import FABRICBENCH
from support.uml import NoGuestError, find_kernel, find_user_space

pytestmark = [pytest.mark.lab, pytest.mark.mpi]

LAB = "guests"
CAMPAIGN = """
[campaign]
name = "two-rates"
blocks = 2
unfit = "leave out"

[[experiment]]
layers = ["tcp", "rdma"]
pattern = "stream"
message_bytes = ["4KiB"]
"""

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `fabricbench` with the user space of RDMA, in a ledger of the test's own."""
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    try:
        user_space = find_user_space()
        given = {"FABRICBENCH_UML": str(find_kernel()), "XDG_STATE_HOME": str(tmp_path / "state")}
    except NoGuestError as reason:
        pytest.skip(str(reason))
    given |= {name: user_space[name] for name in ("LD_LIBRARY_PATH", "IBV_DRIVERS") if name in user_space}

    def call(
        *arguments: str | Path, limit_s: float = 60, ended_after_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [] if ended_after_s is None else ["timeout", "--preserve-status", str(ended_after_s)]
        command += [FABRICBENCH, *map(str, arguments)]
        environment = {**os.environ, **given}
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment)

    return call


@pytest.fixture
def lab(cli: Cli) -> Iterator[str]:
    """Two nodes, each a guest, on fabrics of 20 and 40 Mbit/s."""
    fabrics = ("fast-ethernet:rate=20Mbit/s,name=slow", "fast-ethernet:rate=40Mbit/s,name=quick")
    up = cli("lab", "up", LAB, "--nodes", "2", "--rdma", *(word for one in fabrics for word in ("--fabric", one)))
    assert up.returncode == 0, up.stderr
    yield LAB
    cli("lab", "down", LAB)


def guests_of(cli: Cli) -> dict[str, int | None]:
    status = json.loads(cli("lab", "status", LAB, "--format", "json").stdout)
    return {node["name"]: node["guest_pid"] for node in status["nodes"]}


def test_streams_over_two_fabrics_of_guests_differ_as_their_rates_do(cli: Cli, lab: str, tmp_path: Path) -> None:
    campaign, directory = tmp_path / "campaign.toml", tmp_path / "run"
    campaign.write_text(CAMPAIGN)
    done = cli("run", campaign, "--testbed", f"lab:{lab}", "-o", directory, limit_s=110)
    assert done.returncode == 0, done.stdout + done.stderr
    slow, quick = read_sides([Run.open(directory)])
    assert {key.layer for key in slow.cells} == {Layer.TCP, Layer.RDMA}
    for key, one in slow.cells.items():
        # The better of the blocks: what else the machine does can only slow one down.
        ratio = float(np.max(quick.cells[key].launch_values) / np.max(one.launch_values))
        assert ratio == pytest.approx(2.0, rel=0.1), key


def test_a_command_that_is_asked_to_end_ends_in_its_guest(cli: Cli, lab: str) -> None:
    slept = cli("lab", "exec", lab, "n0", "--", "sleep", "61.7", ended_after_s=3.0)
    assert slept.returncode == 128 + signal.SIGTERM
    assert cli("lab", "exec", lab, "n0", "--", "pgrep", "-f", "sleep 61.[7]").returncode == 1


def test_a_command_runs_in_the_guest_of_its_node_and_the_guests_go_with_the_lab(cli: Cli, lab: str) -> None:
    done = cli("lab", "exec", lab, "n1", "--", "sh", "-c", "hostname; uname -r; rdma link; exit 3")
    assert done.returncode == 3
    assert done.stdout.startswith("n1\n")
    assert os.uname().release not in done.stdout
    assert done.stdout.count("state ACTIVE") == 2
    guests = guests_of(cli)
    assert sorted(guests) == ["n0", "n1"]
    pids = [pid for pid in guests.values() if pid is not None]
    assert len(pids) == 2
    os.kill(pids[0], signal.SIGKILL)
    assert becomes_true(lambda: guests_of(cli)["n0"] is None, 10)
    lost = cli("lab", "exec", lab, "n0", "--", "true")
    assert "the guest that this command ran in has ended" in lost.stderr
    assert cli("lab", "down", lab).returncode == 0
    assert becomes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 10)
