"""A run is killed with SIGKILL at random moments and resumed: nothing is lost, nothing is run twice, nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fabricbench.lab import lab_support, running_labs
from support.processes import FABRICBENCH, held_namespaces, marked_processes, new_mark
from support.tiny_campaign import tiny_campaign

KILLS = 6  # benchmarks/soak.py has thousands
LATEST_KILL_SECONDS = 5.0
GONE_SECONDS = 10.0

CAMPAIGN = tiny_campaign(("tcp", "mpi"), blocks=12)


class Victim:
    """A run in a lab of its own that can be started, killed and resumed; all its processes carry a mark in their environment."""

    def __init__(self, directory: Path) -> None:
        self.run_directory = directory / "run"
        self.campaign = directory / "tiny.toml"
        self.campaign.write_text(CAMPAIGN)
        self.mark, marked = new_mark()
        self.environment = {**os.environ, **marked, "XDG_STATE_HOME": str(directory / "state")}

    def command(self) -> list[str]:
        if (self.run_directory / "plan.json").exists():
            return [FABRICBENCH, "resume", str(self.run_directory)]
        where = ["--testbed", "lab:fast-ethernet,myrinet", "--nodes", "2"]
        return [FABRICBENCH, "run", str(self.campaign), *where, "--seed", "1", "-o", str(self.run_directory)]

    def run_for(self, seconds: float) -> None:
        process = subprocess.Popen(
            self.command(), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def finished(self) -> dict[str, int]:
        """Each finished launch with the time at which its last file was put in place."""
        found = {}
        for path in self.run_directory.glob("launches/*/launch.json"):
            if json.loads(path.read_text())["complete"]:
                found[path.parent.name] = path.stat().st_mtime_ns
        return found


@pytest.mark.lab
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_killed_at_random_moments_resumes_without_losing_or_repeating_anything(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    victim = Victim(tmp_path)
    moments = random.Random(20)
    outside = outside_of_labs()
    before: dict[str, int] = {}
    for kill in range(KILLS):
        victim.run_for(moments.uniform(0.2, LATEST_KILL_SECONDS))
        assert_all_gone(victim, f"after kill {kill + 1}")
        after = victim.finished()
        assert before.items() <= after.items(), "a finished launch was lost or run again"
        before = after
    done = subprocess.run(victim.command(), env=victim.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_all_gone(victim, "after the last resume")
    assert before.items() <= victim.finished().items()
    assert len(victim.finished()) == 24
    assert_no_launch_was_started_after_it_was_finished(victim)
    assert outside_of_labs() == outside
    assert labs_of(victim) == []


def assert_all_gone(victim: Victim, when: str) -> None:
    """No process is left, and so no namespace and no interface: nothing else holds one open."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := marked_processes(victim.mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == [], f"processes left {when}"


def assert_no_launch_was_started_after_it_was_finished(victim: Victim) -> None:
    lines = (victim.run_directory / "journal.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    finished: set[str] = set()
    for entry in entries:
        if entry["event"] == "started":
            assert entry["launch_id"] not in finished
        elif entry["event"] in ("finished", "adopted"):
            assert entry["launch_id"] not in finished
            finished.add(entry["launch_id"])
    assert len(finished) == 24


def outside_of_labs() -> tuple[list[str], list[str]]:
    """The interfaces outside of any lab, and what holds namespaces open without a process."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir()), held_namespaces()


def labs_of(victim: Victim) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", victim.environment["XDG_STATE_HOME"])
        return running_labs()
