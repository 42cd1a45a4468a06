"""The words of every finding: a verdict, a value with its interval, what is measured."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.model import Layer, Metric, Model, Pattern, Receive


class Verdict(StrEnum):
    """What a comparison comes to.

    Faster: by more than the margin that matters. Ahead: faster, and it may be by less than matters.
    """

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    A_AHEAD = "A ahead"
    B_AHEAD = "B ahead"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"

    @property
    def is_decided(self) -> bool:
        """Whether one side is faster by more than the margin."""
        return self in (Verdict.A_FASTER, Verdict.B_FASTER)

    @property
    def is_ahead(self) -> bool:
        """Whether one side leads and the margin is not shown to be exceeded."""
        return self in (Verdict.A_AHEAD, Verdict.B_AHEAD)

    @property
    def leader(self) -> str | None:
        """The letter of the side that is faster or ahead."""
        return self.value[0] if self.is_decided or self.is_ahead else None


class Replication(StrEnum):
    """What is repeated in a comparison, and so what its errors are errors of."""

    BLOCKS = "blocks"
    """Both sides in each block of one run: pairs close in time."""
    RUNS = "runs"
    """Several runs a side: the mean of each run is one value."""
    LAUNCHES = "launches"
    """One run a side: launches within them; what differs from session to session cannot be told from a change."""


class Interval(Model):
    """A point with its confidence interval; the bounds are None where too few launches give one."""

    value: float
    low: float | None
    high: float | None


class CellKey(Model):
    """What is measured, whatever the fabric. `variant` tells probes apart that differ in their parameters (`triad`), else ''."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    message_bytes: int
    metric: Metric
    variant: str = ""
