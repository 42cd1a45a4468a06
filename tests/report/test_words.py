"""The words that every format shares."""

from __future__ import annotations

import pytest

from fabricbench.analysis.findings import Comparison, Crossover, Doubt, Interval, Verdict
from fabricbench.cli.output import value_text
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    WithInterval,
    advantage,
    crossover_words,
    effect_words,
    factor_words,
    interval_words,
    lost_words,
    p_words,
    place_words,
    probe_words,
    range_words,
    rate_share_words,
    share_interval_words,
    share_words,
    size_words,
    struck_words,
    times_words,
    typographic,
    value_words,
    verdict_words,
)
from support.cell_keys import cell_key
from support.example_findings import MARGIN, example_findings


def comparison(metric: Metric, verdict: Verdict, ratio: float, low: float | None, high: float | None) -> Comparison:
    base = next(cell for cell in example_findings().cells if cell.metric is metric)
    return base.model_copy(
        update={"ratio": ratio, "ratio_low": low, "ratio_high": high, "verdict": verdict, "more_blocks_needed": None}
    )


def test_a_shorter_round_trip_and_a_higher_throughput_both_count_as_faster():
    time = comparison(Metric.ROUND_TRIP_TIME, Verdict.B_FASTER, 0.5, 0.4, 0.8)
    assert advantage(time).value == 2.0
    assert (advantage(time).low, advantage(time).high) == (1.25, 2.5)
    rate = comparison(Metric.THROUGHPUT, Verdict.B_FASTER, 2.0, 1.25, 2.5)
    assert effect_words(time) == effect_words(rate) == "2.00 × (1.25 to 2.50)"


def test_an_effect_is_told_from_the_faster_fabric():
    assert effect_words(comparison(Metric.ROUND_TRIP_TIME, Verdict.A_FASTER, 4.0, 2.0, 5.0)) == "4.00 × (2.00 to 5.00)"
    assert (
        effect_words(comparison(Metric.THROUGHPUT, Verdict.NOT_ENOUGH_DATA, 1.5, None, None)) == "1.50 × (no interval)"
    )


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.0061, "1.006"), (0.9512, "0.951"), (2.7, "2.70"), (9.996, "10.00"), (132.4, "132"), (0.05, "0.0500")],
)
def test_ratios_have_three_digits_and_more_near_1(ratio: float, words: str):
    assert times_words(ratio) == words


def test_too_little_data_says_how_much_more():
    short = comparison(Metric.THROUGHPUT, Verdict.NOT_ENOUGH_DATA, 1.0, 0.9, 1.1)
    assert verdict_words(short, MARGIN) == "not enough data"
    for blocks, words in ((1, "about 1 more block"), (6, "about 6 more blocks")):
        more = short.model_copy(update={"more_blocks_needed": blocks})
        assert verdict_words(more, MARGIN) == f"not enough data: {words}"


def test_ahead_says_that_it_may_be_by_less_than_matters_and_what_qualifies_a_verdict_stands_beside_it():
    ahead = comparison(Metric.THROUGHPUT, Verdict.B_AHEAD, 1.03, 1.01, 1.05)
    name = ahead.fabric_b
    assert verdict_words(ahead, MARGIN) == f"{name} ahead, perhaps by less than 2 %"
    same = comparison(Metric.THROUGHPUT, Verdict.EQUIVALENT, 1.0, 0.99, 1.01)
    noted = same.model_copy(update={"notes": (Doubt.of("would have missed a slow mode of up to 9.8 % of launches"),)})
    assert verdict_words(noted, MARGIN) == "equivalent; would have missed a slow mode of up to 9.8 % of launches"


def test_a_share_below_0_has_the_sign_of_every_other_number():
    assert [share_words(share) for share in (0.715, -0.014, None)] == ["71.5 %", "−1.4 %", NOTHING]


def test_a_share_that_no_wire_can_carry_is_called_impossible_where_it_stands():
    assert [rate_share_words(share) for share in (None, 0.994, 1.0, 9.495)] == [
        "–",
        "99.4 %",
        "100.0 %",
        "949.5 %, impossible",
    ]


def test_an_interval_names_its_unit_once():
    assert range_words(Metric.ROUND_TRIP_TIME, 70_904.0, 71_600.0) == "70.90 to 71.60 µs"
    assert range_words(Metric.ROUND_TRIP_TIME, 999.0, 1_010.0) == "0.999 to 1.010 µs"
    assert range_words(Metric.ROUND_TRIP_TIME, -1_898.0, 574.3) == "\N{MINUS SIGN}1.90 to 0.57 µs"
    assert range_words(Metric.THROUGHPUT, None, None) == "no interval: too few launches"
    point = Interval(value=94.1e6, low=None, high=None)
    assert interval_words(Metric.THROUGHPUT, point) == "94.1 Mbit/s (no interval)"


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (27_800.0, 25_590.0, 28_950.0, "27.8 µs (25.6 to 28.9 µs)"),
        (123_400.0, 119_900.0, 124_800.0, "123.4 µs (119.9 to 124.8 µs)"),
        (150_000.0, 90_000.0, 310_000.0, "150 µs (90 to 310 µs)"),
        (68_300.0, 68_300.0, 68_300.0, "68.300 µs (68.300 to 68.300 µs)"),
    ],
)
def test_a_value_has_the_digits_that_its_interval_deserves(value: float, low: float, high: float, words: str):
    assert interval_words(Metric.ROUND_TRIP_TIME, Interval(value=value, low=low, high=high)) == words


