"""What a message costs is found from counters whose truth is known, at both ends, and what was not counted is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.costs import spins
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.costs import CostRatio, MessageCost
from fabricbench.chapters import costs
from fabricbench.chapters.chapter import rows_of
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.counters import Counter
from fabricbench.record.store import Run
from fabricbench.report.words import NOTHING
from support.counts import Counted
from support.synthetic_run import Noise, SyntheticCell, forget_hashes, write_synthetic_run

PLAIN = Counted()
"""A message of it takes 6 us at the first rank and 8 us at the second."""


def cell_of(counted: Mapping[str, Counted], pattern: Pattern = Pattern.PINGPONG, receive: Receive = Receive.BLOCKING):
    values = dict.fromkeys(counted, 20000.0 if pattern is Pattern.PINGPONG else 100000000.0)
    return SyntheticCell(Layer.TCP, pattern, 64, values, samples=20, receive=receive, counted=counted)


def run_of(path: Path, *cells: SyntheticCell, blocks: int = 8) -> Run:
    return write_synthetic_run(path, cells=cells, blocks=blocks, noise=Noise(0.01, 0.01))


def costs_of(findings: Findings) -> list[MessageCost]:
    return list(rows_of(findings, "costs", MessageCost))


def test_a_message_costs_what_its_two_ends_take_of_it_together(tmp_path: Path):
    (one,) = costs_of(analyse([run_of(tmp_path, cell_of({"net": PLAIN}))]))
    assert (one.launches, one.messages, one.spins) == (8, 8 * 2_000, False)
    assert one.time.value == pytest.approx(14_000, rel=0.03)
    assert one.time.low is not None
    assert one.time.high is not None
    assert one.time.low < 14_000 * 1.02
    first, second = one.ends
    assert (first.user.value, first.system.value) == (pytest.approx(2_000, rel=0.03), pytest.approx(4_000, rel=0.03))
    assert (first.busy.value, second.busy.value) == (pytest.approx(0.5), pytest.approx(0.25))
    assert first.switches.value == pytest.approx(0.5)
    assert one.per_message == {Counter.INTERRUPTS: one.per_message[Counter.INTERRUPTS]}
    assert one.per_message[Counter.INTERRUPTS].value == pytest.approx(1.5)
    assert one.machine_busy is not None
    assert one.machine_busy.value == pytest.approx(0.6)
    assert one.reading_ns.value == 4_000 + 30_000 + 50_000


def test_a_stream_is_divided_by_what_each_end_sent_or_received(tmp_path: Path):
    counted = {"net": replace(PLAIN, sent=5_000, received=0)}
    (one,) = costs_of(analyse([run_of(tmp_path, cell_of(counted, Pattern.STREAM))]))
    assert one.messages == 8 * 5_000
    assert one.time.value == pytest.approx(14_000, rel=0.03)
    assert costs.end_words(one.key) == ("sender", "receiver")


def test_fabrics_whose_messages_take_clearly_different_times_are_told_apart(tmp_path: Path):
    dear = replace(PLAIN, user=(4_000.0, 6_000.0), system=(8_000.0, 10_000.0))
    findings = analyse([run_of(tmp_path, cell_of({"cheap": PLAIN, "dear": dear}))])
    (ratio,) = rows_of(findings, "cost-ratios", CostRatio)
    assert ratio.is_clear
    times = ratio.ratio.value if ratio.fabric_b == "dear" else 1.0 / ratio.ratio.value
    assert times == pytest.approx(2.0, rel=0.03)
    (line,) = [one for one in costs.CHAPTER.lines(findings) if "both ends together" in one]
    assert "as much on dear as on cheap" in line
    assert line.startswith("tcp ping-pong, blocking, 64 B: a message takes ")


def test_fabrics_that_take_the_same_have_no_ratio_to_show(tmp_path: Path):
    findings = analyse([run_of(tmp_path, cell_of({"one": PLAIN, "other": PLAIN}))])
    assert not [row for row in rows_of(findings, "cost-ratios", CostRatio) if row.is_clear]
    assert not costs.ratio_table(findings).rows


def test_of_receivers_that_spin_nothing_is_left_by_definition(tmp_path: Path):
    findings = analyse([run_of(tmp_path, cell_of({"net": PLAIN}, receive=Receive.POLLING))])
    told = costs.time_table(findings)
    assert [row[told.columns.index("Processor left")] for row in told.rows] == ["spins", "spins", NOTHING]
    said = " ".join(costs.CHAPTER.lines(findings))
    assert "by definition" in said
    assert "both ends together" not in said, "no cost is claimed of them"


@pytest.mark.parametrize(
    ("receive", "busy", "spin"),
    [
        (Receive.BLOCKING, (0.99, 0.99), False),
        (Receive.POLLING, (0.2, 0.2), True),
        (Receive.LIBRARY, (0.99, 0.5), True),
        (Receive.LIBRARY, (0.5, 0.5), False),
    ],
)
def test_a_library_is_taken_to_spin_where_a_rank_takes_its_whole_processor(
    receive: Receive, busy: tuple[float, float], spin: bool
):
    assert spins(receive, busy) is spin


def test_what_is_0_everywhere_is_one_line_and_what_is_not_a_column(tmp_path: Path):
    quiet = {Counter.TCP_RETRANSMISSIONS: 0, Counter.TCP_TIMEOUTS: 0}
    findings = analyse([run_of(tmp_path / "quiet", cell_of({"net": replace(PLAIN, host=quiet)}))])
    assert not costs.event_table(findings).rows
    assert "In none of these tests were there any TCP segments sent again or TCP time-outs." in costs.lines(findings)
    loud = {Counter.TCP_RETRANSMISSIONS: 2, Counter.TCP_TIMEOUTS: 0}
    findings = analyse([run_of(tmp_path / "loud", cell_of({"net": replace(PLAIN, host=loud)}))])
    told = costs.event_table(findings)
    assert told.columns[3:] == ("TCP segments sent again",)
    assert told.rows[0][3] == f"{8 * 2 * 2}"


def test_cycles_are_a_table_where_they_are_counted(tmp_path: Path):
    more = {Counter.CYCLES: 4_000_000, Counter.INSTRUCTIONS: 6_000_000}
    findings = analyse([run_of(tmp_path, cell_of({"net": replace(PLAIN, more=more)}))])
    told = costs.hardware_table(findings)
    assert told.columns[3:] == ("Cycles", "Instructions")
    assert told.rows[0][3:] == ("2,000", "3,000")


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        ("forbidden", "kernel.perf_event_paranoid=1"),
        ("absent", "virtual machines have them only"),
        ("unasked", "`hardware_counters = true`"),
    ],
)
def test_what_was_not_counted_is_said_with_how_to_get_it(tmp_path: Path, why: str, advice: str):
    run = run_of(tmp_path, cell_of({"net": PLAIN}))
    for launch in run.launches:
        forget_hashes(launch.directory)
        path = launch.directory / "launch.json"
        told = json.loads(path.read_text())
        missing = {"counters": ["cycles"], "why": why, "detail": "perf_event_open: no", "first_rank": 0, "ranks": 2}
        told["header"]["not_counted"] = [missing]
        path.write_text(json.dumps(told))
    (line,) = [one for one in costs.lines(analyse([Run.open(run.path)])) if one.startswith("Not counted")]
    assert line.startswith("Not counted: cycles (perf_event_open: no); ")
    assert advice in line


def test_a_run_without_counters_has_no_chapter(tmp_path: Path):
    plain = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"net": 20_000.0}, samples=20)
    findings = analyse([run_of(tmp_path, plain, blocks=3)])
    assert "costs" not in findings.chapters
    assert "not-counted" not in findings.chapters


def test_a_launch_that_lacks_a_counter_is_left_out_of_it_and_not_taken_for_0(tmp_path: Path):
    findings = analyse([run_of(tmp_path, cell_of({"net": replace(PLAIN, machine={Counter.INTERRUPTS: 10})}))])
    (one,) = costs_of(findings)
    assert one.machine_busy is None
    assert Counter.SOFTIRQS not in one.per_message
    assert one.events == {Counter.TCP_RETRANSMISSIONS: 0}
