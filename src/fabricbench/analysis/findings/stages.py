"""The words for the stages of a message: what it goes through, and on which way."""

from __future__ import annotations

from enum import StrEnum


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

BETWEEN_HOSTS: Parts = (Stage.DRIVER, Stage.WIRE, Stage.SWITCH, Stage.EMULATOR)
FABRIC: Parts = BETWEEN_HOSTS[:3]
"""What passes between hosts where no emulator is among it, and nobody sees more of it."""


class Way(StrEnum):
    """Where in a round trip: on the way there, at the other rank, on the way back, and there and back together."""

    THERE = "there"
    PEER = "peer"
    BACK = "back"
    BOTH = "both ways"
