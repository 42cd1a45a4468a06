"""What is printed around a program, by its ranks and by who starts them, is told from what it prints itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.workload import adapter, counted
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
    told = adapter.split_counted_output(stdout)
    assert [one.rank for one in told.all_of(2)] == [0, 1]
    assert told.own.strip() == "time 3"
    assert told.found().numbers == (0, 1)


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
    told = adapter.split_counted_output(stdout)
    assert [one.rank for one in told.all_of(2)] == [0, 1]
    assert (told.mpi_library, told.own) == ("MPICH 5", f"{first}time 3\n{second}done\n")
    assert adapter.split_counted_output(f"[0] half {rank_line(0, 6)}a line\n").own == "[0] half a line\n"


def test_of_an_output_that_was_cut_or_broken_ranks_may_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert not adapter.split_counted_output(rank_line(0, 6)).found().may_lack
    assert adapter.split_counted_output(rank_line(0, 6) + 'fabricbench-rank: {"rank": 1, "ho\n').found().may_lack
    monkeypatch.setattr(adapter, "MOST_OUTPUT_BYTES", 4096)
    (tmp_path / "stdout.log").write_text(rank_line(0, 6) + "time 1\n" + "middle line\n" * 5000)
    found = start().parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    assert found.found is not None
    assert found.found.may_lack


def test_processes_say_of_how_many_they_are_where_the_starter_tells(monkeypatch: pytest.MonkeyPatch):
    for name in counted.SIZE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert counted.size({}) is None
    monkeypatch.setenv("PMI_SIZE", "4")
    assert counted.size({}) == 4
    assert counted.size({"PMI_SIZE": "4"}) is None  # of a job within which this one was started
    told = adapter.split_counted_output(rank_line(0, 6, 1) + rank_line(0, 7, 1))
    assert (told.found().numbers, told.found().sizes) == ((0, 0), (1, 1))


def test_of_a_long_output_whole_lines_of_both_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(adapter, "MOST_OUTPUT_BYTES", 4096)
    (tmp_path / "long").write_text("time 1\r\n" + "middle line\n" * 5000 + "last\n")
    found = adapter.read_output(tmp_path / "long")
    assert len(found) < 5000
    assert set(found.splitlines()) == {"time 1", "middle line", "last"}
    assert parsed(tmp_path, start(), "time 1\n" + "middle line\n" * 5000).failed is None
