"""Where launches come from and what is known of their path, in runs of this version and before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricbench.analysis.analysing import analyse
from fabricbench.model import Layer, Pattern
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, write_synthetic_run

CELLS = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=40)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=3, invalid=["b01-a"])


def told(run: Run, launch: str, **facts: Any) -> Run:
    """The run with other facts of a launch; None takes one away."""
    path = run.path / "launches" / launch / "launch.json"
    content = json.loads(path.read_text())
    content["facts"] = {name: value for name, value in {**content["facts"], **facts}.items() if value is not None}
    path.write_text(json.dumps(content))
    return Run.open(run.path)


def proofs(run: Run) -> dict[str, Proof]:
    return {launch.launch_id: launch.proof for launch in run.launches}


def test_what_was_refuted_counts_nowhere_and_what_is_unknown_counts_and_is_said(run: Run):
    assert not [one for one in analyse([run]).warnings if "unproven" in one.text]
    opened = told(run, "b00-a", proof="unknown")
    assert proofs(opened) == {
        **dict.fromkeys((launch.launch_id for launch in run.launches), Proof.PROVEN),
        "b01-a": Proof.REFUTED,
        "b00-a": Proof.UNKNOWN,
    }
    cells = opened.cells()
    assert cells.filter(~cells["is_valid"])["launch_id"].to_list() == ["b01-a"]
    assert cells.filter(cells["proof"] == "unknown")["launch_id"].to_list() == ["b00-a"]
    warnings = [warning.text for warning in analyse([opened]).warnings if "unproven path" in warning.text]
    assert len(warnings) == 1
    assert "1 launch of unproven path (b00-a): no counter shows that their traffic took a" in warnings[0]


@pytest.mark.parametrize(
    ("facts", "proof"),
    [
        ({"is_valid": False, "path_proof": {}}, Proof.REFUTED),
        ({"is_valid": True, "path_proof": {"cells": [{}]}}, Proof.PROVEN),
        ({"is_valid": True, "path_proof": {}}, Proof.UNKNOWN),
    ],
)
def test_runs_of_before_say_what_they_can(run: Run, facts: dict[str, Any], proof: Proof):
    opened = told(run, "b00-b", proof=None, origin=None, **facts)
    (launch,) = [one for one in opened.launches if one.launch_id == "b00-b"]
    assert (launch.proof, launch.origin, launch.is_valid) == (proof, Origin.EMULATED, proof is not Proof.REFUTED)


def test_an_origin_stays_with_its_launch(run: Run):
    opened = told(run, "b00-b", origin="predicted")
    cells = opened.cells()
    assert cells.filter(cells["origin"] == "predicted")["launch_id"].unique().to_list() == ["b00-b"]
