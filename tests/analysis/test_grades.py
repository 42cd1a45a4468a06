"""Grades by consequence: what is left of a row's verdict if what speaks against it is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.analysis.analysing import analyse
from fabricbench.analysis.effects import Judge
from fabricbench.analysis.evidence import evidence_of
from fabricbench.analysis.findings import Doubt, Effect, Grade, Headline, Replication, Verdict
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.analysis.grading import Span
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.cli.check_text import decides, limits
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run
from fabricbench.statistics.decision import Consequence
from support.simulated_sides import first_screen, keys_of, sides_of, trusting
from support.synthetic_run import SyntheticCell

Floats = NDArray[np.float64]
Change = Callable[[Floats], None]
MakeRun = Callable[..., Run]
KEYS = keys_of(layers=(Layer.TCP, Layer.MPI))
SLOWER = np.array([1.0 if key.metric.is_lower_better else -1.0 for key in KEYS])
"""What being slower does to the logarithm of each cell's value."""


def screen(
    faster: float,
    *,
    blocks: int = 12,
    noise: float = 0.005,
    change: Change = lambda _: None,
    judge: Judge = trusting,
) -> Headline:
    """The screen of fabrics a and b, of which b is so many times faster; `change` edits what slows launches down (log)."""
    slowness = np.random.default_rng(7).normal(0.0, noise, (2, len(KEYS), blocks))
    slowness[1] -= np.log(faster)
    change(slowness)
    return first_screen(sides_of(KEYS, 10.0 + slowness * SLOWER[:, np.newaxis], ("a", "b")), judge=judge)[0]


def typical(headline: Headline) -> list[Effect]:
    return [effect for effect in headline.effects if effect.is_typical]


def behind(headline: Headline) -> str:
    """The doubts behind the evidence."""
    return "; ".join(str(doubt) for line in headline.evidence for doubt in line.doubts)


def grades(headline: Headline) -> set[Grade]:
    return {effect.grade for effect in typical(headline)}


def one_slow_launch(by: float, block: int = 2) -> Change:
    def change(slowness: Floats) -> None:
        slowness[1, :, block] += np.log(by)

    return change


def test_one_slow_launch_of_six_does_not_hide_that_a_fabric_takes_half_the_time():
    headline = screen(2.0, blocks=6, change=one_slow_launch(1.5))
    assert headline.sentence.startswith("b is faster: ")
    assert grades(headline) == {Grade.CLEAR}
    for effect in typical(headline):
        (pair,), (doubt,) = effect.pairs, effect.doubts
        assert pair.verdict is Verdict.B_FASTER
        assert doubt.consequence is Consequence.NOTHING
        assert [number.value for number in doubt.numbers] == pytest.approx([1, 6, 0.5, 4 / 3, 2.0], rel=0.03)
        assert str(doubt).startswith("1 of 6 launches on b are about ")
    assert [line.words for line in headline.evidence] == ["Clear: 4 of 4 leading rows."]


def test_what_is_open_adds_up_with_how_many_leading_rows_are_clear():
    rows = typical(screen(2.0))
    still_open = [row.model_copy(update={"grade": Grade.OPEN}) for row in rows]
    tail = still_open[0].model_copy(update={"what": "tail", "is_typical": False})
    named = f"{rows[0].what}; {rows[1].what}"
    (told,) = evidence_of([*still_open, tail])
    assert told.words == f"Clear: 0 of 4 leading rows. Open: {named}; and 2 more. Open of tails and means: tail."
    (told,) = evidence_of([*rows, tail])
    assert told.words == "Clear: 4 of 4 leading rows. Open of tails and means: tail."
    (told,) = evidence_of([*still_open, still_open[3]])
    assert told.words == f"Clear: 0 of 5 leading rows. Open: {named}; and 3 more.", "two rows of one name are two"


def slow_launches(by: float, *blocks: int) -> Change:
    def change(slowness: Floats) -> None:
        slowness[1, :, list(blocks)] += np.log(by)

    return change


