"""Files between here and a node that shares none with us, over a way that greets, fails, breaks off, or hands on no stdin."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricbench.launch import folder, staging
from fabricbench.launch.launcher import Command
from fabricbench.launch.staging import COME, COMING, STAGED, NotStaged, Staging
from fabricbench.launch.watch import Growth, guarded, run_watched
from support.scripts import script


class FarNode:
    """A node whose temporary files are a folder of ours, and which sees none of our files."""

    def __init__(self, tmp_path: Path) -> None:
        self.disk = tmp_path / "node"
        self.disk.mkdir()
        self.way = script(tmp_path / "way", f'echo "Welcome to the node"; TMPDIR={self.disk} exec "$@"')
        self.asked: list[str] = []
        self.directory = tmp_path / "launch"
        self.directory.mkdir()
        (self.directory / "plan.json").write_text("the plan")

    def in_node(self, _node: str, tokens: Sequence[str]) -> list[str]:
        self.asked.append(tokens[4])
        if tokens[4] == "sees":
            tokens = [*tokens[:5], "/nowhere", tokens[6]]
        return [str(self.way), *tokens]

    @property
    def staging(self) -> Staging:
        """What a session has: it knows nothing of those before it."""
        return Staging({"far"}, self.in_node)

    def breaks(self, how: str) -> None:
        """Let the way be another from now on."""
        script(self.way, how)

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarNode:
    monkeypatch.setattr(staging, "PAUSE_SECONDS", 0.0)
    return FarNode(tmp_path)


def test_what_a_launch_needs_goes_there_and_what_it_wrote_comes_back_and_nothing_stays(far: FarNode):
    session = far.staging
    there = session.stage(far.directory, "far")
    assert there.is_relative_to(far.disk)
    assert (there / "plan.json").read_text() == "the plan"
    assert (there.parent.stat().st_mode & 0o777, there.stat().st_mode & 0o777) == (0o700, 0o700)
    (there / "records.jsonl").write_bytes(os.urandom(300_000))
    written = (there / "records.jsonl").read_bytes()
    (there / "out").mkdir()
    (there / "out" / "matrix").write_text("1 2")
    (there / "link").symlink_to("/etc/passwd")
    session.collect(far.directory)
    assert far.files == ["out", "plan.json", "records.jsonl"]
    assert (far.directory / "records.jsonl").read_bytes() == written
    assert list(far.disk.iterdir()) == []
    session.stage(far.directory, "far")
    assert far.asked.count("sees") == 1, "whether files are shared is tried once a session"


def test_a_file_that_only_its_user_may_read_is_so_there_as_well_and_when_it_comes_back(far: FarNode):
    (far.directory / "plan.json").chmod(0o600)
    there = far.staging.stage(far.directory, "far")
    assert (there / "plan.json").stat().st_mode & 0o777 == 0o600
    far.staging.collect(far.directory)
    assert (far.directory / "plan.json").stat().st_mode & 0o777 == 0o600


def test_a_node_that_sees_the_run_directory_gets_nothing(tmp_path: Path):
    (tmp_path / "plan.json").write_text("the plan")
    session = Staging({"near"}, lambda _node, tokens: list(tokens))
    assert session.stage(tmp_path, "near") == tmp_path
    session.collect(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_what_a_session_that_died_left_there_is_fetched_by_the_next(far: FarNode):
    there = far.staging.stage(far.directory, "far")
    (there / "records.jsonl").write_text("measured")
    far.staging.collect(far.directory)
    assert (far.directory / "records.jsonl").read_text() == "measured"
    assert STAGED not in far.files


def test_a_session_that_died_while_files_took_their_places_goes_on_with_that(far: FarNode):
    far.staging.stage(far.directory, "far")
    come, coming = far.directory / COME, far.directory / COMING
    come.mkdir()
    coming.mkdir()
    (come / "first").write_text("whole")
    (coming / "second").write_text("ha")
    far.staging.collect(far.directory)
    assert far.files == ["first", "plan.json"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("echo Connection refused >&2; exit 255", "Connection refused"),
        ('TMPDIR={disk} "$@" | head -c 200', "of"),
        ('TMPDIR={disk} "$@"; exit 3', "exit code 3"),
        ('TMPDIR={disk} "$@" > /dev/null', "exit code 0"),
    ],
)
def test_a_way_that_breaks_loses_nothing_and_leaves_no_half_of_a_file(far: FarNode, way: str, said: str):
    there = far.staging.stage(far.directory, "far")
    (there / "records.jsonl").write_bytes(os.urandom(100_000))
    whole = far.way.read_text()
    far.breaks(way.format(disk=far.disk))
    with pytest.raises(NotStaged, match=said):
        far.staging.collect(far.directory)
    assert far.files == [STAGED, "plan.json"]
    assert far.asked.count("take") == staging.TRIES
    far.way.write_text(whole)
    far.staging.collect(far.directory)
    assert far.files == ["plan.json", "records.jsonl"]


FLIPPED = """
import subprocess, sys
out = bytearray(subprocess.run(sys.argv[1:], capture_output=True).stdout)
if len(out) > 5000:
    out[-3000] ^= 255
