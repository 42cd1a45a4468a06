"""How much of a run is there, in a word."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """How much of a run is there."""

    COMPLETE = "complete"
    LOST = "results lost"
    """Every launch is over, and some gave no result."""
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"
