"""Fabrics of one run that have no test in common with another: the others are compared all the same."""

from __future__ import annotations

from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Verdict
from fabricbench.model import Layer, Pattern
from support.synthetic_run import SyntheticCell, write_synthetic_run


def test_a_fabric_whose_every_launch_is_invalid_leaves_the_others_their_verdict(tmp_path: Path):
    trip = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"slow": 100e3, "fast": 20e3, "dead": 50e3}, samples=20)
    invalid = [f"b{block:02d}-dead" for block in range(6)]
    findings = analyse([write_synthetic_run(tmp_path / "run", cells=[trip], invalid=invalid)])
    assert {(one.fabric_a, one.fabric_b, one.verdict) for one in findings.cells} == {("slow", "fast", Verdict.B_FASTER)}
