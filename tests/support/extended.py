"""fabricbench with the patterns of examples/extending: their lines in the table, as whoever adds them would write them there.

python tests/support/extended.py write FOLDER     the table in C++ and the examples' headers, below FOLDER/native
python tests/support/extended.py run FOLDER ARGUMENT...  the command line `fabricbench ARGUMENT...` with the table written there
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("pair_pattern.hpp", "group_pattern.hpp", "operation.hpp")
EXAMPLES = tuple(ROOT / "examples" / "extending" / name for name in NAMES)
TABLE = ROOT / "src" / "fabricbench" / "patterns.py"
LAST_PART = "    # Programs of their own.\n"
"""Of the table; the lines go before it."""


def line_of(example: Path) -> str:
    """Return the line of the table that the head of an example says."""
    (line,) = re.findall(r"^// (    \w+ = _\w+\(.*\))$", example.read_text(), re.MULTILINE)
    return str(line)


def name_of(example: Path) -> str:
    """Return the name of the pattern that an example adds."""
    return line_of(example).split('"')[1]


def extended_table() -> str:
    """Return the source of the table with the lines of all examples."""
    before, after = TABLE.read_text().split(LAST_PART)
    return before + "".join(f"{line_of(example)}\n" for example in EXAMPLES) + LAST_PART + after


def install(source: Path) -> None:
    """Have everything that is imported from now on use the table in a file."""
    assert not any(name.startswith("fabricbench.") for name in sys.modules)
    spec = importlib.util.spec_from_file_location("fabricbench.patterns", source)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["fabricbench.patterns"] = table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)


def write(folder: Path) -> None:
    """Write what C++ has of the extended table, and each example where the table looks for it."""
    from fabricbench.patterns import PATTERNS, Pattern
    from fabricbench.record.native_table import header_of, native_files

    texts = native_files() | {header_of(PATTERNS[Pattern(name_of(each))]): each.read_text() for each in EXAMPLES}
    for name, text in texts.items():
        path = folder / "native" / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def read(directory: Path) -> dict[str, object]:
    """Return what is wrong with the record of a launch, and its cells."""
    from fabricbench.record.probe_plan import plan_beside
    from fabricbench.record.reading import read_record

    record = read_record(directory / "records.jsonl", plan_beside(directory))
    return {
        "damage": [str(one) for one in record.damage],
        "cells": [
            {
                "pattern": one.cell.pattern,
                "layer": one.cell.layer,
                "channels": sorted({(each.round, each.source, each.destination) for each in one.channels}),
            }
            for one in record.cells
            if one.cell is not None
        ],
    }


def main() -> None:
    what, folder, *arguments = sys.argv[1:]
    source = Path(folder) / "patterns.py"
    if what == "write":
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(extended_table())
    install(source)
    if what == "write":
        write(Path(folder))
    elif what == "read":
        json.dump(read(Path(arguments[0])), sys.stdout)
    else:
        from fabricbench.cli import main as fabricbench

        sys.argv = ["fabricbench", *arguments]
        fabricbench()


if __name__ == "__main__":
    main()
