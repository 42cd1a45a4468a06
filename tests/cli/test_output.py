"""Where `--output` writes, and where it does not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fabricbench.cli.output import check_new, check_output, share_option, wrapped, write_output
from fabricbench.errors import EnvironmentLacks, UsageError
from support.calling import Call
from support.exported_run import exported_run


def test_a_link_is_replaced_and_not_followed(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "out").symlink_to(victim)
    write_output("text", tmp_path / "out")
    assert victim.read_text() == "precious"
    assert (tmp_path / "out").read_text() == "text"


def test_a_link_to_a_device_is_replaced(tmp_path: Path):
    (tmp_path / "out").symlink_to("/dev/full")
    write_output("text", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "text"


@pytest.mark.parametrize("path", [None, Path("-")])
def test_a_standard_output_that_is_full_is_called_so(path: Path | None, monkeypatch: pytest.MonkeyPatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(EnvironmentLacks, match="no space left on the disk while writing standard output") as raised:
            write_output("text" * 10_000, path)
        monkeypatch.undo()
    assert "resume" not in str(raised.value.hint)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "out")
    with pytest.raises(UsageError, match="is a pipe"):
        write_output("text", tmp_path / "out")


@pytest.mark.skipif(os.geteuid() != 0, reason="makes devices")
@pytest.mark.parametrize(
    ("kind", "number", "told"), [(stat.S_IFBLK, (7, 9), "a disk"), (stat.S_IFCHR, (1, 7), "a device")]
)
def test_a_device_that_lies_anywhere_is_refused(tmp_path: Path, kind: int, number: tuple[int, int], told: str):
    try:
        os.mknod(tmp_path / "out", kind | 0o600, os.makedev(*number))
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    with pytest.raises(UsageError, match=f"is {told}"):
        write_output("text", tmp_path / "out")


def test_devices_of_the_system_and_descriptors_of_the_shell_are_written_to():
    write_output("text", Path("/dev/null"))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    reading, writing = os.pipe()
    try:
        for name in (f"/dev/fd/{writing}", f"/proc/self/fd/{writing}"):
            write_output("text", Path(name))
            assert os.read(reading, 100) == b"text"
    finally:
        os.close(reading)
        os.close(writing)


COMMANDS = [
    "check RUN --baseline RUN -o FILE",
    "compare RUN -o FILE",
    "doctor -o FILE",
    "export RUN --format csv -o FILE",
    "export RUN --format osu -o FILE",
    "figure RUN --y throughput -o FILE.svg",
    "list patterns -o FILE",
    "map RUN -o FILE",
    "plan quick --testbed local -o FILE",
    "report RUN -o FILE.html",
    "report RUN --figure forest -o FILE.svg",
    "runs RUN -o FILE",
    "selfcheck RUN -o FILE",
    "show RUN -o FILE",
    "testbed init --hosts n1 -o FILE",
    "trend RUN -o FILE",
    "verify RUN -o FILE",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_folder_that_is_not_there_is_told_before_anything_is_read(line: str, tmp_path: Path, fabricbench: Call):
    """No command gets as far as noticing that there is no such run."""
    words = line.replace("RUN", str(tmp_path / "run")).replace("FILE", str(tmp_path / "none/deeper/file")).split()
    code, out, err = fabricbench(*words)
    assert (code, out) == (2, ""), err
    assert f"there is no folder {tmp_path / 'none/deeper'}" in err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_told_before_anything_is_read(tmp_path: Path, fabricbench: Call):
    (tmp_path / "file").write_text("")
    code, _, err = fabricbench("compare", tmp_path / "run", "-o", tmp_path / "file/x.txt")
    assert code == 2
    assert "x.txt cannot be written: Not a directory" in err


def test_a_folder_that_may_not_be_written_to_is_told_before_anything_is_read(
    tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    code, _, err = fabricbench("compare", tmp_path / "run", "-o", tmp_path / "x.txt")
    assert code == 3, err
    assert "x.txt cannot be written: Permission denied" in err


def test_a_report_beside_a_run_whose_folder_may_not_be_written_to_is_told_before_the_work(
    tmp_path: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    run = exported_run(tmp_path / "run").path
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    monkeypatch.setattr("fabricbench.cli.report.analyse", pytest.fail)
    code, _, err = fabricbench("report", run)
    assert code == 3, err
    assert "dossier.html cannot be written: Permission denied" in err


@pytest.mark.parametrize(
    "name", ["manifest.json", "journal.jsonl", "plan.json", "plan.seal", "launches/b00-a/samples.parquet"]
)
def test_nothing_is_written_over_what_was_measured(tmp_path: Path, name: str):
    run, link = tmp_path / "run", tmp_path / "link"
    (run / "launches/b00-a").mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    link.symlink_to(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for path in (run / name, link / name, run / "launches/.." / name):
        with pytest.raises(UsageError, match="is a part of the run in"):
            write_output("text", path)
    with pytest.raises(UsageError, match="is a part of the run in"):
        check_new(run / "launches/new")
    write_output("text", run / "dossier.txt")
    (run / "dossier.txt").unlink()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_file_that_is_there_is_replaced_only_by_who_says_so(tmp_path: Path):
    notes, link = tmp_path / "notes.md", tmp_path / "link.md"
    notes.write_text("mine")
    link.symlink_to(notes)
    for path in (notes, link):
        with pytest.raises(UsageError, match="is there already") as raised:
            check_output(path, may_replace=False)
        assert "--force" in str(raised.value.hint)
        check_output(path, may_replace=True)
    for free in (None, Path("-"), Path("/dev/null"), Path("/dev/stdout"), tmp_path / "new.md"):
        check_output(free, may_replace=False)


@pytest.mark.parametrize(
    ("text", "meant"), [("95", "95%, which is 0.95"), ("5", "5%, which is 0.05"), ("1", "1%, which is 0.01")]
)
def test_a_bare_number_where_a_share_is_wanted_is_asked_about(text: str, meant: str):
    with pytest.raises(UsageError, match=f"--margin: .*did you mean {meant}") as raised:
        share_option(text, "--margin")
    assert raised.value.exit_code == 2
    assert share_option("150%", "--max-regression") == 1.5


def test_prose_is_wrapped_between_words_and_hangs_below_its_own_indentation():
    path = "/a/very/long/path/that/must/stay/whole/wherever/it/stands"
    told = wrapped([f"  found {path} of 1,000 bytes in 12 files", ""], 40)
    assert all(len(line) <= 40 or path in line for line in told)
    assert " ".join(line.strip() for line in told).strip() == f"found {path} of 1,000 bytes in 12 files"
    assert [line[:4] for line in told[1:-1]] == ["    "] * len(told[1:-1])
