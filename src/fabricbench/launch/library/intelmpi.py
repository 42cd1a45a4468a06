"""Intel MPI 2019 and newer: libfabric alone, UCX through libfabric's provider `mlx`.

`I_MPI_FABRICS=ofi` keeps ranks on one host from talking through shared memory (Developer Reference, Communication Fabrics Control).
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricbench.launch.library.libfabric import PROVIDER, on_tcp, over_ofi, over_ucx
from fabricbench.launch.starting import Selection, no_transport
from fabricbench.testbed.model import Fabric, MpiTransport

NAME = "Intel MPI"
CALLED: tuple[str, ...] = ("intelmpi", "intel-mpi", "impi")
WAITS_ASLEEP: Mapping[str, str] = {"I_MPI_THREAD_YIELD": "2"}
SLURM_PMI = "pmi2"
OWN_STARTERS: tuple[str, ...] = ("intel-hydra",)

FABRICS = "I_MPI_FABRICS"


def is_it(version_text: str) -> bool:
    """Tell from what its starter, its compiler or the library prints of its version whether it is Intel's."""
    return "Intel(R) MPI Library" in version_text


def selection(fabric: Fabric, *, shares_memory: bool) -> Selection:
    """Return what Intel MPI is told, by what the fabric has."""
    if not fabric.has_interface:
        return Selection({FABRICS: "shm"})
    ways = {FABRICS: "shm:ofi" if shares_memory else "ofi"}
    match fabric.transport:
        case MpiTransport.TCP:
            told, by_node = on_tcp(fabric)
            return Selection({**ways, **told}, by_node)
        case MpiTransport.OFI:
            return Selection(ways, over_ofi())
        case MpiTransport.UCX:
            return Selection({**ways, PROVIDER: "mlx"}, over_ucx(shares_memory=False))
        case MpiTransport.VERBS:
            raise no_transport(NAME, fabric, "libfabric has it: ofi takes verbs where the interface has an RDMA port")
