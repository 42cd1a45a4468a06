"""ReFrame's performance logs, by hand."""

from __future__ import annotations

from pathlib import Path

from fabricbench import __version__
from support.exported_run import exported, exported_run

HEADER = (
    "result|job_completion_time|descr|environ|name|num_tasks|partition|system|version|launch|layer|door|message_bytes|"
    "receive|variant|origin|path|throughput_value|throughput_unit|throughput_ref|throughput_lower_thres|"
    "throughput_upper_thres"
)
PASSED = (
    "pass|2026-10-30T22:40:15+00:00||fabricbench 0.1.0|fabricbench_stream|2|slow|synthetic|{}|b00-slow|mpi||4096|"
    "blocking||emulated|proven|100000000.0|bit/s|0|None|None"
)
FAILED = (
    "fail|2026-10-30T22:41:15+00:00|not measured: no answer|fabricbench 0.1.0|fabricbench_stream|2|slow|synthetic|{}|"
    "b01-slow|mpi||4096|blocking||emulated|proven|null|bit/s|0|None|None"
)


def logs(folder: Path) -> dict[str, str]:
    files = exported(exported_run(folder), "reframe").files
    return {file.name: file.content.decode() for file in files if isinstance(file.content, bytes)}


def test_a_log_stands_where_reframe_puts_it_and_reads_as_by_hand(tmp_path: Path):
    found = logs(tmp_path / "run")
    assert sorted(found)[:2] == ["synthetic/fast/fabricbench_alltoall.log", "synthetic/fast/fabricbench_pingpong.log"]
    lines = found["synthetic/slow/fabricbench_stream.log"].splitlines()
    assert lines == [HEADER, PASSED.format(__version__), FAILED.format(__version__)]


def test_every_line_has_as_many_fields_as_its_header(tmp_path: Path):
    for text in logs(tmp_path / "run").values():
        assert len({line.count("|") for line in text.splitlines()}) == 1


def test_no_name_of_a_testbed_leads_out_of_the_folder():
    from fabricbench.exchange.exports.reframe import _name

    assert [_name(text) for text in ("..", ".", "a/../b", "a.b")] == ["%2E%2E", "%2E", "a%2F..%2Fb", "a.b"]
