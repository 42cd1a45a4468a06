"""The layout of OSU: what is theirs comes back as it was, what is ours never passes for theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.test_osu import ALLTOALL, BANDWIDTH, BARRIER, LATENCY, OLD_LATENCY

from fabricbench.errors import UsageError
from fabricbench.exchange import osu
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.importer import read_text
from fabricbench.exchange.storing import import_run
from fabricbench.record.export import launch_frame
from fabricbench.record.store import Run
from support.exported_run import exported, exported_run
from support.osu_texts import osu_text

GOLDEN = """# fabricbench tcp Latency (OSU layout)
# emulated on slow by fabricbench 0.1.0, path proven, launch b00-slow
# layer=tcp/receive=blocking/ranks=2
# half of the mean round trip, in us
# Size       Avg Latency(us)        Validation
64                   26.0000              Pass

# fabricbench mpi Bandwidth (OSU layout)
# emulated on slow by fabricbench 0.1.0, path proven, launch b00-slow
# layer=mpi/receive=blocking/ranks=2
# all payload over all time, in 10^6 bytes a second
# Size      Bandwidth (MB/s)        Validation
4096                 12.5000              Pass

# fabricbench mpi All-to-All Personalized Exchange Latency (OSU layout)
# emulated on slow by fabricbench 0.1.0, path proven, launch b00-slow
# layer=mpi/receive=blocking/ranks=4/mode=persistent
# from an agreed start to the end of the slowest rank, mean of the calls, in us
# Size       Avg Latency(us)        Validation
1024                 30.0000              Pass
"""


def texts(run: Run) -> dict[str, str]:
    return {file.name: file.content.decode() for file in exported(run, "osu").files if isinstance(file.content, bytes)}


def test_a_launch_of_ours_reads_as_by_hand(tmp_path: Path):
    found = texts(exported_run(tmp_path / "run"))
    assert sorted(found) == ["b00-fast.txt", "b00-slow.txt", "b01-slow.txt"]
    assert found["b00-slow.txt"] == GOLDEN


def test_no_importer_takes_ours_for_theirs(tmp_path: Path):
    for text in texts(exported_run(tmp_path / "run")).values():
        assert not osu.is_it(text)
        with pytest.raises(UsageError, match="is not the output of"):
            read_text(text, "x.txt")


def imported(folder: Path, text: str) -> Run:
    folder.mkdir()
    (folder / "x.txt").write_text(text)
    leaves_ranks_open = any(cell.ranks is None for cell in osu.read(text).cells)
    import_run(folder / "run", {"ib": [folder / "x.txt"]}, ImportOptions(ranks=4 if leaves_ranks_open else None))
    return Run.open(folder / "run")


@pytest.mark.parametrize(
    "text",
    [
        LATENCY,
        OLD_LATENCY,
        BANDWIDTH,
        BARRIER,
        osu_text(values=(0.15, 0.16, 1234567.89)),
        BANDWIDTH.replace(" Bandwidth Test", " Bi-Directional Bandwidth Test"),
        osu_text("Allreduce Latency", datatype="MPI_FLOAT"),
        osu_text("Latency", datatype="MPI_FLOAT"),
        LATENCY + BANDWIDTH.replace("v5.3", "v7.4") + BARRIER,
    ],
    ids=["latency", "old", "bandwidth", "barrier", "digits", "bidirectional", "reduction", "datatype", "several"],
)
def test_what_was_imported_from_osu_comes_back_as_it_was(tmp_path: Path, text: str):
    (again,) = texts(imported(tmp_path / "first", text)).values()
    before, after = osu.read(text), osu.read(again)
    assert set(after.cells) == set(before.cells)
    assert len(after.cells) == len(before.cells)
    assert (after.version, after.notes) == (before.version, ())


def test_an_import_of_an_export_of_an_import_is_the_import(tmp_path: Path):
    first = imported(tmp_path / "first", LATENCY)
    (again,) = texts(first).values()
    second = imported(tmp_path / "second", again)
    names = ("layer", "pattern", "message_bytes", "variant", "launch_value")
    assert second.launch_quantiles().select(names).equals(first.launch_quantiles().select(names))
    assert second.cells()["parameters"].to_list() == first.cells()["parameters"].to_list()


def test_all_that_osu_can_hold_is_the_same_after_an_export_and_an_import(tmp_path: Path):
    digits = (0.01, 20.31, 1234567.89)
    tables = [osu_text(title, values=digits, datatype="MPI_FLOAT") for title in osu.TESTS if title != "Barrier Latency"]
    text = "".join([*tables, osu_text(datatype=""), BARRIER.replace("v7.4", "v7.5")])
    first = imported(tmp_path / "first", text)
    (once,) = texts(first).values()
    second = imported(tmp_path / "second", once)
    (twice,) = texts(second).values()
    assert twice == once
    before, after = osu.read(text), osu.read(once)
    assert sorted(map(repr, after.cells)) == sorted(map(repr, before.cells))
    assert {cell.pattern for cell in after.cells} == {pattern for pattern, _, _ in osu.TESTS.values()}
    names = ("layer", "pattern", "message_bytes", "variant", "metric", "unit", "launch_value", "printed_step")
    assert launch_frame(second).select(names).equals(launch_frame(first).select(names))


def test_a_launch_of_two_versions_is_not_theirs_any_more(tmp_path: Path):
    run = imported(tmp_path / "first", LATENCY + BANDWIDTH)
    with pytest.raises(UsageError, match="its launch is of several versions of OSU"):
        exported(run, "osu")


def test_columns_that_the_layout_here_does_not_have_are_dropped(tmp_path: Path):
    (again,) = texts(imported(tmp_path / "first", ALLTOALL)).values()
    assert again.splitlines()[-2:] == ["# Size       Avg Latency(us)", "8                     182.32"]


def test_a_program_that_names_itself_in_several_lines_forges_none(tmp_path: Path):
    from dataclasses import replace

    from fabricbench.exchange.exported import Export, results_of
    from fabricbench.exchange.exports import osu as layout

    run = exported_run(tmp_path / "run")
    frame = launch_frame(run)
    forged = tuple(replace(one, program="x\n# OSU MPI Latency Test v7.4") for one in results_of(frame) if one.is_good)
    for file in layout.files(Export(run, frame, forged)):
        assert isinstance(file.content, bytes)
        assert not osu.is_it(file.content.decode())
