"""Who carries what a program's ranks say to each other, and how that is told the fabric under test.

Every program's ranks are started by the MPI starter, one on a node and around again. What differs is who is told the fabric:

    mpi      the MPI library that starts them, by what the testbed and the library's own file say
    gloo     gloo (torch.distributed): GLOO_SOCKET_IFNAME, the interface on each node
    sockets  the program itself: its own address on the fabric, those of all ranks and a port (`meeting` says in which variables)
    pvm      PVM, of which a machine is made on those addresses (`pvm_machine`); the program runs on rank 0 and starts the others

NCCL and UCX have variables of their own, in an application's `environment`. Where PVM is, PVM_ROOT says; an application that is
written for it finds that as {pvm_root}, and the folder of its header as {pvm_include}.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from fabricbench.errors import EnvironmentLacks
from fabricbench.workload import meeting, pvm_machine
from fabricbench.workload.adapter import Place


class RankTransport(StrEnum):
    """Who carries what ranks say to each other."""

    MPI = "mpi"
    GLOO = "gloo"
    SOCKETS = "sockets"
    PVM = "pvm"


_ADDRESSED = MappingProxyType({"FABRICBENCH_ADDRESS": "{address}", "FABRICBENCH_INTERFACE": "{interface}"})

_TOLD: Mapping[RankTransport, Mapping[str, str]] = MappingProxyType(
    {
        RankTransport.MPI: MappingProxyType({}),
        RankTransport.GLOO: MappingProxyType({"GLOO_SOCKET_IFNAME": "{interface}"}),
        RankTransport.SOCKETS: _ADDRESSED,
        RankTransport.PVM: _ADDRESSED,
    }
)


def told_on_nodes(transport: RankTransport) -> Mapping[str, str]:
    """Return the variables that tell each rank what its node has on the fabric: name -> template."""
    return _TOLD[transport]


def front(transport: RankTransport, ranks: int, place: Place) -> list[str]:
    """Return the tokens in front of a program; EnvironmentLacks where the fabric has no interface that it could be told."""
    if transport is not RankTransport.MPI and not place.fabric.has_interface:
        raise EnvironmentLacks(
            f"fabric {place.fabric.name} has no interface, and transport {transport} is to be told one",
            hint="run it on fabrics with an interface or a subnet",
        )
    if transport not in (RankTransport.SOCKETS, RankTransport.PVM):
        return []
    is_pvm = transport is RankTransport.PVM
    meet = meeting.front(ranks, place.first, str(place.directory), keep=is_pvm)
    return [*meet, *((sys.executable, "-I", "-S", pvm_machine.__file__) if is_pvm else ())]


GET: Mapping[RankTransport, str] = MappingProxyType(
    {RankTransport.PVM: f"apt install pvm, or say in {pvm_machine.ROOT_VARIABLE} in which folder another PVM is"}
)
"""How to come by what a transport needs."""


def programs(transport: RankTransport) -> tuple[str, ...]:
    """Return the programs that a transport needs besides the application's, with placeholders."""
    return (f"{{pvm_root}}/{pvm_machine.DAEMON}",) if transport is RankTransport.PVM else ()


def inherited(transport: RankTransport) -> dict[str, str]:
    """Return the user's own variables that a transport needs on every rank, where a starter may not pass them on."""
    name = pvm_machine.ROOT_VARIABLE
    return {name: os.environ[name]} if transport is RankTransport.PVM and os.environ.get(name) else {}


def places(transport: RankTransport, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the placeholders of a transport stand for, with these variables of an application."""
    if transport is not RankTransport.PVM:
        return {}
    root = Path(environment.get(pvm_machine.ROOT_VARIABLE) or pvm_machine.root())
    include = (
        root / "include",
        root.parent.parent / "include",
    )  # PVM's own, and Debian's: /usr/include of /usr/lib/pvm3
    found = next((one for one in include if (one / "pvm3.h").exists()), include[0])
    return {"pvm_root": str(root), "pvm_include": str(found)}
