"""What each launcher and each MPI would be started with; nothing is started here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fabricbench.launch import guard, on_subnet
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.library import mpich, openmpi
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import LIBRARIES, STARTERS, MpiStarter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.launch.starter import hydra, srun
from fabricbench.launch.starter.prterun import ORTERUN, PRTERUN
from fabricbench.launch.starting import WAITING_ASLEEP, Placement
from fabricbench.model import Layer
from fabricbench.testbed.model import Fabric, LauncherKind, Lost, Node, Testbed

NET = Fabric(name="net", interface="eth1", subnet="10.1.0.0/24")
SHM = Fabric(name="shm", layers=(Layer.MEMORY, Layer.MPI))
HERE = Placement(ranks=2)
THERE = Placement(
    ranks=2,
    hosts=("n0", "n1"),
    agent=Path("/lab/agent"),
    control_interface="ctl0",
    scratch=Path("/lab"),
    preload=Path("/lib/yield.so"),
)
HYDRA = MpiStarter("mpiexec", hydra, "5.0.2", mpich, "5.0.2")
OPEN_MPI_5 = MpiStarter("mpiexec", PRTERUN, "5.0.11", openmpi, "5.0.11")
OPEN_MPI_4 = MpiStarter("mpiexec", ORTERUN, "4.1.4", openmpi, "4.1.4")
PLAN = Path("/run/launches/b00-net/plan.json")
PROGRAM = ["probe", "plan"]


def environment_of(tokens: list[str]) -> dict[str, str]:
    places = [index for index, token in enumerate(tokens) if token == "-genv"]
    return {tokens[index + 1]: tokens[index + 2] for index in places}


def after(tokens: Sequence[str], option: str) -> str:
    return tokens[list(tokens).index(option) + 1]


class FakeLab:
    directory = Path("/lab")
    agent = directory / "agent"
    control_interface = "ctl0"

    def testbed(self) -> Testbed:
        nodes = tuple(Node(name=f"n{index}") for index in range(4))
        return Testbed(name="lab", launcher=LauncherKind.LAB, nodes=nodes, fabrics=(NET,), lab="lab")

    def command_in(
        self, node: str, command: Sequence[str], *, working_directory: Path, environment: Mapping[str, str]
    ) -> list[str]:
        assert environment == {}
        return ["enter", node, str(working_directory), *command]

    def processes(self, needed: str | None = None) -> dict[int, str]:
        del needed
        return {17: "the switch of gigabit"}

    def lost(self, needed: str | None = None) -> Lost | None:
        del needed
        return None

    def stopped(self) -> Lost | None:
        return None

    def status(self) -> object:
        raise AssertionError("building a command asks nothing")


def test_mpich_is_told_the_fabric_by_its_interface_and_never_to_take_a_short_cut():
    tokens = HYDRA.tokens(HERE, NET, PROGRAM)
    assert tokens[:3] == ["mpiexec", "-launcher", "fork"]
    assert tokens[-2:] == PROGRAM
    assert environment_of(tokens) == {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth1",
        "MPIR_CVAR_NOLOCAL": "1",
    }


def test_mpich_reaches_other_hosts_through_the_agent_over_the_control_interface():
    tokens = HYDRA.tokens(THERE, NET, PROGRAM)
    assert tokens[1:11] == [
        *("-launcher", "ssh"),
        *("-launcher-exec", "/lab/agent"),
        *("-iface", "ctl0"),
        *("-wdir", "/"),
        *("-hosts", "n0:1,n1:1"),
    ]
    assert environment_of(tokens)["LD_PRELOAD"] == "/lib/yield.so"


def test_mpich_over_shared_memory_may_take_it():
    assert "MPIR_CVAR_NOLOCAL" not in environment_of(HYDRA.tokens(HERE, SHM, PROGRAM))


def test_mpich_is_told_on_each_node_which_interface_is_in_the_subnet():
    subnet = Fabric(name="net", subnet="10.1.0.0/24")
    tokens = HYDRA.tokens(HERE, subnet, PROGRAM)
    assert "FI_TCP_IFACE" not in environment_of(tokens)
    assert environment_of(tokens)["MPIR_CVAR_NOLOCAL"] == "1"
    assert tokens[-5:] == [on_subnet.__file__, "FI_TCP_IFACE", "10.1.0.0/24", *PROGRAM]
    told = subnet.model_copy(update={"mpi_environment": {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_NET_DEVICES": "ib0"}})
    tokens = HYDRA.tokens(HERE, told, PROGRAM)
    assert environment_of(tokens)["UCX_NET_DEVICES"] == "ib0"
    assert on_subnet.__file__ not in tokens


def test_a_program_finds_the_interface_of_its_node_by_the_subnet():
    def answer_in(subnet: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", "import os; print(os.environ['WHERE'])"]
        tokens = [sys.executable, "-I", "-S", on_subnet.__file__, "WHERE", subnet, *program]
        return subprocess.run(tokens, check=False, capture_output=True, text=True, timeout=60)

    assert answer_in("127.0.0.0/8").stdout == "lo\n"
    refused = answer_in("203.0.113.0/24")
    assert refused.returncode == on_subnet.NO_INTERFACE
    assert "has no interface in 203.0.113.0/24; it has lo (127.0.0.1)" in refused.stderr


def test_what_the_testbed_says_of_mpi_wins():
    told = NET.model_copy(update={"mpi_environment": {"FI_PROVIDER": "verbs"}, "mpi_arguments": ("-verbose",)})
    tokens = HYDRA.tokens(HERE, told, PROGRAM)
    assert environment_of(tokens)["FI_PROVIDER"] == "verbs"
    assert "-verbose" in tokens


@pytest.mark.parametrize(
    ("starter", "agent", "control", "scratch"),
    [
        (OPEN_MPI_5, "plm_ssh_agent", "prte_if_include", "prte_tmpdir_base"),
        (OPEN_MPI_4, "plm_rsh_agent", "oob_tcp_if_include", "orte_tmpdir_base"),
    ],
    ids=["prterun", "orterun"],
)
def test_open_mpi_is_told_the_same_in_its_own_words(starter: MpiStarter, agent: str, control: str, scratch: str):
    tokens = starter.tokens(THERE, NET, PROGRAM)
    assert (after(tokens, "--host"), after(tokens, "--wdir")) == ("n0:1,n1:1", "/")
    assert after(tokens, agent) == "/lab/agent"
    assert after(tokens, control) == "ctl0"
    assert after(tokens, scratch) == "/lab"
    assert after(tokens, "--bind-to") == "none"
    assert after(tokens, "mpi_yield_when_idle") == "1"
    assert after(tokens, "btl") == "tcp,self"
    assert after(tokens, "btl_tcp_if_include") == "10.1.0.0/24"
    assert after(tokens, "-x") == "LD_PRELOAD=/lib/yield.so"
    assert tokens[-2:] == PROGRAM


MANY = Placement(ranks=5, hosts=("n0", "n1"))


def test_more_ranks_than_hosts_go_around_with_mpich():
    """With one slot a host hydra wraps around (seen in the lab: `test_ranks_wrap_around_the_nodes`)."""
    tokens = HYDRA.tokens(MANY, NET, PROGRAM)
    assert (after(tokens, "-hosts"), after(tokens, "-n")) == ("n0:1,n1:1", "5")


@pytest.mark.parametrize("starter", [OPEN_MPI_5, OPEN_MPI_4], ids=["prterun", "orterun"])
def test_more_ranks_than_hosts_go_around_with_open_mpi(starter: MpiStarter):
    tokens = starter.tokens(MANY, NET, PROGRAM)
    assert (after(tokens, "--host"), after(tokens, "-n")) == ("n0:3,n1:3", "5")
    assert (after(tokens, "--map-by"), after(tokens, "--rank-by")) == ("node", "node")
    assert "--map-by" not in starter.tokens(THERE, NET, PROGRAM)


def test_open_mpi_over_shared_memory_gets_no_network():
    tokens = OPEN_MPI_5.tokens(HERE, SHM, PROGRAM)
    assert after(tokens, "btl") == "vader,self"
    assert after(tokens, "--map-by") == ":OVERSUBSCRIBE"


@pytest.mark.parametrize(
    ("text", "library", "starter"),
    [
        ("HYDRA build details:\n    Version:                                 5.0.2\n", mpich, hydra),
        ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/\n", openmpi, PRTERUN),
        ("prterun (PRRTE) 3.0.8\n\nReport bugs to https://github.com/openpmix/prrte\n", openmpi, PRTERUN),
        ("mpirun (Open MPI) 4.1.4\n", openmpi, ORTERUN),
        ("orterun (OpenRTE) 4.1.4\n", openmpi, ORTERUN),
        ("slurm 22.05.8\n", None, srun),
        ("mpicxx for MPICH version 5.0.2\n", mpich, None),
        ("mpicxx: Open MPI 4.1.4 (Language: C++)\n", openmpi, ORTERUN),
    ],
)
def test_a_library_and_a_starter_are_recognised_by_what_they_print(text: str, library: object, starter: object):
    assert [each for each in LIBRARIES if each.is_it(text)] == [library] * (library is not None)
    assert [each for each in STARTERS if each.is_it(text)] == [starter] * (starter is not None)


def test_in_the_lab_the_starter_and_its_guard_run_in_the_first_node():
    launcher = LabLauncher(FakeLab(), HYDRA, Path("/lib/yield.so"))
    command = launcher.command(NET, PROGRAM, PLAN.parent, 2)
    assert command.tokens[:3] == ("enter", "n0", "/run/launches/b00-net")
    assert command.tokens[6] == guard.__file__
    assert after(command.tokens, "-hosts") == "n0:1,n1:1"
    assert after(launcher.command(NET, PROGRAM, PLAN.parent, 9).tokens, "-hosts") == "n0:1,n1:1,n2:1,n3:1"
    assert list(command.tokens[-2:]) == PROGRAM
    assert command.directory == PLAN.parent
    assert command.beside == {17: "the switch of gigabit"}
    assert launcher.conditions(NET).items() > WAITING_ASLEEP.items()


def test_here_ranks_sleep_when_they_wait_for_a_network_and_spin_over_shared_memory():
    launcher = LocalLauncher(HYDRA, Path("/lib/yield.so"))
    assert "/lib/yield.so" in launcher.command(NET, PROGRAM, PLAN.parent, 2).tokens
    assert "/lib/yield.so" not in launcher.command(SHM, PROGRAM, PLAN.parent, 2).tokens
    assert launcher.conditions(NET).items() > WAITING_ASLEEP.items()
    assert "mpi waits" not in launcher.conditions(SHM)


def test_here_hydra_is_kept_to_the_loopback_unless_the_testbed_says_where_it_is_reached(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    launcher = LocalLauncher(HYDRA, None, loopback=Path("/lib/loopback.so"))
    tokens = HYDRA.tokens(Placement(2, loopback=Path("/lib/loopback.so")), NET, PROGRAM)
    assert tokens[:3] == ["env", "LD_PRELOAD=/lib/loopback.so", "mpiexec"]
    assert after(tokens, "-localhost") == "127.0.0.1"
    assert launcher.command(NET, PROGRAM, PLAN.parent, 2).tokens[-len(tokens) :] == tuple(tokens)
    theirs = NET.model_copy(update={"mpi_arguments": ("-iface", "eth1")})
    assert not any("loopback" in token for token in launcher.command(theirs, PROGRAM, PLAN.parent, 2).tokens)


def test_over_ssh_each_rank_has_a_node_of_its_own(testbed_of_three: Testbed):
    launcher = SshLauncher(HYDRA, testbed_of_three)
    assert after(launcher.command(NET, PROGRAM, PLAN.parent, 2).tokens, "-hosts") == "a:1,b:1"
    tokens = launcher.in_node("a", ["echo", "it's"])
    assert (tokens[0], tokens[-3:]) == ("ssh", ["--", "a", "echo 'it'\"'\"'s'"])
    assert "BatchMode=yes" in tokens
    assert after(launcher.command(NET, PROGRAM, PLAN.parent, 5).tokens, "-hosts") == "a:1,b:1,c:1"
    assert after(launcher.command(NET, PROGRAM, PLAN.parent, 5).tokens, "-n") == "5"


@pytest.fixture
def testbed_of_three() -> Testbed:
    nodes = tuple(Node(name=name) for name in "abc")
    return Testbed(name="three", launcher=LauncherKind.SSH, nodes=nodes, fabrics=(NET,))


def test_a_command_reads_as_a_shell_would_take_it():
    command = LocalLauncher(HYDRA, None).command(NET, ["/opt/my probe", str(PLAN)], PLAN.parent, 2)
    assert str(command).endswith(f"'/opt/my probe' {PLAN}")
