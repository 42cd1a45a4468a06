"""Findings that an earlier version wrote are read as today's: what kernels, applications and farms told is told of workloads."""

from __future__ import annotations

import json
from pathlib import Path

from fabricbench.analysis.findings import Findings
from fabricbench.chapters.workload_tables import FARMS, FIGURE_RATIOS, FIGURES, LOADS

WRITTEN = Path(__file__).parent / "earlier/findings.json"
"""What 0.1.0 wrote in November 2026 of the example with kernels, without its cells."""


def test_the_rates_of_kernels_stand_with_their_workloads():
    told = json.loads(WRITTEN.read_text())["kernels"]["results"]
    found = {(one.load, one.fabric): one for one in LOADS.of(Findings.model_validate_json(WRITTEN.read_text()))}
    (of_is,) = [
        one
        for one in told
        if (one["kernel"]["benchmark"], one["kernel"]["ranks"], one["fabric"]) == ("IS", 4, "myrinet")
    ]
    here = found["IS.W on 4 ranks", "myrinet"]
    assert (here.mops_total, here.calls) == (of_is["mops_total"], of_is["calls"]) != (None, {})
    assert {one.mops_total for (load, _), one in found.items() if load.startswith("hpl")} == {None}


def test_further_figures_and_farms_are_rows_of_workloads():
    whole = json.loads(WRITTEN.read_text())
    application = {"ranks": 4, "parameters": [["workload", "lu"], ["n", 800]]}
    level = {"value": 2.0, "low": None, "high": None}
    figure = {"application": application, "figure": "solve", "launches": 5}
    primary = {**figure, "figure": "LU"}
    results = [
        {**one, "fabric": "myrinet", "unit": "s", "level": level, "is_primary": one is primary}
        for one in (primary, figure)
    ]
    ratio = {"worse": "fast-ethernet", "better": "myrinet", "times": 3.0, "low": 2.0, "high": None}
    ratios = [{**figure, **ratio, "verdict": None}, {**primary, **ratio, "verdict": "B faster"}]
    jobs = {"launches": 1, "jobs_per_hour": None, "staging_share": None, "jobs": 4, "done": 4, "retried": 0, "lost": 0}
    farms = [{"fabric": "myrinet", "farm": "speech on 4 ranks", "success": level, **jobs}]
    found = Findings.model_validate(
        {
            **whole,
            "applications": {"results": results, "ratios": ratios},
            "chapters": {**whole["chapters"], "farms": farms},
        }
    )
    assert [(one.load, one.figure, one.level.value) for one in FIGURES.of(found)] == [
        ("lu, n=800, on 4 ranks", "solve", 2.0)
    ]
    assert [(one.figure, one.times.value, one.times.low) for one in FIGURE_RATIOS.of(found)] == [("solve", 3.0, 2.0)]
    assert [one.load for one in FARMS.of(found)] == ["speech on 4 ranks"]


def test_what_is_read_is_written_as_today_and_read_again():
    found = Findings.model_validate_json(WRITTEN.read_text())
    assert Findings.model_validate_json(found.model_dump_json()) == found
