"""Write the JSON Schemas of the contract between Python and C++ from the models: `python -m ... schema/`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fabricbench.record.kernel_lines import KERNEL_LINE_ADAPTER
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.probe_plan import ProbePlan


def schemas() -> dict[str, object]:
    """Return the schemas by file name."""
    return {
        "plan.json": ProbePlan.model_json_schema(),
        "record.json": LINE_ADAPTER.json_schema(),
        "kernel_record.json": KERNEL_LINE_ADAPTER.json_schema(),
    }


def main() -> None:
    """Write every schema into the folder given."""
    folder = Path(sys.argv[1])
    for name, schema in schemas().items():
        (folder / name).write_text(json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    main()
