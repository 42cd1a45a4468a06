"""Write what C++ shares with Python, from the models and the table of patterns: `python -m ... schema/`.

The JSON Schemas of the contract go into the folder given, the table of patterns into `native` beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fabricbench.record.farm_lines import FARM_LINE_ADAPTER, FarmPlan
from fabricbench.record.kernel_lines import KERNEL_LINE_ADAPTER
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.native_table import native_files
from fabricbench.record.probe_plan import ProbePlan


def schemas() -> dict[str, object]:
    """Return the schemas by file name."""
    return {
        "plan.json": ProbePlan.model_json_schema(),
        "record.json": LINE_ADAPTER.json_schema(),
        "kernel_record.json": KERNEL_LINE_ADAPTER.json_schema(),
        "farm_plan.json": FarmPlan.model_json_schema(),
        "farm_record.json": FARM_LINE_ADAPTER.json_schema(),
    }


def main() -> None:
    """Write every schema into the folder given, and the native files into `native` beside it."""
    folder = Path(sys.argv[1])
    texts = {folder / name: json.dumps(schema, indent=2) + "\n" for name, schema in schemas().items()}
    texts |= {folder.absolute().parent / "native" / name: text for name, text in native_files().items()}
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:  # an untouched file is not compiled again
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