sys.stdout.buffer.write(out)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("TMPDIR={disk} exec {python} {flip} $@", "is damaged"),
        ("TMPDIR={disk} $@ | sed -u 's/$/\\r/'", "is damaged"),
        ("echo 'fabricbench-folder: hello'", "cannot be read"),
        ("echo 'fabricbench-folder: [1]'", "cannot be read"),
        ("""echo 'fabricbench-folder: {{"folder": "/"}}'""", "lacks 'size'"),
    ],
)
def test_what_comes_back_damaged_is_not_taken_and_stays_there(far: FarNode, tmp_path: Path, way: str, said: str):
    there = far.staging.stage(far.directory, "far")
    (there / "records.jsonl").write_bytes(os.urandom(100_000))
    (tmp_path / "flip.py").write_text(FLIPPED)
    whole = far.way.read_text()
    far.breaks(way.format(disk=far.disk, python=sys.executable, flip=tmp_path / "flip.py"))
    with pytest.raises(NotStaged, match=said):
        far.staging.collect(far.directory)
    assert far.files == [STAGED, "plan.json"]
    assert (there / "records.jsonl").exists()
    far.way.write_text(whole)
    far.staging.collect(far.directory)
    assert (far.directory / "records.jsonl").stat().st_size == 100_000


def test_a_folder_that_is_not_there_any_more_is_told_and_asked_for_once(far: FarNode):
    shutil.rmtree(far.staging.stage(far.directory, "far"))
    with pytest.raises(NotStaged, match="is not on far any more"):
        far.staging.collect(far.directory)
    assert far.asked.count("take") == 1
    assert far.files == ["plan.json"]
    far.staging.collect(far.directory)


def test_a_way_that_hands_on_no_stdin_is_named(far: FarNode):
    far.breaks(f'TMPDIR={far.disk} exec "$@" < /dev/null')
    with pytest.raises(NotStaged, match="bytes came on stdin"):
        far.staging.stage(far.directory, "far")


def test_a_folder_that_others_may_write_to_is_refused(far: FarNode):
    own = far.disk / f"fabricbench-{os.getuid()}"
    own.mkdir()
    own.chmod(0o777)
    with pytest.raises(NotStaged, match="not a folder of this user's alone"):
        far.staging.stage(far.directory, "far")


def test_results_on_a_node_that_is_not_the_testbeds_are_left_there(far: FarNode):
    far.staging.stage(far.directory, "far")
    asked = len(far.asked)
    other = Staging({"other"}, far.in_node)
    with pytest.raises(NotStaged, match="is on far, which is no node of the testbed now"):
        other.collect(far.directory)
    assert other.silent_seconds(far.directory, []) is None
    assert len(far.asked) == asked, "a run of another's would say where to log in"


def test_what_earlier_attempts_left_is_not_sent(far: FarNode):
    earlier = far.directory / "attempt-1"
    earlier.mkdir()
    (earlier / "records.jsonl").write_text("much")
    there = far.staging.stage(far.directory, "far")
    assert not (there / "attempt-1").exists()
    assert (there / "plan.json").exists()


def test_an_archive_whose_names_lead_out_is_refused(tmp_path: Path):
    archived = io.BytesIO()
    with tarfile.open(fileobj=archived, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../evil"))
    archived.seek(0)
    with pytest.raises(ValueError, match="leads out"):
        folder.unpack(archived, tmp_path)


def test_how_long_nothing_has_grown_there_is_told_by_its_own_clock(far: FarNode):
    session = far.staging
    records = [far.directory / "records.jsonl"]
    assert session.silent_seconds(far.directory, records) is None
    there = session.stage(far.directory, "far")
    assert session.silent_seconds(far.directory, records) is None, "nothing has been written yet"
    (there / "records.jsonl").write_text("x")
    os.utime(there / "records.jsonl", (time.time() - 100, time.time() - 100))
    silent = session.silent_seconds(far.directory, records)
    assert silent is not None
    assert 99 < silent < 160
    far.breaks("exit 255")
    assert session.silent_seconds(far.directory, records) is None


def test_a_launch_that_grows_elsewhere_is_slow_and_not_hung(tmp_path: Path):
    command = Command(guarded([sys.executable, "-c", "import time; time.sleep(1.5)"]), tmp_path)
    asked: list[float] = []

    def elsewhere() -> float | None:
        asked.append(time.monotonic())
        return 0.0

    slow = run_watched(command, limit_seconds=0.3, growth=Growth((), 0.6, 20.0, elsewhere))
    assert slow.exit_code == 0
    assert 1 <= len(asked) <= 6, "it is asked when the launch would be ended, not at every tick"
    assert run_watched(command, limit_seconds=0.3, growth=Growth((), 0.6, 20.0, lambda: 5.0)).is_hung
