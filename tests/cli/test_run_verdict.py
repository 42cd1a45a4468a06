"""What `run` and `resume` say at their end: what was lost before anything else, and the verdict of what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.cli.run import conclude
from fabricbench.errors import RunIncomplete
from support.lost_runs import lost_run, trip

EVERY = [f"b{block:02d}-{fabric}" for block in range(6) for fabric in ("slow", "fast")]


def test_a_run_in_which_nothing_was_measured_is_incomplete_and_says_why(tmp_path: Path):
    run = lost_run(tmp_path / "run", cells=[trip(fails_in=range(6))])
    with pytest.raises(
        RunIncomplete, match="gave nothing on either fabric: all 12 launches without a result"
    ) as caught:
        conclude(run.path)
    assert "(no answer)" in caught.value.message
    assert f"fabricbench show {run.path} --summary" in str(caught.value.hint)


def test_a_run_whose_launches_are_all_invalid_says_what_they_broke(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = lost_run(tmp_path / "run", invalid=EVERY)
    with pytest.raises(RunIncomplete, match=r"all 12 launches invalid \(the traffic went another way\)"):
        conclude(run.path)
    assert capsys.readouterr().out == ""


def test_a_run_whose_settings_were_never_held_says_so(tmp_path: Path):
    run = lost_run(tmp_path / "run", unheld=EVERY)
    with pytest.raises(RunIncomplete, match=r"all 12 launches invalid \(governor was not held\)"):
        conclude(run.path)


def test_what_is_left_of_a_run_is_shown_behind_what_was_lost_and_the_error_says_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = lost_run(tmp_path / "run", cells=[trip(), *(trip(size, fails_in=range(6)) for size in (1024, 2048))])
    with pytest.raises(RunIncomplete, match=r"LOST: the network tests: slow and fast each could not measure 12 of 18"):
        conclude(run.path)
    out = " ".join(capsys.readouterr().out.split())
    assert out.index("LOST: the network tests") < out.index("small TCP messages")


def test_launches_that_failed_for_good_are_told_with_the_end_of_their_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = lost_run(tmp_path / "run", failed=["b05-fast"])
    failed = LaunchesFailed("1 of 12 launches failed", "  the end of stderr.log:\n    no such library", hint="resume")
    with pytest.raises(RunIncomplete, match=r"lost 1 of 6 launches \(1 failed: ended with exit code 7\)") as caught:
        conclude(run.path, failed)
    assert "no such library" in caught.value.message
    assert "faster" in capsys.readouterr().out


def test_a_launch_that_a_later_start_measured_is_told_and_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = lost_run(tmp_path / "run", again=["b00-fast"])
    conclude(run.path)
    assert "LOST: the network tests: fast failed 1 of 7 starts" in " ".join(capsys.readouterr().out.split())


def test_the_dossier_is_written_with_the_verdict_where_it_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = lost_run(tmp_path / "run")
    conclude(run.path)
    assert f"the dossier: fabricbench report {run.path}" in capsys.readouterr().err
    conclude(run.path, has_report=True)
    assert f"the dossier: {run.path / 'dossier.html'}" in capsys.readouterr().err
    assert "<html" in (run.path / "dossier.html").read_text()
