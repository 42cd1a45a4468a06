"""How the program begins where it has no room, and that 1 means a failed gate and nothing else."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest
import typer
import typer.core

import fabricbench
from fabricbench import cli, entry
from support.processes import FABRICBENCH


def limited(limit: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(limit, (most, most))


def ended(*arguments: str, before: Callable[[], None] | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(FABRICBENCH), *arguments],
        check=False,
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **more},
    )


@pytest.mark.parametrize("kib", [100_000, 400_000, 600_000, 900_000, 1_100_000])
def test_too_little_address_space_is_told_in_a_sentence_at_once(kib: int):
    found = ended("list", before=limited(resource.RLIMIT_AS, kib * 1024))
    assert found.returncode == 3
    assert "address space of this process is limited to" in found.stderr
    assert len(found.stderr.splitlines()) == 2


@pytest.fixture
def crowded() -> Iterator[Path]:
    """A cgroup with room for 20 processes and threads: libraries start more, and one of them waits for ever for what it lacks."""
    folder = Path(f"/sys/fs/cgroup/pids/fabricbench-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "pids.max").write_text("20")
    except OSError as error:
        pytest.skip(f"no cgroup of processes can be made here: {error.strerror}")
    yield folder
    folder.rmdir()


def test_too_few_processes_of_a_container_are_told_at_once(crowded: Path):
    found = ended("list", before=lambda: (crowded / "cgroup.procs").write_text("0") and None)
    assert found.returncode == 3
    assert "pids.max of this container or job leaves room for 19 more processes and threads, and" in found.stderr


def test_too_few_processes_of_a_user_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(os, "getuid", lambda: 65533)  # whose are none
    for most, code in ((8, 3), (8000, None)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, most=most: (most, most))
        with pytest.raises(SystemExit) if code else nullcontext():
            entry._check_threads()
    told = capsys.readouterr().err
    assert told.startswith("fabricbench: the limit of a user's processes (ulimit -u) leaves room for 8 more processes")


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        (resource.RLIMIT_NOFILE, 12, "may open 12 files (ulimit -n), and 24"),
        (resource.RLIMIT_FSIZE, 8192, "may have 8,192 B"),
    ],
)
def test_too_few_or_too_small_files_are_told_as_that(limit: int, most: int, said: str):
    found = ended("doctor", before=limited(limit, most))
    assert found.returncode == 3
    assert said in found.stderr


def test_ctrl_c_while_the_program_is_loaded_leaves_no_traceback():
    code = """
import os, signal, sys
class Press:
    def find_spec(self, name, *_):
        if name == "fabricbench.cli":
            os.kill(os.getpid(), signal.SIGINT)
from fabricbench.entry import main
sys.meta_path.insert(0, Press())
main()
"""
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (-2, "")


def test_what_cannot_be_imported_is_told_and_is_no_failed_gate():
    code = "import sys; sys.modules['typer'] = None; from fabricbench.entry import main; main()"
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, "Traceback" in found.stderr) == (3, False)
    assert "fabricbench cannot be loaded: import of typer halted" in found.stderr


@pytest.mark.slow
def test_modules_of_another_python_below_pythonpath_are_not_ours(tmp_path: Path):
    for name in ("numpy", "typer", "pydantic", "enum", "typing", "signal"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is built for another Python')")
    found = ended("doctor", "--format", "json", PYTHONPATH=str(tmp_path))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("entry", [".", "", "here/", "../{name}/here", "{path}/here/"])
def test_pythonpath_is_last_however_it_is_written(entry: str, tmp_path: Path):
    folder = tmp_path / "here" if "here" in entry else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / "numpy.py").write_text("raise ImportError('built for another Python')")
    written = entry.format(name=tmp_path.name, path=tmp_path)
    code = "from fabricbench.entry import put_pythonpath_last; put_pythonpath_last(); import numpy"
    found = subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"/nowhere:{written}"},
    )
    assert found.returncode == 0, found.stderr


def test_children_are_started_without_pythonpath_unless_we_live_there(tmp_path: Path):
    code = "from fabricbench.interpreter import python; print(*python('a.b', 'c'))"
    package = str(Path(fabricbench.__file__).parents[1])
    for folder, is_left_out in ((str(tmp_path), True), (package, False)):
        environment = {**os.environ, "PYTHONPATH": folder}
        found = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
        )
        assert ("-E" in found.stdout.split()) is is_left_out, folder


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_are_opened_on_the_null_device(closed: tuple[int, ...], tmp_path: Path):
    """Else the next file that is opened would be written to as stdout, and `say` would find no stderr."""
    closing = f"import os; [os.close(n) for n in {closed}]; os.execv({str(FABRICBENCH)!r}, ['fabricbench', 'list'])"
    with (tmp_path / "said").open("w+b") as said:
        found = subprocess.run([sys.executable, "-c", closing], check=False, stdout=said, stderr=said, timeout=60)
    assert found.returncode == 0, (tmp_path / "said").read_text()
    assert ("Layers" in (tmp_path / "said").read_text()) is (1 not in closed)


def test_too_few_descriptors_are_told_with_what_could_not_be_opened(tmp_path: Path):
    code = (
        "import resource, sys; from fabricbench import cli; import fabricbench.record.past_runs as past\n"
        "def full(folder, judge): resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); open(sys.argv[2])\n"
        "past.past_runs = full; cli.main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, "runs", str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 3, found.stderr
    assert f"{tmp_path} cannot be opened: too many files are open, and this process may open 3" in found.stderr


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (typer.Abort(), 130),
        (EOFError(), 130),
        (OSError(errno.EPIPE, "closed"), 0),
        (typer.BadParameter("no"), 2),
        (typer.core._click.exceptions.FileError("no"), 2),  # type: ignore[attr-defined]
        (MemoryError(), 3),
        (ImportError("no"), 3),
        (pl.exceptions.PanicException("could not spawn threads"), 3),
        (OSError(errno.EMFILE, "many", "a file"), 3),
        (SystemExit(1), 70),
        (RuntimeError("a bug"), 70),
    ],
)
def test_one_means_a_failed_gate_and_nothing_else(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("fabricbench.cli.runs.past_runs", fail)
    monkeypatch.setattr(sys, "argv", ["fabricbench", "runs", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
