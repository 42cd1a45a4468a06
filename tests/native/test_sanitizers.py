"""The programs under sanitizers: every door in every pattern, every MPI operation, the switch, its threads, what measures it.

What is run comes from the tables of doors and patterns, so that a new one is run as well. Cells are as small as they can be: these
programs are several times slower, and what they measure means nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.launch.watch import run_watched
from fabricbench.model import Layer, Pattern
from fabricbench.native import native_file
from fabricbench.pattern_facts import USUAL_LAYERS, Family, PatternFacts
from fabricbench.patterns import PATTERNS, why_impossible
from fabricbench.record.launch_files import PLAN_FILE
from fabricbench.record.lines import LINE_ADAPTER, CellFailed
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan, Stopping, options_of, plan_beside
from fabricbench.record.reading import read_record
from fabricbench.testbed.model import Fabric
from support.farms import Farms
from support.measurer import Outcome
from support.sanitized import Build, Sanitized
from support.switch_rig import SwitchRig, address_of, why_it_cannot_run

RANKS = 4
NUMBERS = {"flows": 2, "round_trips": 3, "unexpected": 5, "window": 4, "threads": 2, "accesses": 3}
"""Of parameters that are numbers: those that have other code run than their defaults."""
LIMIT_S = 150
LATE = "did all ranks begin within"
"""Why an operation may fail: its call is over before the last of four ranks has one of few processors to begin it on.

Sanitized ranks are several times slower on their way to the agreed time and share processors with other tests, so cells may
give up as they are meant to. Their calls were verified and made by then, which is what sanitizers look at here.
"""

LOOPBACK = Fabric(name="loopback", interface="lo", subnet="127.0.0.0/8", mtu=65536)
IS_ROOT = os.geteuid() == 0
OPEN_LAYERS = [Layer.MEMORY, Layer.UDP, Layer.TCP, Layer.MPI]
"""Those that need no privileges."""

NOT_ONLY_MPI = [pattern for pattern, facts in PATTERNS.items() if facts.layers != (Layer.MPI,)]
AF_XDP = ("xdp", "xdp-native")
"""Doors that one rank at an interface can have, and only root."""

LACK = why_it_cannot_run()
ATM = {"payload_bytes": 48, "cell_bytes": 53}


@pytest.fixture
def sanitized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have everything use the sanitized programs, and hold them to no report."""
    programs = Sanitized(Build.ADDRESSES, tmp_path, monkeypatch)
    yield
    assert programs.reports == []


@contextmanager
def lab_of(nodes: int) -> Iterator[Lab]:
    """A lab with one fabric, whose switch must live to its end."""
    support = lab_support()
    if support.mode == "none":
        pytest.skip(f"no lab can be had here: {support.reason}")
    lab = Lab.up("sanitized", nodes, parse_fabrics("fast-ethernet"), owned=True)
    try:
        yield lab
        assert lab.lost() is None
    finally:
        lab.down()


def doors() -> list[tuple[Layer, str, list[str]]]:
    """Each door of the measurer: its layer, its name, how its receivers can wait."""
    done = subprocess.run(
        [native_file("fabricbench-probe"), "--list"], capture_output=True, text=True, timeout=20, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("door ")]
    return [(Layer(layer), name, ways) for _, layer, name, *ways in lines]


def variations(facts: PatternFacts, layer: Layer) -> list[dict[str, str | int | float]]:
    """The parameters as they are by default, each other word of each, and parallel flows where the layer can tell them apart."""
    few: dict[str, str | int | float] = {name: 2 for name in ("matchings",) if name in facts.parameters}
    varied = [few]
    for name, parameter in facts.parameters.items():
        if parameter.is_of(layer):
            varied += [{name: word} for word in parameter.words[1:]]
            varied += [{name: NUMBERS[name]}] if name in NUMBERS else []
    return [one for one in varied if why_impossible(layer, Pattern(facts.name), one) is None]


def cells(
    layers: Sequence[Layer], patterns: Sequence[Pattern] = tuple(Pattern), *, af_xdp: bool = False
) -> list[PlanProbe]:
    """Every pattern through every door into those layers, in every way that its receivers can wait; `af_xdp` or the others."""
    facts_of_all = [PATTERNS[pattern] for pattern in patterns if PATTERNS[pattern].family is not Family.WORKLOAD]
    asked = [
        (facts, layer, way, {**parameters, "door": door})
        for layer, door, ways in doors()
        if (door in AF_XDP) == af_xdp
        for facts in facts_of_all
        if layer in layers and why_impossible(layer, Pattern(facts.name), {}) is None
        for number, way in enumerate(ways)
        for parameters in variations(facts, layer)[: None if number == 0 else 1]
    ]
    return [
        PlanProbe(
            id=number,
            layer=layer,
            pattern=Pattern(facts.name),
            message_bytes=1024 if facts.has_size else facts.smallest_message_bytes,
            receive=way,
            ranks=(0,) if layer is Layer.MEMORY else tuple(range(facts.most_ranks or RANKS)),
            messages_per_sample=4 if facts.is_stream and layer is not Layer.MEMORY else 1,
            warmup_samples=1,
            verify_messages=2,
            stopping=Stopping(
                minimum_samples=1, maximum_samples=3, maximum_seconds=0.1 if facts.family is Family.FLOOD else 0.02
            ),
            parameters=parameters,
        )
        for number, (facts, layer, way, parameters) in enumerate(asked)
    ]


