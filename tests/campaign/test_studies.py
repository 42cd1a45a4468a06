"""The campaigns of the published studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.studies.five import STUDIES
from benchmarks.studies.found import Study

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import read_campaign
from fabricbench.campaign.venue import find_venue
from fabricbench.published import studies

ROOT = Path(__file__).parents[2]


def test_each_published_study_has_its_campaign_and_its_place_on_the_page():
    keys = {one.key for one in studies()}
    assert {one.key for one in STUDIES} == keys
    assert {path.stem for path in (ROOT / "examples/studies").glob("*.toml")} == keys
    assert set(re.findall(r"<!-- ([\w-]+) -->", (ROOT / "docs/studies.md").read_text())) == {
        *keys,
        "without-counterpart",
    }


def test_what_both_fabrics_were_built_with_is_no_agreement():
    rows = [line for line in (ROOT / "docs/studies.md").read_text().splitlines() if line.startswith("| incast over")]
    assert rows
    assert [row for row in rows if row.endswith("| yes |")] == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.key)
def test_the_campaign_of_a_study_is_planned_whole_and_as_its_head_says(study: Study):
    path = ROOT / "examples/studies" / f"{study.key}.toml"
    plan = plan_run(read_campaign(path), find_venue(study.testbed, study.nodes).testbed(), seed=1)
    assert not [note for note in plan.notes if "left out" in note]
    assert plan.estimated_seconds < 20 * 60
    head = path.read_text()
    assert f"--testbed {study.testbed} --nodes {study.nodes}" in head
