"""The doors into layer frame: side by side in one launch, what they lack where, and that nothing of them stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Command
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.launch.watch import run_watched
from fabricbench.native import doors, native_file
from fabricbench.record.lines import LINE_ADAPTER, FailureCode, Stages
from support.measurer import Outcome, plan_of

DOORS = ("packet", "ring", "xdp", "xdp-native")
AF_XDP = ("xdp", "xdp-native")
IN_USER_NAMESPACE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    'ip link set lo up && exec "$@"',
    "sh",
)
LIMIT_S = 60

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="eBPF programs are loaded by root alone")


def cell(door: str, **more: Any) -> dict[str, Any]:
    """A ping-pong of two ranks through a door."""
    usual = {
        "layer": "frame",
        "pattern": "pingpong",
        "message_bytes": 64,
        "receive": "blocking",
        "ranks": [0, 1],
        "verify_messages": 2,
    }
    return {**usual, "parameters": {"door": door}, **more}


class InLab:
    """Two nodes on one fabric, and the measurer on them."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.records = folder / "records.jsonl"
        self.fabric = lab.testbed().fabrics[0]
        self._launcher = LabLauncher(lab, find_starter(), yield_library())

    def command(self, probes: list[dict[str, Any]]) -> Command:
        """What measures these."""
        known = self.fabric
        fabric = {"name": known.name, "interface": known.interface, "subnet": str(known.subnet), "mtu": known.mtu}
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps(plan_of(probes, self.records, fabric)))
        return self._launcher.command(known, [str(native_file("fabricbench-probe")), str(plan)], self.folder, 2)

    def measure(self, probes: list[dict[str, Any]]) -> Outcome:
        """Measure these to the end."""
        ended = run_watched(self.command(probes), limit_seconds=LIMIT_S)
        assert ended.exit_code == 0, ended.stderr_tail
        lines = [LINE_ADAPTER.validate_json(line) for line in self.records.read_text().splitlines()]
        return Outcome(0, ended.stderr_tail, lines)

    def run_in(self, node: str, *command: str) -> str:
        """What a command on a node printed."""
        tokens = self.lab.command_in(node, command, working_directory=Path("/"), environment={})
        return subprocess.run(tokens, capture_output=True, text=True, check=True, timeout=20).stdout

    def programs(self) -> list[str]:
        """Which nodes have an XDP program at the fabric's interface."""
        interface = str(self.fabric.interface)
        return [node for node in ("n0", "n1") if "xdp" in self.run_in(node, "ip", "link", "show", "dev", interface)]


