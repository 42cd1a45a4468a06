"""The sentence, the effects and the warnings: what they say, and what they must not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fabricbench.analysis import Findings, analyse
from fabricbench.analysis.caution import CHECKS
from fabricbench.analysis.findings import Grade, Severity, Verdict
from fabricbench.analysis.phrases import MOST_WORDS
from fabricbench.analysis.wording import how_much
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.quantity import enumeration, listed
from fabricbench.record.lines import CellFailed, FailureCode
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.reading import Record
from support.synthetic_run import Noise, SyntheticCell, ladder_cells

from .conftest import MakeRun, two

Cells = Sequence[SyntheticCell]


def texts(findings: Findings, severity: Severity | None = None) -> str:
    return "\n".join(f"{one.subject}: {one.text}" for one in findings.warnings if severity in (None, one.severity))


def test_a_fabric_that_wins_is_said_to_in_absolute_values(make_run: MakeRun):
    headline = analyse([make_run(two(1 / 3.1))]).headline
    assert headline.sentence == (
        "other is faster: small MPI messages 3.1 times quicker (39 instead of 120 µs), streams 3.1 times "
        "(257 instead of 83 Mbit/s)."
    )
    assert headline.detail.startswith(
        "Over MPI and TCP: other faster in 12 of 12 sizes; in their geometric mean other is "
    )
    assert [effect.what for effect in headline.effects] == [
        "MPI round trip, 64 B",
        "MPI throughput, 16 KiB",
        "TCP round trip, 64 B",
        "TCP throughput, 16 KiB",
    ]
    assert {effect.grade for effect in headline.effects} == {Grade.CLEAR}
    assert headline.effects[0].pairs[0].words == "3.09 times as fast: 39 instead of 120 µs"
    assert not headline.in_doubt


def test_layers_that_users_do_not_meet_explain_and_never_lead(make_run: MakeRun):
    run = make_run(two(lambda cell: 1.0 if cell.layer in (Layer.TCP, Layer.MPI) else 0.3))
    headline = analyse([run]).headline
    assert "faster" not in headline.sentence.removesuffix("is faster.")
    assert headline.sentence.startswith("Not enough data")
    assert {effect.what.split(" ")[0] for effect in headline.more_effects} == {"UDP", "raw"}


def test_layers_below_lead_where_nothing_else_was_measured_and_are_named(make_run: MakeRun):
    run = make_run([cell for cell in two(0.3) if cell.layer is Layer.UDP])
    sentence = analyse([run]).headline.sentence
    assert sentence.startswith("other is faster: small UDP messages 3.4 times quicker (24")
    assert "every" not in sentence


def test_small_differences_read_as_percentages(make_run: MakeRun):
    effects = analyse([make_run(two(1.10))]).headline.effects
    assert "% less time: 120 instead of 13" in effects[0].pairs[0].words
    assert " % more: " in effects[1].pairs[0].words


def test_one_layer_that_does_not_agree_is_counted_and_not_passed_over(make_run: MakeRun):
    run = make_run(two(lambda cell: 1.0 if cell.layer is Layer.TCP else 1.2))
    headline = analyse([run]).headline
    assert headline.sentence.startswith(
        "one is faster in 2 of 4 effects: small MPI messages 17 % less time (120 instead of 144"
    )
    assert headline.detail.startswith("Over MPI and TCP: one faster in 6, not settled in 6 of 12 sizes")


def test_latency_against_throughput_names_both(make_run: MakeRun):
    run = make_run(two(lambda cell: 0.8 if cell.metric is Metric.THROUGHPUT else 1.25))
    assert analyse([run]).headline.sentence == (
        "Faster: one for small MPI messages, 20 % less time (120 instead of 150 µs), other for MPI streams, 26 % more "
        "(104 instead of 83 Mbit/s)."
    )


SIZES = (64, 256, 1024, 4096, 16384)


@pytest.mark.slow
def test_a_crossing_in_what_users_meet_leads_with_the_measured_sizes_beside_it(make_run: MakeRun):
    run = make_run(two(lambda cell: 0.8 if cell.message_bytes < 2000 else 1.3, sizes=SIZES))
    assert analyse([run]).headline.sentence == (
        "It depends on the size: MPI messages are faster on other up to 1 KiB, on one from 4 KiB; other leads in 12 of 20 sizes."
    )


def test_a_crossing_between_sizes_far_apart_names_both_of_them(make_run: MakeRun):
    run = make_run(two(lambda cell: 0.8 if cell.message_bytes < 2000 else 1.3, sizes=(64, 16384)))
    assert analyse([run]).headline.sentence == (
        "It depends on the size: MPI messages are faster on other up to 64 B, on one from 16 KiB."
    )


def test_raw_frames_that_disagree_are_an_exception_and_not_the_answer(make_run: MakeRun):
    # The demo opened with "It depends on the message size: in frame throughput fast-ethernet is faster below about 88 B".
    run = make_run(
        two(lambda cell: 1.24 if cell.layer is Layer.FRAME and cell.message_bytes == 64 else 0.5, sizes=SIZES)
    )
    headline = analyse([run]).headline
    assert headline.sentence.startswith("other is faster: small MPI messages 2.0 times quicker (60")
    assert headline.exceptions[0].startswith("raw frame round trips of 64 B, 2")
    assert len(headline.exceptions) == 2


@pytest.mark.slow
def test_equal_fabrics_are_equivalent_once_a_rare_slow_mode_would_have_shown(make_run: MakeRun):
    quiet = Noise(launch=0.002, sample=0.01)
    few = analyse([make_run(two(1.0), noise=quiet)]).headline
    assert few.sentence == "Not enough data to say whether other or one is faster."
    assert "neither" not in few.detail, "that would be a verdict"
    assert few.detail.startswith("Over MPI and TCP: one and other not settled in 12 of 12 sizes.")
    many = analyse([make_run(two(1.0), "many", noise=quiet, blocks=33)]).headline
    assert many.sentence == "other and one are equivalent within 2 % in what users meet."
    assert all(effect.pairs[0].words.startswith("equivalent: ") for effect in many.effects)


@pytest.mark.slow
def test_a_lead_that_may_be_smaller_than_matters_is_called_a_lead(make_run: MakeRun):
    headline = analyse([make_run(two(1.024), noise=Noise(launch=0.012, sample=0.02), blocks=30)]).headline
    assert headline.sentence.startswith("one is ahead, perhaps by less than 2 %:")
    assert " faster" not in headline.sentence


@pytest.mark.slow
def test_noise_is_called_not_enough_data_with_the_blocks_it_would_take(make_run: MakeRun):
    headline = analyse([make_run(two(1.0), noise=Noise(launch=0.01, sample=0.05), blocks=12)]).headline
    assert headline.sentence == "Not enough data to say whether other or one is faster."
    assert any("more blocks would settle" in step for step in headline.next_steps)
    assert {effect.grade for effect in headline.effects} == {Grade.OPEN}


def test_three_blocks_of_which_one_lacks_a_half_are_two_pairs(make_run: MakeRun):
    headline = analyse([make_run(two(3.0), blocks=3, missing=["b01-one"])]).headline
    assert headline.sentence.endswith("it takes 5 whole pairs at least.")
    assert "3 blocks, 2 whole pairs" in headline.conditions
    assert "geometric means" in headline.conditions


def test_two_launches_are_never_enough(make_run: MakeRun):
    findings = analyse([make_run(two(3.0), blocks=2)])
    assert findings.headline.sentence.endswith("it takes 5 whole pairs at least.")
    assert "too few" in texts(findings, Severity.WARNING)


def three(make_run: MakeRun, third: float) -> Findings:
    """`other` 3.1 times faster than `one`; `third` that much faster."""
    cells = [
        replace(
            cell,
            medians={
                **cell.medians,
                "third": cell.medians["one"]
                * (1.0 if cell.layer is Layer.MEMORY else third if cell.pattern is Pattern.STREAM else 1 / third),
            },
        )
        for cell in two(1 / 3.1)
    ]
    return analyse([make_run(cells, f"three{third}")])


@pytest.mark.slow
def test_of_three_fabrics_every_pair_is_compared_and_the_order_told(make_run: MakeRun):
    findings = three(make_run, 2.0)
    pairs = {(one.fabric_a, one.fabric_b) for one in findings.cells}
    assert pairs == {("one", "other"), ("one", "third"), ("other", "third")}
    headline = findings.headline
    assert headline.sentence.startswith(
        "other is fastest of 3, against the next best: small MPI messages 1.6 times quicker (39 "
    )
    assert headline.effects[0].ranks == (("other",), ("third",), ("one",))
    assert "MPI round trip, 64 B: other, then third, then one." in headline.detail


@pytest.mark.slow
def test_fabrics_that_cannot_be_told_apart_share_a_rank(make_run: MakeRun):
    headline = three(make_run, 3.1).headline
    assert [set(tier) for tier in headline.effects[0].ranks] == [{"other", "third"}, {"one"}]
    assert headline.sentence.startswith("No single fastest: ")


@pytest.mark.slow
def test_the_headline_is_a_sentence_that_is_read_at_a_glance(make_run: MakeRun):
    runs = [make_run(two(factor), f"run{number}") for number, factor in enumerate((1 / 3.1, 1.0, 1.1, 1.015))]
    assert max(len(analyse([run]).headline.sentence.split()) for run in runs) <= MOST_WORDS


@pytest.mark.slow
def test_the_ratio_shown_is_the_ratio_of_the_levels_shown(make_run: MakeRun):
    # Medians beside a ratio of geometric means (739 and 740, ratio 1.081) looked like an error.
    findings = analyse([make_run(two(1.3), noise=Noise(launch=0.2, sample=0.02))])
    for one in findings.cells:
        assert one.value_b / one.value_a == pytest.approx(one.ratio)
    for effect in findings.headline.effects:
        (a, b), pair = [reading.value for reading in effect.readings], effect.pairs[0]
        assert pair.times == pytest.approx(a / b if effect.metric.is_lower_better else b / a)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1 / 3.1, 1 / 3.14, 1 / 3.05, "3.10 times shorter (3.05 to 3.14)"),
        (1 / 114, 1 / 1091, 1 / 12, "114 times shorter (12.0 to 1091)"),
        (1 / 12.61, 1 / 12.62, 1 / 12.60, "12.61 times shorter (12.60 to 12.62)"),
        (1 / 1.403, 1 / 1.4032, 1 / 1.4028, "28.72 % shorter (28.71 to 28.73)"),
        (0.9, None, None, "10.0 % shorter"),
    ],
)
def test_an_interval_keeps_the_digits_that_tell_its_ends_apart(
    make_run: MakeRun, ratio: float, low: float | None, high: float | None, words: str
):
    cell = next(one for one in analyse([make_run(two(1 / 3.1))]).cells if one.metric is Metric.ROUND_TRIP_TIME)
    bounds = {"ratio": ratio, "ratio_low": low, "ratio_high": high, "verdict": Verdict.B_FASTER}
    assert how_much(cell.model_copy(update=bounds)) == words


def test_memory_never_makes_a_headline_but_warns_when_it_differs(make_run: MakeRun):
    cells = [
        replace(
            cell,
            medians={
                "one": cell.medians["one"],
                "other": cell.medians["one"] * (1.2 if cell.layer is Layer.MEMORY else 1.0),
            },
        )
        for cell in two(1.0)
    ]
    findings = analyse([make_run(cells)])
    assert " faster" not in findings.headline.sentence.removesuffix("is faster.")
    assert "memory control: memory, which no fabric changes, differs" in texts(findings, Severity.WARNING)
    assert findings.headline.in_doubt is False  # nothing is said that could be doubted


def test_conditions_say_how_much_was_measured_and_that_it_is_emulated(make_run: MakeRun):
    conditions = analyse([make_run(two(1.1), invalid=["b00-one"])]).headline.conditions
    assert "8 blocks, 7 whole pairs, 15 valid launches" in conditions
    assert "all fabrics emulated on one machine" in conditions
    assert "1 invalid launch left out" in conditions


@pytest.mark.slow
def test_invalid_failed_missing_and_lossy_are_told(make_run: MakeRun):
    refused = CellFailed(
        cell=99,
        layer=Layer.FRAME,
        pattern=Pattern.PINGPONG,
        message_bytes=64,
        code=FailureCode.PERMISSION,
        reason="raw frames need CAP_NET_RAW",
    )
    cells = [
        replace(cell, lost=40 if cell.layer is Layer.UDP and cell.pattern is Pattern.STREAM else 0) for cell in two(1.1)
    ]
    findings = analyse([make_run(cells, invalid=["b03-other"], missing=["b06-one"], failed=[refused])])
    assert "launch b03-other: left out of everything here: the traffic went another way" in texts(
        findings, Severity.INVALID
    )
    warnings = texts(findings, Severity.WARNING)
    assert "1 planned launch without data (b06-one)" in warnings
    assert "a verdict before that is an interim look, for which its level does not allow" in warnings
    assert "frame pingpong of 64 B could not be measured: raw frames need CAP_NET_RAW" in warnings
    assert "messages were lost in 3 stream tests" in warnings
    assert "from seed 1" in texts(findings, Severity.NOTE)
    assert findings.warnings[0].severity is Severity.INVALID


@pytest.mark.slow
def test_a_drift_over_blocks_is_told(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch):
    findings = analyse([make_run(two(1.0), noise=Noise(launch=0.002, sample=0.01), blocks=10)])
    assert "drift" not in texts(findings)
    import support.synthetic_run as synthetic

    plain = synthetic.synthetic_record

    def slower_each_block(launch: PlannedLaunch, cells: Cells, *rest: Any, **options: Any) -> Record:
        factor = 1.0 + 0.01 * launch.block
        drifted = [
            replace(
                c,
                medians={
                    n: m * factor if c.metric is Metric.ROUND_TRIP_TIME else m / factor for n, m in c.medians.items()
                },
            )
            for c in cells
        ]
        return plain(launch, drifted, *rest, **options)

    monkeypatch.setattr(synthetic, "synthetic_record", slower_each_block)
    drifting = analyse([make_run(two(1.0), "drifting", noise=Noise(launch=0.002, sample=0.01), blocks=10)])
    assert re.search(r"one, tcp.*: a drift of \+[89]\.", texts(drifting, Severity.WARNING))
    assert "the two fabrics did not drift alike" not in texts(drifting)
    assert drifting.headline.sentence.startswith("Not enough data")


def test_a_disturbed_launch_is_named_and_kept(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch):
    import support.synthetic_run as synthetic

    plain = synthetic.synthetic_record

    def one_disturbed(launch: PlannedLaunch, cells: Cells, *rest: Any, **options: Any) -> Record:
        factor = 1.3 if launch.launch_id == "b04-other" else 1.0
        return plain(
            launch,
            [
                replace(c, medians={n: m * factor for n, m in c.medians.items()})
                for c in cells
                if c.metric is Metric.ROUND_TRIP_TIME
            ],
            *rest,
            **options,
        )

    monkeypatch.setattr(synthetic, "synthetic_record", one_disturbed)
    findings = analyse([make_run(two(1.0))])
    assert "launch b04-other: its tests are +3" in texts(findings, Severity.WARNING)
    assert {one.launches for one in findings.cells} == {8}


def test_a_ladder_out_of_order_is_told(make_run: MakeRun):
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, 64, {"one": trip})
        for layer, trip in ((Layer.UDP, 60e3), (Layer.TCP, 40e3))
    ]
    assert "the tcp round trip is shorter than udp's below it, by 2" in texts(
        analyse([make_run(cells)]), Severity.WARNING
    )


def test_failures_that_differ_in_numbers_only_are_one_line_with_their_range(make_run: MakeRun):
    failed = [
        CellFailed(
            cell=100 + number,
            layer=Layer.MPI,
            pattern=Pattern.BCAST,
            message_bytes=8 << number,
            code=FailureCode.TIMEOUT,
            reason=f"rank {number % 2} on n{number}: in only {number} of {70 + number} calls did all begin within 9 ns",
        )
        for number in range(6)
    ]
    findings = analyse([make_run([SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 5e4})], failed=failed)])
    (told,) = [one.text for one in findings.warnings if "could not be measured" in one.text]
    assert told.startswith("6 tests (mpi bcast of ")
    assert told.endswith(
        "and 2 more) could not be measured: in only 0 to 5 of 70 to 75 calls did all begin within 9 ns"
    )


def test_a_switch_that_was_late_is_told_before_what_could_not_be_measured():
    names = [check.__name__ for check in CHECKS]
    assert names.index("emulated") < names.index("failed_cells")
    assert names.index("beyond_the_wire") < names.index("failed_cells")


def test_a_rate_that_the_wire_cannot_carry_is_told(make_run: MakeRun):
    possible, impossible = (
        SyntheticCell(Layer.TCP, Pattern.STREAM, size, {"one": rate}) for size, rate in ((64, 90e6), (1024, 150e6))
    )
    warnings = texts(analyse([make_run([possible, impossible])]), Severity.WARNING)
    assert "tcp throughput at 1 KiB is 16" in warnings
    assert "64 B" not in warnings


def test_samples_too_short_for_the_clock_are_told(make_run: MakeRun):
    cells = [SyntheticCell(Layer.MEMORY, Pattern.PINGPONG, 64, {"one": 500.0})]
    assert "reading the clock takes more than 1 %" in texts(analyse([make_run(cells)]), Severity.NOTE)


@pytest.mark.slow
def test_two_runs_are_called_what_they_are(make_run: MakeRun):
    findings = analyse([make_run(two(1.0), "before"), make_run(two(1.0), "after", seed=5)])
    assert "whatever else differed between the two sessions is in the ratio" in texts(findings, Severity.WARNING)
    assert findings.title == "one and other, before and after"
    assert findings.headline.sentence == "No change is shown, and none is ruled out."
    assert "One run a side cannot tell a change from what else differed" in findings.headline.detail
    assert "hold together" not in findings.headline.conditions  # no promise that does not hold
    assert any("Welch" in paragraph for paragraph in findings.method)


def test_the_method_names_its_sources_and_the_levels_that_were_used(make_run: MakeRun):
    method = "\n".join(analyse([make_run(two(1.0), blocks=3)], margin=0.03, confidence=0.99).method)
    for source in ("Hoefler and Belli", "Benjamini and Hochberg", "Schuirmann", "Hettmansperger"):
        assert source in method
    assert "at most 3 %, the margin that matters" in method
    assert "99 %" in method


def test_ladder_cells_of_two_real_rates_favour_the_faster_wire(make_run: MakeRun):
    cells = ladder_cells({"fast-ethernet": 100e6, "myrinet": 1280e6})
    findings = analyse([make_run([cell for cell in cells if cell.layer is not Layer.MEMORY])])
    assert findings.headline.sentence.startswith("myrinet is faster: ")


def test_a_warning_that_both_fabrics_share_is_told_once_and_the_gravest_first(make_run: MakeRun):
    warnings = analyse([make_run(two(1.1), blocks=4)]).warnings
    assert [one.subject for one in warnings if "too few for an interval" in one.text] == ["one and other"]
    gravity = [list(Severity).index(one.severity) for one in warnings]
    assert gravity == sorted(gravity)
    assert len(set(gravity)) > 1
    assert len({(one.severity, one.text) for one in warnings}) == len(warnings)


def test_an_effect_no_larger_than_what_the_machine_changed_by_is_in_doubt_in_the_headline(make_run: MakeRun):
    cells = [
        replace(cell, medians={"one": cell.medians["one"], "other": cell.medians["one"] * 1.3})
        if cell.layer is Layer.MEMORY and cell.metric.is_lower_better
        else cell
        for cell in two(1 / 1.2)
    ]
    headline = analyse([make_run(cells)]).headline
    assert headline.sentence.startswith("other seems faster: ")
    assert headline.in_doubt
    first = headline.evidence[0]
    assert first.words.startswith("May change: that other is faster in MPI round trip, 64 B; ")
    assert "the machine changed between the launches" in "; ".join(map(str, first.doubts))


def test_a_list_of_names_that_have_commas_is_parted_by_semicolons():
    assert [enumeration(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert enumeration(["a, x", "b, x", "c"], "or") == "a, x; b, x or c"
    assert listed(["a, x", "b"]) == "a, x; b"
