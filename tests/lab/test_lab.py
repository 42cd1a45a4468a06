"""Labs for real: nodes, isolation, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import Lab, crowding, ledger, parse_fabrics, running_labs
from fabricbench.lab import lab as lab_module
from fabricbench.lab.process import inner_pids
from support.lab_outside import RunIn, StartLab, becomes_true, interfaces, network_namespaces, processes_in
from support.scripts import script

pytestmark = pytest.mark.lab


def lab_namespaces(lab: Lab) -> set[str]:
    processes = [lab.entry.keeper, *lab.entry.nodes.values()]
    return {str(Path(f"/proc/{process.pid}/ns/net").readlink()) for process in processes}


@pytest.mark.tour
@pytest.mark.usefixtures("lab_mode")
def test_a_lab_comes_up_and_goes_down_without_a_trace():
    interfaces_before = interfaces()
    lab = Lab.up("trace", 4, parse_fabrics("fast-ethernet,myrinet"), owned=True)
    namespaces = lab_namespaces(lab)
    assert len(namespaces) == 5
    assert namespaces <= network_namespaces()
    assert running_labs() == ["trace"]
    assert interfaces() == interfaces_before
    keeper = lab.entry.keeper
    lab.down()
    assert not keeper.is_alive
    assert processes_in(namespaces) == []
    assert interfaces() == interfaces_before
    assert running_labs() == []
    assert not lab.directory.exists()
    lab.down()


def test_a_node_has_its_own_name_network_shared_memory_and_hosts(start_lab: StartLab, run_in: RunIn):
    lab = start_lab("fast-ethernet,myrinet", nodes=2)
    program = (
        "import json, os, socket;"
        "print(json.dumps({'host': socket.gethostname(), 'interfaces': sorted(n for _, n in socket.if_nameindex()),"
        "'listed': sorted(os.listdir('/sys/class/net')), 'shm': os.listdir('/dev/shm'),"
        "'n0': socket.gethostbyname('n0'), 'cpus': sorted(os.sched_getaffinity(0)), 'cwd': os.getcwd(),"
        "'asked': os.environ['ASKED']}))"
    )
    done = run_in(lab, "n1", sys.executable, "-c", program, environment={"ASKED": "a value"})
    seen = json.loads(done.stdout)
    assert seen == {
        "host": "n1",
        "interfaces": ["ctl0", "fe0", "lo", "myr1"],
        "listed": ["ctl0", "fe0", "lo", "myr1"],
        "shm": [],
        "n0": "10.98.0.1",
        "cpus": list(lab.topology.cpus_of("n1")),
        "cwd": "/",
        "asked": "a value",
    }


def test_a_node_knows_the_addresses_of_all_others_for_good(start_lab: StartLab, run_in: RunIn):
    lab = start_lab("fast-ethernet,myrinet", nodes=3)
    done = run_in(lab, "n1", "ip", "-json", "neighbour", "show", "nud", "permanent")
    assert {(one["dev"], one["dst"], one["lladdr"]) for one in json.loads(done.stdout)} == {
        (interface, f"10.98.{fabric}.{node}", f"02:fb:00:00:0{fabric}:0{node}")
        for fabric, interface in ((1, "fe0"), (2, "myr1"))
        for node in (1, 3)
    }


def test_exit_codes_and_signals_of_a_command_are_passed_on(start_lab: StartLab, run_in: RunIn):
    lab = start_lab()
    assert run_in(lab, "n0", "sh", "-c", "exit 7").returncode == 7
    assert run_in(lab, "n0", "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL
    with pytest.raises(UsageError, match="no node 'n5'"):
        lab.command_in("n5", ["true"], working_directory=Path("/"), environment={})


def test_ctrl_c_reaches_the_command_whose_answer_is_passed_on(start_lab: StartLab):
    lab = start_lab()
    program = (
        "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(5));"
        "print('waiting', flush=True); time.sleep(30)"
    )
    tokens = lab.command_in("n0", [sys.executable, "-c", program], working_directory=Path("/"), environment={})
    with subprocess.Popen(tokens, stdout=subprocess.PIPE, start_new_session=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"waiting\n"
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(10) == 5


def test_a_command_dies_with_its_killed_starter(start_lab: StartLab, run_in: RunIn):
    lab = start_lab()
    tokens = lab.command_in("n0", ["sleep", "4711"], working_directory=Path("/"), environment={})

    def is_sleeping() -> bool:
        return run_in(lab, "n0", "pgrep", "-f", "^sleep 4711").returncode == 0

    with subprocess.Popen(tokens) as command:
        assert becomes_true(is_sleeping, 10)
        command.kill()
    assert becomes_true(lambda: not is_sleeping(), 10)


@pytest.mark.tour
def test_datagrams_cross_each_fabric_and_the_switch_counts_them(start_lab: StartLab, run_in: RunIn):
    lab = start_lab("fast-ethernet,atm-oc3", nodes=3)
    receiver = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 7)); s.settimeout(20);"
        "print('bound', flush=True); print(s.recvfrom(2000)[1][0])"
    )
    sender = (
        "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(1000), (sys.argv[1], 7))"
    )
    for fabric in ("fast-ethernet", "atm-oc3"):
        target, source = (str(lab.testbed().nodes[node].addresses[fabric]) for node in (2, 1))
        tokens = lab.command_in("n2", [sys.executable, "-c", receiver], working_directory=Path("/"), environment={})
        with subprocess.Popen(tokens, stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "bound\n"
            assert run_in(lab, "n1", sys.executable, "-c", sender, target).returncode == 0
            assert waiting.communicate(timeout=30)[0].strip() == source
    for fabric in lab.status().fabrics:
        counted = {port.interface.partition("-")[2]: port for port in fabric.switch.ports}
        assert counted["n1"].received_frames == 1
        assert counted["n2"].sent_frames == 1
        assert counted["n2"].sent_bytes == 1000 + 42
        assert counted["n0"].sent_frames == 0


def test_two_labs_run_side_by_side_with_the_same_addresses(start_lab: StartLab, run_in: RunIn):
    first, second = start_lab(nodes=2), start_lab(nodes=2)
    assert lab_namespaces(first).isdisjoint(lab_namespaces(second))
    first.down()
    assert run_in(second, "n1", "hostname").stdout == "n1\n"
    assert running_labs() == [second.name]


def test_a_second_lab_keeps_its_switches_off_the_firsts_processors_or_says_that_it_cannot(start_lab: StartLab):
    first = start_lab(nodes=2)
    assert crowding() == []
    second = start_lab(nodes=2)
    one, other = (lab.topology.fabrics[0].cpu for lab in (first, second))
    if len(os.sched_getaffinity(0)) >= 4:
        assert one != other
        assert crowding() == []
    elif one is not None:
        (said,) = crowding()
        names = sorted((first.name, second.name))
        assert f"processor {one} serves the switches of labs {names[0]} and {names[1]}" in said
    second.down()
    assert crowding() == []


def test_what_keeps_a_switchs_records_stays_off_its_processor(start_lab: StartLab):
    lab = start_lab(nodes=2)
    planned, process = lab.topology.fabrics[0], lab.entry.switches["fast-ethernet"]
    if planned.cpu is None:
        pytest.skip("the switch shares the only processor")
    threads = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()}
    assert os.sched_getaffinity(process.pid) == {planned.cpu}
    (keeping,) = threads - {process.pid}
    assert becomes_true(lambda: planned.cpu not in os.sched_getaffinity(keeping), timeout_s=5)


def test_a_taken_name_is_refused_and_the_lab_that_has_it_lives_on(start_lab: StartLab):
    lab = start_lab(name="taken")
    with pytest.raises(UsageError, match="runs already"):
        Lab.up("taken", 2, parse_fabrics("sci"), owned=True)
    assert Lab.open("taken").entry.keeper == lab.entry.keeper
    assert lab.entry.keeper.is_alive


def test_a_switch_that_is_killed_before_it_is_ready_is_told_as_killed(
    start_lab: StartLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script(tmp_path / "fabricbench-switch", "kill -9 $$")
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"the switch of fast-ethernet did not start: .* ended by SIGKILL"):
        start_lab()


def test_a_switch_that_dies_while_the_lab_starts_is_named(start_lab: StartLab, monkeypatch: pytest.MonkeyPatch):
    """Between its `ready` and the moment at which the lab writes down who it is."""

    def without_switches(keeper: int) -> dict[int, int]:
        found = inner_pids(keeper).items()
        return {inner: pid for inner, pid in found if "fabricbench-swi" not in Path(f"/proc/{pid}/comm").read_text()}

    monkeypatch.setattr("fabricbench.lab.lab.inner_pids", without_switches)
    with pytest.raises(EnvironmentLacks, match="did not start: the switch of fast-ethernet ended meanwhile"):
        start_lab("fast-ethernet")


def test_a_dead_node_is_named_and_shown_as_dead(start_lab: StartLab):
    lab = start_lab()
    node = lab.entry.nodes["n1"]
    assert [one.state for one in lab.status().nodes[:2]] == ["up", "up"]
    assert node.kill()
    assert node.wait(10)
    assert [one.state for one in lab.status().nodes[:2]] == ["up", "dead"]
    assert f"node n1 of lab {lab.name} (process {node.pid}) has ended" in str(lab.lost())


def test_a_stopped_switch_is_named_as_long_as_it_is_stopped_and_needed_where_it_is_the_fabrics(start_lab: StartLab):
    lab = start_lab()
    switch = lab.entry.switches["fast-ethernet"]
    assert lab.stopped() is None
    assert switch.kill(signal.SIGSTOP)
    assert becomes_true(lambda: lab.stopped() is not None, 10)
    assert f"the switch of fast-ethernet in lab {lab.name} (process {switch.pid}) is stopped" in str(lab.stopped())
    assert lab.lost() is None
    assert switch.kill(signal.SIGCONT)
    assert becomes_true(lambda: lab.stopped() is None, 10)
    assert switch.kill()
    assert switch.wait(10)
    assert lab.lost("another") is None
    assert lab.lost("fast-ethernet") == lab.lost() is not None
    assert (switch.pid in lab.processes("fast-ethernet"), switch.pid in lab.processes("another")) == (True, False)


def test_a_dead_switch_is_shown_as_dead(start_lab: StartLab):
    lab = start_lab()
    switch = lab.entry.switches["fast-ethernet"]
    assert lab.status().fabrics[0].switch.state in {"idle", "busy"}
    assert lab.lost() is None
    assert switch.kill()
    assert switch.wait(10)
    assert lab.status().fabrics[0].switch.state == "dead"
    assert f"the switch of fast-ethernet in lab {lab.name}" in str(lab.lost())
    assert lab.entry.keeper.kill()
    assert lab.entry.keeper.wait(10)
    assert "the keeper of" in str(lab.lost())


@pytest.mark.usefixtures("lab_mode")
def test_a_keeper_that_is_killed_during_the_start_is_told_with_its_signal(monkeypatch: pytest.MonkeyPatch):
    write = ledger.write

    def write_and_kill(name: str, entry: ledger.LedgerEntry) -> None:
        write(name, entry)
        assert not entry.nodes
        assert entry.keeper.kill()

    monkeypatch.setattr(ledger, "write", write_and_kill)
    with pytest.raises(EnvironmentLacks, match="lab shot did not start: its keeper ended by SIGKILL"):
        Lab.up("shot", 4, parse_fabrics("fast-ethernet,myrinet"), owned=True)
    assert running_labs() == []


@pytest.mark.usefixtures("lab_mode")
def test_a_keeper_that_is_killed_before_it_reads_its_order_is_told_as_well(monkeypatch: pytest.MonkeyPatch):
    start = subprocess.Popen

    def start_and_kill(*arguments: Any, **named: Any) -> Any:
        started = start(*arguments, **named)
        if "fabricbench.lab.keeper" in arguments[0]:
            started.kill()
            started.wait(10)
        return started

    monkeypatch.setattr(subprocess, "Popen", start_and_kill)
    with pytest.raises(EnvironmentLacks, match="lab shot did not start: its keeper ended by SIGKILL"):
        Lab.up("shot", 2, parse_fabrics("fast-ethernet,myrinet"), owned=True)
    assert running_labs() == []


@pytest.mark.usefixtures("lab_mode")
def test_a_keeper_that_hangs_while_it_starts_is_told_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    hangs = tmp_path / "python"
    hangs.write_text("#!/bin/sh\nexec sleep 40\n")
    hangs.chmod(0o755)
    start = subprocess.Popen

    def start_hanging(arguments: list[str], *others: Any, **named: Any) -> Any:
        return start([str(hangs)] if "fabricbench.lab.keeper" in arguments else arguments, *others, **named)

    monkeypatch.setattr(subprocess, "Popen", start_hanging)
    monkeypatch.setattr(lab_module, "_START_TIMEOUT_S", 0.5)
    begin = time.monotonic()
    with pytest.raises(EnvironmentLacks, match="lab hung did not start: nothing came within"):
        Lab.up("hung", 2, parse_fabrics("fast-ethernet,myrinet"), owned=True)
    assert time.monotonic() - begin < 30
    assert running_labs() == []


STARTER = """
import sys, time
from fabricbench.lab import Lab, parse_fabrics
lab = Lab.up("killed", 3, parse_fabrics("fast-ethernet,myrinet"), owned=sys.argv[1] == "owned")
print("up", flush=True)
time.sleep(60)
"""


@pytest.mark.usefixtures("lab_mode")
def test_an_owned_lab_dies_with_its_killed_owner():
    with subprocess.Popen([sys.executable, "-c", STARTER, "owned"], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        lab = Lab.open("killed")
        namespaces = lab_namespaces(lab)
        owner.kill()
    assert becomes_true(lambda: not lab.entry.keeper.is_alive and processes_in(namespaces) == [], 10)
    with ledger.locked():
        assert ledger.drop_stale() == ["killed"]


@pytest.mark.usefixtures("lab_mode")
def test_a_lab_that_is_not_owned_outlives_its_starter():
    with subprocess.Popen([sys.executable, "-c", STARTER, "free"], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        starter.kill()
    lab = Lab.open("killed")
    assert lab.status().nodes[2].name == "n2"
    lab.down()


@pytest.mark.slow
@pytest.mark.usefixtures("lab_mode")
def test_a_start_that_is_killed_at_any_moment_leaves_nothing(own_ledger: Path):
    interfaces_before = interfaces()
    for step in range(12):
        with subprocess.Popen([sys.executable, "-c", STARTER, "owned"], stdout=subprocess.DEVNULL) as owner:
            # From before the first namespace to just after the start.
            time.sleep(0.1 + 0.12 * step)
            owner.kill()
        assert becomes_true(lambda: _keepers_of(own_ledger) == [], 10), f"after {0.1 + 0.12 * step:.2f} s"
    assert becomes_true(_is_forgotten, 10)  # a keeper that is being ended lives a moment longer than its files
    assert interfaces() == interfaces_before


def _is_forgotten() -> bool:
    with ledger.locked():
        ledger.drop_stale()
    return ledger.names() == []


def _keepers_of(state: Path) -> list[str]:
    """The processes that work for labs of this ledger: their log or switch file is in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            log = str((process / "fd" / "2").readlink())
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(state) in log or str(state) in command:
            found.append(f"{process.name} {command}")
    return found