@pytest.fixture
def in_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], InLab]]:
    """Start a lab with these fabrics; it ends with the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    support = lab_support()
    if support.mode == "none":
        pytest.skip(f"no lab can be had here: {support.reason}")
    labs: list[Lab] = []

    def start(fabrics: str) -> InLab:
        labs.append(Lab.up("doors", 2, parse_fabrics(fabrics), owned=True))
        return InLab(labs[-1], tmp_path)

    yield start
    for lab in labs:
        lab.down()


@pytest.mark.complete
def test_layer_frame_has_four_doors():
    assert doors()["frame"] == DOORS


@pytest.mark.mpi
def test_without_the_right_to_load_a_program_its_doors_say_so_and_the_others_are_measured(probe: Callable):
    outcome = probe([cell(door) for door in DOORS], prefix=IN_USER_NAMESPACE)
    for number, door in enumerate(DOORS):
        if door not in AF_XDP:
            assert outcome.end(number).measured >= 1
            continue
        assert outcome.failed(number).code is FailureCode.PERMISSION
        assert "needs CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW" in outcome.failed(number).reason


@pytest.mark.mpi
def test_stages_are_measured_through_the_usual_door_alone(probe: Callable):
    def stamped(door: str, pattern: str = "pingpong") -> dict[str, Any]:
        return {**cell(door), "pattern": pattern, "parameters": {"door": door, "stages": "user"}}

    patterns = ("pingpong", "paced", "burst")
    outcome = probe([*(stamped("packet", one) for one in patterns), stamped("ring")], prefix=IN_USER_NAMESPACE)
    for number in range(len(patterns)):
        sides = [line for line in outcome.lines if isinstance(line, Stages) and line.cell == number]
        assert sorted(one.leads for one in sides) == [False, True]
        for one in sides:
            assert min(one.number) >= 2**31  # by which a lab's switch knows their frames
            for boundary in (one.scheduled_ns, one.departed_ns, one.arrived_ns):
                assert sum(each is None for each in boundary) <= 0.05 * len(one.number)
    failed = outcome.failed(len(patterns))
    assert failed.code is FailureCode.UNSUPPORTED
    assert "stages are not measured through door ring: leave `door` out" in failed.reason


@pytest.mark.mpi
def test_the_ring_of_a_path_is_as_large_whatever_was_measured_before_it(probe: Callable):
    many = {"pattern": "incast", "parameters": {"door": "ring", "flows": 16}}
    alone = probe([cell("ring")], prefix=IN_USER_NAMESPACE)
    after_many = probe([cell("ring", **many, receive="polling"), cell("ring")], prefix=IN_USER_NAMESPACE)
    ring_bytes = alone.end(0).values["receive_buffer_bytes"]
    assert after_many.end(0).values["receive_buffer_bytes"] < ring_bytes
    assert after_many.end(1).values["receive_buffer_bytes"] == ring_bytes


@needs_root
@pytest.mark.mpi
def test_two_ranks_on_one_interface_cannot_both_catch_its_frames(probe: Callable):
    outcome = probe([cell("xdp"), cell("ring")], prefix=("unshare", "--net", *IN_USER_NAMESPACE[4:]))
    assert outcome.failed(0).code is FailureCode.UNSUPPORTED
    assert "of another rank on this interface; place one rank a node" in outcome.failed(0).reason
    assert outcome.end(1).measured >= 1


@needs_root
@pytest.mark.lab
@pytest.mark.mpi
def test_all_doors_take_turns_in_one_launch_over_the_fabric_and_leave_nothing_there(in_lab: Callable[[str], InLab]):
    place = in_lab("fast-ethernet")
    order = [*DOORS, *reversed(DOORS), "xdp", "packet", "xdp-native", "ring"]
    patterns = ("pingpong", "stream", "incast")
    probes = [
        cell(door, pattern=pattern, messages_per_sample=16 if pattern == "stream" else 1)
        for door in order
        for pattern in patterns
    ]
    outcome = place.measure(probes)
    failed = [line.reason for line in outcome.lines if line.type == "cell_failed"]
    assert failed == []
    for number in range(len(probes)):
        end = outcome.end(number)
        carried = end.interfaces[str(place.fabric.interface)]
        assert end.verified > 0
        assert end.corrupted == 0
        # Every frame has 14 bytes of header, and is counted as it is at the fabric's interface.
        assert carried.sent + carried.received >= end.measured * (64 + 14) > 0
    assert place.programs() == []


@needs_root
@pytest.mark.lab
@pytest.mark.mpi
def test_a_rank_that_is_killed_leaves_no_program_and_no_queue_behind(in_lab: Callable[[str], InLab]):
    place = in_lab("fast-ethernet")
    long = {"minimum_samples": 10_000_000, "maximum_samples": 10_000_000, "maximum_seconds": LIMIT_S}
    with started(place.command([cell("xdp", stopping=long)]), place.records) as launch:
        deadline = time.monotonic() + LIMIT_S
        while place.programs() != ["n0", "n1"]:
            assert time.monotonic() < deadline
            assert launch.poll() is None
        for rank in json.loads(place.records.read_text().splitlines()[0])["ranks"]:
            place.run_in(rank["host"], "kill", "-KILL", str(rank["pid"]))
        launch.wait(timeout=LIMIT_S)
    assert place.programs() == []
    assert place.measure([cell("xdp"), cell("xdp-native")]).end(1).measured >= 1


@needs_root
@pytest.mark.lab
@pytest.mark.mpi
def test_what_a_driver_cannot_do_is_said_with_what_to_do(in_lab: Callable[[str], InLab]):
    outcome = in_lab("fast-ethernet:mtu=9000").measure(
        [cell("xdp-native"), cell("xdp"), cell("xdp", message_bytes=4000), cell("ring", message_bytes=9000)]
    )
    assert outcome.failed(0).code is FailureCode.UNSUPPORTED
    assert "an MTU of 9000 is more than its driver takes" in outcome.failed(0).reason
    assert outcome.end(1).measured >= 1
    assert "choose from 1 to 3826" in outcome.failed(2).reason
    assert outcome.end(3).measured >= 1


@contextmanager
def started(command: Command, record: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a launch and wait for its record; nothing of it is left afterwards."""
    launch = subprocess.Popen(
        command.tokens,
        cwd=command.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (record.exists() and "\n" in record.read_text()):
            assert launch.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield launch
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launch.pid, signal.SIGTERM)
        launch.wait()
