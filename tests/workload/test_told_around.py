"""What is printed around a program, by its ranks and by who starts them, is told from what it prints itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.workload import adapter
from fabricbench.workload.adapter import Output
from fabricbench.workload.counted import MPI_LINE, rank_line
from support.applications import parsed, start


@pytest.mark.parametrize(
    "stdout",
    [
        f"ti{rank_line(1, 7)}me 3\n{rank_line(0, 6)}",
        rank_line(0, 6).replace('"pid"', f'{rank_line(1, 7)}"pid"') + "time 3\n",
        f"{MPI_LINE}{rank_line(1, 7)}MPICH\n{rank_line(0, 6)}time 3\n",
        f"{rank_line(0, 6)}{rank_line(1, 7)}time 3",
    ],
)
def test_lines_of_ranks_within_others_are_told_from_the_programs_own(stdout: str):
    told = adapter.told_around(stdout)
    assert [one.rank for one in told.all_of(2)] == [0, 1]
    assert told.own.strip() == "time 3"
    assert told.why_not(2, is_cut=False) is None


@pytest.mark.parametrize(
    "tags",
    [
        ("[0] ", "[1] "),
        ("[1,0]<stdout>: ", "[1,1]<stdout>: "),
        ("[prterun-n0-7@1,0]<stdout>: ", "[prterun-n0-7@1,1]<stdout>: "),
        (" 0: ", "11: "),
    ],
)
def test_tags_of_lines_that_are_not_the_programs_go_with_them(tags: tuple[str, str]):
    first, second = tags
    stdout = f"{first}{rank_line(0, 6)}{second}{rank_line(1, 7)}{first}{MPI_LINE}MPICH 5\n{first}time 3\n{second}done\n"
    told = adapter.told_around(stdout)
    assert [one.rank for one in told.all_of(2)] == [0, 1]
    assert (told.mpi_library, told.own) == ("MPICH 5", f"{first}time 3\n{second}done\n")
    assert adapter.told_around(f"[0] half {rank_line(0, 6)}a line\n").own == "[0] half a line\n"


def lines_of(*ranks: int) -> str:
    return "".join(rank_line(rank, 100 + rank) for rank in ranks)


@pytest.mark.parametrize(
    ("around", "said"),
    [
        (lines_of(0, 0), "2 processes say that they are rank 0 of 2: copies that know nothing of each other"),
        (lines_of(0, 1, 1), "2 processes say that they are rank 1 of 2"),
        (lines_of(0), "rank 0 told on stdout that it runs, needed 0 to 1: the starter must start so many ranks"),
        (lines_of(0, 1, 2), "ranks 0, 1, 2 told on stdout"),
        ("", "no rank at all told on stdout"),
        (lines_of(1, 0), None),
        (lines_of(0) + 'fabricbench-rank: {"rank": 1, "ho\n', None),
    ],
)
def test_processes_that_are_not_the_ranks_each_once_are_a_failed_cell(tmp_path: Path, around: str, said: str | None):
    one = start()
    parsed(tmp_path, one, "")
    (tmp_path / "stdout.log").write_text(around + "time 1\n")
    found = one.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    if said is None:
        assert found.told.failed is None
        return
    assert found.told.failed is not None
    assert said in found.told.failed.reason
    assert (found.told.failed.is_wrong, found.figures) == (False, ())


def test_of_an_output_that_was_cut_ranks_may_lack_but_none_may_be_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(adapter, "MOST_OUTPUT_BYTES", 4096)
    one = start()
    for number, is_well in ((0, True), (1, False)):
        parsed(tmp_path, one, "")
        (tmp_path / "stdout.log").write_text(lines_of(0) * (number + 1) + "time 1\n" + "middle line\n" * 5000)
        found = one.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
        assert found is not None
        assert (found.told.failed is None) == is_well


def test_of_a_long_output_whole_lines_of_both_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(adapter, "MOST_OUTPUT_BYTES", 4096)
    (tmp_path / "long").write_text("time 1\r\n" + "middle line\n" * 5000 + "last\n")
    found = adapter.read_output(tmp_path / "long")
    assert len(found) < 5000
    assert set(found.splitlines()) == {"time 1", "middle line", "last"}
    assert parsed(tmp_path, start(), "time 1\n" + "middle line\n" * 5000).told.failed is None
