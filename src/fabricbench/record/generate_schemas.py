"""Write what C++ shares with Python, from the models and the table of patterns: `python -m ... schema/`.

The JSON Schemas of the contract go into the folder given, the table of patterns into `native` beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import IntSchema

from fabricbench.model import LARGEST_INTEGER
from fabricbench.record.farm_lines import FARM_LINE_ADAPTER, FarmPlan
from fabricbench.record.kernel_lines import KERNEL_LINE_ADAPTER
from fabricbench.record.lines import LINE_ADAPTER
from fabricbench.record.native_table import native_files
from fabricbench.record.probe_plan import ProbePlan


class WithoutUsualBounds(GenerateJsonSchema):
    """JSON Schemas in which an integer of 64 bits, as every one is (`model.Model`), says no more than that it is one."""

    def int_schema(self, schema: IntSchema) -> JsonSchemaValue:
        """Leave out the bounds of 64 bits."""
        usual = {"ge": -LARGEST_INTEGER - 1, "le": LARGEST_INTEGER}
        own = {key: value for key, value in schema.items() if value != usual.get(key)}
        return super().int_schema(cast("IntSchema", own))


def schemas() -> dict[str, object]:
    """Return the schemas by file name."""
    return {
        "plan.json": ProbePlan.model_json_schema(schema_generator=WithoutUsualBounds),
        "record.json": LINE_ADAPTER.json_schema(schema_generator=WithoutUsualBounds),
        "kernel_record.json": KERNEL_LINE_ADAPTER.json_schema(schema_generator=WithoutUsualBounds),
        "farm_plan.json": FarmPlan.model_json_schema(schema_generator=WithoutUsualBounds),
        "farm_record.json": FARM_LINE_ADAPTER.json_schema(schema_generator=WithoutUsualBounds),
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
