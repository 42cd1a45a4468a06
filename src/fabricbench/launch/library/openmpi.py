"""Open MPI.

Without `btl_tcp_if_include` it stripes over every network that it finds. Its parameters are variables `OMPI_MCA_NAME`, whoever
starts it; its own starters write them as `--mca NAME VALUE`.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricbench.launch.library.libfabric import ON_PROVIDER, over_ofi, over_ucx
from fabricbench.launch.starting import Selection, no_transport
from fabricbench.testbed.model import Fabric, MpiTransport

NAME = "Open MPI"
CALLED: tuple[str, ...] = ("openmpi", "open-mpi")
OWN_STARTERS: tuple[str, ...] = ("prterun", "orterun")
SLURM_PMI = "pmix"

PARAMETER = "OMPI_MCA_"
WAITS_ASLEEP: Mapping[str, str] = {f"{PARAMETER}mpi_yield_when_idle": "1"}

MEMORY = "vader"
"""Shared memory: Open MPI 4 knows it by this name alone, 5 by `sm` and by this one."""


def is_it(version_text: str) -> bool:
    """Tell from what a starter or `mpicxx --showme:version` prints of its version whether it is Open MPI's."""
    return any(word in version_text for word in ("Open MPI", "OpenRTE", "PRRTE"))


def selection(fabric: Fabric, *, shares_memory: bool) -> Selection:
    """Return what Open MPI is told, by what the fabric has: an IP network, with or without RDMA, or none.

    Its own TCP is kept to the fabric also where UCX or libfabric carries messages: one-sided communication may take it.
    """
    pml, btl, where = (PARAMETER + name for name in ("pml", "btl", "btl_tcp_if_include"))
    if not fabric.has_interface:
        return Selection({pml: "ob1", btl: f"{MEMORY},self"})
    network = str(fabric.subnet) if fabric.subnet is not None else str(fabric.interface)
    own = {btl: f"tcp,{MEMORY},self" if shares_memory else "tcp,self", where: network}
    gives_way = {where: (f"{PARAMETER}btl_tcp_if_exclude",)}  # it refuses to start with both
    match fabric.transport:
        case MpiTransport.TCP:
            return Selection({pml: "ob1", **own}, gives_way=gives_way)
        case MpiTransport.UCX:
            # By itself it takes UCX only over devices and transports of a list of its own.
            anything = {f"{PARAMETER}opal_common_ucx_{what}": "any" for what in ("tls", "devices")}
            return Selection({pml: "ucx", **anything, **own}, over_ucx(shares_memory=shares_memory), gives_way)
        case MpiTransport.OFI:
            provider = {f"{PARAMETER}opal_common_ofi_provider_include": ON_PROVIDER}
            return Selection({pml: "cm", f"{PARAMETER}mtl": "ofi", **own}, {**provider, **over_ofi()}, gives_way)
        case MpiTransport.VERBS:
            raise no_transport(NAME, fabric, "it has none since 5; it reaches RDMA devices through ucx or ofi")
