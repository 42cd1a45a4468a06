"""OSU's texts as its versions write them."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.exchange.samples import sample

from fabricbench.errors import UsageError
from fabricbench.exchange import osu
from fabricbench.exchange.importer import read_text
from fabricbench.exchange.rows import MOST_NOTES
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import DATATYPE, ImportNoteKind
from support.osu_texts import osu_text

REAL, COLLECTIVE = sample("osu-latency.txt"), sample("osu-alltoall.txt")

LATENCY = """
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.50
4096                   10.25
"""
OLD_LATENCY = """# OSU MPI Latency Test v5.3
# Size          Latency (us)
0                       1.00
1                       1.50
"""
BANDWIDTH = """# OSU MPI Bandwidth Test v5.3
# Size      Bandwidth (MB/s)
1024                  100.00
"""
ALLTOALL = """
# OSU MPI All-to-All Personalized Exchange Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
[node1] warning: something of the MPI library
8                     182.32            165.51            203.54          50
"""
BARRIER = """# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
            12.30
"""


def test_a_latency_is_half_a_round_trip():
    found = osu.read(LATENCY)
    assert found.version == "7.4"
    assert [(one.message_bytes, one.values) for one in found.cells] == [(1, (5000.0,)), (4096, (20500.0,))]
    assert {(one.pattern, one.layer, one.ranks) for one in found.cells} == {(Pattern.PINGPONG, Layer.MPI, 2)}


def test_versions_name_the_column_differently():
    assert [one.values for one in osu.read(OLD_LATENCY).cells] == [(2000.0,), (3000.0,)]


def test_a_megabyte_is_a_million_bytes():
    (one,) = osu.read(BANDWIDTH).cells
    assert (one.pattern, one.values) == (Pattern.STREAM, (8e8,))


def test_a_collective_takes_the_mean_over_ranks_and_does_not_tell_how_many():
    (one,) = osu.read(ALLTOALL).cells
    assert (one.pattern, one.message_bytes, one.values, one.ranks) == (Pattern.ALLTOALL, 8, (182_320.0,), None)


def test_a_barrier_has_no_sizes():
    (one,) = osu.read(BARRIER).cells
    assert (one.pattern, one.message_bytes, one.values) == (Pattern.BARRIER, 0, (12_300.0,))


def test_tests_that_follow_one_another_are_all_read():
    assert {one.pattern for one in osu.read(LATENCY + BANDWIDTH + ALLTOALL).cells} == {
        Pattern.PINGPONG,
        Pattern.STREAM,
        Pattern.ALLTOALL,
    }


def noted(text: str) -> list[tuple[ImportNoteKind, int | None]]:
    return [(note.kind, note.line) for note in osu.read(text).notes]


def sizes(text: str) -> list[int]:
    return [cell.message_bytes for cell in osu.read(text).cells]


def with_line(line: str, *, before: str = "64 ", text: str | None = None) -> str:
    """A whole table with a line of somebody else's put before one of its rows."""
    whole = osu_text(sizes=(16, 32, 64, 128)) if text is None else text
    return whole.replace(f"\n{before}", f"\n{line}\n{before}")


def test_the_step_of_the_last_digit_is_kept_in_the_unit_of_the_value():
    assert {one.printed_step for one in osu.read(LATENCY).cells} == {20.0}
    assert {one.printed_step for one in osu.read(BANDWIDTH).cells} == {80_000.0}


def test_a_rate_or_time_below_the_last_digit_is_left_out_and_told():
    text = osu_text("Bandwidth", values=(0.0, 1.83, 3.6))
    assert sizes(text) == [2, 4]
    assert noted(text) == [(ImportNoteKind.BELOW_LAST_DIGIT, 4)]
    assert noted(LATENCY.replace("2.50", "0.00")) == [(ImportNoteKind.BELOW_LAST_DIGIT, 5)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[node7:4711] 1 more process has sent help message help-mpi-btl-openib.txt", ImportNoteKind.STRAY),
        ("0", ImportNoteKind.STRAY),
        ("2 total processes killed (some possibly by mpirun during cleanup)", ImportNoteKind.CUT),
        ("slurmstepd: error: *** JOB 4711 ON node7 CANCELLED AT 2026-01-01T00:00:00 ***", ImportNoteKind.CUT),
        ("x" * 100_000, ImportNoteKind.STRAY),
    ],
    ids=["warning", "exit code", "killed", "cancelled", "endless"],
)
def test_a_line_among_the_results_that_is_none_is_told_and_costs_none_of_them(line: str, kind: ImportNoteKind):
    text = with_line(line)
    assert sizes(text) == [16, 32, 64, 128]
    assert noted(text) == [(kind, 6)]


