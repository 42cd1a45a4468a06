"""The decision in words: no more certain than its numbers, and silent where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from fabricbench.analysis.findings import (
    BreakEven,
    BreakEvenKind,
    DecisionFindings,
    FabricScore,
    Findings,
    Interval,
    LeftOut,
    SystemCost,
    WeighedTest,
)
from fabricbench.chapters.decision import DECISION, decision_lines, decision_tables
from fabricbench.report import markdown
from fabricbench.report.first_screen import build_screen
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal
from support.chapter_rows import with_rows
from support.example_findings import small_findings

ONE = Interval(value=1, low=1, high=1)
COST = SystemCost(nodes=40_000, fabric=640, fixed=0, energy=0)


def findings(**options: Any) -> Findings:
    """Only a decision: that is all these tables look at."""
    values: dict[str, Any] = {
        "tests": (WeighedTest(what="IS.W on 4 ranks", share=1, times=(ONE, Interval(value=2, low=1.9, high=2.1))),),
        "left_out": (LeftOut(what="tcp throughput at 64 KiB", why="no data on atm"),),
        "has_weights": True,
        "blocks": 6,
        "fabrics": (
            FabricScore(fabric="ethernet", score=ONE, probability_first=0.0001, places=(2, 2)),
            FabricScore(
                fabric="myrinet", score=Interval(value=2, low=1.9, high=2.1), probability_first=0.9999, places=(1, 1)
            ),
        ),
        "ranks": (("myrinet",), ("ethernet",)),
        "nodes": 16,
        "currency": "EUR",
        "confidence": 0.95,
    }
    return Findings.model_construct(chapters={DECISION.name: (DecisionFindings(**(values | options)),)})


def lines(**options: Any) -> str:
    return "\n".join(decision_lines(findings(**options)))


def test_who_is_first_is_told_with_a_probability_and_what_that_is_of():
    text = lines()
    assert "myrinet is first with probability above 0.99, 2.00 × (1.90 to 2.10) as good as ethernet." in text
    assert "Left out for all fabrics: tcp throughput at 64 KiB (no data on atm)." in text
    assert "they say nothing about other nodes or loads" in text


def test_fabrics_that_no_test_separates_are_not_put_in_an_order():
    alike = {name: FabricScore(fabric=name, score=ONE, probability_first=0.5, places=(1, 2)) for name in ("a", "b")}
    text = lines(ranks=(("b", "a"),), fabrics=tuple(alike.values()))
    assert "b and a share the first place, no test separates them at 95 %" in text
    assert "is first with probability" in text
    # a is told from c, c from d, and a not from d: d cannot be first for all that
    beaten = [
        FabricScore(fabric=name, score=ONE, probability_first=0.0, places=places)
        for name, places in (("c", (2, 3)), ("d", (3, 4)))
    ]
    text = lines(ranks=(("b", "a", "d"), ("c",)), fabrics=(*alike.values(), *beaten))
    assert "b and a share the first place" in text


def test_without_costs_there_is_no_word_of_money():
    (_, scores), *_ = decision_tables(findings())
    assert scores.columns == ("Fabric", "Geometric score, times ethernet (interval)", "Place", "First with probability")
    assert "cheapest" not in lines()
    assert "EUR" not in lines()


def test_what_the_same_work_costs_stands_beside_the_score():
    fabrics = (
        FabricScore(
            fabric="ethernet",
            score=ONE,
            probability_first=0.0,
            places=(2, 2),
            cost=COST,
            cost_of_work=ONE,
            probability_cheapest=0.3,
            cost_places=(1, 2),
        ),
        FabricScore(
            fabric="myrinet",
            score=Interval(value=2, low=1.9, high=2.1),
            probability_first=1.0,
            places=(1, 1),
            cost=COST.model_copy(update={"fabric": 38_000.0}),
            cost_of_work=Interval(value=0.97, low=0.9, high=1.02),
            probability_cheapest=0.7,
            cost_places=(1, 2),
        ),
    )
    options = {"fabrics": fabrics, "cost_ranks": (("myrinet", "ethernet"),)}
    assert "No test separates what the same work costs with myrinet and ethernet" in lines(**options)
    (_, scores), *_ = decision_tables(findings(**options))
    assert scores.rows[1][4:] == ("78,000 EUR", "0.970 × (0.900 to 1.020)", "1 to 2", "0.70")


def test_each_break_even_is_a_condition_with_its_interval():
    def said(kind: BreakEvenKind, value: Interval, **more: Any) -> str:
        one = BreakEven(kind=kind, fabric="myrinet", against="ethernet", value=value, **({"now": None} | more))
        return lines(break_evens=(one,))

    price = Interval(value=567, low=500, high=650)
    assert "pays if a node without it costs more than 567 EUR (500 to 650 EUR; now 2,500 EUR)." in said(
        BreakEvenKind.NODE_PRICE, price, now=2500
    )
    never = Interval(value=567, low=500, high=None)
    assert "the data do not exclude that it never does" in said(BreakEvenKind.NODE_PRICE, never)
    always = Interval(value=0, low=0, high=0)
    assert "pays whatever a node costs." in said(BreakEvenKind.NODE_PRICE, always)
    share = Interval(value=0.31, low=0.28, high=0.35)
    assert "pays if more than 31.0 % of a job's time on ethernet goes as the network tests do" in said(
        BreakEvenKind.TIME, share
    )
    assert "is ahead if a, b and 1 more have more than 31.0 % of the weight (28.0 % to 35.0 %; now 50.0 %)." in said(
        BreakEvenKind.LEAD, share, now=0.5, tests=("a", "b", "c")
    )


def test_nothing_decided_says_why_and_no_decision_says_nothing():
    text = lines(tests=(), fabrics=(), ranks=())
    assert text.startswith("Nothing can be decided")
    assert "no data on atm" in text
    nothing = Findings.model_construct()
    assert decision_lines(nothing) == ()
    assert decision_tables(nothing) == []


@pytest.mark.slow
def test_a_decision_stands_on_the_first_screen_in_every_form_and_nothing_stands_there_without_one():
    decided = with_rows(small_findings(), decision=DECISION.of(findings()))
    (first, *_) = decision_lines(decided)
    assert build_screen(decided).decision[0] == first
    assert "DECIDE" in render_terminal(decided, 100, color=False, is_brief=True)
    assert "- Decide: " in markdown.render(decided).decode()
    assert 'id="decide"' in render_html(decided)
    bare = with_rows(decided, decision=())
    assert build_screen(bare).decision == ()
    assert 'id="decide"' not in render_html(bare)
