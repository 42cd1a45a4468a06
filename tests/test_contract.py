"""The fixtures in schema/fixtures are what both sides of the contract load."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from fabricbench.native import doors, native_file
from fabricbench.pattern_facts import Layer, Parameter
from fabricbench.patterns import PATTERNS, Pattern
from fabricbench.record.farm_lines import FARM_LINE_ADAPTER, FarmPlan
from fabricbench.record.generate_schemas import schemas
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.native_table import native_files
from fabricbench.record.probe_plan import ProbePlan

SCHEMA = Path(__file__).parents[1] / "schema"
PLANS = ("plan.json", "plan-patterns.json", "plan-counters.json")
KERNEL_RECORD = SCHEMA / "fixtures/kernel_record.jsonl"
RECORDS = ("record.jsonl", "record-patterns.jsonl", "record-stages.jsonl", "record-counters.jsonl")
RECORD_LINES = [line for name in RECORDS for line in (SCHEMA / "fixtures" / name).read_text().splitlines()]


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_fixture_is_a_plan_and_survives_a_round_trip(name: str):
    text = (SCHEMA / "fixtures" / name).read_text()
    plan = ProbePlan.model_validate_json(text)
    assert ProbePlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
    jsonschema.validate(json.loads(text), json.loads((SCHEMA / "plan.json").read_text()))


@pytest.mark.parametrize("line", RECORD_LINES)
def test_each_line_of_the_record_fixture_is_a_record_line(line: str):
    parsed = LINE_ADAPTER.validate_json(line)
    assert LINE_ADAPTER.validate_json(parsed.model_dump_json(by_alias=True)) == parsed
    jsonschema.validate(json.loads(line), json.loads((SCHEMA / "record.json").read_text()))


@pytest.mark.parametrize("line", (SCHEMA / "fixtures/farm_record.jsonl").read_text().splitlines())
def test_each_line_of_the_farm_fixture_is_a_line_of_its_record(line: str):
    parsed = FARM_LINE_ADAPTER.validate_json(line)
    assert FARM_LINE_ADAPTER.validate_json(parsed.model_dump_json(by_alias=True)) == parsed
    jsonschema.validate(json.loads(line), json.loads((SCHEMA / "farm_record.json").read_text()))


def test_the_farm_plan_of_the_fixture_is_one_and_survives_a_round_trip():
    text = (SCHEMA / "fixtures/farm_plan.json").read_text()
    plan = FarmPlan.model_validate_json(text)
    assert FarmPlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
    jsonschema.validate(json.loads(text), json.loads((SCHEMA / "farm_plan.json").read_text()))


def test_the_schemas_on_disk_are_those_of_the_models():
    for name, schema in schemas().items():
        assert json.loads((SCHEMA / name).read_text()) == schema, "run `make docs`"


def test_the_native_files_on_disk_are_those_of_the_table():
    for name, text in native_files().items():
        assert (SCHEMA.parent / "native" / name).read_text() == text, "run `make docs`"


def test_a_parameter_has_the_same_words_in_all_patterns_or_none(monkeypatch: pytest.MonkeyPatch):
    other = replace(PATTERNS[Pattern.PUT], parameters={"mode": Parameter(default="a", words=("a", "b"), summary="")})
    monkeypatch.setitem(PATTERNS, Pattern.PUT, other)
    with pytest.raises(ValueError, match="parameter mode of put: another pattern or layer has other words for it"):
        native_files()


@pytest.mark.complete
def test_the_measurer_has_the_layers_patterns_families_and_metrics_of_the_table():
    program = str(native_file("fabricbench-probe"))
    done = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout.splitlines()[0].split() == ["layers:", *Layer]
    listed = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("pattern ")]
    assert list(doors()) == list(Layer)
    assert all(doors().values())
    assert listed == [[Pattern(facts.name), facts.family, facts.metric] for facts in PATTERNS.values()]
