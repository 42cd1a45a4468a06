"""perftest's texts and JSON: halves, whole operations, MiB under the name of MB, and what contradicts itself."""

from __future__ import annotations

import pytest
from tests.exchange.samples import figures, noted, read

from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind

RULE = "-" * 87
SETTINGS = """ Dual-port       : OFF		Device         : mlx5_0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
"""
ADDRESSES = """ local address: LID 0000 QPN 0x0087 PSN 0x3f4a5e RKey 0x181c00 VAddr 0x007f5c3e7e1000
 remote address: LID 0000 QPN 0x0088 PSN 0x9e2a11 RKey 0x181c01 VAddr 0x007f2b1c9d5000
"""
BW = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
LAT = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] "
)


def block(title: str, columns: str, *rows: str, settings: str = SETTINGS) -> str:
    lines = [RULE, f"{'':20}{title}", settings.rstrip("\n"), RULE, ADDRESSES.rstrip("\n"), RULE, columns, *rows, RULE]
    return "".join(f"{line}\n" for line in lines)


# 65536 B x 0.187152 M/s = 12265.2 x 10^6 B/s = 11697.0 x 2^20 B/s.
WRITE_BW = block(
    "RDMA_Write BW Test", BW, " 65536      5000             11697.30            11697.02		   0.187152"
)
WRITE_LAT = block(
    "RDMA_Write Latency Test",
    LAT,
    " 2       1000          0.79           4.34         0.81     	       0.82        	0.05   		0.88    		4.34   ",
    " 4       1000          0.80           4.01         0.83     	       0.84        	0.05   		0.90    		4.01   ",
)

# By the source of 24.07, whose JSON is valid; 65536 B x 0.187152 M/s x 8 = 98.12 Gbit/s.
WRITE_BW_JSON = """{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Dual_port": "OFF",
"Device": "mlx5_0",
"Number_of_qps": 1,
"Transport_type": "IB",
"Connection_type": "RC",
"Using_SRQ": "OFF",
"PCIe_relax_order": "ON",
"ibv_wr_API": "ON",
"TX_depth": 128,
"CQ_Moderation": 100,
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 3,
"Max_inline_data": 0,
"rdma_cm_QPs": "OFF",
"Use_ROCm_memory": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 5000,
"BW_peak": 98.13,
"BW_average": 98.12,
"MsgRate": 0.187152
}
}
"""
# By that of 4.5, which quotes nothing and ends in a comma.
SEND_LAT_JSON = """{
test_info: {
test: Send_Latency_Test,
Dual_port: OFF,
Device: mlx5_0,
Number_of_qps: 1,
Transport_type: IB,
Connection_type: RC,
Using_SRQ: OFF,
Mtu: 4096,
Link_type: IB,
Max_inline_data: 236,
rdma_cm_QPs: OFF,
Data_ex_method: Ethernet,
},
results: {
MsgSize: 2,
n_iterations: 1000,
t_min: 0.79,
t_max: 4.34,
t_typical: 0.81,
t_avg: 0.82,
t_stdev: 0.05,
percentile_99: 0.88,
percentile_99.9: 4.34,
}
}
"""


