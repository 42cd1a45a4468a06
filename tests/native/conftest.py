"""Starts the measurer on this machine and reads what it wrote, always under a time limit. No record contradicts itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fabricbench.native import native_file
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.probe_plan import plan_beside
from fabricbench.record.reading import read_record
from support.measurer import TIME_LIMIT_S, Outcome, command_of, plan_of


@pytest.fixture
def probe(tmp_path: Path) -> Callable[..., Outcome]:
    """Run probes over the loopback; `prefix` goes before the launcher's command."""

    def run(
        probes: Sequence[dict[str, Any]],
        *,
        ranks: int = 2,
        fabric: dict[str, Any] | None = None,
        prefix: Sequence[str] = (),
    ) -> Outcome:
        output = tmp_path / "records.jsonl"
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps(plan_of(probes, output, fabric)))
        done = subprocess.run(
            [*prefix, *command_of(plan, ranks)],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "LD_PRELOAD": str(native_file("libfabricbench-yield.so"))},
        )
        lines = (
            [LINE_ADAPTER.validate_json(line) for line in output.read_text().splitlines()] if output.exists() else []
        )
        if done.returncode == 0 and lines:
            assert read_record(output, plan_beside(tmp_path)).damage == []
        return Outcome(done.returncode, done.stderr, lines)

    return run