def measure(
    launcher: Launcher, fabric: Fabric, probes: Sequence[PlanProbe], directory: Path, starting: Sequence[str] = ()
) -> Outcome:
    """Measure cells in one launch; `starting` is what goes before the measurer."""
    plan = ProbePlan(
        launch_id=f"b00-{fabric.name}",
        token=0xFAB1,
        fabric=PlanFabric(name=fabric.name, interface=fabric.interface, subnet=fabric.subnet, mtu=fabric.mtu),
        output=str(directory / "records.jsonl"),
        probes=tuple(probes),
    )
    (directory / PLAN_FILE).write_text(plan.model_dump_json(by_alias=True))
    program = [*starting, str(native_file("fabricbench-probe")), *options_of(probes), str(directory / PLAN_FILE)]
    ended = run_watched(launcher.command(fabric, program, directory, RANKS), limit_seconds=LIMIT_S)
    assert ended.exit_code == 0, ended.stderr_tail
    record = directory / "records.jsonl"
    assert read_record(record, plan_beside(directory)).damage == []
    lines: list[Any] = [LINE_ADAPTER.validate_json(line) for line in record.read_text().splitlines()]
    return Outcome(0, ended.stderr_tail, lines)


def check_measured(launcher: Launcher, fabric: Fabric, probes: Sequence[PlanProbe], directory: Path) -> Outcome:
    """Measure cells: every one has samples, and every payload came as it was sent. What a busy machine failed has a second try."""
    outcome = measure(launcher, fabric, probes, directory)
    failed = check_done(outcome, probes)
    if failed:
        again = directory / "again"
        again.mkdir()
        tried = [probe for probe in probes if probe.id in failed]
        failed = check_done(measure(launcher, fabric, tried, again), tried)
    unexpected = [line for line in failed.values() if LATE not in line.reason]
    assert [(line.layer, line.pattern, line.reason) for line in unexpected] == []
    operations = [probe for probe in probes if PATTERNS[probe.pattern].family is Family.OPERATION]
    assert len(failed) <= len(operations) / 2
    return outcome


def check_done(outcome: Outcome, probes: Sequence[PlanProbe]) -> dict[int, CellFailed]:
    """Check the cells that have been measured; return the others."""
    failed = {line.cell: line for line in outcome.lines if isinstance(line, CellFailed)}
    for probe in probes:
        if probe.id not in failed:
            end = outcome.end(probe.id)
            assert len(outcome.times(probe.id)) == end.measured >= 1, probe
            assert end.corrupted == 0, probe
            assert end.verified > 0 or probe.layer is Layer.MEMORY, probe
    return failed


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("build", "kind", "report"),
    [
        (Build.ADDRESSES, "beyond", "heap-buffer-overflow"),
        (Build.ADDRESSES, "overflow", "signed integer overflow"),
        (Build.ADDRESSES, "leak", "LeakSanitizer"),
        (Build.THREADS, "race", "data race"),
    ],
)
def test_a_fault_of_one_rank_ends_the_launch_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, kind: str, report: str
):
    """What the other tests rest on: started as the measurer is, with the same settings."""
    programs = Sanitized(build, tmp_path, monkeypatch)
    launcher = LocalLauncher(find_starter(), yield_library())
    command = launcher.command(LOOPBACK, [*programs.starting(), str(native_file("faulty")), kind], tmp_path, 1)
    ended = run_watched(command, limit_seconds=LIMIT_S)
    assert ended.exit_code not in (0, None)
    assert report in "".join([ended.stderr_tail, *programs.reports])


@pytest.mark.mpi
@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.usefixtures("sanitized")
def test_every_pattern_through_every_door_over_the_loopback(tmp_path: Path):
    probes = cells(list(USUAL_LAYERS) if IS_ROOT else OPEN_LAYERS)
    check_measured(LocalLauncher(find_starter(), yield_library()), LOOPBACK, probes, tmp_path)


