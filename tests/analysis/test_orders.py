"""The sentence of who gains most claims no order that was not tested, and no gain of what was shown to lose."""

from __future__ import annotations

import numpy as np

from fabricbench.analysis.order_of_gains import MeasuredGain, joint_confidence, leads, settled
from fabricbench.chapters.orders import Gain, order_line
from fabricbench.statistics.ratios import Rounding


def test_an_order_is_settled_only_where_all_before_gain_more_than_all_after():
    wave = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 1.5, -1.5])
    quiet = [MeasuredGain(logs) for logs in (2.0 + wave, 1.0 + wave, 1.0 - wave)]
    joint = joint_confidence(3, 0.95)
    assert settled(quiet, joint) == [True, False, False]
    assert [lead is not None for lead in leads(quiet, joint)] == [True, True, False]
    noisy, last = MeasuredGain(1.3 + 100 * wave), MeasuredGain(0.5 - wave)
    # The noisy one is not told apart from the next, nor from the last, which the next is told apart from.
    assert settled([noisy, quiet[1], last], joint) == [False, False, False]


def test_gains_that_printed_digits_cannot_tell_apart_have_no_order():
    fine = [MeasuredGain(np.full(6, level)) for level in (0.05, 0.04)]
    coarse = [MeasuredGain(one.logs, Rounding.of(0.02)) for one in fine]
    assert settled(fine, 0.95) == [True, False]
    assert settled(coarse, 0.95) == [False, False]


def test_what_does_not_pair_has_no_order():
    one = MeasuredGain(np.ones(6))
    assert leads([None, one], 0.95) == [None, None]
    assert settled([None, one], 0.95) == [False, False]
    assert leads([], 0.95) == []
    assert settled([], 0.95) == []


def test_the_sentence_says_who_gains_who_is_not_shown_to_and_who_loses():
    gains = [
        Gain("FT", 3.0, "new", is_settled=True),
        Gain("CG", 1.5, "new", is_settled=False),
        Gain("EP", 0.99, None, is_settled=False),
    ]
    assert order_line(gains, "new", "old") == (
        "FT (3.00 times) gains most by new over old; CG (1.50 times) and EP (0.990 times) the least, not told apart."
    )
    unsettled = [Gain("FT", 1.5, "new", False), Gain("MG", 1.0, None, False), Gain("EP", 0.8, "old", False)]
    assert order_line(unsettled, "new", "old") == (
        "FT (1.50 times) gains by new over old (their order is not settled); of MG (1.000 times) no gain that matters is "
        "shown; EP (0.800 times) is faster with old."
    )


def test_one_alone_or_a_first_that_does_not_gain_has_no_sentence():
    assert order_line([Gain("FT", 3.0, "new", is_settled=False)], "new", "old") == ""
    assert order_line([Gain("FT", 1.0, None, True), Gain("EP", 0.8, "old", False)], "new", "old") == ""
