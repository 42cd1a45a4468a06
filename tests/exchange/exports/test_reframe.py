"""ReFrame's performance logs, by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from fabricbench import __version__
from fabricbench.exchange.exported import Export, results_of
from fabricbench.exchange.exports.reframe import files
from fabricbench.model import Metric, Pattern
from fabricbench.record.export import launch_frame
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


def test_workloads_that_give_times_and_workloads_that_give_rates_have_logs_of_their_own(tmp_path: Path):
    run = exported_run(tmp_path / "run")
    frame = launch_frame(run)
    export = Export(run, frame, tuple(results_of(frame)))
    measured = next(one for one in export.results if one.is_good)
    kinds = ((Metric.OPERATION_TIME, "ns"), (Metric.WORK_RATE, "GFLOP/s"), (Metric.OPERATION_TIME, "ns"))
    workloads = tuple(replace(measured, pattern=Pattern.WORKLOAD, metric=metric, unit=unit) for metric, unit in kinds)
    found = {file.name: file.content for file in files(replace(export, results=workloads))}
    tables = {
        Path(name).name: list(csv.DictReader(io.StringIO(bytes(content).decode()), delimiter="|"))
        for name, content in found.items()
    }
    times, rates = tables["fabricbench_workload.log"], tables["fabricbench_workload_work_rate.log"]
    assert [row["operation_time_unit"] for row in times] == ["ns", "ns"]
    assert [(row["name"], row["work_rate_unit"]) for row in rates] == [("fabricbench_workload_work_rate", "GFLOP/s")]


def test_no_name_of_a_testbed_leads_out_of_the_folder():
    from fabricbench.exchange.exports.reframe import _name

    assert [_name(text) for text in ("..", ".", "a/../b", "a.b")] == ["%2E%2E", "%2E", "a%2F..%2Fb", "a.b"]
