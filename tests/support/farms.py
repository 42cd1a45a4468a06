"""Task farms over the loopback, without a campaign: what is started, what it leaves behind, and whether anything stays."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricbench.native import build_info, native_file
from fabricbench.record.farm_jobs import JobEnd
from fabricbench.record.farm_lines import FarmPlan, FarmRecord, read_farm_record
from fabricbench.record.launch_files import FARM_RECORDS
from support.processes import marked_processes, new_mark

TIME_LIMIT_S = 60


@dataclass(frozen=True)
class Outcome:
    """What a farm left behind."""

    code: int
    stderr: str
    record: FarmRecord
    folder: Path

    def ended(self) -> list[JobEnd]:
        return [one.ended for one in self.record.attempts]


class Farms:
    """Farms over the loopback, whose jobs and helpers carry a mark."""

    def __init__(self, folder: Path) -> None:
        self.mark, self._variables = new_mark()
        self._folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()

    def plan(self, **keys: Any) -> Path:
        plan = {
            "name": "tiny",
            "jobs": 6,
            "input_bytes": 1000,
            "at_once": 1,
            "retries": 1,
            "job_seconds": 30,
            "output_bytes": 0,
            "scratch": str(self.scratch),
            "patience_seconds": 30,
            **keys,
        }
        path = self._folder / "farm.json"
        path.write_text(FarmPlan.model_validate(plan).model_dump_json(by_alias=True))
        return path

    def start(self, ranks: int = 3, prefix: Sequence[str] = (), **keys: Any) -> subprocess.Popen[str]:
        record = self._folder / FARM_RECORDS
        record.unlink(missing_ok=True)
        command = [build_info().mpiexec, "-n", str(ranks), str(native_file("fabricbench-farm"))]
        yields = str(native_file("libfabricbench-yield.so"))
        return subprocess.Popen(
            [*prefix, *command, "--output", str(record), str(self.plan(**keys))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._variables, "LD_PRELOAD": yields},
            cwd=self._folder,
        )

    def end(self, farm: subprocess.Popen[str]) -> Outcome:
        _, stderr = farm.communicate(timeout=TIME_LIMIT_S)
        record = self._folder / FARM_RECORDS
        read = read_farm_record(record) if record.exists() else FarmRecord()
        return Outcome(farm.returncode, stderr, read, self._folder)

    def run(self, ranks: int = 3, prefix: Sequence[str] = (), **keys: Any) -> Outcome:
        return self.end(self.start(ranks, prefix, **keys))

    def wait_until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def is_nothing_left(self) -> bool:
        return not marked_processes(self.mark) and not list(self.scratch.iterdir())
