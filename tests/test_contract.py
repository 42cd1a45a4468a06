"""The fixtures in schema/fixtures are what both sides of the contract load."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from fabricbench.record.generate_schemas import schemas
from fabricbench.record.kernel_lines import KERNEL_LINE_ADAPTER
from fabricbench.record.kernel_reading import read_kernel_record
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.probe_plan import ProbePlan

SCHEMA = Path(__file__).parents[1] / "schema"
PLAN_TEXT = (SCHEMA / "fixtures/plan.json").read_text()
KERNEL_RECORD = SCHEMA / "fixtures/kernel_record.jsonl"
RECORD_LINES = (SCHEMA / "fixtures/record.jsonl").read_text().splitlines()


def test_the_plan_fixture_is_a_plan_and_survives_a_round_trip():
    plan = ProbePlan.model_validate_json(PLAN_TEXT)
    assert ProbePlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
    jsonschema.validate(json.loads(PLAN_TEXT), json.loads((SCHEMA / "plan.json").read_text()))


@pytest.mark.parametrize("line", RECORD_LINES)
def test_each_line_of_the_record_fixture_is_a_record_line(line: str):
    parsed = LINE_ADAPTER.validate_json(line)
    assert LINE_ADAPTER.validate_json(parsed.model_dump_json(by_alias=True)) == parsed
    jsonschema.validate(json.loads(line), json.loads((SCHEMA / "record.json").read_text()))


@pytest.mark.parametrize("line", KERNEL_RECORD.read_text().splitlines())
def test_each_line_of_the_kernel_fixture_is_a_line_of_a_kernels_record(line: str):
    parsed = KERNEL_LINE_ADAPTER.validate_json(line)
    assert KERNEL_LINE_ADAPTER.validate_json(parsed.model_dump_json(by_alias=True)) == parsed
    jsonschema.validate(json.loads(line), json.loads((SCHEMA / "kernel_record.json").read_text()))


def test_the_kernel_fixture_is_whole_and_one_of_its_two_runs_is_wrong():
    record = read_kernel_record(KERNEL_RECORD)
    assert record.is_complete, record.damage
    assert [run.verified for run in record.runs] == [True, False]
    assert not record.is_verified
    assert [check.holds for run in record.runs for check in run.checks] == [True, True, True, False]


def test_the_schemas_on_disk_are_those_of_the_models():
    for name, schema in schemas().items():
        assert json.loads((SCHEMA / name).read_text()) == schema, "run `make docs`"
