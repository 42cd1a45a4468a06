"""A rank that gets no memory: its cell fails on all ranks with that cause and the launch goes on, or the launch ends with it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fabricbench.native import native_file
from support.measurer import TIME_LIMIT_S, command_of, plan_of
from support.scripts import script

pytestmark = pytest.mark.mpi

MIB = 1 << 20
SMALL: dict[str, Any] = {"layer": "tcp", "pattern": "pingpong", "message_bytes": 64}
OUT_OF_MEMORY = "out of memory: use smaller messages or fewer samples"


def launched(
    folder: Path, probes: list[dict[str, Any]], *, limited: int, kib: int, ranks: int = 2, patience_s: float = 20
) -> tuple[int, str, list[dict[str, Any]]]:
    """Run probes while one rank may have no more than so much address space; the exit code, stderr and the record's lines."""
    limit = f'[ "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" = {limited} ] && ulimit -v {kib}\nexec "$@"'
    plan, output = folder / "plan.json", folder / "records.jsonl"
    plan.write_text(json.dumps({**plan_of(probes, output), "patience_seconds": patience_s}))
    done = subprocess.run(
        command_of(plan, ranks, through=script(folder / "limited.sh", limit)),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
        env={**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))},
    )
    lines = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    return done.returncode, done.stderr, lines


def reason_of(lines: list[dict[str, Any]], cell: int) -> str:
    return next((str(line["reason"]) for line in lines if line["type"] == "cell_failed" and line["cell"] == cell), "")


@pytest.mark.parametrize(
    ("layer", "pattern", "mib", "limited"),
    [
        ("tcp", "pingpong", 256, 0),
        ("tcp", "pingpong", 256, 1),
        ("tcp", "pingping", 256, 0),
        ("tcp", "oneway", 256, 0),
        ("tcp", "stream", 256, 1),
        ("tcp", "bistream", 256, 1),
        ("mpi", "stream", 256, 0),
        ("mpi", "incast", 96, 0),  # whose sender needs one buffer, and its receiver several
        ("mpi", "allreduce", 256, 0),
        ("mpi", "allreduce", 256, 1),
        ("mpi", "reduce", 256, 0),  # whose root alone receives
        ("mpi", "put", 256, 1),
        ("mpi", "partitioned", 256, 0),
        ("mpi", "threaded", 256, 1),
    ],
)
def test_a_rank_without_memory_for_messages_fails_its_cell_and_no_other(
    layer: str, pattern: str, mib: int, limited: int, tmp_path: Path
):
    large = {"layer": layer, "pattern": pattern, "message_bytes": mib * MIB, "verify_messages": 0}
    code, stderr, lines = launched(tmp_path, [large, SMALL], limited=limited, kib=300_000)
    assert code == 0, stderr
    assert reason_of(lines, 0).startswith(f"rank {limited} on ")
    assert reason_of(lines, 0).endswith(OUT_OF_MEMORY)
    assert lines[-1] == {**lines[-1], "type": "footer", "cells": 1, "failed": 1}


def test_a_rank_without_memory_for_the_samples_of_a_matrix_fails_that_and_no_other(tmp_path: Path):
    many = {"minimum_samples": 1, "maximum_samples": 30_000_000, "maximum_seconds": 0.1}
    pairs = {"layer": "udp", "pattern": "pairs-stream", "message_bytes": 64, "stopping": many}
    code, stderr, lines = launched(tmp_path, [pairs, SMALL], limited=1, kib=420_000)
    assert code == 0, stderr
    assert reason_of(lines, 0).endswith(OUT_OF_MEMORY)
    assert "rank 1 on " in reason_of(lines, 0)
    assert lines[-1] == {**lines[-1], "type": "footer", "cells": 1, "failed": 1}


@pytest.mark.alone  # five seconds are its ranks' patience
def test_a_rank_on_which_mpi_itself_lacks_memory_is_named_as_the_cause(tmp_path: Path):
    """Its call fails there, long before patience ends, and holds the other rank, which the launch cannot wait for."""
    large = {"layer": "mpi", "pattern": "allreduce", "message_bytes": 64 * MIB, "verify_messages": 1}
    code, stderr, lines = launched(tmp_path, [large, SMALL], limited=1, kib=235_000, patience_s=5)
    if code == 0:
        assert reason_of(lines, 0).startswith("rank 1 on ")  # this MPI told every rank of it
    else:
        assert "rank 1 on " in stderr
        assert "MPI_Allreduce failed" in stderr
        assert stderr.index("MPI_Allreduce failed") < stderr.index("rank 1 heard nothing from rank 0")


@pytest.mark.parametrize("kib", [120_000, 95_000, 80_000, 75_000, 70_000])
def test_a_report_that_is_too_large_for_rank_0_ends_the_launch_with_that_cause(kib: int, tmp_path: Path):
    """Which of the limits are too low depends on the MPI; below some it does not even begin."""
    million = {"minimum_samples": 1_000_000, "maximum_samples": 1_000_000, "maximum_seconds": 20}
    stream = {"layer": "tcp", "pattern": "stream", "message_bytes": 1, "stopping": million}
    code, stderr, lines = launched(tmp_path, [stream, SMALL], limited=0, kib=kib)
    if not lines:
        pytest.skip(f"MPI does not begin with {kib} KiB")
    assert (code, lines[-1]["type"]) == (0, "footer") or (code == 1 and "out of memory" in stderr), stderr
    assert "same fabricbench-probe" not in stderr
    if code == 1:
        assert "rank 0 on " in stderr
