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
    """Who talks to whom and when; an MPI operation is one too. `patterns` tells what each measures."""

    PINGPONG = "pingpong"
    ONEWAY = "oneway"
    PACED = "paced"
    BURST = "burst"
    STREAM = "stream"
    PINGPING = "pingping"
    SENDRECV = "sendrecv"
    EXCHANGE = "exchange"
    HALO = "halo"
    BISTREAM = "bistream"
    STAR = "star"
    RING = "ring"
    CHAOS = "chaos"
    INCAST = "incast"
    OUTCAST = "outcast"
    BISECTION = "bisection"
    MESSAGE_RATE = "message-rate"
    PAIRS = "pairs"
    PAIRS_STREAM = "pairs-stream"
    BARRIER = "barrier"
    BCAST = "bcast"
    GATHER = "gather"
    GATHERV = "gatherv"
    SCATTER = "scatter"
    SCATTERV = "scatterv"
    REDUCE = "reduce"
    ALLREDUCE = "allreduce"
    REDUCE_SCATTER = "reduce-scatter"
    REDUCE_SCATTER_BLOCK = "reduce-scatter-block"
    ALLGATHER = "allgather"
    ALLGATHERV = "allgatherv"
    ALLTOALL = "alltoall"
    ALLTOALLV = "alltoallv"
    SCAN = "scan"
    EXSCAN = "exscan"
    NEIGHBOR_ALLGATHER = "neighbor-allgather"
    NEIGHBOR_ALLTOALL = "neighbor-alltoall"
    PUT = "put"
    GET = "get"
    ACCUMULATE = "accumulate"
    FETCH_AND_OP = "fetch-and-op"
    COMPARE_AND_SWAP = "compare-and-swap"
    PARTITIONED = "partitioned"
    THREADED = "threaded"
    NPB = "npb"
    WORKLOAD = "workload"


class Receive(StrEnum):
    """How a receiver waits: asleep in the kernel, spinning on a non-blocking call, or as the MPI library does."""

    BLOCKING = "blocking"
    POLLING = "polling"
    LIBRARY = "library"


class Metric(StrEnum):
    """What a cell measures. A round trip is never halved and called a latency."""

    ROUND_TRIP_TIME = "round_trip_time"
    OPERATION_TIME = "operation_time"
    THROUGHPUT = "throughput"
    MESSAGE_RATE = "message_rate"
    WORK_RATE = "work_rate"
    """A program's own figure of merit, work in a time: its unit is the workload's (`CellKey.workload`)."""

    @property
    def is_time(self) -> bool:
        """Whether it is a time: the median of a launch counts, and the smaller number is the better one."""
        return self in {Metric.ROUND_TRIP_TIME, Metric.OPERATION_TIME}

    @property
    def unit(self) -> str:
        """The unit of every number of this metric inside the program and in JSON."""
        rates = {Metric.MESSAGE_RATE: "message/s", Metric.WORK_RATE: "work/s"}
        return "ns" if self.is_time else rates.get(self, "bit/s")

    @property
    def is_lower_better(self) -> bool:
        """Whether the smaller number is the better one."""
        return self.is_time
