"""Stages of round trips: their words, what each took on a fabric, and what of it differs between two."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model


class Stage(StrEnum):
    """What a message goes through, in the order of its way."""

    LIBRARY = "library"
    HANDSHAKE = "handshake"
    SOCKET = "socket"
    QUEUEING = "queueing discipline"
    DRIVER = "driver"
    WIRE = "wire"
    SWITCH = "switch"
    EMULATOR = "emulator"
    SOFTIRQ = "softirq"
    PROTOCOL = "protocol"
    WAKE_UP = "wake-up"
    SCHEDULER = "scheduler"
    RETURN = "return"
    DELIVERY = "delivery"
    APPLICATION = "application"
    REST = "outside the stamps"


Parts = tuple[Stage, ...]
"""A stage, or those that merge because nobody saw the boundaries between them."""

FABRIC: Parts = (Stage.DRIVER, Stage.WIRE, Stage.SWITCH)
"""What passes between hosts where no emulator is among it, and nobody sees more of it."""


class Direction(StrEnum):
    """Where in a round trip: on the way there, at the other rank, on the way back, and there and back together."""

    THERE = "there"
    PEER = "peer"
    BACK = "back"
    BOTH = "both ways"


TOLERANCE = 0.02
"""Of a round trip by the application's own clock: a message whose stages add up to that within this is accounted for."""


class StageOnFabric(Model):
    """A stage, or several whose boundaries nobody saw, on a fabric: its share of the round trip, and its time in ns.

    `way` says on which way: there, at the peer, back, or both ways together, which tables show. `lower` is that of the lower
    quartile of each launch, which what interrupts a host moves less.
    """

    fabric: str
    key: CellKey
    place: int
    parts: tuple[Stage, ...]
    way: Direction
    median: Interval
    lower: Interval
    share: float


class StagedCell(Model):
    """A test whose stages were measured on a fabric. Of its `messages` were `complete` those of which no boundary is `missing`.

    `within` is the share of complete messages whose stages add up to the application's own time within TOLERANCE. `refused` has
    boundaries that hosts do not show, and why. `stamped` is the round trip with stamps, `plain` without; `cost` the difference.
    """

    fabric: str
    key: CellKey
    tier: str
    launches: int
    messages: int
    complete: int
    missing: dict[str, int]
    within: float
    refused: dict[str, tuple[str, ...]]
    has_switch: bool
    stamped: Interval
    plain: Interval | None
    cost: Interval | None
    between: Interval


class StageDifference(Model):
    """How much longer a stage takes on fabric B than on A, ns, by launches of the same blocks.

    Without `parts` it is the whole round trip; `is_between` is all that passes between the hosts.
    """

    fabric_a: str
    fabric_b: str
    key: CellKey
    parts: tuple[Stage, ...] = ()
    is_between: bool = False
    difference: Interval


class Traffic(StrEnum):
    """How messages follow each other: alone after a pause at random, at a set rate, each upon the last one's answer, or at once."""

    LONE = "lone"
    PACED = "paced"
    IN_TURN = "in turn"
    BURST = "in bursts"


class TrafficDifference(Model):
    """How much longer a stage takes in one traffic than in turn (`key`), ns, by the same launches.

    Without `parts` it is the whole round trip. A burst's stages are those from its first message's call to its last one's arrival.
    """

    fabric: str
    key: CellKey
    traffic: Traffic
    other: CellKey
    parts: tuple[Stage, ...] = ()
    difference: Interval


class HeldByAcknowledgement(Model):
    """A small message that a socket kept back until an earlier one was acknowledged, which the peer delayed (RFC 896, RFC 1122)."""

    kind: Literal["delayed acknowledgement"] = "delayed acknowledgement"
    held_ns: float
    released_ns: float
    """From the acknowledgement to the message in the queueing discipline."""


class InterruptGrid(Model):
    """Arrivals at multiples of a period, though messages leave at random times: an adapter that gathers its interrupts.

    `length` is how sharply they lie there, 0 to 1 (`statistics/periods.py`).
    """

    kind: Literal["interrupt coalescing"] = "interrupt coalescing"
    period_ns: float
    length: float


class ProcessorWait(Model):
    """A receiver that could run and had no processor.

    `process` is who used most of it, of those that the rank could see, and `processor_share` how much of one; None where nobody
    did: then it went to others, out of their sight or each with less.
    """

    kind: Literal["wait for a processor"] = "wait for a processor"
    waited_ns: float
    process: str | None
    processor_share: float | None
    is_realtime: bool


class StageCause(Model):
    """Why a stage of a test takes longer on a fabric, by a rule: found in `found_in` of its launches.

    `share` of the messages meet it, and it adds `cost_ns` to a round trip: means over all launches, 0 in those that do not have it.
    """

    fabric: str
    key: CellKey
    traffic: Traffic
    parts: tuple[Stage, ...]
    found_in: int
    launches: int
    share: float
    cost_ns: float
    subject: HeldByAcknowledgement | InterruptGrid | ProcessorWait = Field(discriminator="kind")


class Varied(StrEnum):
    """What is varied to confirm a cause."""

    NODELAY = "TCP_NODELAY"
    COALESCING = "interrupt coalescing"


class CauseConfirmation(Model):
    """Whether what a cause explains goes where it is taken away: how much longer its stage takes then, ns, over launches.

    It is the mean over messages, as the cost of the cause is.

    Without `varied` no setting takes the cause away; without `difference` it could not be varied here, and `why_not` says why.
    """

    cause: StageCause
    varied: Varied | None
    difference: Interval | None = None
    why_not: str = ""

    @property
    def is_confirmed(self) -> bool | None:
        """Whether the stage is shown to be shorter; None where it was not measured, or by too few launches."""
        if self.difference is None or self.difference.high is None:
            return None
        return self.difference.high < 0.0