def test_a_slow_launch_in_which_the_other_fabric_leads_is_an_alarm_and_less_of_two_a_doubt():
    turned = screen(1.08, noise=0.002, change=one_slow_launch(1.5))
    assert grades(turned) <= {Grade.ALARM, Grade.OPEN}
    assert not turned.sentence.startswith("b is")
    assert grades(screen(1.3, noise=0.002, change=one_slow_launch(1.5))) == {Grade.ALARM}, (
        "all launches show it all the same"
    )
    smaller = screen(1.2, noise=0.002, change=slow_launches(1.2 / 1.013, 2, 7))
    assert grades(smaller) == {Grade.DOUBTFUL}
    assert smaller.sentence.startswith("b seems faster: ")
    assert smaller.evidence[0].words.startswith("May change: that b is faster in ")
    assert behind(smaller).endswith("by how much is in doubt, not who is faster")


def test_one_launch_in_which_the_same_fabric_is_hardly_ahead_is_a_remark():
    headline = screen(1.2, noise=0.002, change=one_slow_launch(1.2 / 1.013))
    assert grades(headline) == {Grade.CLEAR}
    assert all(
        str(doubt).startswith("1 of 12 launches on b") for effect in typical(headline) for doubt in effect.doubts
    )


def waves(slowness: Floats) -> None:
    slowness[1] += np.cumsum(np.random.default_rng(11).normal(0, 0.02, slowness.shape[2]))


def test_blocks_that_resemble_each_other_are_a_doubt_only_where_they_could_change_the_verdict():
    double = screen(2.5, blocks=29, change=waves)
    assert grades(double) == {Grade.CLEAR}
    for effect in typical(double):
        assert any("neighbouring blocks resemble each other" in str(doubt) for doubt in effect.doubts)
    assert double.sentence.startswith("b is faster: ")
    slight = screen(1.1, blocks=29, change=waves)
    assert Grade.CLEAR not in grades(slight)
    assert Grade.ALARM in grades(slight)
    assert "who is faster is in doubt" in behind(slight)
    assert behind(screen(1.1, blocks=29)) == ""


def test_one_block_far_off_makes_blocks_that_resemble_each_other_no_worse():
    assert Span(0.6, 1.7, 0.1).reach == pytest.approx(0.4), "1.5 times the range would hide twice as fast"
    assert Span(0.6, 0.9, 0.2).reach == pytest.approx(0.45), "ratios that wander fill their range"


@pytest.mark.slow
def test_few_blocks_that_do_not_exclude_a_correlation_are_doubtful_where_it_would_change_the_verdict():
    def asked(seed: int, faster: float, blocks: int) -> bool:
        noise = np.random.default_rng(seed).normal(0.0, 0.01, (2, 1, blocks)) + np.zeros((2, len(KEYS), blocks))
        noise[1] -= np.log(faster)
        rows = typical(first_screen(sides_of(KEYS, 10.0 + noise * SLOWER[:, np.newaxis], ("a", "b")))[0])
        found = [
            (effect.grade, doubt.consequence)
            for effect in rows
            for doubt in effect.doubts
            if str(doubt).startswith(f"{blocks} blocks do not exclude that neighbouring ones resemble each other")
        ]
        assert all(grade is not Grade.CLEAR and lost is not Consequence.NOTHING for grade, lost in found)
        return bool(found)

    near = [asked(seed, 1.042, 12) for seed in range(20)]
    assert any(near)
    assert not all(near), "where the blocks exclude it nothing is asked"
    assert not any(asked(seed, 1.1, 12) for seed in range(20))
    assert not any(asked(seed, 1.042, 6) for seed in range(20)), "six cannot test it"


