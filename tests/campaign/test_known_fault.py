"""A lab whose switch holds the last segments of messages of one size: the dip is found there, and placed in the switch."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings.stages import Stage
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab
from fabricbench.chapters import anomalies
from fabricbench.chapters.anomalies import AnomalyKind, CurveAnomaly
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run

HELD_NS = 1e6
"""Each way: more than a busy machine adds to all launches of one size alone."""


@pytest.mark.lab
@pytest.mark.timeout(180)
def test_a_dip_like_the_one_of_nist_is_found_and_is_a_delay_of_the_last_segment_in_the_switch(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    experiment = Experiment(
        layers=(Layer.TCP,),
        pattern=Pattern.PINGPONG,
        message_bytes=(8192, 16384, 24576, 31744, 40960, 57344),
        stages=True,
        minimum_seconds=0.1,
        maximum_seconds=0.15,
        warmup_samples=5,
    )
    campaign = Campaign(name="dip", blocks=6, experiments=(experiment,))
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("gigabit-ethernet:hold=1ms,hold-bytes=31744")))
    start_run(tmp_path / "run", campaign, venue, plan_run(campaign, venue.testbed(), seed=1), notify=lambda _: None)
    findings = analyse([Run.open(tmp_path / "run")])
    found = [one for one in rows_of(findings, anomalies.NAME, CurveAnomaly) if one.kind is AnomalyKind.SLOW]
    assert [(one.first_bytes, one.last_bytes) for one in found] == [(31744, 31744)]
    (dip,) = found
    assert dip.stage == (Stage.SWITCH,)
    assert dip.stage_excess is not None
    assert dip.stage_excess.value == pytest.approx(2.0 * HELD_NS, rel=0.05)
    assert any("delay of the last segment" in line for line in anomalies.CHAPTER.lines(findings))
