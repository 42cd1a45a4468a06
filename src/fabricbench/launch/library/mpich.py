"""MPICH and its starter, hydra.

A fabric is selected through libfabric: `FI_PROVIDER` must be named, else libfabric prefers `sockets`, and without `FI_TCP_IFACE` it
takes any interface (https://ofiwg.github.io/libfabric/main/man/fi_tcp.7.html). It wants a name, so where a fabric has only a subnet
each rank finds its own node's interface first (`on_subnet`). `MPIR_CVAR_NOLOCAL` keeps ranks on one host from
talking through shared memory when a network is under test.
"""

from __future__ import annotations

import sys

from fabricbench.launch import on_subnet
from fabricbench.launch.placement import WORKING_DIRECTORY, Placement
from fabricbench.testbed.model import Fabric

NAME = "MPICH"
INTERFACE_VARIABLE = "FI_TCP_IFACE"


def is_it(version_text: str) -> bool:
    """Tell from the output of `mpiexec --version` whether it is hydra."""
    return "HYDRA" in version_text


def tokens(mpiexec: str, _version: str, placement: Placement, fabric: Fabric, program: list[str]) -> list[str]:
    """Return the tokens that start the program."""
    selectors = {} if fabric.mpi_arguments else _selectors(fabric)
    environment = placement.environment(selectors | fabric.mpi_environment)
    variables = [token for name, value in environment.items() for token in ("-genv", name, value)]
    return [
        mpiexec,
        *_where(placement),
        *("-n", str(placement.ranks)),
        *("-bind-to", "none"),
        *variables,
        *fabric.mpi_arguments,
        *_finding_interface(fabric),
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
        return {**libfabric, INTERFACE_VARIABLE: "lo"}
    if fabric.interface is not None:
        return {**libfabric, INTERFACE_VARIABLE: fabric.interface, "MPIR_CVAR_NOLOCAL": "1"}
    return {"MPIR_CVAR_NOLOCAL": "1"} if _is_told(fabric) else {**libfabric, "MPIR_CVAR_NOLOCAL": "1"}


def _finding_interface(fabric: Fabric) -> list[str]:
    """Return what goes before the program where each node must find its own interface."""
    if fabric.interface is not None or fabric.subnet is None or _is_told(fabric):
        return []
    return [sys.executable, "-I", "-S", on_subnet.__file__, INTERFACE_VARIABLE, str(fabric.subnet)]


def _is_told(fabric: Fabric) -> bool:
    """Whether the testbed says how MPICH finds a fabric that has only a subnet."""
    return INTERFACE_VARIABLE in fabric.mpi_environment or "MPIR_CVAR_CH4_NETMOD" in fabric.mpi_environment