def delayed_by(share: float) -> Judge:
    def judge(side: Side, _cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        return (Doubt.of("the switch held frames", delay_share=share),) if side.name == "a" else ()

    return judge


def test_a_delay_counts_by_what_the_slower_fabric_would_be_without_it():
    double = screen(2.0, judge=delayed_by(0.2))
    assert grades(double) == {Grade.CLEAR}
    assert "a: the switch held frames; who is faster would be the same without it" in map(str, double.effects[0].doubts)
    assert double.sentence.startswith("b is faster: ")
    assert grades(screen(1.27, judge=delayed_by(0.2))) == {Grade.DOUBTFUL}
    slight = screen(1.15, judge=delayed_by(0.2))
    assert grades(slight) == {Grade.ALARM}
    assert slight.sentence.startswith("b seems faster: ")
    ahead = screen(1 / 1.15, judge=delayed_by(0.2))  # b is slower, and only a was delayed
    assert grades(ahead) == {Grade.CLEAR}
    equal = screen(1.0, blocks=40, judge=delayed_by(0.2))
    assert grades(equal) == {Grade.DOUBTFUL}
    assert behind(equal).endswith("whether they are equivalent is in doubt")
    assert grades(screen(5.0, judge=delayed_by(1.0))) == {Grade.ALARM}, "nothing bounds it"


def dead(starts: int, fabric: str) -> Judge:
    def judge(side: Side, _cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        lost = Doubt.of("starts died", is_loss=True, lost_on=fabric, lost_starts=starts)
        return (lost,) if side.name == fabric else ()

    return judge


def test_a_start_that_died_counts_as_two_launches_where_the_slowest_is_hardly_slower():
    few = [
        screen(faster, blocks=18, noise=0.002, judge=dead(1, "b")) for faster in (1.03, 1.055, 1.15)
    ]  # a 19th of log 2: 3.6 %
    assert [grades(one) for one in few] == [{Grade.ALARM}, {Grade.DOUBTFUL}, {Grade.CLEAR}]
    assert grades(screen(1.04, blocks=18, judge=dead(1, "a"))) == {Grade.CLEAR}


def test_a_start_that_died_counts_as_the_slowest_of_its_fabric():
    def slowest(slowness: Floats) -> None:
        slowness[1, :, 0] += 0.3  # of b, which is 5 % faster otherwise

    clear = screen(2.0, judge=dead(1, "b"))
    assert grades(clear) == {Grade.CLEAR}
    assert [loss.consequence for effect in typical(clear) for loss in effect.losses] == [Consequence.NOTHING] * 4
    shaken = screen(1.05, noise=0.02, blocks=32, change=slowest, judge=dead(3, "b"))
    assert Grade.CLEAR not in grades(shaken)
    assert grades(screen(1.05, judge=dead(3, "a"))) == {Grade.CLEAR}, "those of the slower one would be slower still"


def test_so_few_launches_that_are_clear_say_what_they_may_have_missed():
    assert [effect.unseen_share for effect in typical(screen(2.0, blocks=6))] == pytest.approx([0.393] * 4, abs=1e-3)
    assert {effect.unseen_share for effect in screen(2.0, blocks=32).effects} == {None}


def test_the_gravest_rows_come_first_in_the_evidence():
    def judge(side: Side, cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        share = 0.9 if cell.key.layer is Layer.TCP else 0.3
        return (Doubt.of("held", delay_share=share),) if side.name == "a" else ()

    headline = screen(1.45, judge=judge)
    assert grades(headline) == {Grade.ALARM, Grade.DOUBTFUL}
    assert headline.evidence[0].words.startswith("May change: that b is faster in TCP round trip")


def is_never_clear(headline: Headline, said: str) -> None:
    assert grades(headline) == {Grade.DOUBTFUL}
    assert " seems faster: " in headline.sentence
    assert said in behind(headline)
    assert not any("quieter host" in step for step in headline.next_steps)


def test_a_path_that_nobody_counted_is_never_clear(make_run: MakeRun):
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 60e3, "other": 30e3})]
    assert grades(analyse([make_run(cells)]).headline) == {Grade.CLEAR}
    headline = analyse([make_run(cells, "unproven", unproven=["other"])]).headline
    is_never_clear(headline, "other: no counter shows that the traffic of 8 launches took other")


