"""What the counters of an RDMA port and of the interface beside it mean: one table of the names that kernel and drivers use. Pure.

Sources: Linux `Documentation/ABI/stable/sysfs-class-infiniband` (the port's own, PortCounters of the InfiniBand Architecture
Specification), `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst` (statistics of the interface), NVIDIA,
"Understanding mlx5 Linux Counters and Status Parameters" (`hw_counters` of mlx5), `drivers/infiniband/sw/rxe/rxe_hw_counters.c` and
`hw/bnxt_re/hw_counters.c` of Linux (soft RoCE, Broadcom); `rdma-statistic(8)` and `ethtool(8)` show
them. A name in no source is taken by what it says (FALLBACKS).

Each kind of event is one thing, counted at one end: what a sender sent again, what a receiver found out of sequence, pause frames
that came and that went. Counters of the same thing at the other end, or of a part of it, stand in the table without an event, so
that no loss is counted twice.
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
    OUT_OF_SEQUENCE = "packet out of sequence at its receiver"
    DUPLICATE = "duplicate request"
    NOT_READY = "receiver not ready"
    ECN_MARK = "packet marked by ECN"
    CONGESTION = "congestion notification received"
    PAUSE = "pause frame received"
    PAUSE_SENT = "pause frame sent"
    CREDIT_WAIT = "tick without credits"
    DROP = "drop"
    ERROR = "error"


LOSSES = (PortEvent.RETRANSMISSION, PortEvent.DROP, PortEvent.OUT_OF_SEQUENCE)
"""What tells of lost packets, the surest first: drivers that do not count what a sender sends again may count the others."""


SYSFS = "ABI/stable/sysfs-class-infiniband"
MLX5 = "Understanding mlx5 Linux Counters and Status Parameters"
MLX5_ETHTOOL = "mlx5/counters.rst"
RXE = "rxe_hw_counters.c"
BNXT = "bnxt_re/hw_counters.c"


class PortCounter(NamedTuple):
    """Counters whose whole names match, what they count, and who says so; `event` None is ordinary work, or told by another."""

    names: str
    event: PortEvent | None
    meaning: str
    source: str


TABLE = (
    PortCounter("local_ack_timeout_err", PortEvent.RETRANSMISSION, "sent again: no acknowledgement in time", MLX5),
    PortCounter("packet_seq_err", PortEvent.RETRANSMISSION, "sent again: the other end missed a packet", MLX5),
    PortCounter("implied_nak_seq_err", PortEvent.RETRANSMISSION, "sent again: a later one was acknowledged", MLX5),
    PortCounter("roce_adp_retrans", PortEvent.RETRANSMISSION, "sent again, adaptively", MLX5),
    PortCounter("roce_adp_retrans_to|roce_slow_restart.*", None, "of those, when and how", MLX5),
    PortCounter("completer_retry_err", PortEvent.RETRANSMISSION, "sent again, told to or after the time-out", RXE),
    PortCounter("rcvd_seq_err", None, "told to send again: `completer_retry_err` counts that it did", RXE),
    PortCounter("to_retransmits", PortEvent.RETRANSMISSION, "sent again after the time-out", BNXT),
    PortCounter("seq_err_naks_rcvd", PortEvent.RETRANSMISSION, "sent again, told that a packet is missing", BNXT),
    PortCounter("out_of_sequence", PortEvent.OUT_OF_SEQUENCE, "a packet arrived that was not the next one", MLX5),
    PortCounter("out_of_seq_request", PortEvent.OUT_OF_SEQUENCE, "a request arrived that was not the next one", RXE),
    PortCounter("duplicate_request", PortEvent.DUPLICATE, "a request arrived once more (mlx5 and rxe)", MLX5),
    PortCounter("rnr_nak_retry_err", PortEvent.NOT_READY, "the other end had posted no receive", MLX5),
    PortCounter("rcvd_rnr_err", PortEvent.NOT_READY, "the other end had posted no receive", RXE),
    PortCounter("send_rnr_err", None, "the same, counted by the end that had posted none", RXE),
    PortCounter("np_ecn_marked_roce_packets", PortEvent.ECN_MARK, "a packet arrived that a switch had marked", MLX5),
    PortCounter("rx_ecn_mark", PortEvent.ECN_MARK, "a packet of the kernel arrived marked", MLX5_ETHTOOL),
    PortCounter("rp_cnp_handled", PortEvent.CONGESTION, "told to send more slowly, and did", MLX5),
    PortCounter("rp_cnp_ignored", PortEvent.CONGESTION, "told to send more slowly, and did not", MLX5),
    PortCounter("np_cnp_sent", None, "the same, counted by the end that told", MLX5),
    PortCounter(
        r"rx_(global|prio\d+)_pause", PortEvent.PAUSE, "a pause frame came, of all or one priority (PFC)", MLX5_ETHTOOL
    ),
    PortCounter(r"tx_(global|prio\d+)_pause", PortEvent.PAUSE_SENT, "a pause frame was sent, likewise", MLX5_ETHTOOL),
    PortCounter(
        "[rt]x_pause_ctrl_phy", None, "all pause frames of the port: those by priority once more", MLX5_ETHTOOL
    ),
    PortCounter(r"[rt]x_(global|prio\d+)_pause_(duration|transition)", None, "of the same pauses", MLX5_ETHTOOL),
    PortCounter("port_xmit_wait", PortEvent.CREDIT_WAIT, "ticks with data to send and no credit to", SYSFS),
    PortCounter("port_xmit_discards", PortEvent.DROP, "discarded because the port was down or congested", SYSFS),
    PortCounter("VL15_dropped", None, "management packets dropped for lack of buffers", SYSFS),
    PortCounter("out_of_buffer", PortEvent.DROP, "nothing was posted that could take the packet", MLX5),
    PortCounter("rx_out_of_buffer", None, "the kernel's own traffic found no buffer", MLX5_ETHTOOL),
    PortCounter("[rt]x_discards_phy", PortEvent.DROP, "dropped by the port for lack of buffers", MLX5_ETHTOOL),
    PortCounter(r"rx_prio\d+_(discards|buf_discard|cong_discard)", None, "of those, by priority", MLX5_ETHTOOL),
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
    ("duration|transition|flush|cnp_?sent|tx_cnp|rnr_naks_sent|sent_rnr", None),
    ("retrans|retry", PortEvent.RETRANSMISSION),
    ("out_of_seq|seq_err|oos", PortEvent.OUT_OF_SEQUENCE),
    ("dup", PortEvent.DUPLICATE),
    ("rnr", PortEvent.NOT_READY),
    ("ecn", PortEvent.ECN_MARK),
    ("cnp", PortEvent.CONGESTION),
    ("(tx|transmit).*(pause|pfc|xoff)|xoff_tx", PortEvent.PAUSE_SENT),
    ("pause|pfc|xoff", PortEvent.PAUSE),
    ("xmit_wait", PortEvent.CREDIT_WAIT),
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
    """Return what happened in words: `12 retransmissions, 1 pause frame received`; empty where nothing did."""
    return ", ".join(counted_event(events.get(event, 0), event) for event in only if events.get(event, 0))


_PLURALS = {
    PortEvent.OUT_OF_SEQUENCE: "packets out of sequence at their receiver",
    PortEvent.ECN_MARK: "packets marked by ECN",
    PortEvent.CONGESTION: "congestion notifications received",
    PortEvent.PAUSE: "pause frames received",
    PortEvent.PAUSE_SENT: "pause frames sent",
    PortEvent.CREDIT_WAIT: "ticks without credits",
}


def counted_event(number: int, event: PortEvent) -> str:
    """Return `12 retransmissions`."""
    if event is PortEvent.NOT_READY:
        return f"{number:,} times {event}"
    return f"{number:,} {event if number == 1 else plural_of(event)}"


def plural_of(event: PortEvent) -> str:
    """Return `retransmissions`."""
    return _PLURALS.get(event, event if event is PortEvent.NOT_READY else f"{event}s")