@pytest.mark.mpi
@pytest.mark.timeout(LIMIT_S + 30)
def test_the_threads_of_an_operation_share_nothing_unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They call MPI at once, each with memory and times of its own; what MPI itself does is not looked at."""
    programs = Sanitized(Build.THREADS, tmp_path, monkeypatch)
    no_hooks = ("env", "UCX_MEM_EVENTS=n")  # into malloc and mmap: they end a program that has ThreadSanitizer's
    probes = cells([Layer.MPI], [Pattern.THREADED])
    launcher = LocalLauncher(find_starter(), yield_library())
    outcome = measure(launcher, LOOPBACK, probes, tmp_path, (*no_hooks, *programs.starting()))
    assert all(LATE in line.reason for line in check_done(outcome, probes).values())
    assert programs.reports == []


@pytest.mark.mpi
@pytest.mark.usefixtures("sanitized")
def test_a_farm_of_jobs_that_are_done_that_fail_and_that_take_too_long(tmp_path: Path):
    script = "case {job}.{attempt} in 1.0) exit 3;; 2.0) kill -9 $$;; 3.0) setsid sleep 300 & sleep 300;; esac; cat {input} | wc -c"
    farms = Farms(tmp_path)
    done = farms.run(command=("sh", "-c", script), input_bytes=700_001, job_seconds=2, at_once=2, output_bytes=100)
    assert (done.code, done.record.jobs_done) == (0, "6 of 6"), done.stderr
    assert farms.is_nothing_left()


@pytest.mark.lab
@pytest.mark.mpi
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.usefixtures("sanitized")
def test_every_pattern_between_nodes_of_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same cells through the emulated switch; operations of MPI alone are the same as over the loopback."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    probes = cells([layer for layer in USUAL_LAYERS if layer is not Layer.MEMORY], NOT_ONLY_MPI)
    with lab_of(RANKS) as lab:
        launcher = LabLauncher(lab, find_starter(), yield_library())
        outcome = check_measured(launcher, lab.testbed().fabrics[0], probes, tmp_path)
        (switch,) = launcher.switches().values()
    assert len({rank.host for rank in outcome.header.ranks}) == RANKS
    assert sum(port["sent_frames"] for port in switch["ports"]) > len(probes)


@pytest.mark.lab
@pytest.mark.mpi
@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.skipif(not IS_ROOT, reason="eBPF programs are loaded by root alone")
@pytest.mark.usefixtures("sanitized")
def test_every_pattern_through_af_xdp_between_nodes_of_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both modes in one launch, in which they take turns at the interface. Two ranks on one interface are refused."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    probes = cells([Layer.FRAME], af_xdp=True)
    with lab_of(RANKS) as lab:
        check_measured(LabLauncher(lab, find_starter(), yield_library()), lab.testbed().fabrics[0], probes, tmp_path)


def flood_and_ask(rig: SwitchRig) -> None:
    """Have two nodes send to the third until its port drops frames, and ask the switch for its status all the while.

    On a busy machine one may have sent all of its own before the other begins: then nothing is dropped, and they send again.
    """
    flood = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM);"
        f"[s.sendto(bytes(1400), ({address_of(1)!r}, 9)) for _ in range(100)]"
    )
    deadline = time.monotonic() + LIMIT_S / 2
    while sum(port["dropped_frames"] for port in rig.status()["ports"]) == 0:
        assert time.monotonic() < deadline, "the switch dropped nothing"
        senders = [rig.start_in_node(node, sys.executable, "-c", flood) for node in (0, 2)]
        while any(sender.poll() is None for sender in senders):
            rig.status()


def end_switch(rig: SwitchRig) -> None:
    """End the switch as the lab does, and wait for what it writes last."""
    rig.switch.terminate()
    assert rig.switch.wait(timeout=10) == 0


@pytest.mark.lab
@pytest.mark.skipif(LACK is not None, reason=str(LACK))
@pytest.mark.parametrize(
    "fabric", [{"switching": "store-and-forward"}, {"switching": "cut-through", "cell": ATM}], ids=str
)
@pytest.mark.usefixtures("sanitized")
def test_the_switch_forwards_floods_drops_and_counts(tmp_path: Path, fabric: dict[str, Any]):
    with SwitchRig(tmp_path, 3, is_shaped=False, **fabric, line_rate_bit_s=10e6, port_buffer_bytes=5 * 1538) as rig:
        flood_and_ask(rig)
        rig.run_in_node(0, "ip", "neighbour", "replace", address_of(1), "lladdr", "02:00:00:00:99:99", "dev", "fab0")
        rig.run_in_node(0, "ip", "route", "replace", f"{address_of(2)}/32", "dev", "fab0")
        for node, size in ((1, 100), (2, 1500)):  # to a node that is unknown, and longer than the fabric takes
            send = (
                f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes({size}), ({address_of(node)!r}, 9))"
            )
            rig.run_in_node(0, sys.executable, "-c", send)
        measure_delay = [
            str(native_file("fabricbench-linkdelay")),
            *("--from", str(rig.pid_of(2)), "--to", str(rig.pid_of(1)), "--count", "50", "--warmup", "5"),
            *("--source", address_of(2), "--destination", address_of(1), "--bytes", "1000"),
        ]
        done = subprocess.run(
            rig.in_switch(*measure_delay), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["count"] == 50
        end_switch(rig)


@pytest.mark.lab
@pytest.mark.skipif(LACK is not None, reason=str(LACK))
def test_the_threads_of_the_switch_share_nothing_unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One forwards and counts while the other is asked for its status and appends to the lateness file."""
    programs = Sanitized(Build.THREADS, tmp_path, monkeypatch)
    lateness = tmp_path / "lateness"
    buffers = {"line_rate_bit_s": 10e6, "port_buffer_bytes": 5 * 1538, "lateness": str(lateness)}
    with SwitchRig(tmp_path, 3, is_shaped=False, starting=programs.starting(), **buffers) as rig:
        flood_and_ask(rig)
        end_switch(rig)
    assert lateness.stat().st_size > 0
    assert programs.reports == []
