"""Doors through AF_XDP at interfaces with several queues: every queue is served, and a receiver that spins drives them itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fabricbench.launch.watch import run_watched
from fabricbench.native import native_file
from fabricbench.record.lines import LINE_ADAPTER
from support.measurer import Outcome, plan_of
from support.namespaces import FABRIC, INTERFACE, InNamespaces, entering, two_namespaces

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="eBPF programs are loaded by root alone"),
]

QUEUES = 4
LIMIT_S = 60


def frames_by_queue(pid: int) -> dict[int, int]:
    """What the driver's program saw in each queue of the interface, which a veth counts in native mode."""
    told = subprocess.run(
        [*entering(pid), "ethtool", "-S", INTERFACE], capture_output=True, text=True, check=True, timeout=20
    ).stdout
    return {int(queue): int(count) for queue, count in re.findall(r"rx_queue_(\d+)_xdp_packets: (\d+)", told)}


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="ethtool is not installed")
@pytest.mark.parametrize("receive", ["blocking", "polling"])
def test_paths_take_turns_through_all_queues_of_an_interface(tmp_path: Path, receive: str):
    """Each of 8 flows sends through one of four queues, and its frames are taken whichever they come by."""
    flood = {"pattern": "incast", "parameters": {"door": "xdp-native", "flows": 2 * QUEUES}}
    cells = [
        {"layer": "frame", "message_bytes": 256, "receive": receive, "ranks": [0, 1], "verify_messages": 2, **more}
        for more in (
            flood,
            {**flood, "parameters": {"door": "xdp", "flows": 2 * QUEUES}},
            {"pattern": "pingpong", "parameters": {"door": "xdp-native"}},
            {"pattern": "pingpong", "parameters": {"door": "xdp-native"}},  # now the kernel knows the driver's queue
        )
    ]
    fabric = {"name": FABRIC.name, "interface": INTERFACE, "subnet": str(FABRIC.subnet), "mtu": FABRIC.mtu}
    plan, records = tmp_path / "plan.json", tmp_path / "records.jsonl"
    plan.write_text(json.dumps(plan_of(cells, records, fabric)))
    with two_namespaces(QUEUES) as pids:
        launcher = InNamespaces(tmp_path / "seat", pids)
        command = launcher.command(FABRIC, [str(native_file("fabricbench-probe")), str(plan)], tmp_path, 2)
        ended = run_watched(command, limit_seconds=LIMIT_S)
        seen = frames_by_queue(pids[0])
    assert ended.exit_code == 0, ended.stderr_tail
    outcome = Outcome(
        0, ended.stderr_tail, [LINE_ADAPTER.validate_json(line) for line in records.read_text().splitlines()]
    )
    assert [line.reason for line in outcome.lines if line.type == "cell_failed"] == []
    for number in range(len(cells)):
        assert (outcome.end(number).verified > 0, outcome.end(number).corrupted) == (True, 0)
        assert outcome.times(number)
    assert sorted(seen) == list(range(QUEUES))
    assert min(seen.values()) > 20, seen