@pytest.mark.parametrize(
    ("value", "low", "high", "is_signed", "words"),
    [
        (0.9731, 0.9693, 0.9768, False, "97.31 % (96.93 to 97.68 %)"),
        (0.12, 0.101, 0.139, True, "+12.0 % (+10.1 to +13.9 %)"),
        (-0.42, None, None, True, "−42.0 % (no interval)"),
        (0.0, 0.0, 0.0, False, "0.00 % (0.00 to 0.00 %)"),
    ],
)
def test_a_share_has_its_interval_and_a_change_its_sign(
    value: float, low: float | None, high: float | None, is_signed: bool, words: str
):
    assert share_interval_words(Interval(value=value, low=low, high=high), is_signed=is_signed) == words


def test_an_impact_is_told_as_a_factor():
    assert factor_words(Interval(value=3.1, low=3.05, high=3.14)) == "3.10 × (3.05 to 3.14)"
    assert factor_words(Interval(value=1.001, low=None, high=None)) == "1.001 × (no interval)"
    assert factor_words(None) == "–"


def test_a_layer_that_is_no_slower_than_the_one_below_loses_nothing():
    assert [lost_words(share) for share in (None, -0.02, 0.0, 0.023)] == ["–", "none", "none", "2.3 %"]


@pytest.mark.parametrize(
    ("size", "words"),
    [(64, "64 B"), (1472.0, "1472 B"), (22.6, "23 B"), (3277.5, "3.2 KiB"), (65536, "64 KiB"), (None, "all sizes")],
)
def test_sizes_read_as_people_write_them(size: float | None, words: str):
    assert size_words(size) == words


def test_small_p_values_are_bounded_and_units_are_set_with_their_signs():
    assert (p_words(0.00002), p_words(0.0312), p_words(None)) == ("< 0.001", "0.031", "–")
    assert (
        typographic("3.10 x faster: 71 us, not 5 xylophones or 3 users")
        == "3.10 × faster: 71 µs, not 5 xylophones or 3 users"
    )


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        (Metric.ROUND_TRIP_TIME, 71_200.0, "71.2 µs"),
        (Metric.OPERATION_TIME, 71_200.0, "71.2 µs"),
        (Metric.THROUGHPUT, 94.1e6, "94.1 Mbit/s"),
        (Metric.MESSAGE_RATE, 1.25e6, "1.25 Mmessage/s"),
        (Metric.MESSAGE_RATE, 840.0, "840 message/s"),
    ],
)
def test_each_metric_has_its_own_units(metric: Metric, value: float, words: str):
    assert value_words(metric, value) == words
    assert value_text(value, metric, metric.unit) == words
    unit = words.split(" ")[1]
    assert range_words(metric, 0.99 * value, 1.01 * value).endswith(unit)


def test_every_pattern_has_words():
    for pattern, facts in PATTERNS.items():
        if facts.family is not Family.WORKLOAD:
            setup = ", 2 ranks" if facts.most_ranks is None else ""
            assert probe_words(cell_key(Layer.MPI, pattern)) == f"mpi {PATTERN_WORDS[pattern]}{setup}"
    assert len(set(PATTERN_WORDS.values())) == len(Pattern)


def test_a_crossover_is_told_by_the_sizes_beside_it_and_by_a_point_only_where_a_model_earned_one():
    bracket = Crossover(
        layer=Layer.TCP,
        pattern=Pattern.PINGPONG,
        receive=Receive.BLOCKING,
        metric=Metric.ROUND_TRIP_TIME,
        fabric_a="ethernet",
        fabric_b="myrinet",
        lower_bytes=64,
        upper_bytes=512,
        faster_below="ethernet",
        faster_above="myrinet",
    )
    assert crossover_words(bracket) == "tcp ping-pong, blocking: myrinet overtakes ethernet between 64 B and 512 B"
    earned = bracket.model_copy(
        update={"message_bytes": 212.4, "low": 181.0, "high": 249.0, "model": "Hockney", "worst_misfit": 0.0131}
    )
    assert place_words(earned) == "at about 210 B (180 B to 250 B; Hockney's model, within 1.3 %)"


def test_a_value_and_its_interval_stay_apart_in_one_text():
    text = interval_words(Metric.ROUND_TRIP_TIME, Interval(value=71.2e3, low=70.9e3, high=74.6e3))
    assert isinstance(text, WithInterval)
    assert (text.value, text.interval, str(text)) == ("71.2 µs", "70.9 to 74.6 µs", "71.2 µs (70.9 to 74.6 µs)")
    assert text.after("predicted (by bytes) ").value == "predicted (by bytes) 71.2 µs"
    assert not isinstance(struck_words("949.5 %", is_impossible=True), WithInterval), "a remark is no interval"
    assert factor_words(Interval(value=2.0, low=None, high=None)).interval == "no interval"
