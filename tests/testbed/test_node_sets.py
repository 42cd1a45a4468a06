"""Fabrics that join some nodes of a testbed: what is read, who is measured, what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.campaign.condition import Condition, expanded
from fabricbench.campaign.members import SeatPlan, UnfitRanksError
from fabricbench.campaign.plan import plan_run, plan_without
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import UsageError
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra
from fabricbench.model import Layer
from fabricbench.record.manifest import NodeLoss, has_moved, write_manifest
from fabricbench.record.store import Run
from fabricbench.report.tables import fabric_table
from fabricbench.testbed.differences import differences_in
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight import Requirements, judge
from fabricbench.testbed.reading import read_testbed
from support.configured_runs import EPYC, KERNEL, XEON, write_system

FILE = """
[testbed]
name = "two racks"
nodes = "a[1-3],b[1-4]"

[[fabric]]
name = "gige"
interface = "eth0"
nodes = "a[1-3]"

[[fabric]]
name = "ib"
interface = "ib0"
nodes = ["b4", "b[1-3]"]
"""
PAIR = Experiment(layers=("tcp",), pattern="pingpong", message_bytes=(64,))
ALL = Experiment(layers=("tcp",), pattern="ring", message_bytes=(64,))
CAMPAIGN = Campaign(name="tiny", blocks=2, experiments=(PAIR, ALL))


def read(tmp_path: Path, text: str = FILE) -> Testbed:
    path = tmp_path / "racks.toml"
    path.write_text(text)
    return read_testbed(path)


@pytest.fixture
def racks(tmp_path: Path) -> Testbed:
    return read(tmp_path)


def names(testbed: Testbed, fabric: str) -> list[str]:
    return [node.name for node in testbed.nodes_of(testbed.fabric(fabric))]


def test_each_fabric_is_measured_over_as_many_nodes_as_the_smallest_set_has(racks: Testbed):
    assert racks.seats == 3
    assert names(racks, "gige") == ["a1", "a2", "a3"]
    assert names(racks, "ib") == ["b1", "b2", "b3"], "in the testbed's order"
    assert racks.node_sets == {("a1", "a2", "a3"): ("gige",), ("b1", "b2", "b3"): ("ib",)}


def test_fabrics_without_a_set_of_their_own_join_all_nodes(tmp_path: Path):
    testbed = read(tmp_path, FILE.replace('nodes = "a[1-3]"\n', "").replace('nodes = ["b4", "b[1-3]"]\n', ""))
    assert testbed.seats == 7
    assert list(testbed.node_sets.values()) == [("gige", "ib")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('nodes = "a[1-3]"', 'nodes = "a[1-5]"', "'gige' joins a4, a5, which testbed.nodes does not name"),
        ('nodes = "a[1-3]"', 'nodes = "a[1-"', "fabric[1].nodes: 'a[1-' is not a node set"),
        ('nodes = "a[1-3]"', "nodes = []", "'gige' joins no node: leave `nodes` out"),
        ('nodes = "a[1-3]"', 'nodes = ["a1", "a1"]', "a1 is named twice"),
        ('nodes = "a[1-3]"', "nodes = 3", "found 3, needed a node set"),
        ('nodes = "a[1-3],b[1-4]"', 'nodes = "a[1-3],b[1-4]"\nlauncher = "local"', "all are this machine"),
    ],
)
def test_a_mistake_in_a_set_is_named(tmp_path: Path, old: str, new: str, expected: str):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, FILE.replace(old, new))
    assert expected in caught.value.message


def test_fabrics_are_measured_over_the_same_nodes_where_they_join_enough_of_them(tmp_path: Path):
    everywhere = read(tmp_path, FILE.replace('nodes = "a[1-3]"\n', ""))
    assert everywhere.seats == 4
    assert list(everywhere.node_sets.values()) == [("gige", "ib")], "gige joins all nodes"
    assert names(everywhere, "gige") == names(everywhere, "ib") == ["b1", "b2", "b3", "b4"]
    overlapping = read(tmp_path, FILE.replace('nodes = "a[1-3]"', 'nodes = "a[1-3],b[3-4]"'))
    assert names(overlapping, "gige") == ["a1", "a2", "b3", "b4"], "in the testbed's order, as starters have it"
    assert names(overlapping, "ib") == ["b1", "b2", "b3", "b4"]


def test_a_plan_names_the_nodes_of_a_set_that_are_not_measured(racks: Testbed):
    assert racks.standing_by == {"ib": ("b4",)}
    told = "ib joins b4 as well, not measured: every fabric is measured over 3 nodes"
    assert told in plan_run(CAMPAIGN, racks, seed=1).notes


def test_the_nodes_that_took_the_place_of_others_are_named_where_a_fabric_was_measured(tmp_path: Path):
    run = run_on_two_sets(tmp_path / "run", ("n2", "n3", "n4"))
    loss = NodeLoss(reasons={"n3": "gone"}, kept=(0,), ranks=2, unix_ns=1)
    manifest = run.manifest.model_copy(update={"losses": (loss,)})
    write_manifest(run.path, manifest)
    found = analyse([Run.open(run.path)])
    assert [one.nodes for one in found.fabrics] == ["n[0-1]", "n[2-4]"]


def test_ranks_are_started_on_the_nodes_of_the_fabric_rank_0_on_the_first(racks: Testbed, tmp_path: Path):
    launcher = SshLauncher(MpiStarter("mpiexec", hydra, "5.0.2", mpich, "5.0.2"), racks)
    hosts = {}
    for fabric in racks.fabrics:
        tokens = launcher.command(fabric, ["probe"], tmp_path, 3).tokens
        hosts[fabric.name] = tokens[tokens.index("-hosts") + 1]
        assert launcher.meeting_address(fabric) == names(racks, fabric.name)[0]
    assert hosts == {"gige": "a1:1,a2:1,a3:1", "ib": "b1:1,b2:1,b3:1"}


def test_a_test_has_as_many_ranks_on_each_fabric(racks: Testbed):
    plan = plan_run(CAMPAIGN, racks, seed=1)
    assert {len(cell.ranks) for cell in plan.cells} == {2, 3}
    with pytest.raises(UnfitRanksError, match="every fabric is measured over 3 nodes, as gige joins no more"):
        SeatPlan(racks).members(ALL.model_copy(update={"ranks": 4}), Layer.TCP)


def test_a_run_goes_on_without_a_node_of_one_set_and_ends_where_a_fabric_has_none(racks: Testbed):
    plan = plan_run(CAMPAIGN, racks, seed=1)
    rest = plan_without(plan, CAMPAIGN, racks, {"b2": "gone"}, set(), unix_ns=1)
    assert {len(rest.cells[cell].ranks) for one in rest.launches for cell in one.cells} == {2, 3}
    assert names(racks.without({"b2"}), "ib") == ["b1", "b3", "b4"], "b4 stood by"
    assert names(racks.without({"a1"}), "ib") == ["b1", "b2"], "as many on each"
    with pytest.raises(UsageError, match="no node of fabric gige is left"):
        plan_without(plan, CAMPAIGN, racks, {"a1": "gone", "a2": "gone", "a3": "gone"}, set(), unix_ns=1)


def test_a_test_has_moved_where_its_ranks_moved_on_any_fabric(racks: Testbed):
    assert has_moved((0, 1), racks, ("b2",))
    assert not has_moved((0, 1), racks, ("b3",))
    assert not has_moved((0, 1, 2), racks, ("b4",)), "nobody was on it"
    assert has_moved((0, 1), racks, ("a1", "a2", "a3"))


def test_a_node_is_asked_for_the_interfaces_of_its_own_fabrics(racks: Testbed):
    def facts(node: str, number: int) -> NodeFacts:
        name, network = ("eth0", 1) if node.startswith("a") else ("ib0", 2)
        interface = {"name": name, "mtu": 1500, "state": "up", "addresses": [f"10.{network}.0.{number}/24"]}
        told = {"host": node, "version": "1", "programs": {}, "interfaces": [interface], "load": 0.1, "processors": 4}
        return NodeFacts.model_validate(told)

    answers = {node.name: facts(node.name, number) for number, node in enumerate(racks.nodes, 1)}
    found = judge(racks, answers, Requirements(version="1", programs={}))
    assert found.findings == ()
    assert [sorted(node.attachments) for node in found.nodes] == [["gige"]] * 3 + [["ib"]] * 4


def test_nodes_are_to_be_alike_within_a_set_and_not_between_sets(racks: Testbed):
    inventories = {
        node.name: {"cpu.model": XEON if node.name.startswith("a") else EPYC, "kernel.release": KERNEL}
        for node in racks.nodes
    }
    assert differences_in(racks, inventories) == ()
    inventories["b2"]["kernel.release"] = "5.14"
    (difference,) = differences_in(racks, inventories)
    assert (difference.fact, difference.others) == ("kernel.release", {"5.14": ("b2",)})


def test_settings_of_hosts_are_not_varied_for_a_fabric_of_some_nodes(racks: Testbed):
    jumbo = (Condition(name="usual", mtu=1500), Condition(name="jumbo", mtu=9000))
    with pytest.raises(UsageError, match=r"condition usual sets mtu .*of hosts, and gige joins only some"):
        expanded(racks, jumbo)


def run_on_two_sets(directory: Path, of_ib: tuple[str, ...] = ("n2", "n3"), seed: int = 1) -> Run:
    """A run of fabrics on two nodes each, of two kinds of processor."""
    run = write_system(directory, {"gige": 2.0, "ib": 1.0}, seed=seed, nodes=2 + len(of_ib), blocks=6)
    manifest = run.manifest
    fabrics = tuple(
        fabric.model_copy(update={"nodes": nodes})
        for fabric, nodes in zip(manifest.testbed.fabrics, (("n0", "n1"), of_ib), strict=True)
    )
    inventory = manifest.inventory | {name: manifest.inventory[name] | {"cpu.model": EPYC} for name in of_ib}
    testbed = manifest.testbed.model_copy(update={"fabrics": fabrics})
    write_manifest(directory, manifest.model_copy(update={"testbed": testbed, "inventory": inventory}))
    return Run.open(directory)


def test_that_the_nodes_differ_is_told_on_the_first_screen_and_with_what_they_differ_in(tmp_path: Path):
    found = analyse([run_on_two_sets(tmp_path / "run")])
    evidence = " ".join(line.words for line in found.headline.evidence)
    assert "On different nodes (gige on n[0-1]; ib on n[2-3]): what these differ in is in every ratio." in evidence
    (warning,) = [one for one in found.warnings if one.subject == "node sets"]
    assert "processor (Xeon Gold 6148 of gige; EPYC 7742 of ib)" in warning.text
    assert "nodes (n[0-1] of gige; n[2-3] of ib)" in warning.text
    assert not any("not alike" in one.text for one in found.warnings), "within a set they are"
    assert [row[2] for row in fabric_table(found).rows] == ["n[0-1]", "n[2-3]"]


@pytest.mark.slow
def test_a_gate_stays_open_where_a_fabric_was_measured_on_other_nodes_of_the_same_testbed(tmp_path: Path):
    old = run_on_two_sets(tmp_path / "old", ("n2", "n3", "n4"))
    new = run_on_two_sets(tmp_path / "new", ("n2", "n3", "n4"), seed=2)
    assert check_regressions([old], [new], maximum=9.0).other_machines == ()
    gige, ib = new.manifest.testbed.fabrics
    moved = (gige, ib.model_copy(update={"nodes": ("n3", "n4")}))
    testbed = new.manifest.testbed.model_copy(update={"fabrics": moved})
    write_manifest(new.path, new.manifest.model_copy(update={"testbed": testbed}))
    report = check_regressions([old], [Run.open(new.path)], maximum=9.0)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert any("gige on n[0-1]; ib on n[3-4]" in one for one in report.other_machines)


def test_on_the_same_nodes_nothing_is_told_of_them(tmp_path: Path):
    found = analyse([write_system(tmp_path / "run", {"gige": 2.0, "ib": 1.0}, seed=1, blocks=6)])
    assert "different nodes" not in " ".join(line.words for line in found.headline.evidence)
    assert fabric_table(found).columns[:3] == ("Fabric", "Description", "Kind")