def test_a_result_behind_a_warning_without_its_end_of_line_is_found_by_its_width():
    text = osu_text(sizes=(16, 32, 64)).replace("\n32 ", "\n[node7:4711] Read -1, expected 5285, errno = 132 ")
    assert sizes(text) == [16, 32, 64]
    assert noted(text) == [(ImportNoteKind.GLUED, 5)]


def test_a_result_cut_within_its_line_is_left_out_and_told_and_one_that_lacks_its_line_feed_is_not():
    assert sizes(LATENCY.removesuffix("\n")) == [1, 4096]
    cut = LATENCY.removesuffix("25\n")
    assert sizes(cut) == [1]
    assert noted(cut) == [(ImportNoteKind.CUT, 6)]


def test_many_lines_of_a_kind_are_counted_and_not_listed():
    _, imported = read_text(with_line("\n".join(f"warning {number}" for number in range(1000))), "a.txt")
    found = imported.notes
    assert (len(found), found[-1].more) == (MOST_NOTES, 1000 - MOST_NOTES)


def test_a_datatype_is_part_of_a_reduction_and_of_a_message_only_where_it_is_not_of_bytes():
    def named(text: str) -> set[object]:
        return {dict(cell.parameters).get(DATATYPE) for cell in osu.read(text).cells}

    assert named(osu_text("Allreduce Latency", version="4.4.1", datatype="")) == {None}
    assert named(osu_text("Allreduce Latency", datatype="MPI_FLOAT")) == {"MPI_FLOAT"}
    assert named(osu_text("Latency", version="5.6.3", datatype="")) == named(osu_text("Latency")) == {None}
    assert named(osu_text("Latency", datatype="MPI_FLOAT")) == {"MPI_FLOAT"}


def test_tables_of_several_datatypes_under_one_head_are_read_apart():
    text = osu_text("Allreduce Latency", datatype="MPI_INT")
    second = osu_text("Allreduce Latency", datatype="MPI_FLOAT").split("\n", 1)[1]
    found = osu.read(f"{text}\n{second}")
    assert Counter(dict(cell.parameters)[DATATYPE] for cell in found.cells) == {"MPI_INT": 3, "MPI_FLOAT": 3}
    assert found.datatypes == ("MPI_INT", "MPI_FLOAT")


def test_versions_in_one_text_are_all_told():
    assert osu.read(LATENCY + BANDWIDTH).version == "7.4, 5.3"


