"""What libfabric and UCX are told, whichever MPI uses them.

libfabric takes any interface without `FI_TCP_IFACE` (fi_tcp(7)) and `FI_VERBS_IFACE` (fi_verbs(7)); UCX any device without
`UCX_NET_DEVICES`, and shared memory unless `UCX_TLS` says otherwise (`ucx_info -cf`).
"""

from __future__ import annotations

from fabricbench.launch.starting import ON_INTERFACE
from fabricbench.testbed.model import Fabric

PROVIDER, TCP_INTERFACE, VERBS_INTERFACE = "FI_PROVIDER", "FI_TCP_IFACE", "FI_VERBS_IFACE"


ON_PROVIDER = "{provider};ofi_rxm"
"""With the layer that makes messages of verbs' connections, and of tcp's: Open MPI's matched probes fail over tcp alone."""


def over_ofi() -> dict[str, str]:
    """Return the templates of libfabric's variables: verbs where the node's interface has an RDMA port, else tcp."""
    return {PROVIDER: ON_PROVIDER, TCP_INTERFACE: ON_INTERFACE, VERBS_INTERFACE: ON_INTERFACE}


def over_ucx(*, shares_memory: bool) -> dict[str, str]:
    """Return the templates of UCX's variables: RDMA where the node's interface has a port for it, else tcp."""
    return {"UCX_TLS": "{tls},sm,self" if shares_memory else "{tls},self", "UCX_NET_DEVICES": "{way}"}


def on_tcp(fabric: Fabric) -> tuple[dict[str, str], dict[str, str]]:
    """Return libfabric's variables over TCP on the fabric's interface, and the templates of those that each node finds."""
    if fabric.interface is not None:
        return {PROVIDER: "tcp", TCP_INTERFACE: fabric.interface}, {}
    return {PROVIDER: "tcp"}, {TCP_INTERFACE: ON_INTERFACE}
