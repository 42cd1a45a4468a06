"""Open MPI and its starters, prterun (5 and newer) and orterun (4).

Ranks that share processors must not be bound, or all of them land on the first core, and must yield while they wait.
Without `btl_tcp_if_include` it stripes over every network that it finds.
"""

from __future__ import annotations

from fabricbench.launch.placement import WORKING_DIRECTORY, Placement
from fabricbench.testbed.model import Fabric

NAME = "Open MPI"
FIRST_WITH_PRRTE = 5


def is_it(version_text: str) -> bool:
    """Tell from the output of `mpiexec --version` whether it is Open MPI's."""
    return "Open MPI" in version_text or "OpenRTE" in version_text


def tokens(mpiexec: str, version: str, placement: Placement, fabric: Fabric, program: list[str]) -> list[str]:
    """Return the tokens that start the program."""
    environment = placement.environment(fabric.mpi_environment)
    return [
        mpiexec,
        "--allow-run-as-root",
        *_where(version, placement),
        *("-n", str(placement.ranks)),
        *("--bind-to", "none"),
        *_waiting(placement),
        *(fabric.mpi_arguments or _selectors(fabric)),
        *(token for name, value in environment.items() for token in ("-x", f"{name}={value}")),
        *program,
    ]


def _where(version: str, placement: Placement) -> list[str]:
    if not placement.hosts:
        return ["--map-by", ":OVERSUBSCRIBE"]
    has_prrte = int(version.partition(".")[0]) >= FIRST_WITH_PRRTE if version[:1].isdigit() else True
    slots = placement.ranks_on_each_host
    where = ["--wdir", WORKING_DIRECTORY, "--host", ",".join(f"{host}:{slots}" for host in placement.hosts)]
    if slots > 1:  # else the first host is filled before the next one gets a rank
        where += ["--map-by", "node", "--rank-by", "node"]
    if placement.agent is not None:
        option = ("--prtemca", "plm_ssh_agent") if has_prrte else ("--mca", "plm_rsh_agent")
        where += [*option, str(placement.agent)]
    if placement.control_interface is not None:
        option = ("--prtemca", "prte_if_include") if has_prrte else ("--mca", "oob_tcp_if_include")
        where += [*option, placement.control_interface]
    return where


def _waiting(placement: Placement) -> list[str]:
    if placement.preload is None:
        return []
    return ["--mca", "mpi_yield_when_idle", "1"]


def _selectors(fabric: Fabric) -> list[str]:
    if not fabric.has_interface:
        return ["--mca", "pml", "ob1", "--mca", "btl", "sm,self"]
    where = str(fabric.subnet) if fabric.subnet is not None else str(fabric.interface)
    return ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", where]
