"""Causes whose truth is known are named with their numbers, the larger first, and nothing is named where there is none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.stages import (
    HeldByAcknowledgement,
    InterruptGrid,
    ProcessorWait,
    Stage,
    StageCause,
    Traffic,
    TrafficDifference,
)
from fabricbench.chapters import stage_tables, stages
from fabricbench.chapters.chapter import rows_of
from fabricbench.model import Layer, Pattern
from fabricbench.record.lines import BusiestProcess
from fabricbench.report.cause_words import cause_words
from support.stamps import Stamped
from support.synthetic_run import WAY, SyntheticCell, stamped_cells_run

CLEAN = Stamped(WAY, WAY, apart_ns=0)
ALONE = replace(CLEAN, pauses_ns=(0.5e6, 1.5e6))
IN_TURN = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=60)
LONE = SyntheticCell(Layer.UDP, Pattern.PACED, 64, {}, samples=200, parameters={"intervals": "random"})
EVEN = SyntheticCell(Layer.UDP, Pattern.PACED, 64, {}, samples=200)
PAIRS = SyntheticCell(Layer.TCP, Pattern.BURST, 64, {}, samples=40, parameters={"messages": 2, "nodelay": "off"})
BURNER = BusiestProcess(process="burner", share=0.38, is_realtime=True)


def findings_of(path: Path, *stamped: tuple[SyntheticCell, Stamped]) -> Findings:
    return analyse([stamped_cells_run(path, *((cell, {"net": one}) for cell, one in stamped))])


def causes_in(path: Path, *stamped: tuple[SyntheticCell, Stamped]) -> list[StageCause]:
    return list(rows_of(findings_of(path, *stamped), "stage-causes", StageCause))


def test_messages_that_an_acknowledgement_releases_are_a_delayed_acknowledgement(tmp_path: Path):
    (one,) = causes_in(tmp_path, (PAIRS, replace(CLEAN, held=0.9)))
    assert isinstance(one.subject, HeldByAcknowledgement)
    assert (one.parts, one.found_in, one.launches) == ((Stage.LIBRARY, Stage.SOCKET), 6, 6)
    assert one.subject.held_ns == pytest.approx(42e6, rel=0.01)
    assert one.subject.released_ns == pytest.approx(8e3)
    assert one.share == pytest.approx(0.9, abs=0.1)
    assert one.cost_ns == pytest.approx(0.9 * 42e6, rel=0.1)


def test_a_socket_that_is_slow_without_an_acknowledgement_is_none(tmp_path: Path):
    slow = {**WAY, "library": 42e6}
    assert not causes_in(tmp_path, (PAIRS, Stamped(slow, WAY, apart_ns=0)))


def test_lone_messages_that_arrive_on_a_grid_are_gathered_interrupts(tmp_path: Path):
    (one,) = causes_in(tmp_path, (LONE, replace(ALONE, grid_ns=125_000)))
    assert isinstance(one.subject, InterruptGrid)
    assert one.traffic is Traffic.LONE
    assert one.subject.period_ns == pytest.approx(125e3, rel=0.002)
    assert one.cost_ns == pytest.approx(125e3, rel=0.01)


def test_messages_at_a_set_rate_are_in_step_without_any_adapter(tmp_path: Path):
    assert not causes_in(tmp_path, (EVEN, replace(CLEAN, pauses_ns=(1e6, 1e6), grid_ns=1)))


@pytest.mark.parametrize("busiest", [BURNER, None])
def test_receivers_without_a_processor_wait_for_who_used_it_or_for_nobody_in_sight(
    tmp_path: Path, busiest: BusiestProcess | None
):
    (one,) = causes_in(tmp_path, (IN_TURN, replace(CLEAN, waits=0.3, busiest=busiest)))
    assert isinstance(one.subject, ProcessorWait)
    assert one.subject.waited_ns == pytest.approx(1e6, rel=0.05)
    assert one.subject.process == (busiest and "burner")
    words = cause_words(one)
    assert ("burner, of realtime priority" in words) is (busiest is not None)
    assert ("out of their sight or each with less" in words) is (busiest is None)


def test_a_wait_that_few_messages_meet_is_no_cause(tmp_path: Path):
    assert not causes_in(tmp_path, (replace(IN_TURN, samples=200), replace(CLEAN, waits=0.015)))


def test_of_two_causes_both_are_named_the_larger_first(tmp_path: Path):
    found = causes_in(tmp_path, (LONE, replace(ALONE, grid_ns=125_000, waits=0.3)), (PAIRS, replace(CLEAN, held=0.9)))
    assert [type(one.subject) for one in found] == [HeldByAcknowledgement, ProcessorWait, InterruptGrid]


def test_a_clean_run_has_no_cause_and_says_which_rules_were_asked(tmp_path: Path):
    findings = findings_of(tmp_path, (IN_TURN, CLEAN), (LONE, ALONE), (EVEN, replace(ALONE, pauses_ns=(1e6, 1e6))))
    assert not rows_of(findings, "stage-causes", StageCause)
    assert stages.CHAPTER.lines(findings)[0].startswith("No delayed acknowledgement, no gathered interrupts")


def test_the_stage_that_only_lone_messages_suffer_is_found_beside_those_in_turn(tmp_path: Path):
    slow = {**WAY, "waking": WAY["waking"] + 20_000.0}
    findings = findings_of(tmp_path, (IN_TURN, CLEAN), (LONE, replace(ALONE, there=slow, back=slow)))
    rows = rows_of(findings, "stage-traffics", TrafficDifference)
    waking = next(row for row in rows if Stage.WAKE_UP in row.parts)
    assert waking.traffic is Traffic.LONE
    assert waking.difference.value == pytest.approx(40e3, rel=0.02)
    (sentence,) = [line for line in stages.CHAPTER.lines(findings) if "(lone), against" in line]
    assert re.search(r"\(in turn\): (40\.\d|39\.\d) µs more on net \(", sentence)
    assert "softirq, protocol and wake-up, by 40" in sentence
    table = stage_tables.traffic_table(findings, "net", rows[0].key)
    assert list(table.columns) == ["Stage", "lone", "in turn"]
