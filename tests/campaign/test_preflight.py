"""A preflight over an ssh of our own: what refuses a run, what is left behind then, what the manifest says."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from pathlib import Path

import pytest

from fabricbench.campaign import failure, preflight
from fabricbench.campaign import run as running
from fabricbench.campaign.events import Event, NodesAsked, Notice
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preflight import _understood, examine_venue, read_inventories
from fabricbench.campaign.run import resume_run, start_run
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.trust import seal_plan
from fabricbench.campaign.venue import AAPair, Standing
from fabricbench.errors import EnvironmentLacks
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.asking import CommandAnswer
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import MpiStarter, find_starter
from fabricbench.launch.slurm import SlurmLauncher
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra, srun
from fabricbench.model import Layer, Pattern
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.manifest import read_manifest
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.names import LookUp
from fabricbench.testbed.preflight_result import Preflight, Silent
from support.calling import Call
from support.fake_nodes import FakeNodes, interface

EXPERIMENT = Experiment(layers=(Layer.TCP,), pattern=Pattern.PINGPONG, message_bytes=(64,), maximum_seconds="20ms")
CAMPAIGN = Campaign(name="tiny", blocks=2, experiments=(EXPERIMENT,))
EXAMPLE = Path(__file__).parents[2] / "examples/testbed-two-fabrics.toml"

RACK = """
[testbed]
name = "rack"
nodes = "c[0-2]"

[[fabric]]
name = "slow"
interface = "eth0"