def test_json_is_what_the_text_beside_it_is_and_its_unit_is_proven():
    assert figures(WRITE_BW_JSON) == [("stream", 65536, 98_120_000_000)]
    in_mib = WRITE_BW_JSON.replace("98.12", "11697.02").replace("98.13", "11697.30")
    assert (figures(in_mib), read(in_mib).cells[0].parameters) == (
        figures(WRITE_BW),
        read(WRITE_BW).cells[0].parameters,
    )
    assert figures(SEND_LAT_JSON) == [("pingpong", 2, 1620)]
    assert read(SEND_LAT_JSON).notes == read(WRITE_BW_JSON).notes == ()
    assert len(figures(SEND_LAT_JSON + WRITE_BW_JSON)) == 2
    both = WRITE_BW_JSON.replace("RDMA_Write_BW", "RDMA_Write_Bidirectional_Post_List_BW")
    assert (figures(both)[0][0], dict(read(both).cells[0].parameters)["post"]) == ("bistream", "list")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("98.12", "99.12", "not that of its size and its messages a second, in 2"),
        ('"MsgRate": 0.187152', '"CPU_util": 1.00', "its JSON has no MsgRate"),
        ('"MsgSize": 65536,\n', "", "its JSON has no MsgSize"),
        ('"BW_average": 98.12', '"BW_average": nan', "which is no number"),
        ("RDMA_Write_BW_Test", "Raw_Ethernet_BW_Test", "Raw_Ethernet BW"),
    ],
)
def test_json_that_contradicts_itself_or_lacks_what_proves_its_unit_is_no_result(old: str, new: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(WRITE_BW_JSON.replace(old, new))


def test_json_that_was_cut_short_says_so():
    cut = SEND_LAT_JSON[: SEND_LAT_JSON.index("percentile_99.9")]
    assert (figures(cut), noted(cut)) == ([("pingpong", 2, 1620)], [(ImportNoteKind.CUT, 24)])


def test_atomics_are_told_apart_by_what_they_do():
    swap = WRITE_LAT.replace("RDMA_Write Latency", "Atomic CMP_AND_SWAP Latency")
    assert dict(read(swap).cells[0].parameters) == {"door": "atomic", "atomic": "compare-and-swap"}
    add = WRITE_LAT.replace("RDMA_Write Latency", "Atomic FETCH_AND_ADD Latency")
    assert dict(read(add).cells[0].parameters) == {"door": "atomic"}


def test_a_rate_below_a_tenth_of_a_gigabit_has_more_decimals():
    row = " 2      1000           0.016384            0.016000            1.000000"
    assert figures(block("Send BW Test", BW.replace("MB/sec", "Gb/sec"), row)) == [("stream", 2, 16_000_000)]


def test_a_write_latency_is_half_a_round_trip_and_its_typical_value_counts():
    assert figures(WRITE_LAT) == [("pingpong", 2, 1620), ("pingpong", 4, 1660)]
    found = read(WRITE_LAT)
    assert {(one.layer, one.ranks, one.printed_step) for one in found.cells} == {(Layer.RDMA, 2, 20.0)}
    assert {dict(one.parameters)["door"] for one in found.cells} == {"write-poll"}
    assert found.notes == ()


@pytest.mark.parametrize(("title", "door"), [("RDMA_Read Latency Test", "read"), ("Atomic Latency Test", "atomic")])
def test_a_read_and_an_atomic_are_whole_operations(title: str, door: str):
    text = WRITE_LAT.replace("RDMA_Write Latency Test", title)
    assert figures(text) == [("pingpong", 2, 810), ("pingpong", 4, 830)]
    assert dict(read(text).cells[0].parameters) == {"door": door}


def test_a_megabyte_is_two_to_the_twentieth_under_both_of_its_names():
    expected = [("stream", 65536, round(11697.02 * 8 * 2**20, 6))]
    assert figures(WRITE_BW) == expected
    assert figures(WRITE_BW.replace("MB/sec", "MiB/sec")) == expected
    assert read(WRITE_BW).notes == ()


def test_gigabits_are_of_a_thousand_million_bits():
    # 65536 B x 0.187152 M/s x 8 = 98.12 Gbit/s.
    row = " 65536      5000             98.12              98.12     		   0.187152"
    assert figures(block("Send BW Test", BW.replace("MB/sec", "Gb/sec"), row)) == [("stream", 65536, 98_120_000_000)]


def test_both_directions_are_added_and_stay_apart_from_one():
    text = WRITE_BW.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW")
    assert [pattern for pattern, _, _ in figures(text)] == ["bistream"]


def test_a_unit_that_the_messages_of_the_row_deny_is_no_result():
    with pytest.raises(UsageError, match="not that of its size and its messages"):
        read(WRITE_BW.replace("MB/sec", "Gb/sec"))
    two = WRITE_BW.replace(f"0.187152\n{RULE}", f"0.187152\n 131072 5000 11697.30 13000.02 0.374304\n{RULE}")
    assert [size for _, size, _ in figures(two)] == [65536]
    assert noted(two) == [(ImportNoteKind.DAMAGED, 15)]


def test_connections_of_another_kind_and_many_queue_pairs_are_cells_of_their_own():
    settings = SETTINGS.replace(": RC", ": UD").replace("qps   : 1", "qps   : 4")
    (one,) = read(block("Send BW Test", BW, " 4096 5000 0.00 365.56 0.093583", settings=settings)).cells
    assert dict(one.parameters) == {"connection": "UD", "qps": 4}


def test_a_run_of_a_set_duration_prints_a_mean_which_is_marked():
    text = block(
        "Send Latency Test", " #bytes        #iterations       t_avg[usec]    tps average", " 2 500000 0.95 523456.78"
    )
    (one,) = read(text).cells
    assert (one.values, dict(one.parameters)) == ((1900.0,), {"statistic": "mean"})


def test_a_warning_about_the_clock_is_told_and_costs_no_row():
    text = WRITE_LAT.replace(" 2       1000", "Conflicting CPU frequency values detected: 2.0 != 3.1\n 2       1000")
    assert len(figures(text)) == 2
    assert noted(text) == [(ImportNoteKind.STRAY, 14)]


def test_several_tests_of_a_log_are_read_and_one_without_a_door_is_named():
    text = WRITE_LAT + WRITE_BW + block("Raw Ethernet BW Test", BW, " 64 5000 1.00 1.00 0.016384")
    assert [pattern for pattern, _, _ in figures(text)] == ["pingpong", "pingpong", "stream"]
    (note,) = read(text).notes
    assert (note.kind, note.text) == (ImportNoteKind.UNKNOWN_TEST, "Raw Ethernet BW")


def test_a_server_that_prints_beside_its_client_is_the_same_launch():
    server = "****\n* Waiting for client to connect... *\n****\n" + WRITE_BW.replace("11697.02", "11697.01")
    assert figures(server + WRITE_BW) == figures(WRITE_BW)
    assert [kind for kind, _ in noted(server + WRITE_BW)] == [ImportNoteKind.READ_AS]
    assert len(figures(server)) == 1


@pytest.mark.parametrize("number", ["nan", "inf", "081", "9.81", "0.8"])
def test_what_cannot_be_its_typical_time_is_named(number: str):
    text = WRITE_LAT.replace("0.81", number)
    assert [size for _, size, _ in figures(text)] == [4]
    assert noted(text) == [(ImportNoteKind.DAMAGED, 14)]


def test_a_text_that_ends_within_a_row_keeps_the_rows_before():
    cut = WRITE_LAT[: WRITE_LAT.index("0.84")]
    assert [size for _, size, _ in figures(cut)] == [2]
    assert noted(cut) == [(ImportNoteKind.CUT, 15)]


def test_a_connection_that_is_not_known_or_not_told_is_said():
    unknown = WRITE_LAT.replace(" : RC", " : RCC")
    assert [(kind, line) for kind, line in noted(unknown)] == [(ImportNoteKind.READ_AS, 5)]
    assert [kind for kind, _ in noted(WRITE_LAT.replace("Connection type", "Connection typ"))] == [
        ImportNoteKind.READ_AS
    ]


def test_a_size_that_is_not_between_those_around_it_is_no_result():
    more = "".join(f" {size} 1000 0.80 4.01 0.83 0.84 0.05 0.90 4.01\n" for size in (8, 16))
    text = WRITE_LAT.replace(f"4.01   \n{RULE}", f"4.01   \n{more}{RULE}")
    assert [size for _, size, _ in figures(text)] == [2, 4, 8, 16]
    damaged = text.replace(" 4       1000", " 44      1000")
    assert [size for _, size, _ in figures(damaged)] == [2, 8, 16]
    assert noted(damaged) == [(ImportNoteKind.DAMAGED, 15)]
