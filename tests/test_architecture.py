"""The import directions of ARCHITECTURE.md, held."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fabricbench

PACKAGE = Path(fabricbench.__file__).parent
BASE = {"errors", "model", "patterns", "quantity", "native", "configuration", "printable"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "patterns": {"model"},
    "quantity": {"errors"},
    "native": {"errors"},
    "printable": set(),
    "configuration": {"errors"},
    "testbed": BASE,
    "lab": BASE | {"testbed"},
    "record": BASE | {"testbed"},
    "workload": BASE | {"testbed", "record"},
    "launch": BASE | {"testbed", "record", "lab"},
    "campaign": BASE | {"testbed", "record", "workload", "launch", "lab", "statistics"},
    "statistics": {"errors"},
    "analysis": BASE | {"record", "statistics", "testbed"},
    "published": BASE | {"testbed"},
    "report": BASE | {"analysis", "published"},
    "api": BASE | {"analysis", "campaign", "published", "record", "report", "testbed"},
}


def rooms() -> list[tuple[str, Path]]:
    """Every source file with the room it stands in."""
    return [(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path) for path in sorted(PACKAGE.rglob("*.py"))]


def imports_of(path: Path) -> set[str]:
    """The modules of ours that a file imports, without the leading `fabricbench.`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("fabricbench.") for name in found if name.startswith("fabricbench.")}


@pytest.mark.parametrize(
    ("room", "path"), rooms(), ids=lambda value: str(value) if isinstance(value, str) else value.stem
)
def test_a_file_imports_only_what_its_room_may(room: str, path: Path):
    if room in {"__init__", "cli"}:
        return
    allowed = MAY_IMPORT[room] | {room, "__version__"}
    assert {name.split(".")[0] for name in imports_of(path)} <= allowed


def test_report_takes_only_findings_from_the_analysis():
    for room, path in rooms():
        if room == "report":
            taken = {name for name in imports_of(path) if name.startswith("analysis")}
            assert all(name.startswith("analysis.findings") for name in taken), (path, taken)


def test_only_the_command_line_prints_or_exits():
    for room, path in rooms():
        if room == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"print", "exit"}, path


def test_a_pattern_asks_its_path_for_the_memory_of_messages():
    for path in sorted((Path(__file__).parents[1] / "native" / "pattern").glob("*.[ch]pp")):
        assert not re.search(r"\bMessageBuffer( \w+)?[({]", path.read_text()), path


def test_a_pattern_sends_nothing_where_the_ranks_of_a_cell_agree():
    # What one rank of a failed pattern left there was once taken for what the ranks agree on next.
    for path in sorted((Path(__file__).parents[1] / "native" / "pattern").glob("*.[ch]pp")):
        for call in ("send_text", "receive_text", "converge", "team.broadcast"):
            assert call not in path.read_text(), path
