"""Which rows the first screen has: what users meet, chosen by what was measured, never by what came out.

Applications first, then the layers that programs talk through, each with a small message's time and a large one's rate. Layers
below explain, and lead only where nothing else was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabricbench.analysis.findings import CellKey, Comparison, LadderStep, is_basic
from fabricbench.analysis.load_subjects import on_most_ranks
from fabricbench.analysis.measured import Side
from fabricbench.analysis.node_sets import blocks_of, on_leading_nodes
from fabricbench.analysis.wording import size_text
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.provenance import BY
from fabricbench.record.setup import KERNEL, lost_words

MET_BY_USERS = (Layer.MPI, Layer.TCP)
"""The layers that programs talk through, in the order in which more of them do."""

MOST_OPERATIONS = 6
"""Rows of patterns and MPI operations where no ping-pong and no stream was measured."""

SAMPLES_OF_TAIL = {0.99: 100, 0.999: 1000}
"""A launch needs so many samples before its tail is more than its largest one."""


@dataclass(frozen=True)
class Row:
    """A row to be shown: a cell, a tail of its samples, their mean. `named_as` is the cell without what all of its kind share."""

    key: CellKey
    is_leading: bool
    tail: float | None = None
    is_mean: bool = False
    named_as: CellKey | None = None

    @property
    def what(self) -> str:
        """`MPI round trip, 64 B`; `p99 of TCP round trip, 64 B`; `mean of TCP round trip, 64 B`."""
        name = row_name(self.named_as or self.key)
        if self.is_mean:
            return f"mean of {name}"
        return name if self.tail is None else f"p{100 * self.tail:g} of {name}"

    @property
    def is_typical(self) -> bool:
        """Whether it is about the typical sample: the launches' own values, by which fabrics are compared."""
        return self.tail is None and not self.is_mean


def row_name(key: CellKey | Comparison) -> str:
    """Return what a cell is, as users say it: `TCP throughput, 256 KiB`, `IS.W on 4 ranks`, `MPI allreduce, 1 KiB`."""
    work = key.workload
    if work is not None:
        return f"{work} ({lost_words(key.lost_nodes)})" if key.lost_nodes else str(work)
    has_size = PATTERNS[key.pattern].has_size and key.message_bytes is not None
    return f"{probe_name(key)}, {size_text(key.message_bytes or 0)}" if has_size else probe_name(key)


def probe_name(key: CellKey | Comparison) -> str:
    """Return what a cell of the measurer is, whatever its size: `TCP throughput`, `MPI (4 ranks) allreduce`."""
    basic = {Pattern.PINGPONG: "round trip", Pattern.STREAM: "throughput"}
    setup = f"({', '.join(key.variant_words)})" if key.variant_words else ""
    return " ".join(filter(None, (layer_name(key.layer), setup, basic.get(key.pattern, key.pattern))))


def layer_name(layer: Layer) -> str:
    """Return a layer as people write it: `TCP`, `raw frame`."""
    return {Layer.FRAME: "raw frame", Layer.IP: "raw IP", Layer.MEMORY: "memory"}.get(layer, layer.value.upper())


def choose_rows(sides: Sequence[Side], ladder: Sequence[LadderStep]) -> list[Row]:
    """Return the rows, the leading ones first. They depend on what was asked for, not on any result.

    A leading row that gave nothing at all on some side stays: leaving it out would choose by what came out.
    """
    blocks = blocks_of(sides)
    measured = dict.fromkeys(key for side in sides for key in side.cells if key.layer is not Layer.MEMORY)
    everything = on_leading_nodes(measured, blocks)
    keys = [key for key in everything if all(key in side.cells for side in sides)]
    asked = [key for key in everything if all(key in side.cells or was_asked(side, key) for side in sides)]
    loads = on_most_ranks(asked, blocks)
    met = [key for layer in MET_BY_USERS for key in _key_cells(keys, asked, layer, ladder)]
    below = [layer for layer in reversed(Layer) if layer not in MET_BY_USERS]
    lower = [key for layer in below for key in _key_cells(keys, keys, layer, ladder)]
    leading = [*loads, *met] or lower or _operations(keys)
    rest = lower if loads or met else []
    tails = [
        Row(key, is_leading=False, tail=tail)
        for tail in SAMPLES_OF_TAIL
        for key in leading
        if key in keys and _has_tail(sides, key, tail)
    ]
    means = [
        Row(key, is_leading=False, is_mean=True)
        for key in leading
        if key in keys
        and _has_tail(sides, key, min(SAMPLES_OF_TAIL))
        and all(side.cells[key].means is not None for side in sides)
    ]
    rows = [
        *(Row(key, is_leading=True) for key in leading),
        *tails,
        *means,
        *(Row(key, is_leading=False) for key in rest),
    ]
    return [replace(row, named_as=_without_common(row.key, everything)) for row in rows]


