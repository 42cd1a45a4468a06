"""The account of a run: every launch in one place, from the plan, the journal and what is stored."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fabricbench.record.account import DOUBTED_SHARE, account_of
from fabricbench.record.integrity import JOURNAL
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.lock import locked
from fabricbench.record.provenance import Proof
from fabricbench.record.run_account import LossKind, RunAccount, SubjectAccount
from fabricbench.record.store import Run
from fabricbench.report.losses import loss_lines
from support.lost_runs import farm_record, lost_run, rewrite_launch, trip


def subject(account: RunAccount, fabric: str) -> SubjectAccount:
    (found,) = account.of(fabric)
    return found


def test_a_run_that_lost_nothing_has_nothing_to_say(tmp_path: Path):
    account = account_of(lost_run(tmp_path / "run"))
    assert not account.has_lost_results
    assert not any(one.is_worth_a_word for one in account.subjects)
    assert account.launches_measured == 12


def test_launches_are_counted_once_by_what_became_of_them(tmp_path: Path):
    run = lost_run(tmp_path / "run", invalid=["b00-fast", "b01-fast"], failed=["b02-fast"], again=["b03-slow"])
    fast, slow = (subject(account_of(run), name) for name in ("fast", "slow"))
    assert (fast.planned, fast.starts, fast.failed_starts, fast.measured) == (6, 7, 2, 3)
    assert fast.launches_lost(LossKind.INVALID) == 2
    assert fast.launches_lost(LossKind.FAILED) == 1
    assert fast.lost[0].reason == "the traffic went another way"
    assert fast.lost_starts == 4
    assert fast.has_lost_results
    assert (slow.starts, slow.failed_starts, slow.measured, slow.has_lost_results) == (7, 1, 6, False)
    assert slow.is_worth_a_word


def test_a_launch_that_took_its_fabric_but_was_not_measured_as_it_must_be_is_lost_as_well(tmp_path: Path):
    run = lost_run(tmp_path / "run", unheld=["b00-fast"])
    (launch,) = (one for one in run.launches if one.launch_id == "b00-fast")
    assert (launch.proof, launch.is_valid) == (Proof.PROVEN, False)
    fast = subject(account_of(run), "fast")
    assert (fast.measured, fast.launches_lost(LossKind.INVALID), fast.lost_starts) == (5, 1, 1)
    assert fast.lost[0].reason == "governor was not held"
    assert account_of(run).has_lost_results


def test_a_launch_whose_every_test_failed_gave_nothing(tmp_path: Path):
    run = lost_run(tmp_path / "run", cells=[trip(fails_in=range(6))])
    fast = subject(account_of(run), "fast")
    assert fast.gave_nothing
    assert fast.launches_lost(LossKind.EMPTY) == fast.failed_tests == 6


def test_a_run_of_an_earlier_version_without_a_journal_gives_the_same_losses(tmp_path: Path):
    run = lost_run(tmp_path / "run", invalid=["b00-fast"], failed=["b01-fast"])
    (run.path / JOURNAL).unlink()
    fast = subject(account_of(Run.open(run.path)), "fast")
    assert (fast.starts, fast.measured, fast.launches_lost(LossKind.INVALID)) == (5, 4, 1)
    assert fast.launches_lost(LossKind.NOT_MEASURED) == 1


def test_what_nobody_has_started_yet_is_not_lost(tmp_path: Path):
    run = lost_run(tmp_path / "run", failed=["b05-fast"])
    journal = run.path / JOURNAL
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if "b05-fast" not in line))
    assert not account_of(Run.open(run.path)).has_lost_results


def under_way(run: Run, launch_id: str) -> Journal:
    """Let a launch of a run be started and never end."""
    journal = Journal(run.path)
    journal.append(JournalEvent.STARTED, launch_id, attempt=3, command=["probe"])
    return journal


def test_what_was_under_way_when_the_run_was_killed_is_lost_and_named(tmp_path: Path):
    run = lost_run(tmp_path / "run", failed=["b05-fast"])
    under_way(run, "b05-fast")
    fast = subject(account_of(Run.open(run.path)), "fast")
    (lost,) = fast.lost
    assert (lost.kind, lost.names, lost.reason) == (LossKind.KILLED, ("b05-fast",), "b05-fast was under way")
    assert fast.has_lost_results


def test_what_is_under_way_in_a_run_that_goes_on_is_not_lost(tmp_path: Path):
    run = lost_run(tmp_path / "run", failed=["b05-fast"])
    under_way(run, "b05-fast")
    with locked(run.path):
        assert not account_of(Run.open(run.path)).has_lost_results
    assert account_of(Run.open(run.path)).has_lost_results


def test_a_killed_start_is_told_for_good_once_a_later_one_was_measured(tmp_path: Path):
    run = lost_run(tmp_path / "run")
    journal = under_way(run, "b05-fast")
    journal.append(JournalEvent.RESUMED)
    journal.append(JournalEvent.STARTED, "b05-fast", attempt=4, command=["probe"])
    journal.append(JournalEvent.FINISHED, "b05-fast")
    fast = subject(account_of(Run.open(run.path)), "fast")
    assert (fast.killed_starts, fast.failed_starts, fast.has_lost_results, fast.is_worth_a_word) == (1, 0, False, True)
    (line,) = loss_lines([account_of(Run.open(run.path))])
    assert (
        line
        == "the network tests: fast lost 1 of 8 starts as the run itself was killed, or had no more disk; slow none"
    )


def test_a_start_that_the_user_interrupted_is_not_told_as_killed(tmp_path: Path):
    run = lost_run(tmp_path / "run")
    (launch,) = (one for one in run.launches if one.launch_id == "b05-fast")
    rewrite_launch(launch, complete=False)
    under_way(run, "b05-fast").append(JournalEvent.INTERRUPTED, "b05-fast")
    fast = subject(account_of(Run.open(run.path)), "fast")
    assert [one.kind for one in fast.lost] == [LossKind.NOT_MEASURED]


def test_jobs_of_a_farm_are_told_by_node_and_reason(tmp_path: Path):
    jobs = subject(account_of(lost_run(tmp_path / "run", farm=farm_record())), "fast").jobs
    assert jobs is not None
    assert (jobs.jobs, jobs.lost, jobs.retried) == (24, 6, 12)
    assert jobs.left_out[0].node == "n2"
    assert (jobs.troubles[0].node, jobs.troubles[0].exit_code, jobs.troubles[0].lost_jobs) == ("n1", 3, 6)
    assert jobs.done_on == {"n1": 12, "n2": 6}


def test_the_share_that_makes_a_doubt_is_a_tenth():
    assert pytest.approx(0.1) == DOUBTED_SHARE


def test_a_journal_is_read_once_however_often_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = Journal(tmp_path)
    read = 0
    whole = Journal._take

    def counted(self: Journal, entry: object) -> None:
        nonlocal read
        read += 1
        whole(self, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "_take", counted)
    for number in range(300):
        journal.append(JournalEvent.STARTED, f"b{number:03d}-fast")
        assert journal.attempts(f"b{number:03d}-fast") == 1
    assert read == 300
    assert len(journal.entries()) == 300


def test_a_journal_that_became_shorter_is_read_anew(tmp_path: Path):
    journal = Journal(tmp_path)
    for name in ("b00-a", "b01-a"):
        journal.append(JournalEvent.STARTED, name)
    assert journal.attempts("b01-a") == 1
    path = tmp_path / JOURNAL
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert journal.attempts("b01-a") == 0


def test_thousands_of_launches_are_accounted_for_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = lost_run(tmp_path / "run", blocks=2)
    started = [
        run.manifest.planned[0].model_copy(update={"launch_id": f"b{n:05d}-fast", "block": n}) for n in range(3000)
    ]
    journal = Journal(run.path)
    lines = [f'{{"event":"failed","unix_ns":{time.time_ns()},"launch_id":"{one.launch_id}"}}\n' for one in started]
    with journal.path.open("a") as file:
        file.writelines(lines)
    passes = 0
    entries = Journal.entries

    def counted(self: Journal) -> object:
        nonlocal passes
        passes += 1
        return entries(self)

    monkeypatch.setattr(Journal, "entries", counted)
    whole = run.manifest.model_copy(update={"planned": tuple(started)})
    account = account_of(Run(run.path, whole))
    assert passes == 1
    assert sum(one.launches_lost(LossKind.FAILED) for one in account.subjects) == 3000
