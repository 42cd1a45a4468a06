"""What of the caller's shell is taken from a launch, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.launch.foreign import CLEARED, foreign
from fabricbench.launch.launcher import Command
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.machines import MachinesApart
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra, srun
from fabricbench.launch.starter.prterun import PRTERUN
from fabricbench.launch.starter.template import Template
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed

SHELL = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_JWT": "a key",
    "PMI_RANK": "0",
    "PMIX_RANK": "0",
    "HYDRA_HOST_FILE": "/nonexistent",
    "MPIEXEC_TIMEOUT": "1",
    "MPIEXEC_PREFIX_DEFAULT": "1",
    "FI_PROVIDER": "cxi",
    "FI_PROVIDER_PATH": "/opt/libfabric",
    "UCX_NET_DEVICES": "mlx5_0:1",
    "MPIR_CVAR_CH4_NETMOD": "ucx",
    "OMPI_MCA_btl": "self",
    "PATH": "/bin",
    "OMP_NUM_THREADS": "4",
}
STAYS = {"SLURM_CONF", "FI_PROVIDER_PATH", "PATH", "OMP_NUM_THREADS"}


def test_variables_of_jobs_starters_and_ways_are_taken_and_what_says_where_something_is_stays():
    found = foreign(environment=SHELL)
    assert set(found.names) == SHELL.keys() - STAYS
    assert "MPIEXEC_TIMEOUT=1" in found.told
    assert "FI_PROVIDER=cxi" in found.told


def test_values_of_a_jobs_variables_are_not_kept_for_they_may_be_keys():
    found = foreign(environment=SHELL)
    assert "SLURM_JWT" in found.told
    assert "a key" not in found.told


def test_what_the_testbed_hands_on_and_the_job_whose_nodes_they_are_stay():
    found = foreign(["FI_PROVIDER"], is_own_job=True, environment=SHELL)
    assert not {"FI_PROVIDER", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"} & set(found.names)
    assert "PMI_RANK" in found.names


@pytest.fixture
def _shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SHELL.items():
        if name not in ("PATH", "OMP_NUM_THREADS"):
            monkeypatch.setenv(name, value)


HYDRA = MpiStarter("/opt/bin/mpiexec", hydra, "5.0", mpich, "5.0")
FABRIC = Fabric(name="fast", interface="eth1", mpi_environment={"FI_PROVIDER": "verbs"})


@pytest.mark.usefixtures("_shell")
def test_a_launch_here_is_started_without_them_and_records_them():
    launcher = LocalLauncher(HYDRA, None)
    command = launcher.command(FABRIC, ["probe"], Path("/run"), 2)
    assert not {"PMI_RANK", "MPIEXEC_TIMEOUT", "FI_PROVIDER", "SLURM_JOB_ID"} & command.whole_environment.keys()
    assert command.whole_environment["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    assert "-genv FI_PROVIDER verbs" in str(command)
    assert "env -u" in str(command)
    assert "MPIEXEC_TIMEOUT=1" in launcher.conditions(FABRIC)[CLEARED]


def over(*names: str, starter: MpiStarter = HYDRA) -> SshLauncher:
    nodes = tuple(Node(name=name) for name in names)
    return SshLauncher(starter, Testbed(name="rack", launcher=LauncherKind.SSH, nodes=nodes, fabrics=(FABRIC,)))


def cleared(launcher: MachinesApart) -> Command:
    return launcher.command(FABRIC, ["probe"], Path("/run"), 2)


@pytest.mark.usefixtures("_shell")
def test_over_ssh_the_variables_of_the_job_that_has_the_nodes_stay_and_those_of_another_do_not():
    assert "SLURM_JOB_ID" not in cleared(over("n1", "n2")).cleared
    assert "SLURM_JOB_ID" in cleared(over("n1", "other")).cleared
    assert "HYDRA_HOST_FILE" in cleared(over("n1", "n2")).cleared


@pytest.mark.usefixtures("_shell")
@pytest.mark.parametrize("starter", [srun, Template(["flux", "run", "-n", "{ranks}", "{program}"])])
def test_nothing_is_taken_from_a_starter_of_a_batch_system_or_of_the_testbed(starter: Template):
    assert cleared(over("n1", starter=MpiStarter("srun", starter, "22.05", mpich, "5.0"))).cleared == ()


@pytest.mark.usefixtures("_shell")
def test_what_arguments_hand_on_by_name_is_not_taken():
    fabric = FABRIC.model_copy(update={"mpi_arguments": ("-x", "OMPI_MCA_btl"), "mpi_environment": {}})
    found = MpiStarter("/opt/bin/prterun", PRTERUN, "5.0", openmpi, "5.0").foreign(fabric)
    assert "OMPI_MCA_btl" not in found.names
    assert "UCX_NET_DEVICES" in found.names
