"""NetPIPE's files and what it shows: halves of round trips, megabits of 2^20, gigabits of 10^9."""

from __future__ import annotations

import pytest
from tests.exchange.samples import figures, noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.record.import_notes import ImportNoteKind

FILE, SHOWN = sample("netpipe-3-np.out"), sample("netpipe-3-stdout.txt")

# 65536 B in 26.50 us are 19.784 x 10^9 bit/s.
FIVE = "       1   0.003   0.003   0.004    2.65\n   65536  19.784  19.001  20.125   26.50\n"


def test_a_time_is_half_a_round_trip_in_seconds():
    found = figures(FILE)
    assert found[0] == ("pingpong", 1, 51_180)
    assert found[20] == ("pingpong", 64, 50_140)
    assert found[-1] == ("pingpong", 65539, 995_580)
    assert len(found) == 82
    cells = read(FILE).cells
    assert {(one.layer, one.ranks) for one in cells} == {(None, 2)}
    assert cells[0].printed_step == pytest.approx(20.0)
    assert read(FILE).notes == ()


def test_what_it_shows_while_it_runs_has_the_same_times():
    assert figures(SHOWN) == figures(FILE)
    assert (read(SHOWN).version, read(SHOWN).notes) == ("3", ())
    assert "best of its trials" in read(SHOWN).statistic


def test_version_5_has_five_columns_and_its_bits_are_decimal():
    assert figures(FIVE) == [("pingpong", 1, 5300), ("pingpong", 65536, 53_000)]
    assert (read(FIVE).version, read(FIVE).statistic.split(";")[0]) == ("5", "the mean of its trials")
    assert [kind for kind, _ in noted(FIVE)] == [ImportNoteKind.READ_AS]


def test_rows_of_another_unit_are_not_its_own():
    decimal = "".join(f"{8 * size:8d} {8 * size / 5e-5 / 1e6:.6f}   0.00005000\n" for size in (1000, 2000, 4000))
    with pytest.raises(UsageError, match="is not the output of any"):
        read(decimal)


def test_a_row_whose_time_and_rate_contradict_each_other_is_named():
    text = FILE.replace("0.00002507", "0.00001507")
    assert len(figures(text)) == 81
    assert noted(text) == [(ImportNoteKind.DAMAGED, 21)]


def test_a_file_that_ends_within_a_row_keeps_the_others():
    cut = SHOWN[: SHOWN.rindex(" usec")]
    assert len(figures(cut)) == 81
    assert noted(cut) == [(ImportNoteKind.CUT, 86)]


def test_warnings_among_the_rows_are_named():
    text = SHOWN.replace("  5:   ", "[node1] PMIX warning\n  5:   ").replace("\n  9:", "\nmpirun: killed\n  9:")
    assert len(figures(text)) == 82
    assert noted(text) == [(ImportNoteKind.STRAY, 10), (ImportNoteKind.CUT, 15)]


@pytest.mark.parametrize("text", ["       0 0.000000 0.00002559\n", "1 2 3\n", "no table\n", "1 0.29 0.00002559\n"])
def test_another_table_is_not_taken_for_its_own(text: str):
    with pytest.raises(UsageError, match="is not the output of any"):
        read(text)


def test_a_last_row_that_may_lack_digits_is_left_out():
    cut = FIVE.removesuffix("0\n")
    assert figures(cut) == figures(FIVE)[:1]
    assert (ImportNoteKind.CUT, 2) in noted(cut)


@pytest.mark.parametrize("text", [FILE, SHOWN])
def test_a_size_that_is_not_between_those_around_it_is_no_result(text: str):
    # Its time is ten times as long too, so that its rate does not give it away.
    begin = next(line for line in text.splitlines() if " 64 " in line)
    damaged = text.replace(
        begin, begin.replace(" 64 ", " 640 ").replace("0.00002507", "0.00025070").replace("25.07", "250.70")
    )
    assert len(figures(damaged)) == 81
    (note,) = read(damaged).notes
    assert (note.kind, "not between" in note.why) == (ImportNoteKind.DAMAGED, True)


def test_a_table_that_begins_again_is_another_run():
    assert [len(one.cells) for one in read(FILE + FILE).repetitions()] == [82, 82]
    assert read(FILE + FILE).notes == ()
