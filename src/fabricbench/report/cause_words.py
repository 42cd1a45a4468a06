"""Stages, what delays messages in them, and whether that was confirmed, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings.stages import (
    CauseConfirmation,
    HeldByAcknowledgement,
    InterruptGrid,
    ProcessorWait,
    Stage,
    StageCause,
)
from fabricbench.model import Metric
from fabricbench.quantity import count, enumeration
from fabricbench.report.words import cell_words, interval_words, share_words, value_words

TRIP = Metric.ROUND_TRIP_TIME


def stage_words(parts: Sequence[Stage]) -> str:
    """Return `wire`, or the names of stages that merge: `library and socket`."""
    return enumeration([part.value for part in parts])


def cause_words(row: StageCause) -> str:
    """Return what is the cause, what it costs, by what it was told, and which test would confirm it."""
    met = (
        f"{value_words(TRIP, row.cost_ns)} of a stamped round trip on average in {cell_words(row.key)} (found in {row.found_in} of "
        f"{count(row.launches, 'launch')})"
    )
    match row.subject:
        case HeldByAcknowledgement() as held:
            return (
                f"a delayed acknowledgement takes {met}: {share_words(row.share)} of the messages wait in the socket for "
                f"{value_words(TRIP, held.held_ns)} and leave {value_words(TRIP, held.released_ns)} after the peer's "
                "acknowledgement. To confirm: the same with TCP_NODELAY (`nodelay = on`)."
            )
        case InterruptGrid() as grid:
            return (
                f"gathered interrupts take {met}: messages that leave at random times arrive at multiples of "
                f"{value_words(TRIP, grid.period_ns)} ({grid.length:.2f} of 1 in step). To confirm: the same with interrupts that "
                "are not coalesced (`ethtool -C`)."
            )
        case ProcessorWait() as wait:
            owner = _owner_words(wait)
            return (
                f"waits for a processor take {met}: {share_words(row.share)} of the messages find their receiver runnable and "
                f"without one for more than 0.3 ms ({value_words(TRIP, wait.waited_ns)} in the median); {owner}."
            )


def _owner_words(wait: ProcessorWait) -> str:
    if wait.process is None or wait.processor_share is None:
        return (
            "no process that the ranks can see used a tenth of one meanwhile: others did, out of their sight or each with less. No "
            "setting here varies that"
        )
    kind = ", of realtime priority," if wait.is_realtime else ""
    return (
        f"{wait.process}{kind} used {share_words(wait.processor_share)} of one meanwhile. To confirm: the same without it, which "
        "no setting here varies"
    )


def confirmation_words(one: CauseConfirmation) -> str:
    """Return whether a cause was confirmed: what its stage takes longer where it is taken away, or why that was not measured."""
    cause = f"{one.cause.fabric}, {one.cause.subject.kind} in {cell_words(one.cause.key)}"
    if one.varied is None:
        return f"{cause}: not confirmed, as no setting takes it away."
    if one.why_not:
        return f"{cause}: {one.varied} cannot be varied here: {one.why_not}."
    if one.difference is None:
        return f"{cause}: {one.varied} was varied, and no launch tells of {stage_words(one.cause.parts)}."
    moved = interval_words(TRIP, one.difference)
    verdict = {True: "confirmed", False: "not confirmed", None: "too few launches to tell"}[one.is_confirmed]
    return (
        f"{cause}: {verdict}. With {one.varied} varied {stage_words(one.cause.parts)} changes by {moved} on average over messages, "
        f"where the cause was found to add {value_words(TRIP, one.cause.cost_ns)}."
    )
