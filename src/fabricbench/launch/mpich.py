"""MPICH and its starter, hydra.

A fabric is selected through libfabric: `FI_PROVIDER` must be named, else libfabric prefers `sockets`, and without `FI_TCP_IFACE` it
takes any interface (https://ofiwg.github.io/libfabric/main/man/fi_tcp.7.html). `MPIR_CVAR_NOLOCAL` keeps ranks on one host from
talking through shared memory when a network is under test.
"""

from __future__ import annotations

from fabricbench.errors import UsageError
from fabricbench.launch.placement import WORKING_DIRECTORY, Placement
from fabricbench.testbed.model import Fabric

NAME = "MPICH"


def is_it(version_text: str) -> bool:
    """Tell from the output of `mpiexec --version` whether it is hydra."""
    return "HYDRA" in version_text


def tokens(mpiexec: str, _version: str, placement: Placement, fabric: Fabric, program: list[str]) -> list[str]:
    """Return the tokens that start the program."""
    environment = _selectors(fabric) | fabric.mpi_environment
    if placement.preload is not None:
        environment["LD_PRELOAD"] = str(placement.preload)
    variables = [token for name, value in environment.items() for token in ("-genv", name, value)]
    return [
        mpiexec,
        *_where(placement),
        *("-n", str(placement.ranks)),
        *("-bind-to", "none"),
        *variables,
        *fabric.mpi_arguments,
        *program,
    ]


def _where(placement: Placement) -> list[str]:
    if not placement.hosts:
        return ["-launcher", "fork"]
    where = ["-launcher", "ssh"]
    if placement.agent is not None:
        where += ["-launcher-exec", str(placement.agent)]
    if placement.control_interface is not None:
        where += ["-iface", placement.control_interface]
    # With one slot a host, hydra goes around the hosts again where there are more ranks: rank i on host i modulo the hosts.
    return [*where, "-wdir", WORKING_DIRECTORY, "-hosts", ",".join(f"{host}:1" for host in placement.hosts)]


def _selectors(fabric: Fabric) -> dict[str, str]:
    libfabric = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
    if not fabric.has_interface:
        return {**libfabric, "FI_TCP_IFACE": "lo"}
    if fabric.interface is None:
        if "FI_TCP_IFACE" in fabric.mpi_environment or "MPIR_CVAR_CH4_NETMOD" in fabric.mpi_environment:
            return {"MPIR_CVAR_NOLOCAL": "1"}
        raise UsageError(
            f"MPICH selects a fabric by interface, and {fabric.name} has only a subnet",
            hint='give the fabric its `interface = "..."`, or say in `mpi_environment` how MPICH finds it',
        )
    return {**libfabric, "FI_TCP_IFACE": fabric.interface, "MPIR_CVAR_NOLOCAL": "1"}
