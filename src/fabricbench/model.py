"""The base of every pydantic model of ours, and the vocabulary (layers, patterns, metrics) that they share."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen value; an unknown key is an error, because a typo in a campaign must not be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Layer(StrEnum):
    """Where in the stack a probe talks, from the processor's memory up: the order of the ladder."""

    MEMORY = "memory"
    FRAME = "frame"
    IP = "ip"
    UDP = "udp"
    TCP = "tcp"
    MPI = "mpi"


class Pattern(StrEnum):
    """Who talks to whom and when."""

    PINGPONG = "pingpong"
    STREAM = "stream"


class Receive(StrEnum):
    """How a receiver waits: asleep in the kernel, spinning on a non-blocking call, or as the MPI library does."""

    BLOCKING = "blocking"
    POLLING = "polling"
    LIBRARY = "library"


class Metric(StrEnum):
    """What a cell measures. A round trip is never halved and called a latency."""

    ROUND_TRIP_TIME = "round_trip_time"
    THROUGHPUT = "throughput"

    @property
    def unit(self) -> str:
        """The unit of every number of this metric inside the program and in JSON."""
        return "ns" if self is Metric.ROUND_TRIP_TIME else "bit/s"

    @property
    def is_lower_better(self) -> bool:
        """Whether the smaller number is the better one."""
        return self is Metric.ROUND_TRIP_TIME


METRIC_OF_PATTERN = {Pattern.PINGPONG: Metric.ROUND_TRIP_TIME, Pattern.STREAM: Metric.THROUGHPUT}
"""What each pattern measures: one line for each pattern."""
