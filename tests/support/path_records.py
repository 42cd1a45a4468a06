"""Records of one cell with what interfaces carried around it, for proofs of the path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.model import Layer, Pattern, RdmaDoor, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.lines import (
    Cell,
    CellEnd,
    ClockInfo,
    Header,
    InterfaceBytes,
    Quantity,
    RankInfo,
    StopReason,
)
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.reading import CellRecord, ChannelNumbers, Record
from fabricbench.testbed.model import Fabric

NETWORK = Fabric(name="net", interface="eth1")
MEMORY = Fabric(name="memory", layers=(Layer.MEMORY, Layer.MPI))
SAMPLES, SIZE = 1000, 1024
PAYLOAD = SAMPLES * SIZE


def record(
    layer: Layer,
    pattern: Pattern,
    *,
    lost: int = 0,
    ranks: tuple[int, ...] = (0, 1),
    hosts: tuple[str, ...] = ("n0", "n1", "n2", "n3"),
    channels: Sequence[ChannelNumbers] = (),
    in_use: int = 1,
    congestor: PlanCongestor | None = None,
    door: RdmaDoor | None = None,
    **interfaces: tuple[int, int] | InterfaceBytes,
) -> Record:
    cell = Cell(
        id=3,
        layer=layer,
        pattern=pattern,
        message_bytes=SIZE,
        receive=Receive.BLOCKING,
        metric=metric_of(pattern),
        ranks=ranks,
        bytes_per_sample=SIZE,
        channels=in_use,
        congestor=congestor,
        parameters={"door": door} if door is not None else {},
    )
    end = CellEnd(
        cell=3,
        stop=StopReason.COUNT,
        warmup=0,
        measured=SAMPLES,
        seconds=0.1,
        sent=SAMPLES,
        lost=lost,
        interfaces={
            name: one if isinstance(one, InterfaceBytes) else InterfaceBytes(sent=one[0], received=one[1])
            for name, one in interfaces.items()
        },
    )
    header = Header(
        launch_id="b00-net",
        fabric="net",
        probe_version="0",
        mpi_library="none",
        started_unix_ns=0,
        ranks=tuple(RankInfo(rank=rank, host=host, pid=rank, cpus=(0,)) for rank, host in enumerate((*hosts, *hosts))),
        clock=ClockInfo(name="none", resolution_ns=1, overhead_ns=1, loop_floor_ns=1),
    )
    return Record(header=header, cells=[CellRecord(cell, end=end, channels=list(channels))])


def channel(source: int, destination: int, moved: int, quantity: Quantity = Quantity.TRANSFER) -> ChannelNumbers:
    """A transfer of so many bytes, or so many round trips."""
    is_transfer = quantity is Quantity.TRANSFER
    times = np.full(1 if is_transfer else moved, 5, dtype=np.int64)
    return ChannelNumbers(
        source=source,
        destination=destination,
        flow=0,
        round=0,
        quantity=quantity,
        time_ns=times,
        bytes=np.array([moved], dtype=np.uint64) if is_transfer else None,
        sent=1,
        lost=0,
    )


def under(*above: str, carried: int = PAYLOAD, is_counted: bool = True) -> InterfaceBytes:
    """A counter below the interfaces that are named."""
    return InterfaceBytes(sent=carried, received=carried, above=above, is_counted=is_counted)
