"""The smallest difference that matters is the campaign's in every command, unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.record.manifest import write_manifest
from fabricbench.record.store import Run
from support.calling import Call
from support.lost_runs import lost_run


def run_of_margin(path: Path, margin: float) -> Run:
    manifest = lost_run(path, blocks=3).manifest
    write_manifest(path, manifest.model_copy(update={"campaign": manifest.campaign | {"margin": margin}}))
    return Run.open(path)


def test_the_analysis_takes_the_margin_of_the_campaign(tmp_path: Path):
    run = run_of_margin(tmp_path / "run", 0.05)
    assert analyse([run]).margin == pytest.approx(0.05)
    assert analyse([run], margin=0.1).margin == pytest.approx(0.1)
    assert analyse([lost_run(tmp_path / "old", blocks=3)]).margin == pytest.approx(0.02)


def test_report_and_compare_judge_by_it_and_take_another(tmp_path: Path, fabricbench: Call):
    run = run_of_margin(tmp_path / "run", 0.05)
    for command in (("report", run.path, "--format", "text"), ("compare", run.path)):
        assert "differences below 5 %" in " ".join(fabricbench(*command)[1].split())
        assert "differences below 10 %" in " ".join(fabricbench(*command, "--margin", "10%")[1].split())
