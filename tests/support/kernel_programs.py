"""Our own kernels as workloads: the starts that a campaign's tables come to, and what is read of what their programs left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.workload.adapter import Output, WorkloadResult, WorkloadStart
from support.applications import lab_of

OneStart = TypeVar("OneStart", bound=WorkloadStart)


def starts_of(kind: type[OneStart], tables: Mapping[str, Any], nodes: int = 4) -> list[OneStart]:
    """Return the starts that tables, {"hpl": [...]} or {"workload": [...]}, come to on a lab, by name; all are of the kind."""
    plan = plan_run(campaign_of({"campaign": {"blocks": 2}, **tables}, "c.toml"), lab_of(nodes), seed=1)
    found = {launch.workload.name: launch.workload for launch in plan.launches if launch.workload}
    of_kind = [one for _, one in sorted(found.items()) if isinstance(one, kind)]
    assert len(of_kind) == len(found)
    return of_kind


def parsed_by(
    start: WorkloadStart, directory: Path, header: Mapping[str, Any], *runs: Mapping[str, Any]
) -> WorkloadResult:
    """Return what a start reads of a whole record: its header, its runs, and the footer that counts them."""
    verified = sum(run["verified"] for run in runs)
    footer = {"type": "kernel_footer", "finished_unix_ns": 2, "runs": len(runs), "verified": verified}
    lines = (json.dumps(line) for line in (header, *runs, footer))
    (directory / KERNEL_RECORDS).write_text("".join(f"{line}\n" for line in lines))
    found = start.parse(Output(directory, directory / "stdout.log", directory / "stderr.log"))
    assert found is not None
    return found
