"""Applications described in TOML for tests: tables, campaigns, starts, and what is read of an output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import Campaign, campaign_of
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.testbed.model import Testbed
from fabricbench.workload.adapter import Output, WorkloadResult
from fabricbench.workload.command_start import CommandStart
from fabricbench.workload.counted import AROUND, MPI_LINE, rank_line

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {"found": [r"\S"]}
"""A good run prints anything at all."""
TIME = {"name": "time", "regex": r"^time (\S+)$", "unit": "s", "better": "lower"}
RATE = {"name": "rate", "regex": r"^rate (\S+)$", "unit": "GFLOP/s", "better": "higher"}


def table(**keys: Any) -> dict[str, Any]:
    tiny = {"kind": "command", "name": "tiny", "command": ["echo", "{ranks}"], "figure": [TIME], "success": PRINTED}
    return {**tiny, **keys}


def campaign(*tables: dict[str, Any], source: str = "c.toml", **keys: Any) -> Campaign:
    return campaign_of({"campaign": {"blocks": 2, **keys}, "workload": list(tables)}, source)


def lab_of(nodes: int = 4) -> Testbed:
    return plan_lab("four", nodes, parse_fabrics("fast-ethernet,myrinet"), [0, 1]).testbed()


def starts(*tables: dict[str, Any]) -> list[CommandStart]:
    plan = plan_run(campaign(*tables), lab_of(), seed=1)
    found = {launch.workload.name: launch.workload for launch in plan.launches if launch.workload}
    return [one for _, one in sorted(found.items()) if isinstance(one, CommandStart)]


def start(**keys: Any) -> CommandStart:
    (one,) = starts(table(**{"ranks": [2], **keys}))
    return one


def parsed(
    directory: Path,
    one: CommandStart,
    stdout: str,
    *,
    stderr: str = "",
    exit_code: int | None = 0,
    lasted: float = 3.0,
    **files: str,
) -> WorkloadResult:
    """What is read of an output, as `counted` frames it, of a program that ran so many seconds."""
    around = f"{MPI_LINE}MPICH 5\n" + "".join(rank_line(rank, 100 + rank) for rank in range(one.ranks))
    (directory / "stdout.log").write_text(around + stdout)
    (directory / "stderr.log").write_text(stderr)
    for name, text in files.items():
        (directory / name.replace("_", ".")).write_text(text)
    if exit_code is not None:
        told = {"exit_code": exit_code, "started_unix_ns": 10**18, "finished_unix_ns": 10**18 + round(lasted * 1e9)}
        (directory / AROUND).write_text(json.dumps({**told, "interfaces": {"fe0": {"sent": 5, "received": 7}}}))
    found = one.parse(Output(directory, directory / "stdout.log", directory / "stderr.log"))
    assert found is not None
    return found
