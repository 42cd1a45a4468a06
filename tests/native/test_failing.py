"""What the measurer says when something cannot be measured, and that it never hangs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricbench.native import native_file
from fabricbench.record.lines import FailureCode, Footer
from support.measurer import TIME_LIMIT_S, command_of, plan_of
from support.scripts import script

pytestmark = pytest.mark.mpi

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
PINGPONG = {"layer": "tcp", "pattern": "pingpong", "message_bytes": 64}


def test_what_a_layer_cannot_do_fails_its_cell_and_no_other(probe: Callable):
    outcome = probe(
        [
            {**PINGPONG, "layer": "udp", "message_bytes": 0},
            {**PINGPONG, "layer": "udp", "message_bytes": 70_000},
            {**PINGPONG, "message_bytes": 0},
            {**PINGPONG, "receive": "library"},
            {**PINGPONG, "parameters": {"kernel": "triad"}},
            {"layer": "memory", "pattern": "stream", "message_bytes": 12, "ranks": [0]},
            {**PINGPONG, "layer": "memory", "parameters": {"kernel": "copy"}},
            {"layer": "memory", "pattern": "stream", "message_bytes": 64, "parameters": {"kernel": "sum"}},
            PINGPONG,
        ]
    )
    assert outcome.code == 0, outcome.stderr
    assert all(outcome.failed(number).code is FailureCode.UNSUPPORTED for number in range(8))
    assert "choose from 1 to 65507" in outcome.failed(0).reason
    assert "choose from 1 to 4294967296" in outcome.failed(2).reason
    assert "rank 0 on" in outcome.failed(0).reason
    assert "kernel" in outcome.failed(4).reason
    assert "parameter 'kernel' is unknown to pingpong over layer memory" in outcome.failed(6).reason
    assert "kernel must be one of copy, scale, add, triad" in outcome.failed(7).reason
    assert outcome.end(8).measured >= 1
    assert (outcome.lines[-1].cells, outcome.lines[-1].failed) == (1, 8)


def test_a_fabric_that_a_host_does_not_have_is_said_so(probe: Callable):
    outcome = probe(
        [PINGPONG, {**PINGPONG, "layer": "mpi"}], fabric={"name": "moon", "subnet": "255.255.255.254/32", "mtu": 1500}
    )
    assert outcome.failed(0).code is FailureCode.UNREACHABLE
    assert "no interface in the fabric" in outcome.failed(0).reason
    assert outcome.end(1).measured >= 1
    assert outcome.header.ranks[0].interface is None


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing")
def test_without_permission_raw_layers_fail_with_what_to_do_and_the_others_go_on(probe: Callable):
    prefix = ["setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-net_raw,-net_admin"]
    outcome = probe([{**PINGPONG, "layer": layer} for layer in ("frame", "ip", "udp", "tcp")], prefix=prefix)
    assert outcome.code == 0, outcome.stderr
    for number in (0, 1):
        assert outcome.failed(number).code is FailureCode.PERMISSION
        assert "Operation not permitted" in outcome.failed(number).reason
        assert "run as root or grant CAP_NET_RAW" in outcome.failed(number).reason
    assert outcome.end(2).measured >= 1
    assert outcome.end(3).measured >= 1


@needs_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is missing")
def test_a_peer_that_never_hears_anything_is_given_up_and_the_next_cell_goes_on(tmp_path: Path):
    # Ranks in networks of their own, each with the same address: every datagram ends where it began.
    alone = 'exec unshare --net sh -c \'ip link set lo up && exec "$@"\' sh "$@"'
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    cells = [
        {**PINGPONG, "layer": layer, "pattern": pattern, "reply_timeout_seconds": 0.02}
        for layer in ("udp", "frame")
        for pattern in ("pingpong", "stream")
    ]
    plan.write_text(
        json.dumps(plan_of([*cells, PINGPONG, {"layer": "memory", "pattern": "pingpong", "message_bytes": 8}], output))
    )
    done = subprocess.run(
        command_of(plan, 2, through=script(tmp_path / "alone.sh", alone)),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if not output.exists() and "unshare" in done.stderr:
        pytest.skip("network namespaces are not allowed here")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    codes = {line["cell"]: line["code"] for line in lines if line["type"] == "cell_failed"}
    assert {codes[number] for number in range(4)} <= {"timeout", "unreachable"}
    assert codes[4] in {"timeout", "unreachable"}
    assert lines[-2]["type"] == "cell_end"
    assert lines[-1] == {**lines[-1], "type": "footer", "cells": 1, "failed": 5}


def test_a_one_way_cell_that_fails_leaves_nothing_to_the_next_one(probe: Callable):
    # No answer comes within a microsecond: the leader gives up, while the follower has stamps of all that it answered.
    oneway = {"layer": "udp", "pattern": "oneway", "message_bytes": 64, "verify_messages": 0}
    outcome = probe([{**oneway, "reply_timeout_seconds": 1e-6}, oneway])
    assert outcome.code == 0, outcome.stderr
    assert "messages was answered in time" in outcome.failed(0).reason
    assert outcome.end(1).measured >= 1
    assert outcome.lines[-1].failed == 1


def test_pairs_that_fail_are_named_and_leave_nothing_to_the_next_cell(probe: Callable):
    # No answer comes within a microsecond: pairs are given up while their messages are on the way.
    pairs = {"layer": "udp", "pattern": "pairs", "message_bytes": 64, "ranks": [0, 1, 2], "verify_messages": 4}
    outcome = probe([{**pairs, "reply_timeout_seconds": 1e-6}, pairs], ranks=3)
    named = [(line.source, line.destination) for line in outcome.lines if line.type == "pair_failed" and line.cell == 0]
    assert sorted(named) == [(0, 1), (0, 2), (1, 2)]
    assert "no pair could be measured" in outcome.failed(0).reason
    assert all("each within" in line.reason for line in outcome.lines if line.type == "pair_failed")
    end = outcome.end(1)
    assert (end.verified, end.corrupted) == (12, 0)
    assert {(line.source, line.destination) for line in outcome.lines if line.type == "channel"} == {*named}
    assert end.values["receive_buffer_bytes"] > 0
    assert end.values["send_buffer_bytes"] > 0


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plan: plan["probes"][0].update(mesage_bytes=1), "$.probes[0].mesage_bytes: is not a known key"),
        (lambda plan: plan["probes"][0].update(ranks=[0, 7]), "$.probes[0].ranks[1]: rank 7 is not in this launch"),
        (lambda plan: plan["probes"][0].update(layer="xdp"), "$.probes[0].layer: 'xdp' is unknown"),
        (lambda plan: plan.pop("token"), "$.token: is missing"),
    ],
)
def test_a_bad_plan_is_refused_with_the_place_that_is_wrong(spoil: Callable, message: str, tmp_path: Path):
    plan = plan_of([PINGPONG], tmp_path / "records.jsonl")
    spoil(plan)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    done = subprocess.run(command_of(path, 2), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "records.jsonl").exists()


def test_a_plan_that_is_not_there_and_one_that_is_no_json_are_refused(tmp_path: Path):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for path, message in ((tmp_path / "none.json", "cannot be read"), (broken, "is not JSON")):
        done = subprocess.run(command_of(path, 1), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.parametrize("output", ["/no/such/folder/records.jsonl", "/dev/full"])
def test_an_output_that_cannot_be_written_is_the_environments_fault(output: str, tmp_path: Path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of([PINGPONG], Path(output))))
    done = subprocess.run(command_of(path, 2), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 3
    assert "cannot" in done.stderr
    assert output in done.stderr


def test_the_record_can_go_to_stdout(tmp_path: Path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of([PINGPONG], Path("-"))))
    done = subprocess.run(command_of(path, 2), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert json.loads(done.stdout.splitlines()[-1])["type"] == "footer"


def test_a_killed_rank_ends_the_launch_and_finished_cells_stay(tmp_path: Path):
    output, plan = tmp_path / "records.jsonl", tmp_path / "plan.json"
    long = {"minimum_samples": 10_000_000, "maximum_samples": 10_000_000, "maximum_seconds": 300}
    plan.write_text(json.dumps(plan_of([PINGPONG, {**PINGPONG, "stopping": long}], output)))
    launch = subprocess.Popen(command_of(plan, 2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not (output.exists() and "cell_end" in output.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ranks = json.loads(output.read_text().splitlines()[0])["ranks"]
        os.kill(ranks[1]["pid"], signal.SIGKILL)
        assert launch.wait(timeout=TIME_LIMIT_S) != 0
    finally:
        launch.kill()
        launch.wait()
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert any(line["type"] == "cell_end" and line["cell"] == 0 for line in lines)
    assert all(line["type"] != Footer.model_fields["type"].default for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--version"], 0, "fabricbench-probe "),
        (["--help"], 0, "Usage: mpiexec"),
        (["--list"], 0, "layers: memory frame ip udp tcp rdma mpi"),
        ([], 2, "one plan is needed"),
        (["--what"], 2, "unknown option"),
    ],
)
def test_the_program_explains_itself_without_being_started_by_mpi(arguments: list[str], code: int, text: str):
    done = subprocess.run(
        [str(native_file("fabricbench-probe")), *arguments], capture_output=True, text=True, timeout=10, check=False
    )
    assert done.returncode == code
    assert text in done.stdout + done.stderr
