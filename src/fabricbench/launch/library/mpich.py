"""MPICH.

A fabric is selected through libfabric: `FI_PROVIDER` must be named, else libfabric prefers `sockets`, and without `FI_TCP_IFACE` it
takes any interface (https://ofiwg.github.io/libfabric/main/man/fi_tcp.7.html). It wants a name, so where a fabric has only a subnet
each rank finds its own node's interface first (`launch/on_subnet.py`). `MPIR_CVAR_NOLOCAL` keeps ranks on one host from
talking through shared memory when a network is under test.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricbench.launch.starting import Selection
from fabricbench.testbed.model import Fabric

NAME = "MPICH"
WAITS_ASLEEP: Mapping[str, str] = {}
"""It yields by itself."""
SLURM_PMI = "pmi2"

NETMOD, PROVIDER, INTERFACE, WITHOUT_MEMORY = (
    "MPIR_CVAR_CH4_NETMOD",
    "FI_PROVIDER",
    "FI_TCP_IFACE",
    "MPIR_CVAR_NOLOCAL",
)


def is_it(version_text: str) -> bool:
    """Tell from what hydra or `mpicxx -v` prints of its version whether it is MPICH."""
    return "HYDRA" in version_text or "MPICH version" in version_text.replace("Version", "version")


def selection(fabric: Fabric, *, shares_memory: bool) -> Selection:
    """Return what MPICH is told, by what the fabric has: an IP network or none. Another device is one more case."""
    over_tcp = {NETMOD: "ofi", PROVIDER: "tcp"}
    if not fabric.has_interface:
        return Selection({**over_tcp, INTERFACE: "lo"})
    apart = {} if shares_memory else {WITHOUT_MEMORY: "1"}
    if fabric.interface is not None:
        return Selection({**over_tcp, INTERFACE: fabric.interface, **apart})
    # Another network module takes no notice of it, and a node may have no such address then.
    return Selection({**over_tcp, **apart}, by_subnet={INTERFACE: str(fabric.subnet)}, gives_way={INTERFACE: (NETMOD,)})
