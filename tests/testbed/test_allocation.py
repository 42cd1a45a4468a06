"""What batch systems say of a job's nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet, NodeSetException

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.testbed.allocation import SYSTEMS, allocated_nodes, check_allocated, nodes_in_order, other_groups
from fabricbench.testbed.model import Binding, Layout
from fabricbench.testbed.reading import read_testbed

TEXT = """
[testbed]
name = "job"
nodes = "allocation"
starter = ["aprun", "-n", "{ranks}", "{program}"]
ranks_per_node = 16
binding = "core"
threads_per_rank = 2

[[fabric]]
name = "ib0"
interface = "ib0"
"""


@pytest.fixture(autouse=True)
def _in_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in SYSTEMS:
        monkeypatch.delenv(system.variable, raising=False)


@pytest.mark.parametrize(
    ("variable", "value", "nodes"),
    [
        ("SLURM_JOB_NODELIST", "node[001-003],login", ("node001", "node002", "node003", "login")),
        ("LSB_HOSTS", "a a b b", ("a", "b")),
        ("LSB_MCPU_HOSTS", "a 4 b 4", ("a", "b")),
    ],
)
def test_a_jobs_nodes_are_named_by_a_variable(variable: str, value: str, nodes: tuple[str, ...]):
    assert allocated_nodes({variable: value}) == nodes


@pytest.mark.parametrize(
    ("value", "nodes"),
    [
        ("gpu01,cpu[07-08]", "gpu01 cpu07 cpu08"),
        ("node[001-003,007]", "node001 node002 node003 node007"),
        ("nodes[011,006]", "nodes011 nodes006"),
        ("a[1-2]-b[3-4]", "a1-b3 a1-b4 a2-b3 a2-b4"),
        ("n,m", "n m"),
        ("nid[001256-001257],n", "nid001256 nid001257 n"),
        ("c5n-st-c5n18xlarge-[9-10]", "c5n-st-c5n18xlarge-9 c5n-st-c5n18xlarge-10"),
    ],
)
def test_a_job_of_slurm_has_its_nodes_in_the_order_of_its_list(value: str, nodes: str):
    found = allocated_nodes({"SLURM_JOB_NODELIST": value})
    assert found == tuple(nodes.split())
    assert NodeSet.fromlist(found) == NodeSet(value)


def test_the_other_groups_of_a_heterogeneous_job_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = {
        "SLURM_HET_SIZE": "2",
        "SLURM_JOB_NODELIST": "cpu[01-02]",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "cpu[01-02]",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu[01-02]",
    }
    assert "without gpu[01-02] of group 1" in other_groups(job)
    assert other_groups({**job, "SLURM_HET_SIZE": "1"}) == other_groups({"SLURM_JOB_NODELIST": "n[1-2]"}) == ""
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "job.toml").write_text(TEXT)
    assert any("gpu[01-02] of group 1" in note for note in read_testbed(tmp_path / "job.toml").notes)


@pytest.mark.parametrize(
    ("variable", "lines"),
    [("PBS_NODEFILE", "b\nb\na\na\n"), ("OAR_NODEFILE", "b\na\n"), ("PE_HOSTFILE", "b 4 q@b <NULL>\na 4 q@a <NULL>\n")],
)
def test_a_jobs_nodes_are_named_by_a_file(tmp_path: Path, variable: str, lines: str):
    (tmp_path / "nodes").write_text(lines)
    assert allocated_nodes({variable: str(tmp_path / "nodes")}) == ("b", "a")


def test_outside_of_a_job_it_is_said_what_is_missing_and_what_to_do(tmp_path: Path):
    (tmp_path / "job.toml").write_text(TEXT)
    with pytest.raises(EnvironmentLacks, match="SLURM_JOB_NODELIST, PBS_NODEFILE") as raised:
        read_testbed(tmp_path / "job.toml")
    assert raised.value.exit_code == 3
    assert "salloc" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("variable", "value"), [("PBS_NODEFILE", "/no/such/file"), ("SLURM_JOB_NODELIST", "n[0-"), ("LSB_HOSTS", " ")]
)
def test_what_cannot_be_followed_is_said(variable: str, value: str):
    with pytest.raises(EnvironmentLacks, match=f"{variable}=.*names no nodes"):
        allocated_nodes({variable: value})


@pytest.mark.parametrize("text", ["n[1-999999999]", "r[1-2000]n[1-2000]", "a,n[1-400000],m[1-700000/1]"])
def test_a_set_of_too_many_nodes_is_refused_before_it_is_written_out(text: str):
    with pytest.raises(NodeSetException, match="nodes, and 1,000,000 are the most"):
        nodes_in_order(text)
    with pytest.raises(EnvironmentLacks, match="1,000,000 are the most"):
        allocated_nodes({"SLURM_JOB_NODELIST": text})


def test_a_testbed_in_a_job_has_its_nodes_its_starter_and_its_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "c[1-2]")
    (tmp_path / "job.toml").write_text(TEXT)
    testbed = read_testbed(tmp_path / "job.toml")
    assert [node.name for node in testbed.nodes] == ["c1", "c2"]
    assert testbed.is_allocated
    assert testbed.starter == ("aprun", "-n", "{ranks}", "{program}")
    assert testbed.layout == Layout(ranks_per_node=16, binding=Binding.CORE, threads_per_rank=2)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('binding = "core"', 'binding = "cores"', "testbed.binding: found 'cores', needed one of none, core, socket"),
        ("ranks_per_node = 16", "ranks_per_node = 0", "testbed.ranks_per_node: found 0, needed"),
        ('starter = ["aprun", "-n", "{ranks}", "{program}"]', "starter = 7", "testbed.starter: found 7, needed"),
        (
            'starter = ["aprun", "-n", "{ranks}", "{program}"]',
            'starter = "a b"',
            "testbed.starter: found 'a b', needed",
        ),
        ('starter = ["aprun", "-n", "{ranks}", "{program}"]', "starter = []", "testbed.starter: found [], needed"),
    ],
)
def test_a_mistake_is_told_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "c[1-2]")
    (tmp_path / "job.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(UsageError) as raised:
        read_testbed(tmp_path / "job.toml")
    assert said in raised.value.message
    assert "\n" not in raised.value.message


def test_nodes_of_a_run_must_be_in_the_present_job():
    check_allocated(["c2"], {"SLURM_JOB_NODELIST": "c[1-2]"})
    with pytest.raises(UsageError, match=r"which this one does not have: c\[3-4\]"):
        check_allocated(["c2", "c3", "c4"], {"SLURM_JOB_NODELIST": "c[1-2]"})
