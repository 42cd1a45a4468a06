"""Stages of round trips: their words, what each took on a fabric, and what of it differs between two."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model


class Stage(StrEnum):
    """What a message goes through, in the order of its way."""

    LIBRARY = "library"
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
    APPLICATION = "application"
    REST = "outside the stamps"


Parts = tuple[Stage, ...]
"""A stage, or those that merge because nobody saw the boundaries between them."""

FABRIC: Parts = (Stage.DRIVER, Stage.WIRE, Stage.SWITCH)
"""What passes between hosts where no emulator is among it, and nobody sees more of it."""


class Way(StrEnum):
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
    way: Way
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
