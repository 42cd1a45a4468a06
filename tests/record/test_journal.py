from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabricbench.record.journal import Journal, JournalEvent


def journal_in(directory: Path) -> Journal:
    ticks = iter(range(1, 100))
    return Journal(directory, now_ns=lambda: next(ticks))


def test_events_come_back_in_their_order_with_their_facts(tmp_path: Path):
    journal = journal_in(tmp_path)
    journal.append(JournalEvent.STARTED, "b00-a", attempt=1, command=["mpiexec"])
    journal.append(JournalEvent.FAILED, "b00-a", reason="exit code 1")
    entries = journal.entries()
    assert [(each.event, each.launch_id, each.unix_ns) for each in entries] == [
        (JournalEvent.STARTED, "b00-a", 1),
        (JournalEvent.FAILED, "b00-a", 2),
    ]
    assert entries[0].facts == {"command": ["mpiexec"]}
    assert entries[1].facts == {"reason": "exit code 1"}


def test_a_journal_that_is_not_there_is_empty(tmp_path: Path):
    assert journal_in(tmp_path).entries() == []


def test_a_last_line_cut_short_anywhere_costs_only_itself_and_does_not_swallow_the_next(tmp_path: Path):
    journal = journal_in(tmp_path)
    journal.append(JournalEvent.STARTED, "b00-a", attempt=1)
    whole = journal.path.read_bytes()
    journal.append(JournalEvent.FINISHED, "b00-a", seconds=1.0)
    both = journal.path.read_bytes()
    for length in range(len(whole), len(both) - 1):
        journal.path.write_bytes(both[:length])
        journal_in(tmp_path).append(JournalEvent.RESUMED)
        found = [entry.event for entry in journal.entries()]
        assert found[0] is JournalEvent.STARTED
        assert found[-1] is JournalEvent.RESUMED
        assert set(found[1:-1]) <= {JournalEvent.FINISHED}


def test_an_event_is_on_the_disk_before_it_is_acted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").read_bytes()))
    journal = journal_in(tmp_path)
    for event in (JournalEvent.STARTED, JournalEvent.FINISHED):
        journal.append(event, "b00-a")
        assert synced[-1:] == [journal.path.read_bytes()]
    assert len(synced) == 2


def test_lines_that_no_program_of_ours_wrote_cost_only_themselves(tmp_path: Path):
    journal = journal_in(tmp_path)
    huge = b'{"event":"started","unix_ns":' + b"9" * 5000 + b"}\n"
    deep = b'{"event":"started","unix_ns":1,"facts":' + b"[" * 100_000 + b"\n"
    journal.path.write_bytes(huge + deep + b'{"event":"started","unix_ns":1e400}\n{"event":"started","unix_ns":-1}\n')
    journal.append(JournalEvent.COMPLETED)
    assert [entry.event for entry in journal.entries()] == [JournalEvent.COMPLETED]


def test_garbled_lines_are_passed_over(tmp_path: Path):
    journal = journal_in(tmp_path)
    journal.path.write_bytes(b'\xff\xfe\n[]\n{"event":"unheard of","unix_ns":1}\n')
    journal.append(JournalEvent.COMPLETED)
    assert [entry.event for entry in journal.entries()] == [JournalEvent.COMPLETED]


def test_attempts_are_the_starts_of_a_launch(tmp_path: Path):
    journal = journal_in(tmp_path)
    for launch_id in ("b00-a", "b00-b", "b00-a"):
        journal.append(JournalEvent.STARTED, launch_id)
    assert journal.attempts("b00-a") == 2
    assert journal.attempts("b01-a") == 0
