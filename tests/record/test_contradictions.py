"""Records that contradict themselves or the plan of their launch: one planted error each, in the fixtures of the contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.record.probe_plan import ProbePlan
from fabricbench.record.reading import Record, parse_record

FIXTURES = Path(__file__).parents[2] / "schema/fixtures"
PLAIN, PATTERNS = "record.jsonl", "record-patterns.jsonl"

Lines = list[dict[str, Any]]


def lines_of(name: str) -> Lines:
    return [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]


def read(lines: Lines, plan: ProbePlan | None = None) -> Record:
    return parse_record([json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines], plan)


def of(lines: Lines, kind: str, cell: int, nth: int = 0) -> dict[str, Any]:
    """Return the `nth` line of a kind that belongs to a cell."""
    return [line for line in lines if line["type"] == kind and line.get("cell", line.get("id")) == cell][nth]


def plan_for(lines: Lines) -> ProbePlan:
    """Return the plan that a record answers to."""
    probes: Lines = []
    asked = ("layer", "pattern", "message_bytes", "receive", "ranks", "messages_per_sample", "parameters", "congestor")
    for line in lines:
        if line["type"] == "cell":
            probes.append({"id": line["id"]} | {key: line[key] for key in asked if key in line})
            if line["layer"] == "memory":
                probes[-1]["ranks"] = [0, 1]
        elif line["type"] == "cell_failed":
            probes.append({"id": line["cell"]} | {key: line[key] for key in ("layer", "pattern", "message_bytes")})
    header = {"launch_id": lines[0]["launch_id"], "token": 1, "fabric": {"name": lines[0]["fabric"]}, "output": "-"}
    return ProbePlan.model_validate({**header, "probes": probes})


def set_in(kind: str, cell: int, nth: int = 0, **keys: Any) -> Callable[[Lines], None]:
    """Return what sets keys of a line."""
    return lambda lines: of(lines, kind, cell, nth).update(keys)


def remove_marks(lines: Lines) -> None:
    del of(lines, "samples", 3, 1)["missed"]


def value(name: str, number: float) -> Callable[[Lines], None]:
    return lambda lines: of(lines, "cell_end", 3)["values"].update({name: number})


CONTRADICTIONS: list[tuple[str, int, Callable[[Lines], None], str]] = [
    (PATTERNS, 3, remove_marks, "the end counts 1 samples that missed their start, 0 are marked"),
    (PATTERNS, 3, set_in("samples", 3, 1, missed=[1, 1]), "marked twice"),
    (PATTERNS, 3, set_in("samples", 3, 0, missed=[0]), "of the warm-up"),
    (PLAIN, 0, set_in("samples", 0, 1, first_index=1000), "samples begin at 1000, 0 is needed"),
    (PLAIN, 0, set_in("cell", 0, metric="throughput"), "pingpong measures round_trip_time, the line says throughput"),
    (PLAIN, 2, set_in("cell", 2, metric="round_trip_time"), "stream measures throughput"),
    (PLAIN, 0, set_in("cell", 0, layer="memory", pattern="oneway"), "oneway does not run over memory"),
    (PLAIN, 0, set_in("cell", 0, operations_per_sample=2), "2 operations a sample: 1 were asked for"),
    (PLAIN, 0, set_in("cell", 0, messages_per_sample=2), "2 messages a sample"),
    (PLAIN, 0, set_in("cell", 0, message_bytes=65536), "131072 are needed"),
    (PLAIN, 2, set_in("cell", 2, bytes_per_sample=655360), "65536 are needed"),
    (PLAIN, 2, set_in("samples", 2, bytes=[655360, 645120]), "more than the 128 messages that were sent"),
    (PLAIN, 0, set_in("cell_end", 0, seconds=1e-9), "its samples took"),
    (PLAIN, 1, set_in("cell_end", 1, seconds=2e-4), "its samples took"),
    (PATTERNS, 0, set_in("samples", 0, time_ns=[20000000, 2001000000]), "its samples took"),
    (PATTERNS, 2, set_in("cell_end", 2, seconds=1e-9), "its samples took"),
    (PATTERNS, 3, set_in("cell_end", 3, seconds=1e-9), "its samples took"),
    (PLAIN, 0, set_in("cell_end", 0, seconds=-1.0), "seconds is -1"),
    (PLAIN, 0, set_in("cell_end", 0, seconds=float("nan")), "seconds is nan"),
    (PATTERNS, 3, value("back_to_back_ns", -5.0), "back_to_back_ns is -5"),
    (PATTERNS, 3, value("pure_ns", float("inf")), "pure_ns is inf"),
    (PATTERNS, 3, value("overlap", 1.5), "overlap is 1.5"),
    (PLAIN, 0, set_in("cell_end", 0, lost=-1), "lost is -1"),
    (PLAIN, 0, set_in("cell_end", 0, interfaces={"fe0": {"sent": 1, "received": -7}}), "fe0 received is -7"),
    (PLAIN, 3, set_in("cell_failed", 3, values={"back_to_back_ns": -5.0}), "back_to_back_ns is -5"),
    (PATTERNS, 2, set_in("channel", 2, time_ns=[50000, 51001]), "its pairs took 153001 ns, its samples 153000"),
]


@pytest.mark.parametrize(
    ("name", "cell", "plant", "reason"),
    CONTRADICTIONS,
    ids=[one[-1] for one in CONTRADICTIONS],
)
def test_a_contradiction_costs_its_cell_and_no_other_and_is_named(
    name: str, cell: int, plant: Callable[[Lines], None], reason: str
):
    lines = lines_of(name)
    whole = {one.id for one in read(lines).cells}
    plant(lines)
    record = read(lines)
    (damage,) = record.damage
    assert damage.cell == cell
    assert reason in damage.reason
    assert {one.id for one in record.cells} == whole - {cell}
    assert not record.is_complete


@pytest.mark.parametrize("name", [PLAIN, PATTERNS])
def test_the_fixtures_contradict_neither_themselves_nor_their_plan(name: str):
    lines = lines_of(name)
    assert read(lines, plan_for(lines)).damage == []


def test_a_deleted_cell_is_noticed_by_what_the_footer_counts():
    lines = [line for line in lines_of(PLAIN) if line.get("cell", line.get("id")) != 1]
    record = read(lines)
    (damage,) = record.damage
    assert damage.line == len(lines)
    assert damage.reason == "the footer counts 3 cells and 1 failed, 2 and 1 were read"
    assert {one.id for one in record.cells} == {0, 2, 3}


def test_a_failed_cell_that_is_deleted_is_noticed():
    lines = [line for line in lines_of(PLAIN) if line["type"] != "cell_failed"]
    assert "1 failed, 3 and 0 were read" in read(lines).damage[0].reason


def test_a_second_footer_is_refused():
    lines = lines_of(PLAIN)
    assert [one.reason for one in read([*lines, lines[-1]]).damage] == ["a second footer"]


def test_a_record_that_is_cut_short_is_not_called_contradictory():
    lines = lines_of(PLAIN)[:-1]
    assert [one.reason for one in read(lines, plan_for(lines)).damage] == ["the record has no footer: it was cut short"]


def test_what_an_earlier_version_did_not_state_is_not_held_against_it():
    lines = lines_of(PATTERNS)
    del of(lines, "cell_end", 3)["missed"]
    del of(lines, "samples", 3, 1)["missed"]
    for line in lines:
        if line["type"] == "cell":
            for later in ("channels", "messages_per_sample", "operations_per_sample"):
                line.pop(later, None)
    assert read(lines).damage == []


PLANNED: list[tuple[Callable[[Lines], None], str]] = [
    (set_in("cell", 0, message_bytes=65536, bytes_per_sample=131072), "message_bytes is 65536, the plan has 64"),
    (set_in("cell", 0, layer="udp"), "layer is udp, the plan has tcp"),
    (set_in("cell", 0, pattern="paced"), "pattern is paced, the plan has pingpong"),
    (set_in("cell", 0, ranks=[1, 0]), "ranks is (1, 0), the plan has (0, 1)"),
    (set_in("cell", 0, parameters={"kernel": "add"}), "parameters is {'kernel': 'add'}, the plan has {}"),
]


@pytest.mark.parametrize(("plant", "reason"), PLANNED, ids=[reason for _, reason in PLANNED])
def test_a_cell_that_is_not_the_one_that_was_planned_is_refused(plant: Callable[[Lines], None], reason: str):
    lines = lines_of(PLAIN)
    plan = plan_for(lines)
    plant(lines)
    record = read(lines, plan)
    (damage,) = record.damage
    assert (damage.cell, damage.lost_samples) == (0, 5)
    assert reason in damage.reason
    assert {one.id for one in record.cells} == {1, 2, 3}


def test_a_failure_of_another_cell_than_planned_is_refused():
    lines = lines_of(PLAIN)
    plan = plan_for(lines)
    of(lines, "cell_failed", 3)["message_bytes"] = 1024
    assert [one.cell for one in read(lines, plan).damage] == [3]


def test_a_planned_cell_that_a_finished_record_lacks_is_named_even_if_the_footer_was_corrected():
    lines = lines_of(PLAIN)
    plan = plan_for(lines)
    lines = [line for line in lines if line.get("cell", line.get("id")) != 1]
    lines[-1]["cells"] = 2
    (damage,) = read(lines, plan).damage
    assert (damage.cell, damage.reason) == (1, "the plan has this cell, the record has not")


def test_a_cell_that_nobody_planned_is_refused():
    lines = lines_of(PLAIN)
    plan = plan_for(lines)
    plan = plan.model_copy(update={"probes": plan.probes[:3]})
    assert [(one.cell, one.reason) for one in read(lines, plan).damage] == [(3, "the plan has no cell 3")]


def test_a_record_of_another_launch_than_planned_is_refused():
    lines = lines_of(PLAIN)
    plan = plan_for(lines).model_copy(update={"launch_id": "b07-fast-ethernet"})
    (damage,) = read(lines, plan).damage
    assert damage.reason == "launch_id is b00-fast-ethernet, the plan has b07-fast-ethernet"


def test_registrations_fill_a_sample_as_the_clock_needs():
    lines = lines_of(PLAIN)
    of(lines, "cell", 0).update(
        layer="rdma",
        pattern="registration",
        metric="operation_time",
        parameters={"door": "send"},
        message_bytes=1024,
        operations_per_sample=32,
        bytes_per_sample=32 * 1024,
    )
    assert read(lines).damage == []
