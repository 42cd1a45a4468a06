"""The table of effects for papers: the rows of the first screen, marked as it is, in LaTeX that compiles with any font."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.configurations import configurations_of
from fabricbench.analysis.findings import Findings
from fabricbench.report.first_screen import build_screen
from fabricbench.report.latex import latex_text, render
from support.configured_runs import write_system
from support.example_findings import (
    before_after_findings,
    busy_findings,
    kernel_findings,
    small_findings,
    three_fabric_findings,
)
from support.example_one_fabric import run_of_one_fabric

EXAMPLES = [small_findings, busy_findings, three_fabric_findings, before_after_findings, kernel_findings]


def table_rows(text: str) -> list[list[str]]:
    """The lines between the rules, heads first, cut at the signs that LaTeX cuts at."""
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    return [re.split(r" & ", line[4:].removesuffix(r" \\")) for line in lines]


def test_a_row_reads_as_by_hand():
    rows = table_rows(render(small_findings()).decode())
    at = next(number for number, row in enumerate(rows) if row[0] == "TCP round trip, 64 B")
    assert rows[at : at + 2] == [
        [
            "TCP round trip, 64 B",
            r"74.86 \textmu{}s",
            r"59.20 \textmu{}s",
            r"1.26 $\times$ (1.26 to 1.27)",
            "clear",
        ],
        ["", r"(74.46 to 75.33 \textmu{}s)", r"(58.96 to 59.48 \textmu{}s)", "myrinet faster", ""],
    ]


@pytest.mark.parametrize("make", EXAMPLES)
def test_every_effect_is_a_row_and_every_row_has_all_columns(make: Callable[[], Findings]):
    findings = make()
    screen, text = build_screen(findings), render(findings).decode()
    head, _, *rows = table_rows(text)
    assert [row[0] for row in rows if row[0]] == [latex_text(row.what) for row in (*screen.rows, *screen.more_rows)]
    assert {len(row) for row in rows} <= {len(head)}
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)p\{39mm\}l\}", text)
    assert len(columns) + 2 == len(head)


@pytest.mark.parametrize("make", EXAMPLES)
def test_the_text_is_plain_and_its_braces_pair(make: Callable[[], Findings]):
    text = render(make()).decode()
    assert text.isascii()
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)[%#_^~]", bare.replace("fabricbench-effects", ""))


def test_the_caption_has_the_answer_and_says_that_numbers_are_emulated():
    text = render(small_findings()).decode()
    caption = next(line for line in text.splitlines() if r"\caption" in line)
    assert "myrinet is faster" in caption
    assert "Emulated: these fabrics are the lab's switches, not hardware." in caption
    assert "mulated" not in render(before_after_findings()).decode()


def test_every_doubt_that_marks_a_row_is_told_in_the_caption():
    findings = busy_findings()
    screen, text = build_screen(findings), render(findings).decode()
    assert screen.doubts
    for number, doubt in screen.doubts_of((*screen.rows, *screen.more_rows)):
        assert latex_text(f"({number}) {doubt}.") in text


def test_many_fabrics_have_a_line_each_with_their_places(tmp_path: Path):
    runs = [write_system(tmp_path / name, {"ib": 1.0}, seed=ord(name), processor=name) for name in "ABCDE"]
    findings = analyse(configurations=configurations_of(runs))
    heads, *rows = table_rows(render(findings).decode())
    assert heads == ["", *(one.what for one in build_screen(findings).rows)]
    assert [row[0] for row in rows if row[0]] == ["A A", "B B", "C C", "D D", "E E", "Evidence"]
    assert rows[0][1].endswith(" [1-5]")
    assert {len(row) for row in rows} == {len(heads)}


def test_a_table_of_one_fabric_has_no_column_of_doubts_where_there_are_none(tmp_path: Path):
    findings = analyse([run_of_one_fabric(tmp_path / "one")])
    screen = build_screen(findings)
    for marks in ((), (1,)):
        rows = tuple(replace(row, doubts=marks) for row in screen.rows)
        marked = replace(screen, rows=rows, more_rows=(), doubts=("few launches",))
        with mock.patch("fabricbench.report.latex.build_screen", return_value=marked):
            lines = table_rows(render(findings).decode())
        assert lines[0][1:] == ["A", "Of line rate", *(["Doubts"] if marks else [])]
        assert {len(line) for line in lines} == {len(lines[0])}


def test_what_latex_takes_for_a_sign_is_set_as_it_is():
    assert latex_text("a_b & 50 % of {x}\\") == r"a\_b \& 50 \% of \{x\}\textbackslash{}"
    assert latex_text("é ✓\n\x1b") == "é ?  "


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not here: apt install texlive-latex-recommended"
)
@pytest.mark.parametrize("make", [small_findings, busy_findings, kernel_findings])
def test_it_compiles_and_two_fabrics_fit_both_columns_of_a_paper(make: Callable[[], Findings], tmp_path: Path):
    (tmp_path / "table.tex").write_bytes(render(make()))
    (tmp_path / "paper.tex").write_text(
        r"\documentclass[twocolumn]{article}\usepackage[textwidth=178mm]{geometry}\usepackage{booktabs}"
        r"\begin{document}\input{table.tex}\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
