"""What a record says of a cell twice and differently: in its own lines, or against the plan of its launch. Pure.

Each function returns the first contradiction in words, None where there is none. What a line does not state (records of earlier
versions) contradicts nothing. The arithmetic is that of the measurer: `native/pattern` and `native/core/record_writer.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.model import ONE_SIDED_DOORS, Layer, Metric, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.lines import Cell, CellEnd, CellFailed, Header
from fabricbench.record.probe_plan import PlanProbe, ProbePlan

START_TOLERANCE_NS = "start_tolerance_ns"
"""In the values of an operation: how late a start may be that is no miss."""

SHARE_OF_ROUNDING = 0.01
"""What times in whole nanoseconds and clocks of several ranks may add up to more than the time that passed."""
LEAST_ROUNDING_NS = 1_000

FLOOD_SLACK_SECONDS = 1.0
"""A window of a flood ends when its rank next looks at its clock."""


@dataclass(frozen=True)
class Measured:
    """The measured samples of a cell: their times, the positions that are marked as missed, and their bytes where given.

    `channels_ns` has the numbers of samples and nanoseconds of all channels, None where no channel was recorded.
    """

    time_ns: NDArray[np.uint64]
    missed: tuple[int, ...] = ()
    has_missed_warmup: bool = False
    bytes: int | None = None
    channels_ns: tuple[int, int] | None = None


def in_opening(cell: Cell, probe: PlanProbe | None = None) -> str | None:
    """Hold a cell's opening line against what its pattern is, and against its probe of the plan."""
    return next(_in_opening(cell, probe), None)


def in_end(cell: Cell, end: CellEnd, measured: Measured) -> str | None:
    """Hold a cell's end against its opening line and its samples."""
    return next(_in_end(cell, end, measured), None)


def in_failure(failed: CellFailed, probe: PlanProbe | None = None) -> str | None:
    """Hold the line of a cell that failed against its probe of the plan."""
    return next(_in_failure(failed, probe), None)


def in_header(header: Header, plan: ProbePlan) -> str | None:
    """Hold a record's first line against the plan."""
    found = ("launch_id", header.launch_id, plan.launch_id), ("fabric", header.fabric, plan.fabric.name)
    return next(_unlike(found), None)


def _in_opening(cell: Cell, probe: PlanProbe | None) -> Iterator[str]:
    facts = PATTERNS[cell.pattern]
    if cell.layer not in facts.layers:
        yield f"{cell.pattern} does not run over {cell.layer}"
    if cell.metric is not facts.metric:
        yield f"{cell.pattern} measures {facts.metric}, the line says {cell.metric}"
    counts = ("message_bytes", "messages_per_sample", "operations_per_sample", "bytes_per_sample", "channels")
    yield from _negative((name, getattr(cell, name)) for name in counts)
    in_a_row = cell.parameters.get("round_trips", 1)
    if cell.operations_per_sample != in_a_row and cell.layer is not Layer.MEMORY and not facts.is_local:
        yield f"{cell.operations_per_sample} operations a sample: {in_a_row} were asked for"
    if cell.messages_per_sample != 1 and (not facts.is_stream or cell.layer is Layer.MEMORY):
        yield f"{cell.messages_per_sample} messages a sample: only a stream over a network has more than one"
    if probe is not None:
        yield from _unlike(_planned(cell, probe))


def _planned(cell: Cell, probe: PlanProbe) -> Iterator[tuple[str, object, object]]:
    """Yield what a cell's opening line repeats of its probe, as the measurer writes it; `receive` is the layer's choice."""
    is_stream = PATTERNS[probe.pattern].is_stream and probe.layer is not Layer.MEMORY
    asked: dict[str, object] = {
        "layer": probe.layer,
        "pattern": probe.pattern,
        "message_bytes": probe.message_bytes,
        "ranks": probe.ranks[:1] if probe.layer is Layer.MEMORY else probe.ranks,
        "messages_per_sample": probe.messages_per_sample if is_stream else 1,
        "parameters": probe.parameters,
        "congestor": probe.congestor,
    }
    return ((name, getattr(cell, name), value) for name, value in asked.items() if name in cell.model_fields_set)


def _in_failure(failed: CellFailed, probe: PlanProbe | None) -> Iterator[str]:
    if probe is not None:
        yield from _unlike((name, getattr(failed, name), getattr(probe, name)) for name in OF_A_FAILURE)
    yield from _impossible_values(failed.values)


OF_A_FAILURE = ("layer", "pattern", "message_bytes")
"""What the line of a failure repeats of its probe."""


def _in_end(cell: Cell, end: CellEnd, measured: Measured) -> Iterator[str]:
    if measured.has_missed_warmup:
        yield "samples of the warm-up are marked as missed"
    if len(set(measured.missed)) != len(measured.missed):
        yield "a sample is marked twice as missed"
    if "missed" in end.model_fields_set and end.missed != len(measured.missed):
        yield f"the end counts {end.missed} samples that missed their start, {len(measured.missed)} are marked"
    counts = ("sent", "lost", "reordered", "duplicated", "corrupted", "verified", "missed")
    yield from _negative((name, getattr(end, name)) for name in (*counts, "seconds"))
    for counters in (end.interfaces, *end.other_hosts.values()):
        for name, carried in counters.items():
            yield from _negative(((f"{name} sent", carried.sent), (f"{name} received", carried.received)))
    yield from _impossible_values(end.values)
    yield from _wrong_bytes(cell, end, measured)
    yield from _too_long(cell, end, measured)
    if PATTERNS[cell.pattern].family is Family.MATRIX and measured.channels_ns is not None:
        of_samples = (len(measured.time_ns), int(measured.time_ns.sum()))
        if measured.channels_ns != of_samples:
            (pairs, pairs_ns), (samples, samples_ns) = measured.channels_ns, of_samples
            yield f"its pairs took {pairs_ns} ns, its samples {samples_ns} ns ({pairs} and {samples} of them)"


