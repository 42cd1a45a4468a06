"""The files that fabricbench writes into the folder of a launch, by their names: nobody else's in there is taken for ours."""

from __future__ import annotations

from fabricbench.record.integrity import HASHED

PLAN_FILE = "plan.json"
"""What the measurer was told."""
CONDITIONS_FILE = "conditions.json"
"""Written before a launch is started: the conditions that it has (`campaign.attempt`)."""
RECORDS = "records.jsonl"
KERNEL_RECORDS = "kernel.jsonl"
"""The raw record of a kernel; its content is in `launch.json`."""
FARM_PLAN, FARM_RECORDS = "farm.json", "farm.jsonl"
STDOUT_FILE, STDERR_FILE = "stdout.log", "stderr.log"
OF_PROGRAMS_ALONE = ("around.json", "around.begun", "left-behind.json")
"""Named in programs that run on nodes without the rest of fabricbench: `workload.counted` and `launch.guard`."""

OF_A_LAUNCH = frozenset(
    {PLAN_FILE, CONDITIONS_FILE, RECORDS, KERNEL_RECORDS, FARM_PLAN, FARM_RECORDS, STDOUT_FILE, STDERR_FILE}
    | {*OF_PROGRAMS_ALONE, *HASHED}
)
"""All of them; names that begin with a point, earlier attempts and imported texts are beside them."""
