"""MPICH.

A fabric is selected through libfabric: `FI_PROVIDER` must be named, else libfabric prefers `sockets`, and without `FI_TCP_IFACE` it
takes any interface (https://ofiwg.github.io/libfabric/main/man/fi_tcp.7.html). It wants a name, so where a fabric has only a subnet
each rank finds its own node's interface first (`launch/on_subnet.py`). Or through UCX, and so over TCP too in a build that has no
libfabric: it takes no notice of `MPIR_CVAR_CH4_NETMOD`. `MPIR_CVAR_NOLOCAL` keeps ranks on one host from talking through shared
memory when a network is under test.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricbench.launch.library.libfabric import PROVIDER, TCP_INTERFACE, on_tcp, over_ofi, over_ucx
from fabricbench.launch.starting import ON_INTERFACE, Selection, no_transport
from fabricbench.testbed.model import Fabric, MpiTransport

NAME = "MPICH"
CALLED: tuple[str, ...] = ("mpich",)
WAITS_ASLEEP: Mapping[str, str] = {}
"""It yields by itself."""
SLURM_PMI = "pmi2"
OWN_STARTERS: tuple[str, ...] = ("hydra",)

BUILD_TELLER = "mpichversion"
"""Stands beside the compiler and tells what the library was built for."""

DEVICE = re.compile(r"MPICH Device:\s*ch4:([a-z, ]+)$", re.MULTILINE)

NETMOD, WITHOUT_MEMORY = "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL"


def is_it(version_text: str) -> bool:
    """Tell from what hydra, `mpicxx -v` or the library prints of its version whether it is MPICH."""
    return "HYDRA" in version_text or "MPICH version" in version_text.replace("Version", "version")


def selection(fabric: Fabric, *, shares_memory: bool) -> Selection:
    """Return what MPICH is told, by what the fabric has: an IP network, with or without RDMA, or none."""
    if not fabric.has_interface:
        return Selection({NETMOD: "ofi", PROVIDER: "tcp", TCP_INTERFACE: "lo"})
    apart = {} if shares_memory else {WITHOUT_MEMORY: "1"}
    match fabric.transport:
        case MpiTransport.TCP:
            told, by_node = on_tcp(fabric)
            # Another network module takes no notice of it, and a node may have no such address then.
            gives_way = {TCP_INTERFACE: (NETMOD,)} if by_node else {}
            return Selection({NETMOD: "ofi", **told, **apart}, by_node, gives_way)
        case MpiTransport.OFI:
            return Selection({NETMOD: "ofi", **apart}, over_ofi())
        case MpiTransport.UCX:
            return Selection({NETMOD: "ucx", **apart}, over_ucx(shares_memory=shares_memory))
        case MpiTransport.VERBS:
            raise no_transport(NAME, fabric, "it reaches RDMA devices through ucx or ofi")


@dataclass(eq=False)
class OverUcxAlone:
    """An MPICH that was built without libfabric, as Debian 12's is: TCP is UCX's."""

    NAME: str = NAME
    CALLED: tuple[str, ...] = CALLED
    WAITS_ASLEEP: Mapping[str, str] = field(default_factory=dict)
    SLURM_PMI: str = SLURM_PMI
    OWN_STARTERS: tuple[str, ...] = OWN_STARTERS

    def is_it(self, version_text: str) -> bool:
        """Tell from what `mpichversion` prints."""
        modules = DEVICE.search(version_text)
        return modules is not None and modules[1].split() == ["ucx"]

    def selection(self, fabric: Fabric, *, shares_memory: bool) -> Selection:
        """Return what it is told, by what the fabric has: of a machine's own memory nothing, for UCX finds it."""
        if not fabric.has_interface:
            return Selection({})
        apart = {} if shares_memory else {WITHOUT_MEMORY: "1"}
        match fabric.transport:
            case MpiTransport.TCP:
                memory = "sm," if shares_memory else ""
                return Selection({"UCX_TLS": f"tcp,{memory}self", **apart}, {"UCX_NET_DEVICES": ON_INTERFACE})
            case MpiTransport.UCX:
                return Selection(apart, over_ucx(shares_memory=shares_memory))
            case MpiTransport.OFI | MpiTransport.VERBS:
                raise no_transport(NAME, fabric, "this one was built for UCX alone (mpichversion: ch4:ucx)")


OVER_UCX_ALONE = OverUcxAlone()
