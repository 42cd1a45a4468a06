"""What was lost comes first, in every form, with names and reasons; where nothing was, nothing is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Grade
from fabricbench.analysis.sides import NothingMeasured
from fabricbench.cli.losses import results_lost
from fabricbench.record.account import account_of
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.store import Run
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.losses import MOST_LINES, first_losses, loss_lines
from support.calling import Call
from support.lost_runs import farm_record, lost_run, trip

FAST = [f"b{block:02d}-fast" for block in range(6)]


def rendered(name: str, findings: Findings) -> str:
    form = FORMATS[name]
    assert isinstance(form, Format)
    return form.render(findings).decode()


def test_a_whole_run_says_nothing_of_losses(tmp_path: Path):
    run = lost_run(tmp_path / "run")
    assert loss_lines([account_of(run)]) == ()
    assert not any("LOST" in rendered(name, analyse([run])).replace("LOST:", "LOST") for name in ("markdown", "text"))


def test_what_gave_nothing_is_named_with_its_reason(tmp_path: Path):
    every = [f"b{block:02d}-{fabric}" for block in range(6) for fabric in ("slow", "fast")]
    (line,) = loss_lines([account_of(lost_run(tmp_path / "run", invalid=every))])
    assert (
        line
        == "the network tests gave nothing on either fabric: all 12 launches invalid (the traffic went another way)"
    )


@pytest.mark.parametrize("command", ["report", "compare", "selfcheck", "check"])
def test_a_run_of_which_nothing_is_left_says_what_it_lost_before_that_nothing_is_left(
    tmp_path: Path, fabricbench: Call, command: str
):
    every = [f"b{block:02d}-{fabric}" for block in range(6) for fabric in ("slow", "fast")]
    path, other = (lost_run(tmp_path / name, blocks=blocks, failed=every).path for name, blocks in (("a", 6), ("b", 5)))
    code, _, err = fabricbench(command, path, *(("--baseline", other) if command == "check" else ()))
    assert code == 2
    lost = "the network tests gave nothing on either fabric: all 12 launches failed (ended with exit code 7)"
    assert lost in err.partition("there is nothing to analyse")[0]


def test_a_launch_that_was_killed_with_its_run_is_named(tmp_path: Path):
    run = lost_run(tmp_path / "run", failed=["b05-fast"])
    Journal(run.path).append(JournalEvent.STARTED, "b05-fast", attempt=3, command=["probe"])
    first, _ = loss_lines([account_of(Run.open(run.path))])
    assert (
        first
        == "the network tests: fast lost 1 of 6 launches (1 killed with the run: b05-fast was under way); slow none"
    )


def test_a_workload_that_was_stopped_tells_its_starts_and_not_that_more_launches_failed_than_were_started(
    tmp_path: Path,
):
    every = [f"b{block:02d}-{fabric}" for block in range(6) for fabric in ("slow", "fast")]
    run = lost_run(tmp_path / "run", failed=every[:4])
    journal = Journal(run.path)
    lines = [one for one in journal.path.read_text().splitlines(True) if all(name not in one for name in every[4:])]
    journal.path.write_text("".join(lines))
    for name in every[4:]:
        shutil.rmtree(run.path / "launches" / name)
        Journal(run.path).append(JournalEvent.STOPPED, name)
    (line,) = loss_lines([account_of(Run.open(run.path))])
    assert line == (
        "the network tests gave nothing on either fabric: its 8 starts failed alike (ended with exit code 7), and the rest of its "
        "12 launches was not started"
    )


@pytest.mark.parametrize(("failed", "resumes"), [(["b05-fast"], True), ([], False)])
def test_only_what_resume_starts_again_is_told_to_be_resumed(tmp_path: Path, failed: list[str], *, resumes: bool):
    """A test without a figure is none: its launch has come to its end, and would come to the same."""
    run = lost_run(tmp_path / "run", cells=[trip(fails_in=range(5))], failed=failed)
    hint = str(results_lost(account_of(run), run.path).hint)
    assert ("`fabricbench resume" in hint) == resumes
    assert "stays so, also after `resume`: correct what its reason names" in hint
    with pytest.raises(NothingMeasured) as nothing:
        analyse([lost_run(tmp_path / "other", cells=[trip(fails_in=range(6))])])
    assert "measures none of it again" in str(nothing.value.hint)


def test_failed_starts_are_told_beside_the_fabric_that_has_none(tmp_path: Path):
    (line,) = loss_lines([account_of(lost_run(tmp_path / "run", again=FAST))])
    assert line == "the network tests: fast failed 6 of 12 starts (ended with exit code 7); slow none"


def test_jobs_and_the_node_that_failed_are_named_and_the_gravest_comes_first(tmp_path: Path):
    lines = loss_lines([account_of(lost_run(tmp_path / "run", invalid=FAST[:1], farm=farm_record()))])
    assert "lost 1 of 6 launches (1 invalid: the traffic went another way); slow none" in lines[0]
    assert (
        "slow lost 6 of 24 jobs for good (6 on n1: it ended with exit code 3; stderr ends: no such word; jobs 3)"
        in lines[1]
    )
    assert any("went on without n2 (/tmp" in line and "No space left on device" in line for line in lines)


def test_no_more_than_three_losses_come_first_and_show_tells_the_others(tmp_path: Path):
    run = lost_run(tmp_path / "run", invalid=FAST[:1], again=FAST[1:], farm=farm_record())
    every = loss_lines([account_of(run)])
    shown = first_losses([account_of(run)], ["runs/a b"])
    assert shown[:MOST_LINES] == every[:MOST_LINES]
    left = len(every) - MOST_LINES
    assert shown[-1].startswith(f"{left} more loss{'es' if left > 1 else ''} of the network tests")
    assert shown[-1].endswith(": fabricbench show 'runs/a b' --format text")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_every_form_begins_with_what_was_lost(tmp_path: Path, name: str):
    findings = analyse([lost_run(tmp_path / "run", again=FAST, farm=farm_record())])
    text = rendered(name, findings).partition("<h1")[0] if name == "html" else rendered(name, findings)
    flat = " ".join(text.split())
    assert "LOST" in flat
    assert "stderr ends: no such word" in flat
    if name != "html":
        assert text.index("LOST") < text.index("Not enough data to say whether")


def test_json_holds_the_account_before_the_headline(tmp_path: Path):
    findings = analyse([lost_run(tmp_path / "run", invalid=FAST[:1])])
    text = rendered("json", findings)
    assert text.index('"accounts"') < text.index('"headline"')
    assert Findings.model_validate_json(text) == findings


def grade_of(findings: Findings) -> tuple[Grade, tuple[str, ...]]:
    effect = findings.headline.effects[0]
    return effect.grade, tuple(map(str, effect.losses))


@pytest.mark.slow
def test_a_fabric_that_lost_more_than_a_tenth_of_its_starts_wins_nothing(tmp_path: Path):
    assert grade_of(analyse([lost_run(tmp_path / "whole")])) == (Grade.CLEAR, ())
    findings = analyse([lost_run(tmp_path / "run", again=FAST)])
    grade, losses = grade_of(findings)
    assert grade is Grade.OPEN
    assert "fast: 6 of 12 starts gave nothing that counts (6 failed): those that did may be a selection" in losses
    assert "faster:" not in findings.headline.sentence
    assert (
        grade_of(analyse([lost_run(tmp_path / "slower", again=[name.replace("fast", "slow") for name in FAST])]))[0]
        is Grade.CLEAR
    )
    assert not any("quieter host" in step for step in findings.headline.next_steps)


@pytest.mark.slow
def test_more_failures_on_one_fabric_than_chance_makes_are_a_finding(tmp_path: Path):
    def told(name: str, again: list[str]) -> list[str]:
        findings = analyse([lost_run(tmp_path / name, blocks=12, again=again)])
        return [one.text for one in findings.warnings if "than chance makes" in one.text]

    (text,) = told("one", [f"b{block:02d}-fast" for block in range(12)])
    assert "12 of 24 starts on fast" in text
    assert "0 of 12 starts on slow" in text
    assert told("both", [f"b{block:02d}-{name}" for block in range(12) for name in ("fast", "slow")]) == []
    assert told("few", ["b00-fast", "b01-fast"]) == []


def test_a_single_lost_start_of_twelve_is_a_remark_and_no_doubt(tmp_path: Path):
    blocks = 12
    grade, losses = grade_of(analyse([lost_run(tmp_path / "run", blocks=blocks, again=["b00-fast"])]))
    assert grade is Grade.CLEAR
    assert losses == ("fast: 1 of 13 starts gave nothing that counts (1 failed)",)


@pytest.mark.slow
def test_runs_and_show_and_compare_say_it_first(tmp_path: Path, fabricbench: Call):
    run = lost_run(tmp_path / "run", invalid=FAST[:1])
    line = "the network tests: fast lost 1 of 6 launches (1 invalid: the traffic went another way); slow none"
    code, out, _ = fabricbench("runs", tmp_path)
    assert (code, f"LOST: {line}" in out, "results lost" in out, "complete" in out) == (0, True, True, False)
    assert fabricbench("show", run.path, "--format", "text")[1].startswith(f"LOST: {line}\n")
    assert fabricbench("show", run.path, "--format", "csv", "--summary")[2].startswith(f"LOST: {line}\n")
    out = " ".join(fabricbench("compare", run.path)[1].split())
    assert out.index(f"LOST: {line}") < out.index("faster")
    assert f"LOST: {line}" in fabricbench("compare", run.path, "--format", "json")[2]
    assert f"LOST: {line}" in fabricbench("report", run.path, "-o", tmp_path / "x.md")[2]


def test_tests_that_failed_within_launches_are_counted(tmp_path: Path):
    run = lost_run(tmp_path / "run", cells=[trip(), trip(1024, fails_in=(0, 1))])
    (line,) = loss_lines([account_of(run)])
    assert line == "the network tests: slow and fast each could not measure 2 of 12 results, in 2 launches (no answer)"


@pytest.mark.slow
def test_show_and_runs_tell_where_starts_were_lost_more_often_than_chance_makes(tmp_path: Path, fabricbench: Call):
    died = [f"b{block:02d}-fast" for block in range(8)]
    run = lost_run(tmp_path / "run", blocks=12, again=died)
    words = "the network tests: 8 of 20 starts on fast, 0 of 12 starts on slow gave nothing that counts: more than chance makes"
    for command in (
        ("show", run.path, "--format", "text"),
        ("runs", tmp_path),
        ("report", run.path, "--format", "text"),
    ):
        _, out, err = fabricbench(*command)
        assert words in " ".join((out + err).split()), command
