"""Where the fabric that wins is slower: how much, and within what."""

from __future__ import annotations

import pytest

from fabricbench.analysis.single_sizes import exception_of
from support.example_findings import small_findings


@pytest.mark.parametrize(
    ("times", "low", "high", "said"),
    [
        (1.35, 1.2, 1.5, "35 % slower (20 to 50 %)"),
        (1 / 1.35, 1 / 1.5, 1 / 1.2, "35 % slower (20 to 50 %)"),
        (1.35, 0.61, 2.99, "35 % slower"),
        (1 / 1.35, 1 / 2.99, 1 / 0.61, "35 % slower"),
        (1.35, None, None, "35 % slower"),
    ],
)
def test_an_exception_has_its_interval_where_that_leaves_out_1(
    times: float, low: float | None, high: float | None, said: str
):
    effect = next(one for one in small_findings().headline.effects if one.metric.is_time)
    pair = effect.pairs[0].model_copy(update={"times": times, "low": low, "high": high})
    assert exception_of(effect, pair) == f"{effect.what}, {said}"
