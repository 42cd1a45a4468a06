"""The words of every finding: a verdict, a value with its interval, what is measured."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

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


class WorkloadName(Model):
    """Which workload a cell is: its parameters as they were planned, columns and no text to be read back."""

    ranks: int
    parameters: tuple[tuple[str, str | int | float], ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return str(dict(self.parameters).get("workload", ""))

    @property
    def unit(self) -> str:
        """Of the rate that it is judged by; empty of a time."""
        return str(dict(self.parameters).get("unit", ""))

    @property
    def own(self) -> dict[str, str | int | float]:
        """The parameters that are its own."""
        return {name: value for name, value in self.parameters if name not in ("workload", "figure", "unit")}

    def __str__(self) -> str:
        """Return `hpl, n=1000, on 4 ranks (GFLOP/s)`."""
        own = "".join(f", {name}={value}" for name, value in self.own.items())
        rate = f" ({self.unit})" if self.unit else ""
        return f"{self.name}{own}{',' if own else ''} on {self.ranks} rank{'' if self.ranks == 1 else 's'}{rate}"


class WithoutNone(Model):
    """A finding of which some fields are not written where they are None: those that most runs have nothing of."""

    not_written: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_none(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = written(self)
        return {name: value for name, value in fields.items() if value is not None or name not in self.not_written}


class OfWorkload(WithoutNone):
    """What may be a workload's."""

    not_written: ClassVar[tuple[str, ...]] = ("workload",)
    workload: WorkloadName | None = None


class CellKey(OfWorkload):
    """What is measured, whatever the fabric. `variant` tells probes apart that differ in their parameters (`triad`), else ''."""

    layer: Layer
    pattern: Pattern
    receive: Receive
    message_bytes: int
    metric: Metric
    variant: str = ""
