"""Whether a run directory stands for itself alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record.confinement import check_confined
from fabricbench.record.store import Run
from support.synthetic_run import SyntheticCell, write_synthetic_run

CELLS = (SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=5),)
LAUNCH = "launches/b00-a"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=1)
    return tmp_path / "run"


@pytest.mark.parametrize(
    "name",
    ["dossier.html", "figures", f"{LAUNCH}/launch.json", f"{LAUNCH}/attempt-1", f"{LAUNCH}/.staged", "launches/b09-x"],
)
def test_a_link_that_leads_out_is_refused_wherever_a_run_is_opened(run: Path, name: str):
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to("/tmp/elsewhere")
    with pytest.raises(UsageError, match="outside of the run directory"):
        Run.open(run)


@pytest.mark.parametrize("name", ["launches", LAUNCH])
def test_a_folder_that_cannot_be_read_is_refused_and_passes_for_no_empty_one(
    run: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    scandir = os.scandir

    def forbidden(path: Path) -> Iterator[os.DirEntry[str]]:
        if Path(path) == run / name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)  # root may read it whatever its mode is
    with pytest.raises(UsageError, match=f"{name} cannot be read: Permission denied"):
        Run.open(run)


def test_a_folder_that_cannot_be_entered_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != run / LAUNCH)
    with pytest.raises(UsageError, match="b00-a cannot be entered"):
        Run.open(run)


@pytest.mark.parametrize("name", ["dossier.html", "journal.jsonl", f"{LAUNCH}/plan.json", f"{LAUNCH}/conditions.json"])
def test_a_pipe_is_refused(run: Path, name: str):
    os.mkfifo(run / name)
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        Run.open(run)


def test_what_a_program_left_in_its_working_directory_is_its_own_affair(run: Path):
    (run / LAUNCH / "potentials").symlink_to("/usr/share")
    os.mkfifo(run / LAUNCH / "pipe")
    assert len(Run.open(run).launches) == 2


def test_a_link_within_the_run_directory_is_followed(run: Path):
    (run / "first").symlink_to(LAUNCH)
    (run / "itself").symlink_to("itself")
    assert len(Run.open(run).launches) == 2


def test_no_link_stands_for_the_folder_of_launches_or_of_a_launch(run: Path):
    """Names that nobody looks at in a launch's folder would be launches by another name, with links out of the run in them."""
    inside = run / LAUNCH / "foo"
    (inside / "attempt-1").mkdir(parents=True)
    (inside / "launch.json").symlink_to("/etc/passwd")
    for link, target in (("launches/b09-a", inside), (f"{LAUNCH}/attempt-9", inside)):
        (run / link).symlink_to(target)
        with pytest.raises(UsageError, match="is a link to a folder"):
            Run.open(run)
        (run / link).unlink()
    (run / "attempt-a").mkdir()
    (run / "launches").rename(run / "attempt-a/attempt-b")
    (run / "launches").symlink_to("attempt-a/attempt-b")
    with pytest.raises(UsageError, match="is a link to a folder"):
        Run.open(run)


def test_a_run_directory_may_be_reached_through_a_link_and_have_any_name(run: Path):
    (run.parent / "launches").mkdir()
    (run.parent / "launches/it").symlink_to(run)
    (run / "dossier.html").symlink_to("/dev/null")
    with pytest.raises(UsageError, match="outside of the run directory"):
        check_confined(run.parent / "launches/it")
    (run / "dossier.html").unlink()
    check_confined(run.parent / "launches/it")


def test_folders_without_end_are_refused(run: Path):
    deep = run / "/".join(["x"] * 20)
    deep.mkdir(parents=True)
    with pytest.raises(UsageError, match="folders deep"):
        check_confined(run)
