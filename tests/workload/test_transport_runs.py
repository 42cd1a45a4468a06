"""Programs that know no MPI, run for real over a lab's fabrics: PVM, sockets; and what stays behind of them when all is killed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.start import start_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.launch.watch import run_watched
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import WorkloadPart
from support.applications import campaign
from support.debian import pvm
from support.processes import marked_processes, new_mark

FABRICS = tuple(parse_fabrics("fast-ethernet,myrinet"))
GONE_SECONDS = 15.0

EXCHANGE = """
import os, socket, time
rank, addresses = int(os.environ["FABRICBENCH_RANK"]), os.environ["FABRICBENCH_ADDRESSES"].split(",")
port, size = int(os.environ["FABRICBENCH_PORT"]), 3_000_000
assert len(os.environ["FABRICBENCH_LAUNCH_MARK"]) == 32  # with which they have met
assert addresses[rank] == os.environ["FABRICBENCH_ADDRESS"] and len(addresses) == int(os.environ["FABRICBENCH_RANKS"])
if rank == 1:
    with socket.create_server((addresses[1], port)) as server:
        connection, _ = server.accept()
        connection.sendall(bytes(size))
elif rank == 0:
    while True:
        try:
            connection = socket.create_connection((addresses[1], port), 10)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    begin, got = time.perf_counter(), 0
    while piece := connection.recv(1 << 16):
        got += len(piece)
    print("time", time.perf_counter() - begin)
    print("received", got)
"""

SOCKETS = {
    "kind": "command",
    "name": "stream",
    "transport": "sockets",
    "command": ["python3", "{directory}/exchange.py"],
    "files": {"exchange.py": EXCHANGE},
    "figure": [{"name": "time", "regex": r"^time (\S+)$", "unit": "s", "better": "lower"}],
    "success": {"found": ["^received 3000000$"]},
}


def pingpong(**keys: Any) -> dict[str, Any]:
    """PVM's ping-pong with what this machine has of PVM."""
    there = pvm()
    if isinstance(there, str):
        pytest.skip(there)
    return {"kind": "command", "application": "pvm-pingpong", **there, **keys}


def needs_a_lab() -> None:
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")


def measure(directory: Path, *tables: dict[str, Any]) -> Run:
    asked, venue = campaign(*tables), OwnLab(nodes=4, fabrics=FABRICS)
    start_run(directory, asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    return Run.open(directory)


@pytest.mark.lab
@pytest.mark.mpi
def test_pvm_and_plain_sockets_run_over_four_nodes_on_the_fabric_under_test(tmp_path: Path):
    needs_a_lab()
    run = measure(tmp_path / "run", pingpong(parameters={"route": ["direct"]}), SOCKETS)
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells["reason"].to_list()
    assert [one.proof for one in run.launches] == ["proven"] * 8, [one.summary.facts.path_proof for one in run.launches]
    told = [one.summary.workload for one in run.launches if isinstance(one.summary.workload, WorkloadPart)]
    for name, figure in (("pvm-pingpong", "rate at 128 KiB"), ("stream", "time")):
        parts = [one for one in told if one.name.startswith(name)]
        assert [one.figures[0].name for one in parts] == [figure] * 4
        assert len({tuple(one.fixed.items()) for one in parts}) == 1
        assert all(check.holds for one in parts for check in one.checks)
    # Nothing is faster than a wire of 100 Mbit/s, however busy the machine; what switches buffer is the rest.
    slow = [one.summary.workload for one in run.launches if one.fabric == "fast-ethernet"]
    for part in filter(None, slow):
        value = part.figures[0].value
        assert value < 12.5 if part.name.startswith("pvm") else value > 0.2, part.figures


STUBBORN = """
import signal, subprocess, sys, time
if len(sys.argv) == 1:
    subprocess.Popen(["grandchild", __file__, "again"], executable=sys.executable, start_new_session=True)
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(1000)
"""
"""On each node a grandchild in a session of its own, that hears no SIGTERM."""

SLEEPING = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


class EverythingRuns(Exception):  # noqa: N818 - no error
    """Everything that is to be killed runs."""


@pytest.mark.lab
@pytest.mark.mpi
def test_nothing_of_a_hung_program_or_of_pvm_stays_on_any_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    needs_a_lab()
    stubborn = {**SOCKETS, "name": "stubborn", "files": {"exchange.py": STUBBORN}, "ranks": [2]}
    asleep = {**pingpong(), "files": {"pingpong.c": SLEEPING}, "command": ["{directory}/pvm-pingpong"], "ranks": [2]}
    asleep |= {"parameters": {"route": "none"}, "environment": {**asleep.get("environment", {}), "ROUTE": "{route}"}}
    folders = set(Path(tempfile.gettempdir()).glob("fabricbench-pvm-*"))
    venue, asked = OwnLab(nodes=2, fabrics=FABRICS), campaign(stubborn, asleep)
    plan = plan_run(asked, venue.testbed(), seed=1)
    with venue.open() as launcher:
        mark, marked = new_mark()
        for name, value in marked.items():
            monkeypatch.setenv(name, value)  # from now on: the lab itself has no mark
        for name, words in (("stubborn", " grandchild "), ("pvm", "/pvmd ")):
            launch = next(one for one in plan.launches if one.workload and one.workload.name.startswith(name))
            (directory := tmp_path / name).mkdir()
            start, fabric = start_of(launch, plan), plan.fabric(launch.fabric)
            start.stage(directory)
            program = start.program(directory, launcher.meeting_address(fabric))

            def look(words: str = words) -> None:
                if sum(words in one for one in marked_processes(mark)) >= 2:
                    raise EverythingRuns

            with pytest.raises(EverythingRuns):
                run_watched(launcher.command(fabric, program, directory, 2), limit_seconds=40, on_tick=look)
            deadline = time.monotonic() + GONE_SECONDS
            while (left := marked_processes(mark)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert left == [], name
    assert set(Path(tempfile.gettempdir()).glob("fabricbench-pvm-*")) <= folders
