"""Open MPI.

Without `btl_tcp_if_include` it stripes over every network that it finds. Its parameters are variables `OMPI_MCA_NAME`, whoever
starts it; its own starters write them as `--mca NAME VALUE`.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricbench.launch.starting import Selection
from fabricbench.testbed.model import Fabric

NAME = "Open MPI"
SLURM_PMI = "pmix"

PARAMETER = "OMPI_MCA_"
WAITS_ASLEEP: Mapping[str, str] = {f"{PARAMETER}mpi_yield_when_idle": "1"}


def is_it(version_text: str) -> bool:
    """Tell from what a starter or `mpicxx --showme:version` prints of its version whether it is Open MPI's."""
    return any(word in version_text for word in ("Open MPI", "OpenRTE", "PRRTE"))


def selection(fabric: Fabric, *, shares_memory: bool) -> Selection:
    """Return what Open MPI is told, by what the fabric has: an IP network or none. Another device is one more case."""
    pml, btl, where = (PARAMETER + name for name in ("pml", "btl", "btl_tcp_if_include"))
    if not fabric.has_interface:
        return Selection({pml: "ob1", btl: "sm,self"})
    network = str(fabric.subnet) if fabric.subnet is not None else str(fabric.interface)
    return Selection(
        {pml: "ob1", btl: "tcp,sm,self" if shares_memory else "tcp,self", where: network},
        gives_way={where: (f"{PARAMETER}btl_tcp_if_exclude",)},  # it refuses to start with both
    )
