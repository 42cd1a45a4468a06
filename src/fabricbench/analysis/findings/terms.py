"""The words of every finding: a verdict, a value with its interval, what is measured."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.model import Layer, Metric, Model, Pattern, Receive


class Verdict(StrEnum):
    """What a comparison comes to."""

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    EQUIVALENT = "equivalent"
    NOT_ENOUGH_DATA = "not enough data"


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
