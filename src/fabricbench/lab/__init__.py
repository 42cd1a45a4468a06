"""The virtual testbed: nodes in namespaces on this machine, joined by emulated switches."""

from __future__ import annotations

from fabricbench.lab.fabric import EmulatedFabric, Switching
from fabricbench.lab.lab import Lab, crowding, drop_stale_labs, running_labs
from fabricbench.lab.presets import PRESETS, parse_each, parse_fabric, parse_fabrics
from fabricbench.lab.status import LabStatus
from fabricbench.lab.support import Support, lab_support

__all__ = [
    "PRESETS",
    "EmulatedFabric",
    "Lab",
    "LabStatus",
    "Support",
    "Switching",
    "crowding",
    "drop_stale_labs",
    "lab_support",
    "parse_each",
    "parse_fabric",
    "parse_fabrics",
    "running_labs",
]
