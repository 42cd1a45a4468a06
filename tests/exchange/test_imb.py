"""Intel MPI Benchmarks' texts: halves, megabytes of two kinds, a table for each number of processes, damage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.exchange.samples import figures, noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.exchange import imb
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run

PINGPONG, COLLECTIVES = sample("imb-pingpong.txt"), sample("imb-collectives.txt")

HEAD = "#    Intel (R) MPI Benchmarks 4.1 Update 1, MPI-1 part\n"
END = "\n\n# All processes entering MPI_Finalize\n"


def table(title: str, columns: str, *rows: str, ranks: int = 2) -> str:
    rule = "#" + "-" * 40
    head = f"{rule}\n# Benchmarking {title} \n# #processes = {ranks} \n{rule}\n"
    return "\n" + head + columns + "\n" + "".join(f"{row}\n" for row in rows)


OF_TIME = "       #bytes #repetitions      t[usec]   Mbytes/sec"
OF_RANKS = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]"


def test_a_pingpong_prints_half_a_round_trip():
    found = read(PINGPONG)
    assert figures(PINGPONG) == [("pingpong", 8, 209_880), ("pingpong", 1024, 471_140), ("pingpong", 65536, 1_876_140)]
    assert {(one.layer, one.ranks, one.printed_step) for one in found.cells} == {(Layer.MPI, 2, 20.0)}
    assert (found.version, found.notes) == ("2021.11", ())
    assert "twice the half round trip" in found.statistic


def test_a_collective_is_the_slowest_ranks_and_a_reduction_has_its_datatype():
    assert figures(COLLECTIVES) == [
        ("allreduce", 8, 223_610),
        ("allreduce", 4096, 1_785_820),
        ("alltoall", 8, 222_860),
        ("alltoall", 4096, 1_452_460),
    ]
    found = read(COLLECTIVES)
    assert {one.ranks for one in found.cells} == {4}
    assert [dict(one.parameters) for one in found.cells] == [{"datatype": "MPI_FLOAT"}] * 2 + [{}] * 2
    assert found.notes == ()


def test_a_megabyte_of_old_versions_is_told_by_its_rows_and_said():
    # 65536 B in 938.07 us are 69.86 x 10^6 and 66.63 x 2^20 bytes a second.
    old = HEAD + table("PingPong", OF_TIME, "        65536          640       938.07        66.63") + END
    assert figures(old) == [("pingpong", 65536, 1_876_140)]
    (note,) = read(old).notes
    assert (note.kind, note.text) == (ImportNoteKind.READ_AS, "Mbytes/sec")
    assert "2^20 bytes" in note.what


def test_a_rate_that_fits_no_megabyte_is_refused():
    text = HEAD + table("PingPong", OF_TIME, "        65536          640       938.07        34.93") + END
    with pytest.raises(
        UsageError, match=re.escape("line 8: '65536          640       938.07        34.93' has a rate")
    ):
        read(text)


def test_a_row_whose_time_and_rate_contradict_each_other_is_left_out_and_named():
    text = PINGPONG.replace("938.07", "638.07")
    assert [size for _, size, _ in figures(text)] == [8, 1024]
    assert noted(text) == [(ImportNoteKind.DAMAGED, 36)]


def test_sendrecv_and_exchange_are_turns_and_not_their_rates():
    columns = OF_RANKS + "   Mbytes/sec"
    # Twice and four times the message over t_max.
    rows = (
        table(
            "Sendrecv",
            columns,
            "     1048576           40      1000.00      1048.58      1024.00      2000.00",
            ranks=4,
        ),
        table(
            "Exchange",
            columns,
            "     1048576           40      1900.00      2097.15      2000.00      2000.00",
            ranks=4,
        ),
    )
    text = HEAD + "".join(rows) + END
    assert figures(text) == [("sendrecv", 1048576, 1_048_580), ("exchange", 1048576, 2_097_150)]
    assert read(text).notes == ()


def test_uniband_is_a_rate_of_messages_of_all_pairs():
    columns = "       #bytes #repetitions   Mbytes/sec      Msg/sec"
    text = HEAD + table("Uniband", columns, "         4096         1000       409.60       100000", ranks=4) + END
    assert figures(text) == [("message-rate", 4096, 100_000)]
    assert read(text).cells[0].ranks == 4


def test_each_number_of_processes_is_a_cell_and_a_barrier_has_no_size():
    columns = "#repetitions  t_min[usec]  t_max[usec]  t_avg[usec]"
    tables = [
        table("Barrier", columns, f"         1000         1.00         {n}.00         {(n + 1) / 2:.2f}", ranks=n)
        for n in (2, 4)
    ]
    text = HEAD + "".join(tables) + END
    assert [(one.message_bytes, one.values, one.ranks) for one in read(text).cells] == [
        (0, (2000.0,), 2),
        (0, (4000.0,), 4),
    ]


def test_a_nonblocking_collective_is_its_pure_time_and_marked():
    columns = "       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]"
    text = (
        HEAD
        + table("Ibcast", columns, "           8         1000        12.00         5.25         6.00        20.00")
        + END
    )
    (one,) = read(text).cells
    assert (one.pattern.value, one.values, dict(one.parameters)) == ("bcast", (5250.0,), {"mode": "nonblocking"})


def test_tests_that_have_no_pattern_are_named_once_and_left_out():
    rows = "            8         1000         2.00         4.00"
    others = [table(name, OF_TIME, rows) for name in ("Unidir_Get", "Window", "Unidir_Get")]
    text = PINGPONG.replace("# All processes", "".join(others) + "\n# All processes")
    found = read(text)
    assert len(found.cells) == 3
    (note,) = found.notes
    assert (note.kind, note.text) == (ImportNoteKind.UNKNOWN_TEST, "Unidir_Get, Window")


def test_warnings_between_rows_and_rows_of_words_are_named_and_cost_nothing_else():
    text = PINGPONG.replace("         1024 ", "[node1] warning of the MPI library\n         1024 ").replace(
        "\n\n\n# All", "\n      4194304 out-of-mem.; needed X= 8.0 GBytes\n\n# All"
    )
    assert len(figures(text)) == 3
    assert noted(text) == [(ImportNoteKind.STRAY, 35), (ImportNoteKind.DAMAGED, 38)]


@pytest.mark.parametrize(
    ("number", "why"),
    [("nan", "no number"), ("inf", "no number"), ("-4.00", "and none is"), ("223,61", ""), ("22361", "2 decimals")],
)
def test_what_is_no_time_is_named_with_its_line_and_a_decimal_comma_is_read(number: str, why: str):
    text = COLLECTIVES.replace("223.61", number)
    found = read(text)
    assert len(found.cells) == (3 if why else 4)
    assert [(note.line, why in note.why) for note in found.notes] == ([(35, True)] if why else [])


def test_a_text_that_was_cut_keeps_what_is_whole_and_says_so():
    cut = PINGPONG[: PINGPONG.index("        69.86")]
    assert [size for _, size, _ in figures(cut)] == [8, 1024]
    assert noted(cut) == [(ImportNoteKind.CUT, 36), (ImportNoteKind.CUT, None)]


def test_rows_without_a_title_belong_to_no_test():
    text = COLLECTIVES.replace("# Benchmarking Alltoall", "# Benchm")
    assert {pattern for pattern, _, _ in figures(text)} == {"allreduce"}
    assert {kind for kind, _ in noted(text)} == {ImportNoteKind.STRAY, ImportNoteKind.DAMAGED}


def test_a_call_that_moves_nothing_is_left_out():
    text = COLLECTIVES.replace("            8          600       208.57", "            0          600       208.57")
    assert [size for _, size, _ in figures(text)] == [4096, 8, 4096]
    assert noted(text) == [(ImportNoteKind.DAMAGED, 35)]


def test_heads_of_all_versions_are_known():
    for head in ("Intel (R) MPI Benchmark Suite V3.2, MPI-1 part", "Intel(R) MPI Benchmarks 2018, MPI-1 part"):
        assert imb.is_it(f"#---\n#    {head}\n")
    assert not imb.is_it("# OSU MPI Latency Test v7.4\n")


def test_tables_for_several_numbers_of_processes_are_one_launch(tmp_path: Path):
    columns = "#repetitions  t_min[usec]  t_max[usec]  t_avg[usec]"
    tables = [
        table("Barrier", columns, f"         1000         1.00         {n}.00         {(n + 1) / 2:.2f}", ranks=n)
        for n in (2, 4)
    ]
    (tmp_path / "a.txt").write_text(HEAD + "".join(tables) + END)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.txt"]})
    values = Run.open(tmp_path / "run").launch_quantiles().select("variant", "launch_value").rows()
    assert sorted(values) == [("2 ranks,by=imb", 2000.0), ("4 ranks,by=imb", 4000.0)]


@pytest.mark.parametrize(
    ("old", "new"), [("223.61", "283.61"), ("208.57", "128.57"), ("216.90", "222.90"), ("1785.82", "1795.82")]
)
def test_times_that_so_many_ranks_cannot_have_are_no_result(old: str, new: str):
    assert read(COLLECTIVES).notes == ()
    damaged = read(COLLECTIVES.replace(old, new))
    assert len(damaged.cells) == 3
    (note,) = damaged.notes
    assert (note.kind, note.line, "4 ranks of which one takes" in note.why) == (
        ImportNoteKind.DAMAGED,
        36 if old == "1785.82" else 35,
        True,
    )


def test_a_size_that_is_not_between_those_around_it_is_no_result():
    rows = [f"{size:13d}         1000         2.00        {size / 2:.2f}" for size in (0, 2, 4, 8, 16)]
    text = HEAD + table("PingPong", OF_TIME, *rows) + END
    whole, damaged = read(text), read(text.replace("            4   ", "           44   "))
    assert [one.message_bytes for one in whole.cells] == [0, 2, 4, 8, 16]
    assert 44 not in [one.message_bytes for one in damaged.cells]
    small = [f"{size:13d}         1000         2.00         3.00         2.50" for size in (1, 2, 4, 8, 16)]
    text = HEAD + table("Bcast", OF_RANKS, *small) + END
    damaged = text.replace("            4   ", "           44   ")
    assert [one.message_bytes for one in read(damaged).cells] == [1, 2, 8, 16]
    assert noted(damaged) == [(ImportNoteKind.DAMAGED, 10)]
    own_order = damaged.replace(HEAD, f"{HEAD}# Message lengths were user defined\n")
    assert [one.message_bytes for one in read(own_order).cells] == [1, 2, 44, 8, 16]


@pytest.mark.parametrize("processes", ["= 0", "=74"])
def test_a_damaged_number_of_processes_is_not_believed(processes: str):
    text = COLLECTIVES.replace("# #processes = 4", f"# #processes {processes}")
    assert {one.ranks for one in read(text).cells} == {None}
