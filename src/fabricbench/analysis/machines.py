"""The machines that a fabric of a run was measured on: what their inventories agree in, by trait."""

from __future__ import annotations

from collections.abc import Callable

from fabricbench.analysis.findings.plot import BOARD, KERNEL, NODES, PROCESSOR
from fabricbench.quantity import enumeration
from fabricbench.record.manifest import lost_by
from fabricbench.record.store import Run
from fabricbench.testbed.differences import MISSING
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.preflight_result import folded

NODE_SETS = "node sets"
"""What a warning about fabrics on other nodes is about."""


def of_machines(run: Run, fabric: Fabric) -> Callable[[str], str]:
    """Return what tells of a fact of the doctor's which values the fabric's nodes have, in words; nothing where none tells."""
    inventory = run.manifest.inventory
    own = nodes_measured(run, fabric) if len(run.manifest.testbed.node_sets) > 1 else inventory.keys()
    told = [facts for host, facts in inventory.items() if host in own and MISSING not in facts]
    return lambda fact: enumeration(sorted({facts[fact] for facts in told if facts.get(fact)}))


def nodes_measured(run: Run, fabric: Fabric) -> list[str]:
    """Return the nodes that a fabric was measured over, in the testbed's order; others have taken the place of some that failed."""
    testbed, losses = run.manifest.testbed, run.manifest.losses
    without = {lost_by(losses, launch.block) for launch in run.manifest.planned} or {()}
    own = {node.name for lost in without for node in testbed.without(lost).nodes_of(fabric)}
    return [node.name for node in testbed.nodes if node.name in own]


def machine_traits(run: Run, fabric: Fabric) -> dict[str, str]:
    """Return processor, board, kernel and nodes of a fabric, by trait; empty where nobody tells."""
    of = of_machines(run, fabric)
    return {
        PROCESSOR: of("cpu.model"),
        BOARD: of("board"),
        KERNEL: of("kernel.release"),
        NODES: folded(nodes_measured(run, fabric)),
    }