def _without_common(key: CellKey, keys: Iterable[CellKey]) -> CellKey:
    """Return a cell without the parameters that are the same in all of its workload on so many ranks, or of its layer.

    They tell no rows apart; sections below the first screen have them.
    """
    if key.pattern is Pattern.NPB:
        return key  # whose class is its name
    if key.workload is not None:
        load = key.workload
        alike = [
            one.workload
            for one in keys
            if one.workload is not None and (one.workload.name, one.workload.ranks) == (load.name, load.ranks)
        ]
        common = set(load.own.items()).intersection(*(one.own.items() for one in alike))
        kept = tuple(one for one in load.parameters if one not in common)
        return key.model_copy(update={"workload": load.model_copy(update={"parameters": kept})})
    told = [set(one.parameters) for one in keys if one.workload is None and one.layer is key.layer]
    shared = {(name, value) for name, value in set.intersection(*told) if name not in (BY, KERNEL)} if told else set()
    return key.model_copy(update={"parameters": tuple(one for one in key.parameters if one not in shared)})


def was_asked(side: Side, key: CellKey) -> bool:
    """Return whether a side that has nothing of a cell was to measure it: it carries the layer, and such a cell failed there."""
    return key.layer in side.fabric.layers and any(
        (one.layer, one.pattern) == (key.layer, key.pattern) for one in side.failed
    )


def _key_cells(
    keys: Sequence[CellKey], asked: Sequence[CellKey], layer: Layer, ladder: Sequence[LadderStep]
) -> list[CellKey]:
    """Return a layer's round trip of the ladder's message and its throughput at the largest size; else of what was asked."""
    waits = {step.receive for step in ladder if step.layer is layer}
    steps = {step.round_trip_message_bytes for step in ladder if step.layer is layer}

    def mine(metric: Metric) -> list[CellKey]:
        found = [
            [
                key
                for key in those
                if key.layer is layer and is_basic(key) and key.receive in waits and key.metric is metric
            ]
            for those in (keys, asked)
        ]
        return found[0] or found[1]

    trips, rates = mine(Metric.ROUND_TRIP_TIME), mine(Metric.THROUGHPUT)
    trip = min(trips, key=lambda key: (key.message_bytes not in steps, key.message_bytes), default=None)
    rate = max(rates, key=lambda key: key.message_bytes, default=None)
    return [key for key in (trip, rate) if key is not None]


def _operations(keys: Sequence[CellKey]) -> list[CellKey]:
    """Return of each other pattern a small message's time or a large one's rate, few of them."""
    chosen: dict[tuple[Layer, Pattern], CellKey] = {}
    for key in keys:
        if PATTERNS[key.pattern].family is Family.WORKLOAD or key.congestor is not None:
            continue
        best = chosen.setdefault((key.layer, key.pattern), key)
        is_better = (
            key.message_bytes < best.message_bytes
            if key.metric.is_lower_better
            else key.message_bytes > best.message_bytes
        )
        if is_better:
            chosen[key.layer, key.pattern] = key
    order = [*MET_BY_USERS, *(layer for layer in Layer if layer not in MET_BY_USERS)]
    return sorted(chosen.values(), key=lambda key: order.index(key.layer))[:MOST_OPERATIONS]


def _has_tail(sides: Sequence[Side], key: CellKey, tail: float) -> bool:
    if key.metric is not Metric.ROUND_TRIP_TIME or key.workload is not None:
        return False
    fewest = min(side.cells[key].pooled.size / max(len(side.blocks), 1) for side in sides)
    return fewest >= SAMPLES_OF_TAIL[tail] and all(tail in side.cells[key].tails for side in sides)
