"""What the counters of an RDMA port and of the interface beside it mean: one table of the names that kernel and drivers use. Pure.

Sources: Linux `Documentation/ABI/stable/sysfs-class-infiniband` (the port's own, PortCounters of the InfiniBand Architecture
Specification), `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst` (statistics of the interface), NVIDIA,
"Understanding mlx5 Linux Counters and Status Parameters" (`hw_counters` of mlx5), `drivers/infiniband/sw/rxe/rxe_hw_counters.c` of
Linux (soft RoCE); `rdma-statistic(8)` and `ethtool(8)` show them. A name in no source is taken by what it says (FALLBACKS).

A loss may be counted at both of its ends: by the receiver as out of sequence, by the sender as what it was told of that. So numbers
of one kind say whether there was any and how many about, not how many packets exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from fabricbench.record.lines import PortState


class PortEvent(StrEnum):
    """What happened at a port, in the order in which reports tell it."""

    RETRANSMISSION = "retransmission"
    NOT_READY = "receiver not ready"
    CONGESTION = "congestion notification"
    PAUSE = "pause"
    DROP = "drop"
    ERROR = "error"


SYSFS = "ABI/stable/sysfs-class-infiniband"
MLX5 = "Understanding mlx5 Linux Counters and Status Parameters"
MLX5_ETHTOOL = "mlx5/counters.rst"
RXE = "rxe_hw_counters.c"


class PortCounter(NamedTuple):
    """Counters whose whole names match, what they count, and who says so; `event` None is ordinary work, or told by another."""

    names: str
    event: PortEvent | None
    meaning: str
    source: str


TABLE = (
    PortCounter("packet_seq_err", PortEvent.RETRANSMISSION, "the other end says that a packet is missing", MLX5),
    PortCounter("out_of_sequence", PortEvent.RETRANSMISSION, "a packet arrived that was not the next one", MLX5),
    PortCounter("local_ack_timeout_err", PortEvent.RETRANSMISSION, "no acknowledgement within the time-out", MLX5),
    PortCounter("implied_nak_seq_err", PortEvent.RETRANSMISSION, "an acknowledgement beyond the one awaited", MLX5),
    PortCounter("duplicate_request", PortEvent.RETRANSMISSION, "a request arrived once more (mlx5 and rxe)", MLX5),
    PortCounter("roce_adp_retrans(_to)?", PortEvent.RETRANSMISSION, "adaptive retransmission", MLX5),
    PortCounter("out_of_seq_request", PortEvent.RETRANSMISSION, "a request arrived that was not the next one", RXE),
    PortCounter("rcvd_seq_err", PortEvent.RETRANSMISSION, "the other end says that a packet is missing", RXE),
    PortCounter("completer_retry_err", PortEvent.RETRANSMISSION, "sent again, told to or after the time-out", RXE),
    PortCounter("rnr_nak_retry_err", PortEvent.NOT_READY, "the other end had posted no receive", MLX5),
    PortCounter("rcvd_rnr_err", PortEvent.NOT_READY, "the other end had posted no receive", RXE),
    PortCounter("send_rnr_err", PortEvent.NOT_READY, "this end had posted no receive", RXE),
    PortCounter("np_ecn_marked_roce_packets", PortEvent.CONGESTION, "a packet arrived that a switch had marked", MLX5),
    PortCounter("np_cnp_sent", PortEvent.CONGESTION, "the sender of such packets was told", MLX5),
    PortCounter("rp_cnp_handled", PortEvent.CONGESTION, "told to send more slowly, and did", MLX5),
    PortCounter("rp_cnp_ignored", PortEvent.CONGESTION, "told to send more slowly, and did not", MLX5),
    PortCounter("rx_ecn_mark", PortEvent.CONGESTION, "a packet of the kernel arrived marked", MLX5_ETHTOOL),
    PortCounter(
        r"[rt]x_(global|prio\d+)_pause", PortEvent.PAUSE, "a pause frame, of all or one priority", MLX5_ETHTOOL
    ),
    PortCounter(
        "[rt]x_pause_ctrl_phy", None, "all pause frames of the port: those by priority once more", MLX5_ETHTOOL
    ),
    PortCounter(r"[rt]x_(global|prio\d+)_pause_(duration|transition)", None, "of the same pauses", MLX5_ETHTOOL),
    PortCounter("port_xmit_wait", PortEvent.PAUSE, "ticks with data to send and no credit of the other end", SYSFS),
    PortCounter("port_xmit_discards", PortEvent.DROP, "discarded because the port was down or congested", SYSFS),
    PortCounter("VL15_dropped", PortEvent.DROP, "management packets dropped for lack of buffers", SYSFS),
    PortCounter("out_of_buffer", PortEvent.DROP, "nothing was posted that could take the packet", MLX5),
    PortCounter("rx_out_of_buffer", PortEvent.DROP, "the kernel had posted nothing that could take it", MLX5_ETHTOOL),
    PortCounter("[rt]x_discards_phy", PortEvent.DROP, "dropped by the port for lack of buffers", MLX5_ETHTOOL),
    PortCounter(
        r"rx_prio\d+_(discards|buf_discard|cong_discard)", PortEvent.DROP, "likewise, of one priority", MLX5_ETHTOOL
    ),
    PortCounter("retry_exceeded_err", PortEvent.ERROR, "given up after as many retries as asked for", RXE),
    PortCounter("retry_rnr_exceeded_err", PortEvent.ERROR, "given up, the other end was never ready", RXE),
    PortCounter("send_err", PortEvent.ERROR, "a packet could not be sent", RXE),
    PortCounter("link_downed|link_error_recovery", PortEvent.ERROR, "the link was lost or had to recover", SYSFS),
    PortCounter(
        "symbol_error|local_link_integrity_errors|excessive_buffer_overrun_errors",
        PortEvent.ERROR,
        "the link is bad",
        SYSFS,
    ),
    PortCounter("port_(rcv|xmit)_.*errors", PortEvent.ERROR, "a packet that could not be used or sent", SYSFS),
    PortCounter("rx_icrc_encapsulated", PortEvent.ERROR, "a packet whose check was wrong", MLX5),
    PortCounter(
        "(req|resp)_(remote_access_errors|remote_invalid_request|local_length_error|cqe_error)",
        PortEvent.ERROR,
        "a request that failed",
        MLX5,
    ),
    PortCounter("(req|resp)_cqe_flush_error", None, "what was still posted when a queue pair was closed", MLX5),
    PortCounter("ack_deferred|sent_pkts|rcvd_pkts|rdma_sends|rdma_recvs", None, "ordinary work", RXE),
    PortCounter("(rx_(read|write|atomic)|rx_dct)_.*", None, "ordinary work", MLX5),
    PortCounter("port_(rcv|xmit)_packets|(uni|multi)cast_(rcv|xmit)_packets", None, "ordinary work", SYSFS),
    PortCounter(r"[rt]x_prio\d+_(bytes|packets)", None, "ordinary work of one priority", MLX5_ETHTOOL),
)

FALLBACKS = (
    ("duration|transition|flush", None),
    ("retrans|retry|out_of_seq|seq_err|dup_req", PortEvent.RETRANSMISSION),
    ("rnr", PortEvent.NOT_READY),
    ("cnp|ecn", PortEvent.CONGESTION),
    ("pause|pfc|xoff", PortEvent.PAUSE),
    ("discard|drop|no_buf|oob", PortEvent.DROP),
    ("err|crc", PortEvent.ERROR),
)
"""What a name in no source is taken for, by the first of these that stands in it: other drivers call things much the same."""


def event_of(counter: str) -> PortEvent | None:
    """Return what a counter tells of; None for ordinary work, and for what cannot be told."""
    known = known_counter(counter)
    if known is not None:
        return known.event
    return next((event for words, event in FALLBACKS if re.search(words, counter, re.IGNORECASE)), None)


@cache
def known_counter(counter: str) -> PortCounter | None:
    """Return the line of the table that a counter stands in; None: in none."""
    return next((one for one in TABLE if re.fullmatch(one.names, counter)), None)


def events_of(state: PortState) -> dict[PortEvent, int] | None:
    """Return how often each happened, over all hosts, ports and counters; None where no port was read."""
    ports = [counters for of_host in state.values() for counters in of_host.values()]
    if not ports:
        return None
    found = dict.fromkeys(PortEvent, 0)
    for counters in ports:
        for name, number in counters.items():
            if (event := event_of(name)) is not None:
                found[event] += number
    return found


def event_words(events: dict[PortEvent, int], only: Iterable[PortEvent] = tuple(PortEvent)) -> str:
    """Return what happened in words: `12 retransmissions, 1 pause`; empty where nothing did."""
    return ", ".join(_counted(events.get(event, 0), event) for event in only if events.get(event, 0))


def _counted(number: int, event: PortEvent) -> str:
    if event is PortEvent.NOT_READY:
        return f"{number:,} times {event}"
    return f"{number:,} {event}" + ("" if number == 1 else "s")
