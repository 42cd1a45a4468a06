"""Plans for the measurer on this machine, how it is started, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricbench.native import build_info, native_file
from fabricbench.record.lines import Cell, CellEnd, CellFailed, Header, Phase, Samples
from fabricbench.record.probe_plan import ProbePlan, options_of

TIME_LIMIT_S = 60
LOOPBACK = {"name": "loopback", "interface": "lo", "subnet": "127.0.0.0/8", "mtu": 65536}


@dataclass(frozen=True)
class Outcome:
    """What a launch of the measurer left behind."""

    code: int
    stderr: str
    lines: list[Any]

    @property
    def header(self) -> Header:
        return self.lines[0]

    def cell(self, number: int) -> Cell:
        return next(line for line in self.lines if isinstance(line, Cell) and line.id == number)

    def end(self, number: int) -> CellEnd:
        return next(line for line in self.lines if isinstance(line, CellEnd) and line.cell == number)

    def failed(self, number: int) -> CellFailed:
        return next(line for line in self.lines if isinstance(line, CellFailed) and line.cell == number)

    def times(self, number: int, phase: Phase = Phase.MEASURED) -> list[int]:
        batches = [line for line in self.lines if isinstance(line, Samples) and line.cell == number]
        return [time for batch in batches if batch.phase is phase for time in batch.time_ns]

    def bytes(self, number: int) -> list[int]:
        batches = [line for line in self.lines if isinstance(line, Samples) and line.cell == number]
        return [count for batch in batches if batch.phase is Phase.MEASURED for count in batch.bytes or ()]


def plan_of(probes: Sequence[dict[str, Any]], output: Path, fabric: dict[str, Any] | None = None) -> dict[str, Any]:
    """A plan over the loopback with short cells; a probe's own keys win."""
    short = {"stopping": {"maximum_samples": 500, "maximum_seconds": 0.1}, "warmup_samples": 3}
    plan = {
        "schema": "fabricbench/plan/1",
        "launch_id": "b00-loopback",
        "token": 0xFAB1,
        "secret": "00112233445566778899aabbccddeeff",
        "fabric": fabric or LOOPBACK,
        "output": str(output),
        "probes": [{"id": number, **short, **probe} for number, probe in enumerate(probes)],
    }
    ProbePlan.model_validate(plan)
    return plan


def command_of(plan: Path, ranks: int, *, through: Path | None = None) -> list[str]:
    """The tokens that start the measurer on this machine with the MPI that it was built with, by a script if one is given."""
    try:
        options = options_of(ProbePlan.model_validate_json(plan.read_bytes()).probes)
    except (OSError, ValueError):
        options = []  # the measurer is to say what is wrong
    program = [*([str(through)] if through else []), str(native_file("fabricbench-probe"))]
    return [build_info().mpiexec, "-n", str(ranks), *program, *options, str(plan)]
