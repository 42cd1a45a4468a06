"""Any rank may stop at any point: the launch then ends on all of them, soon, with the cause and the exit code that it deserves."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fabricbench.native import build_info, native_file
from support.measurer import TIME_LIMIT_S, command_of, plan_of

pytestmark = pytest.mark.mpi

PINGPONG: dict[str, Any] = {"layer": "udp", "pattern": "pingpong", "message_bytes": 64}
SOON_S = 20


@contextmanager
def started(command: list[str], record: Path, until: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start ranks, wait until their record has that text, and give their process ids; nothing of them is left afterwards."""
    launch = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not (record.exists() and until in record.read_text()):
            assert launch.poll() is None, launch.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield launch, [rank["pid"] for rank in json.loads(record.read_text().splitlines()[0])["ranks"]]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launch.pid, signal.SIGTERM)
        launch.wait()


@pytest.mark.parametrize("pattern", ["pingpong", "stream", "pairs"])
def test_a_disk_that_fills_up_ends_the_ranks_that_wait_for_anything(pattern: str, tmp_path: Path):
    # A limit of the file's size stands for the disk: rank 0 fails in the middle of writing a cell, while others wait to be asked.
    many = {"minimum_samples": 5000, "maximum_samples": 20_000, "maximum_seconds": 1.0, "relative_width": 1e-9}
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    cells = [{**PINGPONG, "pattern": pattern, "stopping": many} for _ in range(8)]
    plan.write_text(json.dumps(plan_of(cells, output)))
    ignoring = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"]
    with started([*ignoring, *command_of(plan, 2)], output, "header") as (launch, ranks):
        resource.prlimit(ranks[0], resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        _, stderr = launch.communicate(timeout=SOON_S)
    assert launch.returncode == 3, stderr
    assert f"cannot write {output} (write: File too large): is the disk full" in stderr


def test_a_rank_that_hangs_is_named_and_ends_the_launch(tmp_path: Path):
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    long = {"minimum_samples": 10_000_000, "maximum_samples": 10_000_000, "maximum_seconds": 2}
    cells = [PINGPONG, {**PINGPONG, "stopping": long, "reply_timeout_seconds": 0.02}]
    plan.write_text(json.dumps({**plan_of(cells, output), "patience_seconds": 4}))
    with started(command_of(plan, 2), output, "cell_end") as (launch, ranks):
        os.kill(ranks[1], signal.SIGSTOP)
        _, stderr = launch.communicate(timeout=SOON_S)
    assert launch.returncode == 1, stderr
    assert "rank 0 heard nothing from rank 1 for" in stderr
    assert "that rank hangs" in stderr
    assert '"cell_end","cell":0' in output.read_text()


def test_only_a_rank_that_waits_for_the_one_that_hangs_says_so(tmp_path: Path):
    """All others wait as well, in the tree of their agreement, since the same moment."""
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    ring = {**PINGPONG, "pattern": "sendrecv", "ranks": list(range(7)), "reply_timeout_seconds": 0.02}
    long = {"minimum_samples": 10_000_000, "maximum_samples": 10_000_000, "maximum_seconds": 2}
    plan.write_text(json.dumps({**plan_of([ring, {**ring, "stopping": long}], output), "patience_seconds": 6}))
    with started(command_of(plan, 7), output, "cell_end") as (launch, ranks):
        os.kill(ranks[3], signal.SIGSTOP)
        _, stderr = launch.communicate(timeout=SOON_S)
    assert launch.returncode == 1, stderr
    blamed = re.findall(r"rank \d heard nothing from rank (\d)", stderr)
    assert blamed
    assert set(blamed) == {"3"}, stderr


def test_a_rank_that_hangs_in_a_call_of_mpi_is_the_one_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nothing ends MPI's own calls: after 1.5 times the patience the other ranks say where they are, and end."""
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", "1")
    plan, output = tmp_path / "plan.json", tmp_path / "records.jsonl"
    call = {"layer": "mpi", "pattern": "allreduce", "message_bytes": 1 << 20, "receive": "library", "ranks": [0, 1, 2]}
    long = {"minimum_samples": 100_000, "maximum_samples": 100_000, "maximum_seconds": 8}
    cells = [{**call, "message_bytes": 8}, {**call, "stopping": long}]
    plan.write_text(json.dumps({**plan_of(cells, output), "patience_seconds": 3}))
    with started(command_of(plan, 3), output, "header") as (launch, ranks):
        while '"cell":0' not in output.read_text():  # however it ended
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(ranks[1], signal.SIGSTOP)
        _, stderr = launch.communicate(timeout=SOON_S + 10)
    assert launch.returncode != 0
    names = [f"rank {number} on" for number in (0, 2) if f"rank {number} on" in stderr]
    assert (
        "is still in cell 1 (mpi allreduce), for longer than a cell of this plan takes" in stderr
        or "that rank hangs" in stderr
    )
    assert names or "heard nothing from rank" in stderr
    assert "rank 1 on" not in stderr


def test_a_kernel_that_is_killed_on_one_rank_ends_on_all(tmp_path: Path):
    # Class C takes minutes here: it cannot have ended by itself.
    command = [build_info().mpiexec, "-n", "2", str(native_file("fabricbench-npb")), "ep", "--class", "C"]
    record = tmp_path / "kernel.jsonl"
    with started([*command, "--output", str(record)], record, "\n") as (launch, ranks):
        os.kill(ranks[1], signal.SIGKILL)
        launch.communicate(timeout=SOON_S)
    assert launch.returncode != 0
    assert not Path(f"/proc/{ranks[0]}").exists()
