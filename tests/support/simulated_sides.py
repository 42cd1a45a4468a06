"""Sides of a comparison made of launch values alone: campaigns by the hundred, with a truth that is known."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import compare_all
from fabricbench.analysis.effects import Compared, Judge
from fabricbench.analysis.findings import CellKey, Comparison, Doubt, Headline
from fabricbench.analysis.headline import write_headline
from fabricbench.analysis.ladder import build_ladder
from fabricbench.analysis.measured import COUNTS, CellMeasured, Side
from fabricbench.analysis.order_effects import without_order_effects
from fabricbench.analysis.pairing import Pairing, all_pairs
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.provenance import Origin
from support.synthetic_run import synthetic_testbed

Floats = NDArray[np.float64]

LAYERS = (Layer.FRAME, Layer.UDP, Layer.TCP, Layer.MPI)
TRIPS = (64, 512, 1472, 16384)
STREAMS = (1472, 16384)


def keys_of(
    layers: Sequence[Layer] = LAYERS, trips: Sequence[int] = TRIPS, streams: Sequence[int] = STREAMS
) -> list[CellKey]:
    """A ping-pong and a stream over each layer."""
    return [
        CellKey(
            layer=layer,
            pattern=pattern,
            receive=Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING,
            message_bytes=size,
            metric=metric_of(pattern),
        )
        for layer in layers
        for pattern, sizes in ((Pattern.PINGPONG, trips), (Pattern.STREAM, streams))
        for size in sizes
        if layer is not Layer.FRAME or size <= 1472
    ]


def sides_of(keys: Sequence[CellKey], log_values: Floats, names: Sequence[str]) -> list[Side]:
    """One side for each first index of `log_values`, shape (sides, cells, blocks)."""
    run = SimpleNamespace(manifest=None, launches=())
    testbed = synthetic_testbed(dict.fromkeys(names, None))
    made = []
    for name, of_side in zip(names, log_values, strict=True):
        launches = tuple(
            SimpleNamespace(
                block=block,
                fabric=name,
                launch_id=f"b{block:02d}-{name}",
                position=None,
                origin=Origin.MEASURED,
                subject="",
                summary=SimpleNamespace(header=None),
            )
            for block in range(log_values.shape[2])
        )
        cells = {key: _cell(key, values) for key, values in zip(keys, np.exp(of_side), strict=True)}
        made.append(Side(name, testbed.fabric(name), cast("Any", run), cast("Any", launches), (), cells, ()))
    return made


def _cell(key: CellKey, values: Floats) -> CellMeasured:
    return CellMeasured(
        key=key,
        launch_values=values,
        pooled=np.sort(values),
        total_bytes=0,
        total_ns=1,
        counts=dict.fromkeys(COUNTS, 0),
        step_share=0.0,
        overhead_share=0.0,
        effective_share=1.0,
        expected=values.size,
    )


def trusting(_side: Side, _cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
    """An instrument with nothing to say against anything."""
    return ()


def compared(
    sides: Sequence[Side],
    *,
    margin: float = 0.02,
    confidence: float = 0.95,
    judge: Judge = trusting,
    pairings: Sequence[Pairing] | None = None,
) -> Compared:
    """All that the first screen of sides is made of."""
    if pairings is None:
        sides, _ = without_order_effects(sides)
        pairings = all_pairs(sides)
    cells, curves = compare_all(pairings, margin, confidence)
    ladder = build_ladder(sides, confidence)
    return Compared(sides, pairings, cells, curves, ladder, margin, confidence, confidence, judge)


def first_screen(
    sides: Sequence[Side],
    *,
    margin: float = 0.02,
    confidence: float = 0.95,
    judge: Judge = trusting,
    pairings: Sequence[Pairing] | None = None,
) -> tuple[Headline, list[Comparison]]:
    """The headline of sides, and the comparisons of their cells."""
    found = compared(sides, margin=margin, confidence=confidence, judge=judge, pairings=pairings)
    return write_headline(found)[0], list(found.cells)