def test_launches_of_which_nobody_knows_the_order_are_never_clear(tmp_path: Path):
    texts: dict[str, list[Path]] = {"a": [], "b": []}
    for fabric, time in (("a", 60.0), ("b", 30.0)):
        for number in range(6):
            path = tmp_path / f"{fabric}{number}.txt"
            path.write_text(
                f"# OSU MPI Latency Test v5.8\n# launch {number}\n# Size          Latency (us)\n8 {time + number / 10:20.2f}\n"
            )
            texts[fabric].append(path)
    import_run(tmp_path / "run", texts)
    is_never_clear(analyse([Run.open(tmp_path / "run")]).headline, "it was imported: nobody knows in which order")


@pytest.mark.slow
def test_one_run_on_a_side_is_never_clear_and_several_on_both_may_be(make_run: MakeRun):
    def days(name: str, time: float, count: int) -> list[Run]:
        cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": time})]
        return [make_run(cells, f"{name}{number}", seed=number + int(time)) for number in range(count)]

    def judged(before: int, after: int) -> tuple[Headline, str]:
        mark = f"{before}{after}"
        runs = days(f"old{mark}", 60e3, before), days(f"new{mark}", 30e3, after)
        headline = analyse(before=runs[0], after=runs[1]).headline
        return headline, behind(headline)

    single, said = judged(1, 1)
    assert grades(single) == {Grade.DOUBTFUL}
    assert single.sentence.startswith("one seems to have become faster: ")
    assert "one run on either side: whatever else differed between the sessions is in the ratio" in said
    pooled, said = judged(1, 3)
    assert grades(pooled) == {Grade.DOUBTFUL}
    assert "one run (before): " in said
    assert pooled.detail.startswith("One run before cannot tell how far another would differ")
    several, said = judged(3, 3)
    assert grades(several) == {Grade.CLEAR}
    assert said == ""


def test_fewer_than_five_pairs_decide_nothing():
    assert grades(screen(2.0, blocks=4, noise=0.001)) == {Grade.OPEN}
    assert (
        screen(2.0, blocks=4).sentence
        == "Not enough data to say whether b or a is faster: it takes 5 whole pairs at least."
    )
    assert grades(screen(2.0, blocks=5)) == {Grade.CLEAR}


def test_a_gate_of_one_new_run_against_three_old_ones_takes_runs_for_what_is_repeated(make_run: MakeRun):
    def day(name: str, time: float, seed: int) -> Run:
        cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, {"one": time}) for size in (64, 1024)]
        return make_run(cells, name, seed=seed)

    old = [day(f"old{seed}", time, seed) for seed, time in enumerate((57e3, 60e3, 63e3))]
    gate = check_regressions(old, [day("new", 66e3, 9)], maximum=0.05)
    assert (gate.replication, gate.old_count, gate.new_count) == (Replication.RUNS, 3, 1)
    assert (
        gate.verdict is GateVerdict.INCONCLUSIVE
    )  # as far from the others as they are apart; by launches it regressed
    assert all(cell.slowdown_low is not None and cell.slowdown_low < 1.05 for cell in gate.cells)
    (limit,) = limits(gate)
    assert limit.startswith("limit: one new run, so how far another would differ from it is taken from the old runs")
    assert decides(gate) == [
        "how small a change it finds is not known, with 3 and 1 run: three on each side are the least"
    ]
    assert check_regressions(old, [day("twice", 120e3, 9)], maximum=0.05).verdict is GateVerdict.REGRESSED


def test_days_that_were_imported_as_runs_of_their_own_may_be_clear(tmp_path: Path):
    def day(name: str, time: float) -> Run:
        path = tmp_path / f"{name}.txt"
        path.write_text(f"# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n8 {time:20.4f}\n")
        import_run(tmp_path / name, {"a": [path]})
        return Run.open(tmp_path / name)

    before = [day(f"old{number}", 60.0 + number / 7) for number in range(3)]
    after = [day(f"new{number}", 30.0 + number / 7) for number in range(3)]
    assert grades(analyse(before=before, after=after).headline) == {Grade.CLEAR}
    single = analyse(before=before[:1], after=after).headline
    assert grades(single) == {Grade.DOUBTFUL}
    assert "nobody knows in which order" in behind(single)
