"""What Slurm's commands say, understood; and the plugins by which srun starts an MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import slurm
from fabricbench.launch.library import mpich
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.slurm import (
    JobId,
    JobState,
    SlurmLauncher,
    SlurmSilent,
    ask_job,
    is_own_job_ending,
    job_named,
    submit,
)
from fabricbench.launch.starter import srun
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from support.scripts import script

LISTED = """MPI plugin types are...
\tpmix
\tnone
\tpmi2
specific pmix plugin versions available: pmix_v4,pmix_v3
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of the PATH in which commands of Slurm are written."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def test_plugins_and_their_versions_are_listed():
    assert srun.plugins_in(LISTED) == ("pmix", "none", "pmi2", "pmix_v4", "pmix_v3")


def test_the_last_plugin_that_is_told_counts():
    assert srun.plugin_of(["srun", "--mpi=pmi2", "--overlap", "--mpi=pmix_v4", "true"]) == "pmix_v4"
    assert srun.plugin_of(["srun", "true"]) == "none"


def launcher(program: Path, *arguments: str) -> SlurmLauncher:
    fabric = Fabric(name="net", interface="eth0", mpi_arguments=arguments)
    testbed = Testbed(
        name="job", launcher=LauncherKind.SLURM, nodes=(Node(name="n0"),), fabrics=(fabric,), starter="srun"
    )
    return SlurmLauncher(MpiStarter(str(program), srun, "22.05.8", mpich, "5.0.2"), testbed)


def test_an_mpi_whose_plugin_this_slurm_lacks_is_refused_with_what_there_is(commands: Path):
    here = script(commands / "srun", "printf 'MPI plugin types are...\\n\\tpmix\\n\\tnone\\n'")
    with pytest.raises(
        EnvironmentLacks, match=r"MPICH is started by `srun --mpi=pmi2`, and this Slurm has pmix, none"
    ) as raised:
        launcher(here).check()
    assert "plugin pmi2" in str(raised.value.hint)
    launcher(here, "--mpi=pmix").check()
    launcher(script(commands / "silent", "exit 1")).check()  # one that cannot be asked is not refused


def test_ranks_are_on_the_jobs_nodes_in_the_order_of_slurm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-2]")
    fabric = Fabric(name="net", interface="eth0")
    nodes = tuple(Node(name=name) for name in ("n2", "n0"))
    testbed = Testbed(name="job", launcher=LauncherKind.SLURM, nodes=nodes, fabrics=(fabric,), starter="srun")
    tokens = SlurmLauncher(MpiStarter("srun", srun, "22", mpich, "5"), testbed).command(fabric, ["true"], Path(), 2)
    assert "--nodelist=n0,n2" in tokens.tokens


@pytest.mark.parametrize(
    ("said", "expected"),
    [("4711\n", JobId("4711")), ("a note of the site\n12;red\n", JobId("12", "red"))],
)
def test_the_number_of_a_job_is_what_sbatch_says_alone_on_a_line(
    commands: Path, tmp_path: Path, said: str, expected: JobId
):
    script(commands / "sbatch", f"printf '{said}'; echo warning >&2")
    assert submit(tmp_path / "submit.sh") == expected


def test_what_sbatch_refuses_is_told_in_its_words(commands: Path, tmp_path: Path):
    script(commands / "sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1")
    with pytest.raises(SlurmSilent, match="invalid partition specified: gpu"):
        submit(tmp_path / "submit.sh")
    script(commands / "sbatch", "echo queued")
    with pytest.raises(SlurmSilent, match="sbatch told no job: 'queued'"):
        submit(tmp_path / "submit.sh")


def test_without_slurm_its_absence_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmSilent, match="there is no sbatch here"):
        submit(tmp_path / "submit.sh")


def test_a_job_that_waits_is_told_with_its_reason_and_when_it_may_begin(commands: Path):
    script(commands / "squeue", "echo 'PENDING|Resources|2026-11-23T14:00:00|'")
    state = ask_job(JobId("7"))
    assert state == JobState("PENDING", "Resources", "2026-11-23T14:00:00")
    assert not state.is_over
    script(commands / "squeue", "echo 'RUNNING|None|2026-11-23T14:00:00|n[0-3]'")
    assert ask_job(JobId("7")) == JobState("RUNNING", nodes="n[0-3]")


def test_a_job_that_is_over_has_the_exit_code_that_the_controller_remembers(commands: Path):
    script(commands / "squeue", "echo 'FAILED|NonZeroExitCode|N/A|n[0-3]'")
    script(
        commands / "scontrol", "echo 'JobId=7 JobState=FAILED Reason=NonZeroExitCode DerivedExitCode=0:0 ExitCode=4:0'"
    )
    state = ask_job(JobId("7"))
    assert state == JobState("FAILED", "NonZeroExitCode", nodes="n[0-3]", exit_code=4)
    assert state.is_over


def test_a_job_that_the_controller_has_forgotten_is_looked_for_in_the_accounting(commands: Path):
    script(commands / "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    script(commands / "sacct", "echo 'CANCELLED by 0|0:15|n[0-3]'")
    assert ask_job(JobId("7")) == JobState("CANCELLED", nodes="n[0-3]", exit_code=0, signal=15)
    script(commands / "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert ask_job(JobId("7")) is None


def test_a_controller_that_does_not_answer_is_no_job_that_is_gone(commands: Path, monkeypatch: pytest.MonkeyPatch):
    script(commands / "squeue", "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")
    with pytest.raises(SlurmSilent, match="Unable to contact"):
        ask_job(JobId("7"))
    script(commands / "squeue", "exec sleep 30")
    monkeypatch.setattr(slurm, "ASK_SECONDS", 0.1)
    with pytest.raises(SlurmSilent, match="gave no answer"):
        ask_job(JobId("7"))


def test_a_job_is_found_by_a_name_that_no_other_has(commands: Path):
    script(commands / "squeue", 'case "$*" in *--name=fabricbench-1f*) echo 12;; esac')
    assert job_named("fabricbench-1f") == JobId("12")
    assert job_named("fabricbench-2f") is None


def test_another_clusters_jobs_are_asked_for_there():
    assert JobId("12", "red").options == ["--clusters=red", "--jobs=12"]
    assert JobId("12", "red").cancelling == "scancel --clusters=red 12"


@pytest.mark.parametrize(
    ("says", "is_ending"),
    [
        ("echo 'COMPLETING|None|2026-11-23T14:00:00|n[0-3]'", True),
        ("echo 'RUNNING|None|2026-11-23T14:00:00|n[0-3]'", False),
        ("echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1", False),
    ],
)
def test_the_end_of_the_job_that_one_runs_in_is_asked_of_slurm(
    commands: Path, monkeypatch: pytest.MonkeyPatch, says: str, is_ending: bool
):
    script(commands / "squeue", says)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert is_own_job_ending() is is_ending
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not is_own_job_ending()
