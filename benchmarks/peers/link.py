"""The link of a lab over which we and the peers are measured."""

from __future__ import annotations

from dataclasses import dataclass

from fabricbench.lab import Lab
from fabricbench.testbed.model import Fabric


@dataclass(frozen=True)
class Link:
    """Two nodes of a lab and the fabric between them."""

    lab: Lab
    fabric: Fabric

    def address(self, node: int) -> str:
        """Return a node's address on the fabric."""
        return str(self.lab.testbed().nodes[node].addresses[self.fabric.name])
