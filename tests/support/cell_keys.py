"""Keys of cells as the analysis makes them: from what was planned, through the function that reads setups."""

from __future__ import annotations

from typing import Any

from fabricbench.analysis.findings import CellKey, WorkloadName
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS, metric_of
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe
from fabricbench.record.setup import setup_of


def cell_key(
    layer: Layer,
    pattern: Pattern,
    message_bytes: int = 0,
    ranks: int = 2,
    *,
    receive: Receive | None = None,
    congestor: PlanCongestor | None = None,
    lost_nodes: tuple[str, ...] = (),
    **parameters: Any,
) -> CellKey:
    """Return the key of a cell on the first `ranks`."""
    receive = receive or (Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING)
    probe = PlanProbe(
        id=0,
        layer=layer,
        pattern=pattern,
        message_bytes=message_bytes,
        receive=receive,
        ranks=tuple(range(ranks)),
        parameters=parameters,
        congestor=congestor,
    )
    is_workload = PATTERNS[pattern].family is Family.WORKLOAD
    return CellKey(
        layer=layer,
        pattern=pattern,
        receive=receive,
        message_bytes=message_bytes,
        metric=metric_of(pattern),
        workload=WorkloadName(ranks=ranks, parameters=tuple(parameters.items())) if is_workload else None,
        **dict(setup_of(probe, lost_nodes)),
    )
