"""What a report says of launches by how they ended, and of those that are not what their folder says."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from fabricbench.analysis import analyse
from fabricbench.record.store import Run

from .conftest import MakeRun, two


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run(two(1.0, sizes=(64,)), blocks=4)


def with_launch(run: Run, folder: str, *, facts: dict[str, Any] | None = None, **top: Any) -> Run:
    """The run, one of whose launches tells something else."""
    path = run.path / "launches" / folder / "launch.json"
    told = json.loads(path.read_text())
    told["facts"] |= facts or {}
    path.write_text(json.dumps(told | top))
    return Run.open(run.path)


def warnings(run: Run) -> dict[str, str]:
    return {one.subject: one.text for one in analyse([run]).warnings}


def test_a_launch_whose_program_died_after_its_record_counts_and_is_named_with_signal_and_place(run: Run):
    died = {"exit_code": 139, "outcome": "died after its record", "signal": "SIGSEGV", "died_on": "n2"}
    opened = with_launch(run, "b01-one", facts=died)
    assert len(opened.launches) == 8
    assert "b01-one: its record was whole when SIGSEGV ended its program on n2" in warnings(opened)["one"]


def test_a_run_of_an_earlier_version_tells_a_death_by_the_exit_code(run: Run):
    opened = with_launch(run, "b01-one", facts={"exit_code": 139})
    assert "b01-one: its record was whole when SIGSEGV ended its program" in warnings(opened)["one"]


def test_a_launch_of_whose_end_nobody_knows_counts_and_is_named(run: Run):
    opened = with_launch(run, "b00-other", facts={"exit_code": None, "outcome": "unknown"})
    assert "b00-other: its record is whole, and nobody saw how its program ended" in warnings(opened)["other"]


@pytest.mark.parametrize(
    ("facts", "top", "why"),
    [
        ({"exit_code": 3, "outcome": "failed"}, {}, "failed while they measured"),
        ({"exit_code": 3}, {}, "failed while they measured"),
        ({"exit_code": 0}, {"complete": False}, "their records are not whole"),
    ],
)
def test_a_launch_that_is_not_finished_is_left_out_and_named(
    run: Run, facts: dict[str, Any], top: dict[str, Any], why: str
):
    opened = with_launch(run, "b02-one", facts=facts, **top)
    assert [launch.launch_id for launch in opened.unfinished] == ["b02-one"]
    assert len(opened.launches) == 7
    text = warnings(opened)["unfinished launches"]
    assert text.startswith("b02-one: ")
    assert why in text


def test_a_launch_whose_switch_was_dead_is_named(run: Run):
    opened = with_launch(
        run, "b01-one", facts={"switches_after": {"one": {"state": "dead"}, "other": {"state": "idle"}}}
    )
    assert "dead at the end of b01-one" in warnings(opened)["one"]


@pytest.mark.parametrize(
    ("top", "facts", "why"),
    [
        ({"fabric": "ghost"}, {}, "the fabric ghost, which the manifest does not have"),
        ({"launch_id": "b00-one"}, {}, "is of launch b00-one"),
        ({"fabric": "other"}, {}, "is of block 1 on other, and the manifest plans it in block 1 on one"),
        ({}, {"block": 3}, "is of block 3 on one"),
    ],
)
def test_a_launch_that_is_not_what_its_folder_says_is_left_out_and_named(
    run: Run, top: dict[str, Any], facts: dict[str, Any], why: str
):
    opened = with_launch(run, "b01-one", facts=facts, **top)
    assert why in warnings(opened)["launch b01-one"]
    assert len(opened.launches) == 7


def test_a_launch_that_nobody_planned_is_left_out_and_named(run: Run):
    shutil.copytree(run.path / "launches/b01-one", run.path / "launches/b09-one")
    with_launch(run, "b09-one", launch_id="b09-one", facts={"block": 9})
    assert "does not plan" in warnings(Run.open(run.path))["launch b09-one"]
