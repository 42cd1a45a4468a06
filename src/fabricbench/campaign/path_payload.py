"""What of a cell must have crossed the network on one host, by its pattern: the path proof holds counters against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricbench.model import Layer, RdmaDoor
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.lines import Cell, CellEnd, Quantity
from fabricbench.record.reading import ChannelNumbers
from fabricbench.record.workload_cells import LEADER_BYTES


@dataclass(frozen=True)
class Payload:
    """What a host must have sent, received, and either sent or received, in bytes at least."""

    sent: int = 0
    received: int = 0
    either: int = 0
    is_unknown: bool = False
    """Whether something must have crossed, and nobody knows how much."""

    @property
    def total(self) -> int:
        """Bytes sent, received, and of which nobody knows which of the two."""
        return self.sent + self.received + self.either


def payload_of(
    cell: Cell, end: CellEnd, channels: Sequence[ChannelNumbers], hosts: Mapping[int, str], host: str
) -> Payload:
    """Return the payload that a host must have sent and received at least."""
    if cell.layer is Layer.MEMORY:
        return Payload()
    is_first = host == hosts.get(cell.ranks[0], "")
    of_ranks = len({hosts.get(rank, "") for rank in cell.ranks})
    match PATTERNS[cell.pattern].family:
        case Family.PAIR:
            pair = _of_pair(cell, end)
            return pair if is_first else _seen_from_peer(pair, end.lost * cell.message_bytes)
        case Family.LOCKSTEP:
            return _of_turns(cell, end) if is_first or of_ranks == len(cell.ranks) else Payload()
        case Family.FLOOD | Family.MATRIX:
            return _of_channels(cell, channels, hosts, host)
        case Family.WORKLOAD:
            return _of_workload(cell, end, of_ranks) if is_first else Payload(is_unknown=True)
    return Payload(either=end.measured * cell.message_bytes // 2 if is_first and of_ranks > 1 else 0)


def _seen_from_peer(pair: Payload, lost: int) -> Payload:
    """Return what the other host of a pair must have moved; what is lost may be so on the way there."""
    return Payload(sent=pair.received, received=max(0, pair.sent - lost), either=pair.either)


def _of_turns(cell: Cell, end: CellEnd) -> Payload:
    # Two channels for each neighbour, one each way, over all members.
    moved = end.measured * cell.message_bytes * (cell.channels // len(cell.ranks))
    return Payload(sent=moved, received=max(0, moved - end.lost * cell.message_bytes))


def _of_pair(cell: Cell, end: CellEnd) -> Payload:
    facts = PATTERNS[cell.pattern]
    there = facts.messages_there
    if isinstance(there, str):
        there = int(cell.parameters.get(there, facts.parameters[there].default))
    moved = end.measured * cell.operations_per_sample * cell.messages_per_sample * cell.message_bytes
    lost = end.lost * cell.message_bytes
    if cell.layer is Layer.RDMA and cell.parameters.get("door") == RdmaDoor.READ:
        return Payload(either=moved)  # what is read crosses once, whoever asks for it
    back = moved * facts.messages_back
    # What comes back shows that what went there arrived; else some of it may have been lost before it was sent.
    sent = moved * there if back else max(0, moved * there - lost)
    return Payload(sent=sent, received=max(0, back - lost))


def _of_workload(cell: Cell, end: CellEnd, hosts: int) -> Payload:
    """Return what rank 0 handed to MPI for others; where ranks share a host, nobody knows how much of that stays in its memory."""
    told = end.values.get(LEADER_BYTES)
    if told is None:
        return Payload(is_unknown=len(cell.ranks) > 1)
    if hosts == len(cell.ranks):
        return Payload(either=int(told))
    return Payload(is_unknown=hosts > 1 and told > 0)


def _of_channels(cell: Cell, channels: Sequence[ChannelNumbers], hosts: Mapping[int, str], host: str) -> Payload:
    def is_here(rank: int) -> bool:
        return hosts.get(rank) == host if hosts else rank == cell.ranks[0]

    sent = received = 0
    for channel in channels:
        is_round_trip = channel.quantity is Quantity.ROUND_TRIP
        arrived = channel.bytes
        moved = int(arrived.sum()) if arrived is not None else len(channel.time_ns) * cell.message_bytes
        begins, ends = is_here(channel.source), is_here(channel.destination)
        if begins and ends:
            continue  # what stays on a host goes over no interface of a fabric
        sent += moved * (begins or (ends and is_round_trip))
        received += moved * (ends or (begins and is_round_trip))
    return Payload(sent=sent, received=received)
