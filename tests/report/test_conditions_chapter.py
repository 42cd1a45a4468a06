"""The chapter on conditions: the grid, interactions and settings, in every format, from a run whose truth is known."""

from __future__ import annotations

import pytest

from fabricbench.analysis.findings import Findings
from fabricbench.chapters.conditions import condition_gains, grid_table, interaction_table, lines
from fabricbench.report import markdown
from fabricbench.report.terminal import render_terminal
from support.example_conditions import findings_in_conditions


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_in_conditions(tmp_path_factory.mktemp("conditions") / "run")


def test_the_grid_says_what_a_condition_is_worth_on_each_network(findings: Findings):
    rows = {(row[2], row[3]): row[5:] for row in grid_table(findings).rows}
    assert rows["eth", "usual"] == ("–", "–")
    gain, verdict = rows["myri", "jumbo"]
    assert gain.startswith("1.31 × (1.29 to")
    assert verdict == "better, by over 2 %"
    assert rows["eth", "jumbo"][1] == "not shown either way"


def test_what_helps_one_network_alone_is_told_as_an_interaction(findings: Findings):
    (row,) = interaction_table(findings).rows
    assert row[2:4] == ("jumbo over usual", "eth, myri")
    assert row[-1] == "does more for myri than for eth, by over 2 %"
    assert "Of 1 interaction: 1 shown beyond the margin." in " ".join(lines(findings))


def test_the_figure_has_a_panel_for_each_layer_and_condition_with_both_networks(findings: Findings):
    figure = condition_gains(findings)
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["tcp, jumbo over usual"]
    rows = figure.panels[0].spec["layer"][-1]["data"]["values"]
    assert [(row["network"], row["label"]) for row in rows] == [("eth", "stream 64 KiB"), ("myri", "stream 64 KiB")]
    assert "n = 8 blocks" in figure.caption


def test_text_formats_show_the_chapter(findings: Findings):
    for text in (render_terminal(findings, 120, color=False), markdown.render(findings).decode()):
        assert "Does a condition do the same on every network?" in text
        assert "Measured in turn, block by block: eth in usual, jumbo; myri in usual, jumbo." in text


def test_the_csv_rows_keep_full_precision(findings: Findings):
    (row,) = findings.chapters["condition-interactions"]
    assert row.ratio is not None
    assert len(str(row.ratio.value)) > 6