def _wrong_bytes(cell: Cell, end: CellEnd, measured: Measured) -> Iterator[str]:
    needed = _bytes_of_sample(cell)
    if needed is not None and cell.bytes_per_sample != needed:
        yield f"bytes_per_sample is {cell.bytes_per_sample}, {needed} are needed for {cell.message_bytes} B a message"
    is_counted = PATTERNS[cell.pattern].is_stream and cell.layer is not Layer.MEMORY and "sent" in end.model_fields_set
    # Late messages of before the measurement are counted as reordered.
    if is_counted and (measured.bytes or 0) > (end.sent + end.reordered) * cell.message_bytes:
        yield f"its samples hold {measured.bytes} bytes, more than the {end.sent} messages that were sent"


def _bytes_of_sample(cell: Cell) -> int | None:
    """Return the bytes of a sample where the opening line states all that they follow from."""
    if cell.layer is Layer.MEMORY:
        return None
    if PATTERNS[cell.pattern].is_stream:
        return cell.messages_per_sample * cell.message_bytes
    answers = 0 if cell.layer is Layer.RDMA and cell.parameters.get("door") in ONE_SIDED_DOORS else 1
    if cell.pattern is Pattern.BURST:
        messages = cell.parameters.get("messages", PATTERNS[Pattern.BURST].parameters["messages"].default)
        return (int(messages) + answers) * cell.message_bytes
    facts = PATTERNS[cell.pattern]
    if facts.family is Family.LOCKSTEP:
        return cell.channels * cell.message_bytes if "channels" in cell.model_fields_set else None
    is_round_trip = facts.family in (Family.PAIR, Family.MATRIX) and facts.metric is Metric.ROUND_TRIP_TIME
    return cell.operations_per_sample * (1 + answers) * cell.message_bytes if is_round_trip else None


def _too_long(cell: Cell, end: CellEnd, measured: Measured) -> Iterator[str]:
    """Yield where samples that follow one another took longer than the time in which they were taken."""
    most_ns = _most_ns(cell, end, measured)
    if most_ns is None or not len(measured.time_ns):
        return
    times = np.delete(measured.time_ns, list(measured.missed)).astype(np.float64)
    took_ns = float(times.sum())
    if took_ns > most_ns * (1 + SHARE_OF_ROUNDING) + LEAST_ROUNDING_NS:
        yield f"its samples took {took_ns * 1e-9:g} s, the end says that they were taken in {end.seconds:g} s"


def _most_ns(cell: Cell, end: CellEnd, measured: Measured) -> float | None:
    """Return what all samples together can have taken by what the end says; None where it does not say enough."""
    seconds_ns = end.seconds * 1e9
    longest_ns = float(measured.time_ns.max(initial=0))
    match PATTERNS[cell.pattern].family:
        case Family.PAIR:
            return seconds_ns
        case Family.LOCKSTEP:  # the first rank has the time; the last may be as many turns behind as there are ranks
            return seconds_ns + longest_ns * len(cell.ranks)
        case Family.MATRIX:  # disjoint pairs at once
            return seconds_ns * max(1, len(cell.ranks) // 2)
        case Family.OPERATION:  # times count from an agreed start, and a call that is no miss begins at most that late
            late_ns = end.values.get(START_TOLERANCE_NS, seconds_ns)
            return seconds_ns + late_ns * len(measured.time_ns)
        case Family.FLOOD:  # seconds are as planned, and a rank that was held up has longer windows
            span_ns = (end.end_unix_ns or 0) - (end.begin_unix_ns or 0)
            return max(2 * seconds_ns + FLOOD_SLACK_SECONDS * 1e9, span_ns)
        case Family.WORKLOAD:
            return None


def _impossible_values(values: Mapping[str, float]) -> Iterator[str]:
    """Yield values that nothing can have: times and sizes below 0, shares beyond 1, what is no number."""
    for name, value in values.items():
        is_share = name == "overlap"
        is_amount = name.endswith(("_ns", "_bytes"))
        if not math.isfinite(value) or ((is_amount or is_share) and value < 0) or (is_share and value > 1):
            yield f"{name} is {value:g}"


def _negative(numbers: Iterable[tuple[str, float]]) -> Iterator[str]:
    for name, number in numbers:
        if not (math.isfinite(number) and number >= 0):
            yield f"{name} is {number:g}: numbers that are not negative are needed"


def _unlike(found: Iterable[tuple[str, object, object]]) -> Iterator[str]:
    for name, stated, planned in found:
        if stated != planned:
            yield f"{name} is {stated}, the plan has {planned}"
