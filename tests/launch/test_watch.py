"""Real processes: whatever a launch starts ends with it, however it ends."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.launch import guard, watch
from fabricbench.launch.launcher import Command
from fabricbench.launch.watch import Growth, guarded, run_watched, tail
from support.processes import marked_processes, new_mark


class Started:
    """Commands whose processes, also orphans in other sessions, can be found by a mark."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark, self.environment = new_mark()

    def command(self, script: str) -> Command:
        return Command(guarded(["/bin/sh", "-c", script]), self.directory, self.environment)

    def left(self, seconds: float = 4.0) -> list[str]:
        deadline = time.monotonic() + seconds
        while (found := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    yield (each := Started(tmp_path))
    assert each.left(0.5) == []


ORPHAN = "setsid sh -c 'trap \"\" TERM; sleep 300' & "
"""A process in a session of its own that ignores SIGTERM: what a starter's proxy on a bad day looks like."""


def test_output_goes_to_files_and_the_exit_code_and_the_tail_of_stderr_come_back(started: Started):
    outcome = run_watched(started.command("echo out; seq 100 >&2; exit 3"), limit_seconds=20)
    assert outcome.exit_code == 3
    assert not outcome.is_hung
    assert outcome.stderr_tail.splitlines() == [str(number) for number in range(89, 101)]
    assert outcome.stdout_tail == "out"
    assert (started.directory / "stdout.log").read_text() == "out\n"


def test_death_by_a_signal_is_told_as_a_shell_does(started: Started):
    assert run_watched(started.command("kill -SEGV $$"), limit_seconds=20).exit_code == 128 + signal.SIGSEGV


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_at_its_limit_with_its_orphans_and_its_log(started: Started):
    begin = time.monotonic()
    outcome = run_watched(started.command(ORPHAN + "echo waiting >&2; sleep 300"), limit_seconds=1.0)
    assert outcome.is_hung
    assert outcome.stderr_tail == "waiting"
    assert time.monotonic() - begin < 10
    assert started.left() == []


def test_a_command_that_prints_without_end_is_ended_and_the_log_is_named(
    started: Started, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watch, "MOST_LOG_BYTES", 100_000)
    outcome = run_watched(started.command("yes >&2"), limit_seconds=60)
    assert (outcome.exit_code, outcome.flooded, outcome.is_hung) == (None, "stderr.log", False)
    assert outcome.seconds < 30
    outcome = run_watched(started.command("yes | head -c 200000"), limit_seconds=60)
    assert (outcome.exit_code, outcome.flooded) == (0, None)


def growing(started: Started, most_seconds: float) -> Growth:
    return Growth((started.directory / "record",), silent_seconds=1.5, most_seconds=most_seconds)


@pytest.mark.slow
def test_a_command_whose_record_grows_goes_on_beyond_its_limit_and_is_ended_once_it_is_silent(started: Started):
    write = "for i in 1 2 3 4 5; do echo $i >> record; sleep 0.4; done"
    outcome = run_watched(started.command(write), limit_seconds=0.6, growth=growing(started, 30.0))
    assert outcome.exit_code == 0
    outcome = run_watched(started.command(f"{write}; sleep 300"), limit_seconds=0.6, growth=growing(started, 30.0))
    assert outcome.is_hung
    assert 2.0 < outcome.seconds < 15


def test_a_command_whose_record_grows_without_end_is_ended_all_the_same(started: Started):
    write = "while sleep 0.2; do echo more >> record; done"
    outcome = run_watched(started.command(write), limit_seconds=0.5, growth=growing(started, 1.5))
    assert outcome.is_hung


def test_orphans_do_not_outlive_a_command_that_ended_well(started: Started):
    assert run_watched(started.command(ORPHAN + "exit 0"), limit_seconds=20).exit_code == 0
    assert started.left() == []


def test_what_is_raised_meanwhile_ends_the_command_first(started: Started):
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_watched(started.command(ORPHAN + "sleep 300"), limit_seconds=60, on_tick=interrupt)
    assert started.left() == []


@pytest.mark.slow
def test_a_killed_caller_leaves_nothing_behind(started: Started):
    caller = f"""
from pathlib import Path
from fabricbench.launch import guard, watch
from fabricbench.launch.launcher import Command
from fabricbench.launch.watch import guarded, run_watched
run_watched(Command(guarded(["/bin/sh", "-c", {ORPHAN + "sleep 300"!r}]), Path({str(started.directory)!r})), limit_seconds=60)
"""
    process = subprocess.Popen([sys.executable, "-c", caller], env={**os.environ, **started.environment})
    deadline = time.monotonic() + 20
    while len(marked_processes(started.mark)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(marked_processes(started.mark)) >= 4, "caller, guard, shell, sleep"
    process.kill()
    process.wait()
    assert started.left() == []


def test_what_a_killed_guard_leaves_is_ended_before_the_launch_is_over(started: Started):
    """`kill -9` of the guard, or the kernel's choice for want of memory, between the watcher and the ranks."""
    outcome = run_watched(started.command(ORPHAN + "sleep 0.2; kill -KILL $PPID; sleep 300"), limit_seconds=20)
    assert outcome.exit_code == -signal.SIGKILL, "no exit code that a program may have: the launch is measured again"
    assert started.left(0.0) == []
    assert outcome.left_behind == ()


@pytest.fixture
def nobodys(tmp_path: Path) -> Path:
    """A directory of nobody's, to run as that user what root's processes are children of."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a process of another user that this one may not end")
    directory = tmp_path / "nobodys"
    directory.mkdir()
    for each in (directory, *directory.parents):
        if each == Path("/tmp"):
            break
        each.chmod(0o777)
    return directory


def test_a_process_of_another_user_costs_neither_the_exit_code_nor_time_and_is_told(nobodys: Path):
    becomes_root = Path(shutil.copy("/usr/bin/setpriv", nobodys))
    becomes_root.chmod(0o4755)
    mark, marked = new_mark()
    script = f"{becomes_root} --reuid 0 sleep 7.125 & setsid sleep 300 & sleep 0.1; exit 7"
    begin = time.monotonic()
    child = os.fork()
    if not child:  # nobody may not read this Python, but may run what is loaded already
        os.environ |= marked
        os.chdir(nobodys)
        with open("stderr", "w") as stderr:  # noqa: PTH123
            os.setgid(65534)
            os.setuid(65534)
            sys.stderr = stderr
            code = 99
            with suppress(BaseException):
                code = guard.main(["/bin/sh", "-c", script])
        os._exit(code)
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - begin
    assert os.waitstatus_to_exitcode(status) == 7
    assert seconds < 6
    [left] = marked_processes(mark)
    assert left.endswith("sleep 7.125 "), "all others have ended"
    pid = int(left.split()[0])
    os.kill(pid, signal.SIGKILL)
    [told] = json.loads((nobodys / guard.LEFT_FILE).read_text())
    assert told == {"pid": pid, "command": "sleep 7.125", "user": pwd.getpwuid(0).pw_name}
    assert "could not be ended" in (nobodys / "stderr").read_text()


def test_what_the_guard_could_not_end_comes_back_with_the_outcome(started: Started):
    left = [{"pid": 17, "command": "sudo sleep 300", "user": "root"}]
    outcome = run_watched(started.command(f"echo '{json.dumps(left)}' >{guard.LEFT_FILE}"), limit_seconds=20)
    assert [str(one) for one in outcome.left_behind] == ["process 17 (sudo sleep 300, user root)"]


def test_ending_gives_up_on_what_stays_after_sigkill(monkeypatch: pytest.MonkeyPatch):
    """As a process that is stuck in a dead file server's call does: signals have no effect."""
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(guard, "KILL_SECONDS", 0.05)
    monkeypatch.setattr(os, "kill", lambda _pid, _number: None)
    assert guard.end_all(lambda: [17]) == [17]


def test_a_program_that_is_not_there_is_said_in_its_log(started: Started):
    command = Command(guarded(["/no/such/mpiexec"]), started.directory, started.environment)
    outcome = run_watched(command, limit_seconds=20)
    assert outcome.exit_code == 127
    assert outcome.stderr_tail == "/no/such/mpiexec: No such file or directory"


def test_an_enterer_that_is_not_there_is_an_environment_that_lacks_something(started: Started):
    with pytest.raises(EnvironmentLacks, match="nsenter-of-old cannot be started"):
        run_watched(Command(("nsenter-of-old",), started.directory), limit_seconds=20)


def test_the_tail_of_a_log_that_is_not_there_is_empty(tmp_path: Path):
    assert tail(tmp_path / "none.log") == ""
