"""What counters mean, by the names that the drivers of adapters have for them."""

from __future__ import annotations

import re

import pytest

from fabricbench.record.port_counters import (
    FALLBACKS,
    TABLE,
    PortEvent,
    event_of,
    event_words,
    events_of,
    known_counter,
)

(
    RETRANSMISSION,
    OUT_OF_SEQUENCE,
    DUPLICATE,
    NOT_READY,
    ECN_MARK,
    CONGESTION,
    PAUSE,
    PAUSE_SENT,
    CREDIT_WAIT,
    DROP,
    ERROR,
) = PortEvent


@pytest.mark.parametrize(
    ("names", "event"),
    [
        (["packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "completer_retry_err"], RETRANSMISSION),
        (["out_of_sequence", "out_of_seq_request"], OUT_OF_SEQUENCE),
        (["duplicate_request"], DUPLICATE),
        (["rnr_nak_retry_err", "rcvd_rnr_err"], NOT_READY),
        (["np_ecn_marked_roce_packets", "rx_ecn_mark"], ECN_MARK),
        (["rp_cnp_handled", "rp_cnp_ignored"], CONGESTION),
        (["rx_prio3_pause", "rx_global_pause"], PAUSE),
        (["tx_prio0_pause", "tx_global_pause"], PAUSE_SENT),
        (["port_xmit_wait"], CREDIT_WAIT),
        (["rx_discards_phy", "port_xmit_discards", "out_of_buffer"], DROP),
        (["rcvd_seq_err", "send_rnr_err", "np_cnp_sent", "rx_prio3_cong_discard", "VL15_dropped"], None),
        (["symbol_error", "port_rcv_errors", "port_rcv_remote_physical_errors", "retry_exceeded_err"], ERROR),
        (["sent_pkts", "rcvd_pkts", "rdma_sends", "ack_deferred", "port_xmit_packets", "rx_prio0_bytes"], None),
        (["resp_cqe_flush_error", "rx_prio3_pause_duration", "rx_pause_ctrl_phy", "rx_write_requests"], None),
    ],
)
def test_what_a_known_counter_tells(names: list[str], event: PortEvent | None):
    for name in names:
        assert known_counter(name) is not None, name
        assert event_of(name) is event, name


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("tcpRetransSegs", RETRANSMISSION),
        ("tcp_retrans_segs", RETRANSMISSION),
        ("hw_retransmission", RETRANSMISSION),
        ("rnr_naks_rcvd", NOT_READY),
        ("rx_cnp_pkts", CONGESTION),
        ("cnpHandled", CONGESTION),
        ("cnpSent", None),
        ("RxECNMrkd", ECN_MARK),
        ("port.link_xoff_rx", PAUSE),
        ("port.link_xoff_tx", PAUSE_SENT),
        ("tx_pfc_frames", PAUSE_SENT),
        ("rx_roce_discard_pkts", DROP),
        ("unrecoverable_err", ERROR),
        ("active_pds", None),
    ],
)
def test_a_name_in_no_source_is_taken_by_what_it_says(name: str, event: PortEvent | None):
    assert known_counter(name) is None
    assert event_of(name) is event


def test_no_counter_stands_twice_in_the_table_and_each_says_where_it_is_from():
    plain = [one.names for one in TABLE if re.fullmatch(r"\w+", one.names)]
    assert len(plain) > 10
    for name in plain:
        assert [one.names for one in TABLE if re.fullmatch(one.names, name)] == [name]
    assert all(one.source and one.meaning for one in TABLE)
    assert {event for _, event in FALLBACKS} == {None, *PortEvent}


def test_events_add_up_over_hosts_ports_and_counters():
    state = {
        "n0": {
            "mlx5_0/1": {"packet_seq_err": 2, "local_ack_timeout_err": 1, "sent_pkts": 100},
            "eth0": {"rx_prio3_pause": 7},
        },
        "n1": {"mlx5_0/1": {"out_of_sequence": 4}},
    }
    found = events_of(state)
    assert found is not None
    assert (found[RETRANSMISSION], found[OUT_OF_SEQUENCE], found[PAUSE], found[DROP]) == (3, 4, 7, 0)
    assert (
        event_words(found) == "3 retransmissions, 4 packets out of sequence at their receiver, 7 pause frames received"
    )
    assert event_words({NOT_READY: 1, PAUSE: 1}) == "1 times receiver not ready, 1 pause frame received"
    assert event_words(found, [DROP]) == ""


def test_a_loss_that_soft_roce_mends_is_counted_once():
    sender = {"completer_retry_err": 3, "rcvd_seq_err": 2}
    receiver = {"out_of_seq_request": 9, "duplicate_request": 4, "send_rnr_err": 1}
    found = events_of({"n0": {"rxe0/1": sender}, "n1": {"rxe0/1": receiver}})
    assert found is not None
    assert found[RETRANSMISSION] == 3


def test_a_quiet_port_had_nothing_and_of_one_that_nobody_read_nothing_is_known():
    assert events_of({"n0": {"rxe0/1": {}}}) == dict.fromkeys(PortEvent, 0)
    assert events_of({}) is None
    assert events_of({"n0": {}}) is None
