"""Starts that came to nothing: whether they did so more often on one fabric than chance makes, and that it is told everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import StartsOfFabric
from fabricbench.analysis.lost_launches import changed_starts, unequal_starts
from fabricbench.chapters.decision import DECISION
from fabricbench.record.account import account_of
from fabricbench.record.decision_table import DecisionTable
from fabricbench.report.losses import losses_of
from support.lost_runs import lost_run, trip
from support.synthetic_run import Noise, write_synthetic_run

BLOCKS = 12
DIED = [f"b{block:02d}-fast" for block in range(8)]
WORDS = (
    "the network tests: 8 of 20 starts on fast, 0 of 12 starts on slow gave nothing that counts: more than chance makes"
)


def test_starts_that_failed_on_one_fabric_are_a_finding(tmp_path: Path):
    (found,) = unequal_starts([account_of(lost_run(tmp_path / "run", blocks=BLOCKS, again=DIED))])
    assert found.worse == StartsOfFabric(fabric="fast", lost=8, starts=20)
    assert found.better == StartsOfFabric(fabric="slow", lost=0, starts=12)
    assert found.p_value == pytest.approx(0.01353, abs=1e-5)
    both = [*DIED, *(name.replace("fast", "slow") for name in DIED)]
    assert unequal_starts([account_of(lost_run(tmp_path / "both", blocks=BLOCKS, again=both))]) == ()


def test_the_finding_is_on_the_first_screen_in_the_warnings_and_in_the_decision(tmp_path: Path):
    findings = analyse([lost_run(tmp_path / "run", blocks=BLOCKS, again=DIED)], decision=DecisionTable())
    assert losses_of(findings)[0] == WORDS
    assert any("more than chance makes" in one.text for one in findings.warnings)
    decision = DECISION.first_of(findings)
    assert decision is not None
    assert decision.notes[0].startswith("8 of 20 starts on fast gave nothing, 0 of 12 on slow")


@pytest.mark.slow
def test_a_change_after_which_starts_fail_is_a_finding(tmp_path: Path):
    well = lost_run(tmp_path / "well", blocks=BLOCKS + 1)
    ill = lost_run(tmp_path / "ill", blocks=BLOCKS, again=DIED)
    (found,) = changed_starts([account_of(well)], [account_of(ill)])
    assert (found.worse.fabric, found.better.fabric) == ("fast (after)", "fast (before)")
    assert analyse([well, ill]).unequal_starts == (found,)


def test_launches_that_are_not_there_on_one_fabric_alone_are_starts_that_gave_nothing(tmp_path: Path):
    gone = [f"b{block:02d}-fast" for block in range(1, BLOCKS, 2)]
    run = write_synthetic_run(tmp_path / "run", cells=[trip()], blocks=BLOCKS, noise=Noise(0.005, 0.01), missing=gone)
    findings = analyse([run])
    (effect, *_) = findings.headline.effects
    assert not effect.pairs[0].verdict.is_decided, "five times as fast in the launches that are left"
    interrupted = write_synthetic_run(
        tmp_path / "interrupted",
        cells=[trip()],
        blocks=BLOCKS,
        missing=[f"b{block:02d}-{name}" for block in range(6, BLOCKS) for name in ("slow", "fast")] + ["b05-fast"],
    )
    assert unequal_starts([account_of(interrupted)]) == ()
    assert analyse([interrupted]).headline.effects[0].pairs[0].verdict.is_decided
