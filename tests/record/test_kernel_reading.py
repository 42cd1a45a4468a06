"""Reading the record of a kernel's run: damage costs the line that it is in, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.record.kernel_lines import parse_kernel_record, read_kernel_record
from fabricbench.record.workload_cells import result_of_kernel

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/kernel_record.jsonl"
LINES = FIXTURE.read_bytes().splitlines(keepends=True)


def test_a_whole_record_is_read_from_its_file():
    record = read_kernel_record(FIXTURE)
    assert record.is_complete
    assert record.header is not None
    assert (record.header.kernel, record.header.problem_class, record.header.rank_count) == ("cg", "S", 2)
    assert [rank.host for rank in record.header.ranks] == ["n0", "n1"]
    assert [run.repetition for run in record.runs] == [0, 1]


def test_a_record_of_before_there_were_other_problems_than_classes_is_read():
    header = {key: value for key, value in json.loads(LINES[0]).items() if key not in ("problem", "processor_levels")}
    record = parse_kernel_record([json.dumps(header).encode() + b"\n", *LINES[1:]])
    assert record.is_complete
    assert record.header is not None
    assert (record.header.problem_class, record.header.problem, record.header.processor_levels) == ("S", {}, ())


def test_a_problem_that_has_no_class_is_told_by_its_parameters():
    header = {key: value for key, value in json.loads(LINES[0]).items() if key != "class"}
    header |= {"program": "fabricbench-jacobi", "problem": {"n": 1000, "grid": "2 x 4", "threshold": 16.5}}
    record = parse_kernel_record([json.dumps(header).encode() + b"\n", *LINES[1:]])
    assert record.is_complete
    assert record.header is not None
    assert (record.header.problem_class, record.header.problem) == (None, header["problem"])
    assert result_of_kernel(record).program == "fabricbench-jacobi 0.1.0"


def test_a_record_without_its_footer_was_cut_short_and_keeps_its_runs():
    record = parse_kernel_record(LINES[:2])
    assert not record.is_complete
    assert record.is_verified
    assert [damage.reason for damage in record.damage] == ["the record has no footer: it was cut short"]


def test_a_line_cut_in_its_middle_is_told_by_its_number():
    record = parse_kernel_record([*LINES[:2], LINES[2][:100]])
    assert len(record.runs) == 1
    assert (record.damage[0].line, record.damage[0].reason) == (3, "the file ends in the middle of this line")


@pytest.mark.parametrize("line", [b"{}\n", b"nonsense\n", b'{"type":"cell"}\n', b"\xff\xfe\n", b"\n"])
def test_a_garbled_line_costs_itself_alone(line: bytes):
    record = parse_kernel_record([LINES[0], LINES[1], line, LINES[2], LINES[3]])
    assert len(record.runs) == 2
    assert not record.is_complete
    assert [damage.line for damage in record.damage] == [3]
    assert record.damage[0].reason.startswith("not a line of a kernel's record")


def test_a_run_that_is_missing_is_noticed_by_the_footer():
    record = parse_kernel_record([LINES[0], LINES[1], LINES[3]])
    assert [damage.reason for damage in record.damage] == ["the footer counts 2 runs, 1 were read"]


def test_a_second_header_and_an_empty_record_are_told():
    assert parse_kernel_record([LINES[0], *LINES]).damage[0].reason == "a second header"
    assert [damage.reason for damage in parse_kernel_record([]).damage] == [
        "the record has no header",
        "the record has no footer: it was cut short",
    ]


def test_a_record_without_runs_is_not_verified():
    assert not parse_kernel_record([LINES[0]]).is_verified
