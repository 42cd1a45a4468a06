"""ReFrame's performance logs: a run a line, a figure a variable, direction by unit or reference, results held against values.

Both samples are those of ReFrame's own tutorials (4.x and 3.1).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.exchange.samples import noted, read, sample

from fabricbench.errors import UsageError
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.storing import import_run
from fabricbench.record.export import summary_frame
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from support.calling import Call
from support.exported_run import exported, exported_run, text_of

FOUR, THREE = sample("reframe-4.log"), sample("reframe-3.log")
SHORT = """result|jobid|environ|num_tasks|name|time_value|time_unit|time_ref|time_lower_thres|time_upper_thres
pass|1|gnu|4|halo|12.5|us|12.0|None|0.1
pass|2|gnu|4|halo|12.75|us|12.0|None|0.1
"""


def test_every_line_is_a_run_and_every_variable_a_figure_by_its_own_name():
    found = [
        (one.workload, dict(one.parameters)["environ"], one.figure.name, one.figure.value) for one in read(FOUR).loads
    ]
    assert found[:4] == [
        ("stream_test", "gnu", "copy_bw", 21116.7),
        ("stream_test", "gnu", "triad_bw", 14813.0),
        ("stream_test", "clang", "copy_bw", 18405.7),
        ("stream_test", "clang", "triad_bw", 14997.1),
    ]
    assert len(found) == 8
    one = read(FOUR).loads[0]
    assert (one.ranks, one.figure.unit, one.figure.better, one.figure.printed_step) == (1, "MB/s", "higher", 0.1)
    assert read(FOUR).notes == ()


def test_logs_of_version_3_have_a_variable_a_line_and_one_off_its_reference_is_told():
    found = read(THREE)
    assert [(one.figure.name, one.figure.value) for one in found.loads][:2] == [("Copy", 24762.2), ("Scale", 16784.6)]
    assert (found.loads[0].workload, found.loads[0].ranks) == ("StreamWithRefTest", None)
    assert found.version == "3.1-dev0 (rev: 9d92d0ec), 3.1-dev0 (rev: 138cbd68)"
    # 24,586.5 MB/s against a reference of 55,200.
    assert noted(THREE) == [(ImportNoteKind.READ_AS, 5)]


def test_commas_and_a_column_that_names_the_variable_are_read():
    assert len(read(FOUR.replace("|", ",")).loads) == 8
    text = "name,perf_var,perf_value,perf_unit,perf_ref,perf_result\nosu,latency,2.5,us,2.4,pass\nosu,bandwidth,11.5,GB/s,12,pass\n"
    first, second = (one.figure for one in read(text).loads)
    assert (first.name, first.value, first.unit, first.told_in, first.better) == (
        "latency",
        pytest.approx(2.5e-6),
        "s",
        "us",
        "lower",
    )
    assert (second.name, second.value, second.unit, second.better) == ("bandwidth", 11.5, "GB/s", "higher")


def test_a_reference_bounded_on_one_side_tells_the_direction_that_a_unit_does_not():
    text = SHORT.replace("us", "images").replace("None|0.1", "-0.1|None")
    assert {one.figure.better for one in read(text).loads} == {"higher"}
    with pytest.raises(UsageError, match="nor its reference tells whether more is better"):
        read(SHORT.replace("us", "images").replace("None|0.1", "-0.1|0.1"))
    with pytest.raises(UsageError, match="time is better lower in 'W', needed a time, or a rate"):
        read(SHORT.replace("|us|", "|W|"))


def test_a_test_that_failed_for_its_figure_was_measured_and_one_that_failed_otherwise_was_not():
    missed = SHORT.replace("pass|2|gnu|4|halo|12.75", "fail|2|gnu|4|halo|13.75")
    assert [one.figure.value for one in read(missed).loads] == pytest.approx([12.5e-6, 13.75e-6])
    assert noted(missed) == [(ImportNoteKind.READ_AS, 3)]
    failed = SHORT.replace("pass|2", "fail|2")
    assert [note.why for note in read(failed).notes] == ["its test failed, and not because of a figure"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("12.75", "17.75", "its test passed, though time is outside its reference"),
        ("12.75", "1275", "its test passed, though time is outside its reference"),
        ("12.75|us", "12.75|ms", "time is in 'ms', and in 'us' in other lines"),
        ("|4|halo|12.75", "|halo|12.75", "it has 9 fields, and the header line names 10"),
        ("pass|2", "pas|2", "its result is 'pas'"),
        ("2|gnu|4", "2|gnu|four", "num_tasks is 'four'"),
    ],
)
def test_a_line_that_is_damaged_or_contradicts_itself_is_named(old: str, new: str, why: str):
    found = read((SHORT + "pass|3|gnu|4|halo|12.25|us|12.0|None|0.1\n").replace(old, new))
    assert [(len(found.loads), found.notes[0].line)] == [(2, 3)]
    assert why in found.notes[0].why


def test_a_test_with_fewer_lines_than_others_is_named():
    (note,) = read(FOUR.replace("70||stream_test", "70||stram_test")).notes
    assert note.text.startswith(
        "fewer than 2 lines of stream_test clang copy_bw, stream_test clang triad_bw, stram_test "
    )


def test_lines_of_one_name_that_differ_in_a_column_of_the_tests_own_are_told():
    text = SHORT.replace("num_tasks|name", "size|num_tasks|name").replace("gnu|4", "gnu|64|4", 1)
    text = text.replace("2|gnu|4", "2|gnu|4096|4")
    (note,) = read(text).notes
    assert note.words == (
        "line 2: took 'the lines of halo' for runs of one test: they have its name, though they differ in size"
    )


def test_an_export_of_our_own_is_not_taken_for_results_of_reframe(tmp_path: Path):
    exported_logs = exported(exported_run(tmp_path / "run"), "reframe").files
    contents = [file.content.decode() for file in exported_logs if isinstance(file.content, bytes)]
    with pytest.raises(UsageError, match="it is an export of fabricbench's own"):
        read(contents[0])


def test_lines_are_launches_and_ranks_that_no_log_tells_are_asked_for(tmp_path: Path):
    (tmp_path / "a.log").write_text(FOUR)
    (tmp_path / "b.log").write_text(THREE)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.log"]})
    launches = [one.launch_id for one in Run.open(tmp_path / "run").launches]
    assert len(launches) == 8
    assert "b01-ib-stream_test-environclang-figurecopy_bw-byreframe.1" in launches
    with pytest.raises(UsageError, match="does not tell the number of ranks of its StreamWithRefTest"):
        import_run(tmp_path / "other", {"ib": [tmp_path / "b.log"]})
    import_run(tmp_path / "other", {"ib": [tmp_path / "b.log"]}, ImportOptions(ranks=4))


def test_variables_of_one_test_are_exported_as_tests_of_their_own(tmp_path: Path):
    (tmp_path / "a.log").write_text(FOUR)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.log"]})
    run = Run.open(tmp_path / "run")
    told = json.loads(text_of(exported(run, "bencher")))
    (copied,) = (one["work-rate"] for name, one in told.items() if "environ=gnu" in name and "figure=copy_bw" in name)
    assert (copied["lower_value"], copied["upper_value"]) == (11429.4, 21116.7)
    gauges = text_of(exported(run, "openmetrics")).splitlines()
    assert sum(line.startswith("fabricbench_launches{") and line.endswith("} 2") for line in gauges) == 4
    assert len(set(gauges)) == len(gauges)


def test_a_result_is_exported_with_the_time_that_its_line_tells(tmp_path: Path):
    (tmp_path / "a.log").write_text(FOUR)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.log"]})
    heading, *rows = exported_lines(Run.open(tmp_path / "run"))
    assert len(rows) == 8
    times = {row[heading.index("job_completion_time")][:19] for row in rows}
    assert times == {"2024-02-21T22:51:16", "2024-02-21T22:51:19", "2024-02-25T20:45:17"}


def test_an_imported_result_that_tells_no_time_is_exported_without_one(tmp_path: Path):
    (tmp_path / "a.log").write_text(re.sub(r"\|2024-[^|]*|\|1708\d+\.\d+", "|", FOUR))
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.log"]})
    heading, *rows = exported_lines(Run.open(tmp_path / "run"))
    assert len(rows) == 8
    assert {row[heading.index("job_completion_time")] for row in rows} == {""}


@pytest.mark.slow
def test_variables_of_one_test_are_rows_of_their_own_in_the_summary_and_series_of_figures(
    tmp_path: Path, fabricbench: Call
):
    (tmp_path / "a.log").write_text(FOUR)
    import_run(tmp_path / "run", {"ib": [tmp_path / "a.log"]})
    frame = summary_frame(Run.open(tmp_path / "run"))
    assert frame["launches"].to_list() == [2] * 4
    assert sum(name.endswith(",figure=copy_bw") for name in frame["variant"]) == 2
    drawn = ("--y", "rate", "--x", "load", "--kind", "bars", "-o", tmp_path / "x.svg")
    code, _, err = fabricbench("figure", tmp_path / "run", *drawn)
    assert (code, err) == (0, "")
    assert "triad_bw" in (tmp_path / "x-data.csv").read_text()


def exported_lines(run: Run) -> list[list[str]]:
    """Return the lines of a run's one log of ReFrame, field by field."""
    (file,) = exported(run, "reframe").files
    assert isinstance(file.content, bytes)
    return [line.split("|") for line in file.content.decode().splitlines()]
