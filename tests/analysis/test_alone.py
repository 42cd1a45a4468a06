"""What is said of one fabric, which nothing is compared with: values with intervals, shares of the wire, doubts; no winner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.alone import sentence_of_one
from fabricbench.analysis.findings import Findings, Grade
from fabricbench.model import Layer, Pattern, Receive
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

GIGABIT = {"gigabit": 1e9}
LIBRARY = Receive.LIBRARY


def ping(layer: Layer, ns: float, receive: Receive = Receive.BLOCKING) -> SyntheticCell:
    return SyntheticCell(layer, Pattern.PINGPONG, 64, {"gigabit": ns}, receive=receive)


def stream(layer: Layer, bit_s: float, receive: Receive = Receive.BLOCKING, **more: int) -> SyntheticCell:
    rate = SyntheticCell(layer, Pattern.STREAM, 65536, {"gigabit": bit_s}, receive=receive, messages_per_sample=16)
    return replace(rate, samples=40, **more)


def found(tmp_path: Path, *cells: SyntheticCell, blocks: int = 8, has_wire: bool = True) -> Findings:
    testbed = synthetic_testbed(GIGABIT) if has_wire else None
    return analyse([write_synthetic_run(tmp_path / "run", cells=cells, blocks=blocks, testbed=testbed)])


@pytest.mark.slow
def test_the_answer_is_what_the_fabric_carries_and_how_fast_it_answers(tmp_path: Path):
    findings = found(
        tmp_path,
        ping(Layer.TCP, 90e3),
        stream(Layer.TCP, 8e8),
        ping(Layer.MPI, 106e3, LIBRARY),
        stream(Layer.MPI, 9e8, LIBRARY),
    )
    rate, trip = (
        next(one for one in findings.headline.effects if one.what == what)
        for what in ("MPI throughput, 64 KiB", "MPI round trip, 64 B")
    )
    (carried,), (answered,) = rate.readings, trip.readings
    assert carried.low is not None
    assert carried.high is not None
    assert carried.low < 9e8 < carried.high
    assert answered.low is not None
    assert answered.high is not None
    assert answered.low < 106e3 < answered.high
    share = carried.share_of_line_rate
    assert share is not None
    assert share.value == pytest.approx((carried.value or 0) / 1e9)
    assert share.low == pytest.approx(carried.low / 1e9)
    sentence = findings.headline.sentence
    assert sentence.startswith("gigabit carries ")
    assert " over MPI, " in sentence
    assert f"{100 * share.value:.3g} % of its line rate, and answers a small message in" in sentence
    assert sentence.count(" to ") == 2, "each value has its interval"


def test_without_a_wire_there_is_no_share_of_it(tmp_path: Path):
    findings = found(tmp_path, ping(Layer.TCP, 90e3), stream(Layer.TCP, 8e8), has_wire=False)
    assert "line rate" not in findings.headline.sentence
    assert all(one.readings[0].share_of_line_rate is None for one in findings.headline.effects)


def test_of_what_cannot_be_right_the_layer_below_tells(tmp_path: Path):
    findings = found(
        tmp_path,
        ping(Layer.TCP, 90e3),
        stream(Layer.TCP, 8e8),
        ping(Layer.MPI, 106e3, LIBRARY),
        stream(Layer.MPI, 2e9, LIBRARY),
    )
    sentence = findings.headline.sentence
    assert " over TCP, " in sentence
    assert "answers a small MPI message in " in sentence
    assert findings.headline.evidence[0].words == "Emulated on one machine: shows the links asked for, not real cards."
    assert any(one.words == "Cannot be right: MPI throughput, 64 KiB." for one in findings.headline.evidence)


def test_a_doubted_value_is_told_as_one_and_why(tmp_path: Path):
    findings = found(tmp_path, ping(Layer.TCP, 90e3), stream(Layer.TCP, 8e8, fails_in=frozenset({1, 2})), blocks=12)
    doubted = next(one for one in findings.headline.effects if one.what == "TCP throughput, 64 KiB")
    assert doubted.grade is Grade.DOUBTFUL
    assert findings.headline.sentence.startswith("gigabit seems to carry ")
    assert findings.headline.in_doubt
    (line,) = [one for one in findings.headline.evidence if one.words.startswith("In doubt: ")]
    assert line.words == "In doubt: TCP throughput, 64 KiB."
    assert "2 of 12" in " ".join(map(str, line.doubts))


def test_too_few_launches_give_no_interval(tmp_path: Path):
    sentence = found(tmp_path, ping(Layer.TCP, 90e3), blocks=2).headline.sentence
    assert sentence.startswith("gigabit answers a small TCP message in ")
    assert " to " not in sentence


def test_where_nothing_that_users_meet_was_measured_that_is_said():
    assert sentence_of_one("gigabit", ())[0] == "gigabit alone was measured, and nothing that users meet on it."


def test_the_method_says_nothing_of_comparing(tmp_path: Path):
    findings = found(tmp_path, ping(Layer.TCP, 90e3), stream(Layer.TCP, 8e8))
    text = " ".join(findings.method)
    assert "One fabric is compared with nothing." in text
    assert not any(word in text for word in ("Two fabrics are compared", "Verdicts:", "Grades:", "crossover"))