@pytest.mark.parametrize("title", ["MPI_Put Latency", "MPI Multiple Bandwidth / Message Rate", "MPI-CUDA Latency"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_test_that_is_not_known_is_left_out_and_named_wherever_it_stands(title: str, place: int):
    tests = [LATENCY]
    tests.insert(place, LATENCY.replace("MPI Latency", title).replace("2.50", "9.99"))
    found = osu.read("".join(tests))
    assert found.cells == osu.read(LATENCY).cells
    (note,) = found.notes
    assert (note.kind, note.text.removesuffix(" Test v7.4")) == (
        ImportNoteKind.UNKNOWN_TEST,
        title if "-" in title or "_" in title else title.removeprefix("MPI "),
    )


def test_reading_takes_time_in_proportion_to_the_text():
    line = "(" * 200_000
    assert osu.read(f"{LATENCY}# Size {line} Latency (us)\n{line}\n# OSU {line}"[: len(LATENCY) + 400_020]).cells
    assert not osu.is_it(f"# OSU MPI {line}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LATENCY.replace("MPI Latency", "MPI Teleport"), "left out Teleport: tests of which there is no pattern here"),
        (LATENCY.replace("(us)", "(ms)"), "begins a table of Latency in the unknown unit 'ms'"),
        (BANDWIDTH.replace("(MB/s)", "(GB/s)"), "begins a table of Bandwidth in the unknown unit 'GB/s'"),
        (OLD_LATENCY.replace(".", ","), "1,00 has a decimal comma, and OSU prints a point"),
        (
            ALLTOALL.replace("Iterations", "Iterations  Validation").replace("          50", "          50  Fail"),
            "a result failed its validation",
        ),
        ("# OSU MPI Latency Test v7.4\n", "no result is in it"),
        (LATENCY[: LATENCY.index("4096")].replace("2.50\n", "2.5"), "line 5: its results may not be whole"),
    ],
    ids=[
        "another test",
        "milliseconds",
        "gigabytes",
        "decimal comma",
        "wrong result",
        "cut short",
        "cut within its only result",
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str):
    with pytest.raises(UsageError, match=re.escape(said)):
        read_text(text, "a.txt")


def test_a_test_that_is_in_a_log_twice_was_measured_twice():
    first, second = osu.read(LATENCY + LATENCY.replace("2.50", "2.60")).repetitions()
    assert [one.values for one in first.cells] == [(5000.0,), (20500.0,)]
    assert [one.values for one in second.cells] == [(5200.0,), (20500.0,)]


@pytest.mark.parametrize("number", ["-298.51", "1_000.00", "nan", "inf", "nan?", "298,51", "2985"])
def test_one_row_that_is_no_result_costs_no_other(number: str):
    text = REAL.replace("298.51", number)
    assert sizes(text) == [size for size in sizes(REAL) if size != 32768]
    (note,) = osu.read(text).notes
    assert (note.kind, note.line, number in note.why) == (ImportNoteKind.DAMAGED, 20, True)


def test_a_result_that_failed_its_validation_costs_no_other():
    text = ALLTOALL.replace("Iterations", "Iterations  Validation").replace("          50", "          50  Fail")
    whole = text + text.splitlines()[-1].replace("8 ", "16", 1).replace("Fail", "Pass") + "\n"
    assert sizes(whole) == [16]
    assert ("a result failed its validation", 6) in [(note.why, note.line) for note in osu.read(whole).notes]


def test_a_table_in_another_unit_beside_a_known_one_is_named():
    text = LATENCY + BANDWIDTH.replace("(MB/s)", "(GB/s)")
    assert sizes(text) == [1, 4096]
    assert noted(text) == [(ImportNoteKind.DAMAGED, 8)]


@pytest.mark.parametrize(("old", "new"), [("186.82", "286.82"), ("186.82", "86.82"), ("174.10", "274.10")])
def test_a_mean_outside_of_its_smallest_and_largest_is_no_result(old: str, new: str):
    text = COLLECTIVE.replace(old, new)
    assert sizes(text) == sizes(COLLECTIVE)[1:]
    (note,) = osu.read(text).notes
    assert (note.kind, note.line, "its mean" in note.why) == (ImportNoteKind.DAMAGED, 5, True)


def test_a_size_that_is_not_between_those_around_it_is_no_result():
    for text, wrong, line in ((REAL, 64, 11), (REAL, 1024, 15), (COLLECTIVE, 256, 13)):
        for size in ("6", "10244"):
            damaged = re.sub(rf"\n{wrong} +", f"\n{size:<24}", text)
            assert sizes(damaged) == [one for one in sizes(text) if one != wrong]
            assert noted(damaged) == [(ImportNoteKind.DAMAGED, line)]


def test_of_two_sizes_that_exclude_each_other_none_is_a_result():
    assert "not between those" in osu.read(LATENCY.replace("4096", "0   ")).notes[0].why
    assert sizes(LATENCY.replace("4096", "0   ")) == []
    assert sizes(LATENCY.replace("4096", "1   ")) == [1]
    assert noted(LATENCY.replace("4096", "1   ")) == [(ImportNoteKind.DAMAGED, 6)]


def test_a_time_or_rate_that_falls_far_from_one_size_to_the_next_is_read_and_told():
    text = REAL.replace("32768                 298.51", "32768                  29.85")
    assert sizes(text) == sizes(REAL)
    (note,) = osu.read(text).notes
    assert (note.kind, note.line) == (ImportNoteKind.READ_AS, 20)
    assert note.what == (
        "took '32768                  29.85' for a result, though its time is less than a third of that of the smaller size in "
        "line 19, '16384                 226.31'"
    )
    assert noted(osu_text("Bandwidth", values=(10.0, 20.0, 5.0))) == [(ImportNoteKind.READ_AS, 6)]
    assert noted(osu_text("Allreduce Latency", values=(10.0, 20.0, 5.0))) == []
