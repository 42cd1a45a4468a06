"""sockperf, netperf and qperf: halves, inverses and bits of two kinds, and what they do not tell."""

from __future__ import annotations

import pytest
from tests.exchange.samples import figures, noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind

SOCKPERF, NETPERF, QPERF = sample("sockperf-udp.txt"), sample("netperf-tcp-rr.txt"), sample("qperf.txt")

LOG = """sockperf: == version #3.7-no.git ==
[ 0] IP = 10.98.1.2       PORT = 11111 # TCP
test was performed using the following parameters: --mps=max --burst=1 --reply-every=1 --msg-size=64 --time=1
packet, txTime(sec), rxTime(sec), latency(usec)
1, 10.000001000, 10.000052000, 25.500
2, 10.000100000, 10.000150000, 25.000
"""


def test_sockperf_prints_half_a_round_trip_and_no_size():
    (one,) = read(SOCKPERF).cells
    assert (one.pattern.value, one.layer, one.message_bytes, one.values) == ("pingpong", Layer.UDP, None, (49_910.0,))
    assert (one.printed_step, dict(one.parameters)) == (pytest.approx(2.0), {"statistic": "mean"})
    assert (read(SOCKPERF).version, read(SOCKPERF).notes) == ("3.7", ())


def test_a_full_round_trip_of_sockperf_is_not_doubled():
    text = SOCKPERF.replace("avg-latency", "avg-rtt").replace("Latency is", "Round trip is")
    assert read(text).cells[0].values == (24_955.0,)


def test_sockperf_of_two_results_that_differ_is_none():
    with pytest.raises(UsageError, match="its mean and its summary are not the same"):
        read(SOCKPERF.replace("Latency is 24.955", "Latency is 29.955"))


@pytest.mark.parametrize(
    ("mean", "why"),
    [
        ("4.955", "its mean, 4.955, is below the smallest that it is of, 12.663"),
        ("9924.955", "its mean, 9924.955, is above the largest that it is of, 3169.644"),
    ],
)
def test_a_mean_of_sockperf_outside_of_its_observations_is_no_result(mean: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(SOCKPERF.replace("24.955", mean))


def test_a_full_log_of_sockperf_has_samples_and_a_size():
    text = LOG.replace(" --reply-every=1", "").replace("--mps=max ", "")
    (one,) = read(text).cells
    assert (one.message_bytes, one.values, one.layer) == (64, (51_000.0, 50_000.0), Layer.TCP)


def test_sockperf_under_load_is_no_pingpong_and_named():
    with pytest.raises(UsageError, match="under-load: tests of which there is no pattern"):
        read(SOCKPERF.replace("sockperf: Starting test...", "sockperf: under-load test"))


def test_throughput_of_sockperf_is_of_binary_bits_that_were_sent():
    text = SOCKPERF.replace(
        "sockperf: Summary: Latency is 24.955 usec", "sockperf: Summary: BandWidth is 100.000 MBps (800.000 Mbps)"
    )
    text = "".join(line for line in text.splitlines(keepends=True) if "====>" not in line)
    (one,) = read(text).cells
    assert (one.pattern.value, one.values, dict(one.parameters)) == ("stream", (800.0 * 2**20,), {"statistic": "sent"})


def test_a_transaction_of_netperf_is_a_round_trip():
    (one,) = read(NETPERF).cells
    assert (one.pattern.value, one.layer, one.message_bytes, one.parameters) == ("pingpong", Layer.TCP, 64, ())
    assert one.values == (pytest.approx(1e9 / 16569.56),)
    assert one.printed_step == pytest.approx(1e9 / 16569.56 * 0.01 / 16569.56)
    assert read(NETPERF).notes == ()


def test_several_transactions_at_once_are_no_pingpong():
    with pytest.raises(UsageError, match="TCP_RR with a burst"):
        read(NETPERF.replace("first burst 0", "first burst 8"))


def test_other_sizes_back_are_another_test():
    assert dict(read(NETPERF.replace("64       64 ", "64       1  ")).cells[0].parameters) == {"response_bytes": 1}


STREAM = """MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.98.1.2 () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    2.00       94.12
"""
UDP = """MIGRATED UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.98.1.2 () port 0 AF_INET
Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

212992    1472   2.00       20000      0     117.76
212992           2.00       15000             88.32
"""


def test_streams_of_netperf_are_what_arrived_in_decimal_bits():
    assert figures(STREAM) == [("stream", 16384, 94_120_000)]
    assert figures(UDP) == [("stream", 1472, 88_320_000)]
    assert figures(NETPERF + STREAM + UDP)[1:] == figures(STREAM) + figures(UDP)
    assert dict(read(STREAM.replace("STREAM", "MAERTS")).cells[0].parameters) == {"direction": "reverse"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (STREAM.replace("10^6bits", "MBytes"), "do not say 10"),
        (NETPERF.replace("16569.56", "1,27"), "it has decimal points and decimal commas"),
        (UDP.replace("88.32", "1,27"), "it has decimal points and decimal commas"),
        (STREAM.replace("94.12", "nan"), "no number"),
        (STREAM.replace("94.12", "94.12  3.4"), "6 fields, and a result has 5"),
        (UDP[: UDP.rindex("212992")], "what was received does not follow"),
        (STREAM[: STREAM.index("131072")], "no result follows"),
        (STREAM.replace("TCP STREAM", "SCTP STREAM"), "tests of which there is no pattern"),
    ],
)
def test_a_result_of_netperf_that_is_another_or_damaged_is_named(text: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(text)


def test_qperf_prints_half_a_round_trip_and_three_digits():
    found = read(QPERF).cells
    assert [(one.layer, one.values, one.message_bytes) for one in found] == [
        (Layer.TCP, (52_400.0,), None),
        (Layer.UDP, (40_400.0,), None),
    ]
    assert [one.printed_step for one in found] == [pytest.approx(200.0)] * 2
    assert read(QPERF).notes == ()


def test_qperf_has_decimal_megabytes_and_whole_reads():
    text = """tcp_bw:
    bw              =  117 MB/sec
    msg_size        =   64 KiB (65,536)
udp_bw:
    send_bw  =  1,234 MB/sec
    recv_bw  =  1,180 MB/sec
rc_rdma_read_lat:
    latency  =  3.5 us
rc_compare_swap_mr:
    msg_rate  =  2.5 M/sec
"""
    found = read(text)
    assert [(one.pattern.value, one.message_bytes, one.values[0]) for one in found.cells] == [
        ("stream", 65536, 936e6),
        ("stream", None, 9.44e9),
        ("pingpong", None, 3500.0),
    ]
    assert noted(text) == [(ImportNoteKind.UNKNOWN_TEST, 9)]


@pytest.mark.parametrize("value", ["26,2 us", "nan us", "26.2 lightyears", "26.2"])
def test_a_value_of_qperf_that_is_none_is_named(value: str):
    text = QPERF.replace("26.2 us", value)
    assert [one.layer for one in read(text).cells] == [Layer.UDP]
    assert ImportNoteKind.DAMAGED in [kind for kind, _ in noted(text)]
