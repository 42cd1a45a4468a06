"""The power goes at any moment: what the run has told of as finished is there, whole, and the run goes on from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from fabricbench.campaign.events import LaunchFinished
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.record.atomic import synced
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.store import Run
from fabricbench.record.verification import verify
from fabricbench.testbed.model import Testbed
from support.execution import Setting
from support.power_loss import Disk


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", monkeypatch)
    yield disk
    disk.close()


@pytest.fixture
def setting(disk: Disk, testbed: Testbed) -> Setting:
    setting = Setting(disk.root, testbed)
    setting.write_manifest()
    return setting


def told(setting: Setting) -> set[str]:
    return {event.launch.launch_id for event in setting.events if isinstance(event, LaunchFinished)}


@pytest.mark.slow
def test_what_was_told_as_finished_is_there_whenever_the_power_goes(disk: Disk, setting: Setting, tmp_path: Path):
    number = count()
    moments = []

    def look() -> None:
        copy = disk.after_power_loss(tmp_path / f"left-{next(number)}")
        run = Run.open(copy / "run")
        assert run.damaged == ()
        assert told(setting) <= {launch.launch_id for launch in run.launches}
        assert told(setting) <= {
            one.launch_id for one in Journal(run.path).entries() if one.event is JournalEvent.FINISHED
        }
        assert verify(run.path).altered == ()
        moments.append(len(told(setting)))

    disk.at_each_sync = look
    setting.run()
    assert set(moments) >= set(range(len(setting.ids)))  # the power went before, between and after all launches


@pytest.mark.slow
def test_a_run_goes_on_from_what_a_power_loss_left(disk: Disk, setting: Setting, tmp_path: Path):
    lefts: list[Path] = []
    setting_off = count()

    def keep_some() -> None:
        if next(setting_off) % 9 == 0:
            lefts.append(disk.after_power_loss(tmp_path / f"left-{len(lefts)}"))

    disk.at_each_sync = keep_some
    setting.run()
    disk.at_each_sync = lambda: None
    assert len(lefts) >= 4
    for left in lefts:
        again = Setting.__new__(Setting)
        again.__dict__ |= setting.__dict__
        again.directory = RunDirectory(left / "run")
        again.events = []
        before = {launch.launch_id for launch in Run.open(left / "run").launches}
        again.run()
        run = Run.open(left / "run")
        assert {launch.launch_id for launch in run.launches} == set(setting.ids)
        assert told(again).isdisjoint(before)


def test_the_disk_forgets_what_was_not_synced(disk: Disk, tmp_path: Path):
    """That the model is strict: it is what the tests above rest on."""
    numbers = count()

    def left() -> dict[str, bytes]:
        copy = disk.after_power_loss(tmp_path / f"copy-{next(numbers)}")
        return {path.name: path.read_bytes() for path in copy.iterdir()}

    path = disk.root / "file"
    path.write_bytes(b"first")
    assert left() == {}
    synced(path)
    assert left() == {}
    synced(disk.root)
    assert left() == {"file": b"first"}
    other = disk.root / "other"
    other.write_bytes(b"second")
    other.replace(path)
    assert left() == {"file": b"first"}
    synced(disk.root)
    assert left() == {"file": b""}
    synced(path)
    assert left() == {"file": b"second"}
