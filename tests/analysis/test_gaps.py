"""Pairs whose halves lie apart in time: found from when launches began, told to the reader, named for whoever leaves them out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.decide import find_decision
from fabricbench.analysis.findings import Grade, Verdict
from fabricbench.analysis.gaps import find_gaps, mispaired, sessions_of, wide
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.weighing import weigh
from fabricbench.record.decision_table import DecisionTable
from fabricbench.record.store import Run
from support.configured_runs import write_system
from support.verdict_campaigns import write_campaign

from .conftest import MakeRun, two

HOUR = 3600.0


def moved(run: Run, launch_ids: Sequence[str], seconds: float) -> Run:
    """The run as if some of its launches had been measured so much later."""
    return changed(run, launch_ids, ("header", "started_unix_ns"), seconds)


def longer(run: Run, launch_ids: Sequence[str], seconds: float) -> Run:
    """The run as if some of its launches had taken so much longer."""
    return changed(run, launch_ids, ("footer", "finished_unix_ns"), seconds)


def changed(run: Run, launch_ids: Sequence[str], time: tuple[str, str], seconds: float) -> Run:
    part, name = time
    for launch_id in launch_ids:
        path = Path(run.path) / "launches" / launch_id / "launch.json"
        summary = json.loads(path.read_text())
        summary[part][name] += round(seconds * 1e9)
        path.write_text(json.dumps(summary))
    return Run.open(run.path)


def gap_warnings(run: Run) -> list[str]:
    return [one.text for one in analyse([run]).warnings if "apart" in one.text]


@pytest.mark.slow
def test_a_launch_that_was_retried_after_all_others_is_told_with_how_far_it_lies_from_its_other_half(make_run: MakeRun):
    run = moved(make_run(two(1.1)), ["b01-other", "b06-one"], 3 * HOUR)
    (text,) = gap_warnings(run)
    assert text == (
        "the halves of 2 of 8 blocks (b01 and b06) were measured up to 3 h 00 min apart: "
        "too far for a pair, they are left out of ratios"
    )
    one, other = read_sides([run])
    assert mispaired(one, other) == {(1, ""), (6, "")}


def test_a_run_whose_halves_follow_one_another_is_not_warned_of(make_run: MakeRun):
    run = make_run(two(1.1))
    assert gap_warnings(run) == []
    assert mispaired(*read_sides([run])) == frozenset()


def test_whole_blocks_that_were_measured_days_later_are_pairs_as_good_as_others(make_run: MakeRun):
    run = moved(make_run(two(1.1)), ["b06-one", "b06-other", "b07-one", "b07-other"], 48 * HOUR)
    assert wide(find_gaps(run.launches)) == []


def test_less_than_a_minute_is_no_gap_however_unusual(make_run: MakeRun):
    near = {gap.block: gap for gap in find_gaps(make_run(two(1.1)).launches)}
    assert {gap.usual_seconds for gap in near.values()} == {5.0}  # launches of 15 s, every 20 s
    later = make_run(two(1.1), "later")
    second = max(later.launches[4:6], key=lambda one: one.position or 0).launch_id
    assert wide(find_gaps(moved(later, [second], 54.0).launches)) == []
    assert [gap.block for gap in wide(find_gaps(moved(later, [second], 2.0).launches))] == [2]


def test_a_launch_that_takes_long_is_no_gap_before_the_one_that_follows_it_at_once(make_run: MakeRun):
    run = make_run(two(1.1))
    first, second = (one.launch_id for one in sorted(run.launches[4:6], key=lambda one: one.position or 0))
    assert [gap.block for gap in wide(find_gaps(moved(run, [second], HOUR).launches))] == [2]
    assert wide(find_gaps(longer(run, [first], HOUR).launches)) == []


@pytest.mark.slow
def test_what_lies_between_two_fabrics_of_many_is_no_gap_but_a_launch_that_was_retried_is_one(tmp_path: Path):
    run = write_system(tmp_path / "run", {f"f{number}": 1.0 + number / 10 for number in range(12)}, seed=12, blocks=6)
    assert gap_warnings(run) == [], "a block's twelve launches of 20 s each stand in a drawn order"
    sides = {side.name: side for side in read_sides([moved(run, ["b03-f4"], 3 * HOUR)])}
    for name in ("f0", "f9"):
        assert mispaired(sides["f4"], sides[name]) == {(3, "")}
    assert mispaired(sides["f0"], sides["f9"]) == frozenset()


def test_two_runs_have_no_pairs_and_so_no_gaps(make_run: MakeRun):
    before, after = make_run(two(1.1)), make_run(two(1.1), "after")
    sides = read_sides([before, moved(after, [one.launch_id for one in after.launches], 99 * HOUR)])
    assert mispaired(sides[0], sides[1]) == frozenset()


@pytest.mark.parametrize("launch_id", ["b03-one", "b03-other"])
def test_a_launch_that_does_not_tell_when_it_began_is_passed_over(make_run: MakeRun, launch_id: str):
    run = make_run(two(1.1))
    started = next(one for one in run.launches if one.launch_id == launch_id).summary.header
    assert started is not None
    run = moved(run, [launch_id], -started.started_unix_ns / 1e9)
    gaps = find_gaps(run.launches)
    assert [gap.block for gap in gaps] == [0, 1, 2, 4, 5, 6, 7]


def days_of(run: Run, first_of_days: Sequence[int]) -> Run:
    """The run as if it had been resumed a day later before each of these blocks."""
    for first in first_of_days:
        later = [one.launch_id for one in run.launches if one.block >= first]
        run = longer(moved(run, later, 24 * HOUR), later, 24 * HOUR)
    return run


@pytest.mark.slow
def test_blocks_that_lie_an_hour_or_more_apart_are_of_several_sessions(make_run: MakeRun):
    run = days_of(make_run(two(1.1), blocks=8), (3, 6))
    sessions = sessions_of(run.launches)
    assert [sessions[block, ""] for block in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert " 8 blocks in 3 sessions" in f" {analyse([run]).headline.conditions}"
    assert set(sessions_of(make_run(two(1.1), "one day").launches).values()) == {0}


def test_a_block_that_was_measured_again_on_another_day_is_no_second_session(make_run: MakeRun):
    run = make_run(two(1.1), blocks=8)
    again = [f"b{3:02d}-{fabric}" for fabric in ("one", "other")]
    assert set(sessions_of(longer(moved(run, again, 48 * HOUR), again, 48 * HOUR).launches).values()) == {0}


def test_a_decision_knows_the_session_of_each_block_that_has_every_test(make_run: MakeRun):
    run = days_of(make_run(two(1.1), blocks=8), (3, 6))
    assert weigh(read_sides([run]), DecisionTable()).sessions == (0, 0, 0, 1, 1, 1, 2, 2)
    one, other = read_sides([run])
    for cell in other.cells.values():
        cell.launch_values[:4] = np.nan
    assert weigh((one, other), DecisionTable()).sessions == (1, 1, 2, 2)


@pytest.mark.parametrize("are_days", [False, True])
def test_a_decision_ranks_by_days_that_disagree_as_little_as_they_tell(make_run: MakeRun, are_days: bool):
    """On one day the fabrics are 2 % apart, on the other 10 %: as blocks of one day that would be a clear lead."""
    run = make_run(two(1.0), blocks=8)
    one, other = read_sides([days_of(run, (4,)) if are_days else run])
    for key, cell in other.cells.items():
        times = np.repeat([0.98, 0.9], 4) * (1.0 + 0.001 * np.arange(8))
        cell.launch_values[:] = one.cells[key].launch_values * (times if key.metric.is_lower_better else 1.0 / times)
    found = find_decision((one, other), DecisionTable(), 0.95)
    assert found is not None
    assert len(found.ranks) == (1 if are_days else 2)
    assert (found.fabrics[1].probability_first is None) == are_days, "two days tell no probability"


@pytest.mark.slow
def test_a_small_lead_of_two_days_is_in_doubt_and_a_large_one_is_clear(make_run: MakeRun):
    small = analyse([days_of(make_run(two(1.06), "small", blocks=12), [6])]).headline
    doubts = [doubt for effect in small.effects for doubt in effect.doubts if doubt.kind.startswith("measured in")]
    assert doubts
    assert "measured in 2 sessions, " in str(doubts[0])
    assert "blocks of more days" in str(doubts[0])
    assert small.in_doubt
    large = analyse([days_of(make_run(two(2.0), "large", blocks=12), [6])]).headline
    assert {effect.grade for effect in large.effects} == {Grade.CLEAR}
    assert not analyse([make_run(two(1.06), "one day", blocks=12)]).headline.in_doubt


@pytest.mark.slow
def test_tables_hold_what_days_differ_by(tmp_path: Path):
    """Of campaigns without a difference on two days that differ by 5 %, half had a verdict while blocks counted as independent."""
    for seed in range(6):
        truth = write_campaign(tmp_path / str(seed), np.random.default_rng(seed), "2 days, 5 %", 12, 1.0)
        found = analyse([Run.open(tmp_path / str(seed))])
        cells = found.cells
        assert {"not enough data"} == {one.verdict.value for one in cells}
        assert "not settled in" in found.headline.detail
        assert not any(said in found.headline.detail for said in (" faster in ", "geometric mean", "equivalent in"))
        assert not any(truth.is_wrong(one.verdict, is_trip=one.metric.is_lower_better) for one in cells)
    write_campaign(tmp_path / "twice", np.random.default_rng(0), "2 days, 2 %", 12, 2.0)
    assert {one.verdict for one in analyse([Run.open(tmp_path / "twice")]).cells} == {Verdict.B_FASTER}
