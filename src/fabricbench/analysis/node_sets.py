"""The same test on several sets of nodes, where a run went on without some that failed: which of them leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import Side

Blocks = Mapping[CellKey, int]
"""How many launches were to measure each cell; empty where no node failed, for then that tells nothing apart."""

NO_LOSS: Blocks = MappingProxyType({})


def blocks_of(sides: Sequence[Side]) -> Blocks:
    """Return by how many launches each test has a say where nodes failed: the same test is on several sets of nodes then."""
    if not any(run.manifest.losses for side in sides for run in side.runs if run.manifest):
        return NO_LOSS
    found: dict[CellKey, int] = defaultdict(int)
    for side in sides:
        for key, cell in side.cells.items():
            found[key] += cell.expected
    return found


def on_leading_nodes(keys: Iterable[CellKey], blocks: Blocks) -> list[CellKey]:
    """Return each test once: on the set of nodes that has the most blocks, on all nodes where another has no more."""
    kept = list(keys)
    best: dict[CellKey, CellKey] = {}
    for key in sorted(kept, key=lambda key: (-blocks.get(key, 0), key.order)):
        best.setdefault(_on_any_nodes(key), key)
    return [key for key in kept if best[_on_any_nodes(key)] == key]


def _on_any_nodes(key: CellKey) -> CellKey:
    return key.model_copy(update={"lost_nodes": ()})
