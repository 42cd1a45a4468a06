"""What is said of launches that failed: the log that tells why, whichever of the two it is."""

from __future__ import annotations

from pathlib import Path

from fabricbench.campaign.failure import AttemptEnd, Failure, does_not_start, run_incomplete
from fabricbench.campaign.order import LaunchPlan
from fabricbench.launch.launcher import Command

LAUNCH = LaunchPlan(
    launch_id="b00-a", block=0, position=0, fabric="a", token=0, cells=(0,), estimated_seconds=1.0, workload=None
)


def failed(stderr: str = "", stdout: str = "") -> Failure:
    command, reason = Command((), Path("/run/b00-a")), "ended with exit code 7"
    return Failure(LAUNCH, command, AttemptEnd.WITH_AN_ERROR, reason, False, stderr, 7, stdout)


def test_a_program_that_says_why_on_stdout_alone_is_quoted_from_there():
    """Programs that find /dev/shm too small say so on stdout."""
    for error in (
        does_not_start(failed(stdout="no room in /dev/shm"), Path("/run")),
        run_incomplete([failed(stdout="no room in /dev/shm")], 0, 2, Path("/run")),
    ):
        assert "the end of /run/b00-a/stdout.log (stderr.log beside it is empty):" in error.message
        assert error.message.endswith("    no room in /dev/shm")
    hint = does_not_start(failed(stdout="no room in /dev/shm"), Path("/run")).hint
    assert str(hint).endswith("the log is /run/b00-a/stdout.log")


def test_stderr_comes_first_and_a_program_that_said_nothing_is_told_as_such():
    assert "the end of /run/b00-a/stderr.log:\n    killed" in does_not_start(failed("killed", "done"), Path()).message
    said = does_not_start(failed(), Path()).message
    assert said.endswith("stderr.log:\n    (it wrote nothing to stderr, and nothing to stdout)")
