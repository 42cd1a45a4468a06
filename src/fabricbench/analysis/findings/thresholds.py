"""What changes at a message size by design: packets, pages, buffers, windows, protocols of MPI libraries."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.model import Model


class ThresholdKind(StrEnum):
    """What changes at a size."""

    PACKETS = "packets"
    PAGE = "page"
    INITIAL_WINDOW = "initial window"
    SEND_BUFFER = "send buffer"
    RECEIVE_BUFFER = "receive buffer"
    EAGER_LIMIT = "eager limit"


class Threshold(Model):
    """A size in bytes at which something changes: `number` full packets end there, or it is a limit of `library` by default."""

    kind: ThresholdKind
    bytes: int
    number: int | None = None
    library: str | None = None
