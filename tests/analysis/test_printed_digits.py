"""What was printed with few digits is compared as far as these tell: in tables, on the first screen, in gates and decisions."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from fabricbench.analysis import Findings, analyse
from fabricbench.analysis.findings import Grade, Verdict
from fabricbench.analysis.gate import GateReport, GateVerdict, check_regressions
from fabricbench.analysis.selfcheck import analyse_selfcheck
from fabricbench.chapters.decision import DECISION
from fabricbench.cli.check_text import decides
from fabricbench.cli.compare_text import render as compared
from fabricbench.cli.output import OutputFormat
from fabricbench.exchange.storing import import_run
from fabricbench.record.decision_table import DecisionTable, FabricPrice
from fabricbench.record.store import Run
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.formats import FORMATS
from fabricbench.report.terminal import render_terminal
from support.osu_texts import osu_text

COSTS = DecisionTable(
    nodes=16,
    node_price=2500.0,
    network_share=0.5,
    price={"a": FabricPrice(per_node=60.0), "b": FabricPrice(per_node=10.0)},
)


def imported(folder: Path, values: dict[str, float], *, launches: int = 4, title: str = "Latency") -> Run:
    """A run of texts in which every launch of a fabric printed the same, as two decimals do; of many digits the last differ."""
    folder.mkdir()
    paths: dict[str, list[Path]] = {name: [] for name in values}
    for name, value in values.items():
        for number in range(launches):
            text = osu_text(
                title,
                values=[value + 0.01 * number * (value > 100)],
                sizes=(8,),
                remark=f"launch {folder.name} {name} {number}",
            )
            paths[name].append(folder / f"{name}-{number}.txt")
            paths[name][-1].write_text(text)
    import_run(folder / "run", paths)
    return Run.open(folder / "run")


@pytest.fixture
def findings(tmp_path: Path) -> Findings:
    return analyse([imported(tmp_path / "texts", {"a": 0.15, "b": 0.16}, launches=5)], decision=COSTS)


def test_a_difference_within_the_digits_is_not_resolvable_and_no_more_launches_are_asked_for(findings: Findings):
    (cell,) = findings.cells
    assert cell.verdict is Verdict.NOT_RESOLVABLE
    assert (cell.p_value, cell.p_margin, cell.more_blocks_needed, cell.printed_step) == (1.0, 1.0, None, 20.0)
    assert cell.ratio_low is not None
    assert cell.ratio_high is not None
    assert cell.ratio_low < 0.155 / 0.155 <= 1.0
    assert cell.ratio_high > 0.165 / 0.145
    assert not any("more block" in step or "import" in step for step in findings.headline.next_steps)


def test_the_level_of_each_side_is_as_wide_as_its_digits(findings: Findings):
    (cell,) = findings.cells
    assert cell.low_a is not None
    assert cell.high_a is not None
    assert cell.low_a <= 290.0
    assert cell.high_a >= 310.0


def test_the_first_screen_says_that_the_digits_are_too_few(findings: Findings):
    assert findings.headline.sentence == "Too few digits to say whether b or a is faster."
    (effect,) = findings.headline.effects
    assert (effect.grade, effect.pairs[0].verdict) == (Grade.OPEN, Verdict.NOT_RESOLVABLE)
    assert effect.ranks == (("a", "b"),)


def test_every_form_says_in_which_steps_the_values_were_printed(findings: Findings):
    words = "not resolvable: printed in steps of 20.0 ns"
    assert words in compared(findings, OutputFormat.TEXT)
    assert "Too few digits to say" in render_terminal(findings, 80, color=False)
    markdown = FORMATS["markdown"].render(findings)  # type: ignore[union-attr]
    assert words in markdown.decode().replace("\xa0", " ")
    (row,) = [
        row for row in csv.DictReader(io.StringIO(findings_csv(findings)["comparisons"])) if row["kind"] == "cell"
    ]
    assert (row["verdict"], row["printed_step"]) == ("not resolvable", "20.0")
    assert Findings.model_validate_json(findings.model_dump_json()) == findings


def test_no_fabric_is_first_or_cheapest_by_digits_that_were_not_printed(findings: Findings):
    decision = DECISION.first_of(findings)
    assert decision is not None
    assert {tuple(sorted(tier)) for tier in (*decision.ranks, *decision.cost_ranks)} == {("a", "b")}
    assert all(one.probability_first is not None and 0.2 < one.probability_first < 0.8 for one in decision.fabrics)
    assert all(one.probability_cheapest is not None and one.probability_cheapest < 0.8 for one in decision.fabrics)
    (test,) = decision.tests
    assert test.times[1].low is not None
    assert test.times[1].high is not None
    assert test.times[1].low < 1.0 < test.times[1].high
    for one in decision.break_evens:
        assert one.value.low is None or one.value.high is None or one.value.low < one.value.value < one.value.high


def test_equal_prints_are_neither_certain_nor_equivalent(tmp_path: Path):
    (cell,) = analyse([imported(tmp_path / "texts", {"a": 0.01, "b": 0.01}, title="Bandwidth")]).cells
    assert (cell.verdict, cell.ratio, cell.p_value) == (Verdict.NOT_RESOLVABLE, 1.0, 1.0)
    assert cell.ratio_low is not None
    assert cell.ratio_low < 1 / 3


def test_a_difference_beyond_the_digits_is_told_and_many_digits_change_nothing(tmp_path: Path):
    apart = analyse([imported(tmp_path / "apart", {"a": 0.15, "b": 0.30}, launches=6)])
    assert apart.cells[0].verdict is Verdict.A_FASTER
    fine = analyse([imported(tmp_path / "fine", {"a": 1520.31, "b": 1601.77}, launches=5)])
    assert fine.cells[0].verdict is Verdict.A_FASTER


def gate(folder: Path, old: float, new: float) -> GateReport:
    folder.mkdir()
    return check_regressions(
        [imported(folder / "old", {"a": old}, launches=8)],
        [imported(folder / "new", {"a": new}, launches=8)],
        maximum=0.03,
    )


@pytest.mark.slow
def test_a_gate_neither_fails_nor_passes_by_digits_that_were_not_printed(tmp_path: Path):
    for name, new in (("slower", 0.21), ("alike", 0.20)):
        found = gate(tmp_path / name, 0.20, new)
        assert found.verdict is GateVerdict.INCONCLUSIVE
        assert found.power is not None
        assert found.power.needed is None
        assert "is told in steps that are coarser than" in "\n".join(decides(found))
    assert gate(tmp_path / "much", 0.20, 0.30).verdict is GateVerdict.REGRESSED
    assert gate(tmp_path / "fine", 20.01, 20.02).verdict is GateVerdict.PASSED


def test_a_selfcheck_finds_no_difference_of_digits(tmp_path: Path):
    folder = tmp_path / "texts"
    folder.mkdir()
    paths = [folder / f"{number}.txt" for number in range(8)]
    for number, path in enumerate(paths):
        path.write_text(osu_text(values=[0.15 if number < 4 else 0.16], remark=f"launch {number}"))
    import_run(folder / "run", {"a": paths})
    found = analyse_selfcheck(Run.open(folder / "run"))
    assert all(result.wrong_trials == 0.0 for result in found.results)