[[fabric]]
name = "fast"
interface = "eth1"
mtu = 9000
"""


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    path = tmp_path / "rack.toml"
    path.write_text(RACK)
    return path


def rack_of(*fabrics: Fabric, nodes: tuple[str, ...] = ("c0", "c1", "c2")) -> Testbed:
    usual = (Fabric(name="slow", interface="eth0"), Fabric(name="fast", interface="eth1", mtu=9000))
    return Testbed(
        name="rack", launcher=LauncherKind.SSH, nodes=tuple(Node(name=name) for name in nodes), fabrics=fabrics or usual
    )


def examine(place: Testbed) -> Preflight:
    plan = plan_run(CAMPAIGN, place, seed=1)
    return examine_venue(Standing(given=place), plan, lambda _: None)


def test_a_rack_that_is_as_its_file_says_passes(nodes: FakeNodes):
    heard: list[Event] = []
    found = examine_venue(Standing(given=rack_of()), None, heard.append)
    assert found.errors == ()
    assert [node.host for node in found.nodes] == ["c0", "c1", "c2"]
    assert heard[-1] == NodesAsked(3, 3)
    assert len(nodes.asked) == 3


def test_a_node_that_does_not_exist_or_cannot_be_used_is_named_with_what_to_do(nodes: FakeNodes):
    nodes.behave("c0", "echo 'root@c0: Permission denied (publickey).' >&2; exit 255")
    nodes.behave("c1", "echo 'sh: 1: /opt/venv/bin/python: not found' >&2; exit 127")
    nodes.behave("c2", "echo 'python: No module named fabricbench' >&2; exit 1")
    found = examine(rack_of(nodes=("c0", "c1", "c2", "c3")))
    denied, missing, empty, unknown = found.errors
    assert (denied.node, denied.subject, denied.action) == (
        "c0",
        "reach",
        "let a key in without a question: `ssh-copy-id c0`",
    )
    assert "not found" in missing.found
    assert "at the same path" in missing.action
    assert "no fabricbench in" in empty.found
    assert "Could not resolve hostname c3" in unknown.found
    assert "correct `nodes`" in unknown.action
    assert isinstance(found.refusal(), EnvironmentLacks)


def test_nodes_that_differ_are_warned_of_and_shown_folded_with_what_carries_their_fabrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricbench: Call
):
    made = FakeNodes(tmp_path / "nodes", monkeypatch)
    usual = {"net.eth1.driver": "mlx5_core", "net.eth1.adapter.firmware": "16.35", "net.eth1.speed_bit_s": "1e11"}
    for number in range(20):
        made.answer(f"c{number}", usual | ({"net.eth1.adapter.firmware": "16.28"} if number == 3 else {}))
    rack = tmp_path / "rack.toml"
    rack.write_text(RACK.replace("c[0-2]", "c[0-19]"))
    code, out, _ = fabricbench("doctor", "--testbed", rack)
    assert code == 0
    assert "c[0-2,4-19] (19)" in out
    assert re.search(r"c\[0-2,4-19\] \(19\) +fast +eth1 +mlx5_core +16\.35 +100 Gbit/s", out)
    assert "c3: found net.eth1.adapter.firmware 16.28 where 19 other nodes have 16.35" in out
    code, out, _ = fabricbench("doctor", "--testbed", rack, "--format", "json")
    told = json.loads(out)
    assert told["inventories"]["c3"]["net.eth1.adapter.firmware"] == "16.28"
    assert [one["node"] for one in told["findings"] if one["subject"] == "difference"] == ["c3"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'doctor.py: error: unrecognized arguments: /opt/probe' >&2; exit 2", "an earlier fabricbench"),
        ("echo 'Killed' >&2; exit 137", "the doctor failed: Killed"),
        ('echo \'{"inventory": {}, "node": {"version": "9.9.9"}}\'', "fabricbench 9.9.9"),
        ("echo '{}'", "another fabricbench, whose answer cannot be read"),
        ("exit 0", "the doctor failed: exit code 0"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told(nodes: FakeNodes, script: str, said: str):
    nodes.behave("c1", script)
    (error,) = examine(rack_of()).errors
    assert error.node == "c1"
    assert said in error.found


@pytest.mark.slow
def test_nodes_that_hang_cost_one_limit_and_the_others_are_known(nodes: FakeNodes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight, "NODE_SECONDS", 2.0)
    nodes.behave("c1", "exec sleep 1000")
    found = read_inventories(rack_of(), SshLauncher(find_starter(), rack_of()))
    assert found["c1"] == {"missing": "there was no answer within 2 s"}
    assert "missing" not in found["c0"]


def test_nodes_that_the_preflight_has_asked_are_not_asked_again(nodes: FakeNodes):
    known = {"c0": {"cpu.model": "known"}}
    found = read_inventories(rack_of(), SshLauncher(find_starter(), rack_of()), None, known)
    assert list(found) == ["c0", "c1", "c2"]
    assert found["c0"] == {"cpu.model": "known"}
    assert "mpi.version" in found["c1"]
    assert len(nodes.asked) == 2, "c1 and c2"


def test_an_inventory_without_any_ssh_keeps_nothing_from_starting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    launcher = SshLauncher(find_starter(), rack_of())
    monkeypatch.setenv("PATH", str(tmp_path))
    found = read_inventories(rack_of(), launcher)
    assert found["c0"]["missing"] == "ssh cannot be started here: No such file or directory"
    (first, *_) = examine(rack_of()).errors
    assert "install an OpenSSH client" in first.action


@pytest.mark.usefixtures("nodes")
def test_a_fabric_is_not_compared_with_itself_but_a_twin_is_meant_to_be():
    same = rack_of(Fabric(name="one", interface="eth0"), Fabric(name="two", interface="eth0"))
    assert [error.subject for error in examine(same).errors] == ["distinct"]
    alone = rack_of(Fabric(name="one", interface="eth0"))
    twins = AAPair(of=Standing(given=alone), fabric="one")
    assert examine_venue(twins, plan_run(CAMPAIGN, twins.testbed(), seed=1), lambda _: None).errors == ()


@pytest.mark.parametrize("was_there", [False, True])
def test_a_refused_run_leaves_the_place_as_it_was_and_starts_there_later(
    nodes: FakeNodes, rack: Path, tmp_path: Path, fabricbench: Call, was_there: bool
):
    nodes.answer("c2", interfaces=[interface("eth0", 1500, "10.1.0.3/24"), interface("eth1", 1500, "10.2.0.3/24")])
    where = tmp_path / "runs/today"
    if was_there:
        where.mkdir(parents=True)
    code, out, said = fabricbench("run", "quick", "--testbed", rack, "-o", where)
    assert (code, out) == (3, "")
    assert "c2, fabric fast: found MTU 1500 of eth1; needed: MTU 9000" in said
    assert (where.exists(), where.parent.exists()) == (was_there, was_there)
    assert not was_there or list(where.iterdir()) == []


@pytest.mark.usefixtures("nodes")
def test_a_run_whose_plan_cannot_be_written_leaves_the_place_as_it_was(
    rack: Path, tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise EnvironmentLacks("no space left on the disk")

    monkeypatch.setattr("fabricbench.record.journal.replace_text", full)
    where = tmp_path / "runs/today"
    code, _, said = fabricbench("run", "quick", "--testbed", rack, "-o", where)
    assert (code, "no space left" in said, where.exists()) == (3, True, False)


def test_a_directory_that_is_not_empty_is_refused_before_any_node_is_asked(
    nodes: FakeNodes, rack: Path, tmp_path: Path, fabricbench: Call
):
    assert fabricbench("run", "quick", "--testbed", rack, "-o", tmp_path)[0] == 2
    assert nodes.asked == []


def test_the_preflight_alone_is_a_table_of_the_nodes_and_writes_nothing(
    nodes: FakeNodes, rack: Path, fabricbench: Call
):
    nodes.answer("c1", load=7.0)
    code, out, _ = fabricbench("run", "quick", "--testbed", rack, "--preflight-only")
    assert code == 0
    (row,) = [line for line in out.splitlines() if line.startswith("  c1 ")]
    assert "eth0 10.1.0.2/24 mtu 1500" in row
    assert row.endswith("warning")
    assert "c1: found load 7.0 on 8 processors" in out
    assert fabricbench("doctor", "--testbed", rack)[:2] == (0, out)


def test_the_preflight_is_data_for_programs_and_ends_with_the_refusal(nodes: FakeNodes, rack: Path, fabricbench: Call):
    nodes.answer("c1", version="0.0.1")
    code, out, said = fabricbench("doctor", "--testbed", rack, "--format", "json")
    told = json.loads(out)
    assert (code, told["is_passed"]) == (3, False)
    assert (told["findings"][0]["node"], told["findings"][0]["found"]) == ("c1", "fabricbench 0.0.1")
    assert "found 1 problem" in said


def test_run_says_what_is_missing_without_a_directory_and_that_options_exclude_each_other(
    rack: Path, fabricbench: Call
):
    code, _, said = fabricbench("run", "quick", "--testbed", rack)
    assert code == 2
    assert "-o runs/today" in said
    code, _, said = fabricbench("run", "quick", "--testbed", rack, "--preflight-only", "--no-preflight")
    assert code == 2
    assert "exclude each other" in said


def test_the_example_of_two_fabrics_lacks_nothing_but_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricbench: Call
):
    FakeNodes(tmp_path / "nodes", monkeypatch)
    code, out, _ = fabricbench("run", "quick", "--testbed", EXAMPLE, "--preflight-only", "--format", "json")
    told = json.loads(out)
    assert code == 3
    assert [one["subject"] for one in told["findings"]] == ["reach"] * 4


@pytest.mark.mpi
@pytest.mark.parametrize("preflight", [True, False])
def test_the_manifest_says_how_the_testbed_was_found_or_that_nobody_looked(tmp_path: Path, preflight: bool):
    here = Testbed(
        name="here",
        launcher=LauncherKind.LOCAL,
        nodes=(Node(name="localhost"),),
        fabrics=(Fabric(name="loopback", interface="lo", mtu=65536),),
    )
    plan = plan_run(CAMPAIGN, here, seed=1)
    start_run(tmp_path, CAMPAIGN, Standing(given=here), plan, notify=lambda _: None, preflight=preflight)
    stored = read_manifest(tmp_path).preflight
    assert stored is not None
    assert stored.is_skipped is not preflight
    assert [node.name for node in stored.nodes] == (["localhost"] if preflight else [])


@pytest.mark.usefixtures("nodes")
def test_an_interface_that_is_not_there_is_told_before_anything_is_written():
    wrong = rack_of(Fabric(name="slow", interface="eth9"))
    with pytest.raises(EnvironmentLacks, match="no interface eth9; there are lo, eth0, eth1"):
        start_run(
            Path("unused"), CAMPAIGN, Standing(given=wrong), plan_run(CAMPAIGN, wrong, seed=1), notify=lambda _: None
        )
    assert not Path("unused").exists()


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run on the rack of which nothing is measured yet, and that would measure nothing if it went on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(running, "_execute", lambda *_, **__: None)
    place = rack_of()
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    directory.write_plan(
        StoredPlan(campaign=CAMPAIGN, plan=plan_run(CAMPAIGN, place, seed=1), venue=Standing(given=place))
    )
    seal_plan(directory)
    with directory.locked():
        return directory


def whole(directory: RunDirectory) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.path.rglob("*") if path.is_file()}


def test_a_resumed_run_asks_the_nodes_and_what_is_wrong_with_them_refuses_it_and_writes_nothing(
    nodes: FakeNodes, begun: RunDirectory, fabricbench: Call
):
    (begun.path / ".manifest.json.77.tmp").write_text("half")
    before = whole(begun)
    nodes.answer("c1", version="0.0.1")
    code, out, said = fabricbench("resume", begun.path, "--blocks", 4)
    assert (code, out) == (3, "")
    assert "c1: found fabricbench 0.0.1" in said
    assert whole(begun) == before
    nodes.answer("c1", interfaces=[interface("eth0", 9000, "10.1.0.2/24"), interface("eth1", 9000, "10.2.0.2/24")])
    assert fabricbench("resume", begun.path)[0] == 3
    assert whole(begun) == before


@pytest.mark.parametrize("preflight", [True, False])
def test_the_journal_says_how_a_resumed_run_found_the_nodes_or_that_nobody_looked(
    nodes: FakeNodes, begun: RunDirectory, preflight: bool
):
    nodes.answer("c1", load=7.0)
    heard: list[Event] = []
    resume_run(begun.path, notify=heard.append, preflight=preflight)
    (resumed,) = [one for one in Journal(begun.path).entries() if one.event is JournalEvent.RESUMED]
    found = Preflight.model_validate(resumed.facts["preflight"])
    assert found.is_skipped is not preflight
    assert [one.node for one in found.warnings] == (["c1"] if preflight else [])
    assert bool(nodes.asked) is preflight
    assert any("load 7.0" in one.text for one in heard if isinstance(one, Notice)) is preflight


@pytest.mark.lab
def test_a_lab_whose_switch_has_ended_is_refused_and_brought_back_by_down_and_up(fabricbench: Call, tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    name = f"test-{secrets.token_hex(4)}"
    lab = Lab.up(name, 2, parse_fabrics("fast-ethernet,myrinet"), owned=False)
    try:
        switch = lab.entry.switches["myrinet"]
        assert switch.kill()
        assert switch.wait(5.0)
        code, out, err = fabricbench("doctor", "--testbed", f"lab:{name}")
        assert (code, "1 problem" in err) == (3, True), out + err
        assert f"fabric myrinet: found that the switch of myrinet in lab {name} (process {switch.pid}) has ended" in out
        assert f"`fabricbench lab down {name}`, then `fabricbench lab up {name}` with the same nodes and fabrics" in out
        code, out, err = fabricbench("run", "quick", "--testbed", f"lab:{name}", "-o", tmp_path / "run")
        assert (code, (tmp_path / "run").exists()) == (3, False), out + err
        lost = lab.lost()
        assert lost is not None
        launch = plan_run(CAMPAIGN, lab.testbed(), seed=1).launches[0]
        hint = failure.testbed_lost(launch, lost, tmp_path, is_started=True).hint or ""
        assert f"`fabricbench lab down {name}`" in hint
        assert "run's own" not in hint
    finally:
        lab.down()


@pytest.mark.lab
def test_nodes_of_a_lab_that_are_reached_as_if_over_ssh_are_found_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    lab = Lab.up(f"test-{secrets.token_hex(4)}", 2, parse_fabrics("fast-ethernet,myrinet"), owned=True)
    try:
        there = lab.testbed()
        over_ssh = there.model_copy(update={"launcher": LauncherKind.SSH, "lab": None})
        nodes = FakeNodes(tmp_path / "nodes", monkeypatch)
        for node in there.nodes:
            shell = lab.command_in(node.name, ["sh", "-c"], working_directory=Path("/"), environment={})
            nodes.behave(node.name, f'exec {shlex.join(shell)} "$3"')
        found = examine(over_ssh)
        assert found.errors == ()
        assert [node.attachments["myrinet"].mtu for node in found.nodes] == [there.fabric("myrinet").mtu] * 2
        assert examine(there).errors == ()
        first, second = over_ssh.fabrics
        subnet_only = first.model_copy(update={"interface": None})
        wrong = (subnet_only, second.model_copy(update={"mtu": 9000 if second.mtu != 9000 else 1500}))
        assert {
            (one.subject, one.fabric) for one in examine(over_ssh.model_copy(update={"fabrics": wrong})).errors
        } == {("mtu", second.name)}
    finally:
        lab.down()


@pytest.mark.parametrize(
    "stderr",
    [
        (
            "srun: error: Task launch for StepId=7.1 failed on node c1: Communication connection failure\n"
            "srun: error: Application launch failed: Communication connection failure\nsrun: Job step aborted\n"
        ),
        "srun: error: Unable to create step for job 7: Required node not available (down, drained or reserved)\n",
    ],
)
def test_a_node_whose_slurmd_is_dead_is_no_matter_of_our_doctor(stderr: str):
    starter = MpiStarter("/usr/bin/srun", srun, "22.05.8", mpich, "5.0")
    launcher = SlurmLauncher(starter, rack_of(nodes=("c1",)))
    silent = _understood("c1", CommandAnswer(exit_code=1, stderr=stderr), launcher)
    assert isinstance(silent, Silent)
    assert "doctor" not in silent.found
    assert "scontrol show node c1" in silent.action
    assert "slurmd" in silent.action


def test_a_doctor_that_fails_in_a_step_is_still_what_failed():
    starter = MpiStarter("/usr/bin/srun", srun, "22.05.8", mpich, "5.0")
    stderr = "ModuleNotFoundError: No module named 'fabricbench'\nsrun: error: c1: task 0: Exited with exit code 1\n"
    silent = _understood(
        "c1", CommandAnswer(exit_code=1, stderr=stderr), SlurmLauncher(starter, rack_of(nodes=("c1",)))
    )
    assert isinstance(silent, Silent)
    assert "no fabricbench in" in silent.found


def test_a_node_that_is_reached_by_the_testbeds_own_tokens_is_not_blamed_on_ssh():
    starter = MpiStarter("/opt/bin/mpiexec", hydra, "5.0", mpich, "5.0")
    testbed = rack_of(nodes=("c1",)).model_copy(update={"reach": ("kubectl", "exec", "{node}", "--", "{program}")})
    silent = _understood("c1", CommandAnswer(problem="there was no answer within 30 s"), SshLauncher(starter, testbed))
    assert isinstance(silent, Silent)
    assert silent.action == "see how long `kubectl exec c1 -- true` takes here, and what it says"


def test_a_node_whose_name_nobody_tells_is_not_blamed_on_a_firewall(nodes: FakeNodes, monkeypatch: pytest.MonkeyPatch):
    nodes.behave("c1", "exit 0")
    monkeypatch.setattr(
        "fabricbench.campaign.preflight.ask_all",
        lambda asked, *_: dict.fromkeys(asked, CommandAnswer(problem="there was no answer within 30 s")),
    )
    monkeypatch.setattr(
        "fabricbench.campaign.preflight.look_up_all", lambda names: {name: LookUp(is_silent=True) for name in names}
    )
    (silent, *_) = examine_venue(Standing(given=rack_of()), None, lambda _: None).errors
    assert "no name server here told within 2 s" in silent.found
    assert "/etc/resolv.conf" in silent.action
