"""MVAPICH2 (2.x: verbs by itself, or TCP, as it was built), and MVAPICH (3 and newer), which is told as MPICH is.

MVAPICH2's variables are those of its user guide (2.3.7): `MV2_IBA_HCA`, `MV2_DEFAULT_PORT`, `MV2_USE_SHARED_MEM`. Written from
documentation: neither was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricbench.launch.library import mpich
from fabricbench.launch.starting import ON_INTERFACE, Selection, no_transport
from fabricbench.testbed.model import Fabric, MpiTransport

WITHOUT_MEMORY = "MV2_USE_SHARED_MEM"
TCP_INTERFACE = "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE"


@dataclass(eq=False)
class Mvapich:
    """One of the two. `is_new`: 3 or newer."""

    NAME: str
    is_new: bool
    CALLED: tuple[str, ...] = ("mvapich",)
    WAITS_ASLEEP: Mapping[str, str] = field(default_factory=dict)
    SLURM_PMI: str = "pmi2"
    OWN_STARTERS: tuple[str, ...] = mpich.OWN_STARTERS

    def is_it(self, version_text: str) -> bool:
        """Tell from what `mpicxx -v` or the library prints of its version; hydra does not say whose it is."""
        return "MVAPICH" in version_text and ("MVAPICH2" in version_text) is not self.is_new

    def selection(self, fabric: Fabric, *, shares_memory: bool) -> Selection:
        """Return what it is told, by what the fabric has."""
        if self.is_new:
            if fabric.transport is MpiTransport.VERBS:
                raise no_transport(self.NAME, fabric, "since 3 it reaches RDMA devices through ucx or ofi")
            return mpich.selection(fabric, shares_memory=shares_memory)
        if not fabric.has_interface:
            return Selection({WITHOUT_MEMORY: "1"})
        apart = {WITHOUT_MEMORY: "1" if shares_memory else "0"}
        match fabric.transport:
            case MpiTransport.TCP:
                return Selection(apart, {TCP_INTERFACE: ON_INTERFACE})
            case MpiTransport.VERBS:
                return Selection(apart, {"MV2_IBA_HCA": "{device}", "MV2_DEFAULT_PORT": "{port}"})
            case MpiTransport.UCX | MpiTransport.OFI:
                raise no_transport(self.NAME, fabric, "it has verbs of its own")


MVAPICH2 = Mvapich("MVAPICH2", is_new=False, WAITS_ASLEEP={"MV2_USE_BLOCKING": "0"})
MVAPICH = Mvapich("MVAPICH", is_new=True)
