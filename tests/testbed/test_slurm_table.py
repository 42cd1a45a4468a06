"""`launcher = "slurm"` and `[slurm]` of a testbed file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.testbed.model import LauncherKind, SlurmJob, Testbed
from fabricbench.testbed.reading import read_testbed

JOB = """
[testbed]
name = "cluster"
launcher = "slurm"

[slurm]
nodes = 3
partition = "batch"
time = "30min"

[[fabric]]
name = "ib"
interface = "ib0"
"""


@pytest.fixture(autouse=True)
def in_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)


def read(tmp_path: Path, text: str, *, is_for_job: bool = False) -> Testbed:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return read_testbed(path, is_for_job=is_for_job)


def test_a_testbed_of_slurm_has_the_nodes_of_its_job_and_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(EnvironmentLacks, match="and this runs in none") as raised:
        read(tmp_path, JOB)
    assert "`run --submit` or `plan --submit`" in str(raised.value.hint)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "c[7-9]")
    testbed = read(tmp_path, JOB)
    assert testbed.launcher is LauncherKind.SLURM
    assert testbed.starter == "srun"
    assert testbed.is_allocated
    assert [node.name for node in testbed.nodes] == ["c7", "c8", "c9"]
    assert testbed.slurm == SlurmJob(nodes=3, partition="batch", time=1800)


def test_before_there_is_a_job_its_nodes_are_stood_for(tmp_path: Path):
    testbed = read(tmp_path, JOB, is_for_job=True)
    assert [node.name for node in testbed.nodes] == ["node1", "node2", "node3"]
    assert testbed.is_allocated
    named = read(
        tmp_path, JOB.replace("nodes = 3\n", "").replace("[slurm]", 'nodes = "c[7-9]"\n\n[slurm]'), is_for_job=True
    )
    assert [node.name for node in named.nodes] == ["c7", "c8", "c9"]
    assert not named.is_allocated


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("nodes = 3\n", "", "nobody says how many nodes the job is to have"),
        ('launcher = "slurm"', 'launcher = "ssh"\nnodes = "c1"', 'launcher is not "slurm"'),
        ("[slurm]", 'nodes = "c[1-2]"\n\n[slurm]', r"slurm\.nodes is 3, and testbed\.nodes names 2"),
        (
            "[slurm]",
            'starter = "hydra"\n\n[slurm]',
            "launcher = \"slurm\" starts ranks with srun, and starter is 'hydra'",
        ),
        ('partition = "batch"', 'partition = "batch -w c1"', r"slurm\.partition"),
        ('partition = "batch"', 'partitoin = "batch"', "did you mean 'partition'"),
        ('time = "30min"', 'time = "soon"', r"slurm\.time"),
        ('partition = "batch"', 'lines = ["a\\nb"]', r"slurm\.lines"),
        ("nodes = 3", "nodes = 0", "nobody says how many"),
    ],
)
def test_a_mistake_is_told_before_anything_is_submitted(tmp_path: Path, old: str, new: str, expected: str):
    assert old in JOB
    with pytest.raises(UsageError, match=expected):
        read(tmp_path, JOB.replace(old, new), is_for_job=True)


def test_a_table_for_jobs_needs_the_launcher_of_slurm(tmp_path: Path):
    with pytest.raises(UsageError, match=r"\[slurm\] says how jobs are asked for"):
        read(tmp_path, JOB.replace('launcher = "slurm"', 'launcher = "ssh"\nnodes = "c[1-3]"'))
