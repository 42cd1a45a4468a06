"""The import directions of ARCHITECTURE.md, held."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fabricbench

PACKAGE = Path(fabricbench.__file__).parent
BASE = {
    "errors",
    "model",
    "pattern_facts",
    "patterns",
    "quantity",
    "units",
    "native",
    "configuration",
    "deadline",
    "preload",
    "printable",
    "private",
    "interpreter",
    "table",
}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "deadline": set(),
    "preload": set(),
    "interpreter": set(),
    "model": {"errors", "pattern_facts", "patterns"},
    "pattern_facts": set(),
    "patterns": {"pattern_facts"},
    "quantity": {"errors"},
    "units": {"quantity"},
    "native": {"errors"},
    "printable": set(),
    "private": {"errors"},
    "table": {"printable"},
    "configuration": {"errors", "printable"},
    "testbed": BASE,
    "lab": BASE | {"testbed"},
    "record": BASE | {"testbed"},
    "workload": BASE | {"testbed", "record"},
    "exchange": BASE | {"testbed", "record", "workload"},
    "launch": BASE | {"testbed", "record", "lab"},
    "settings": BASE | {"testbed", "record", "launch", "lab"},
    "campaign": BASE | {"testbed", "record", "workload", "launch", "lab", "settings", "statistics"},
    "statistics": {"errors"},
    "analysis": BASE | {"chapters", "record", "statistics", "testbed"},
    "published": BASE | {"testbed"},
    "chapters": BASE | {"analysis", "published", "record", "report", "statistics", "testbed"},
    "report": BASE | {"analysis", "chapters", "published"},
    "api": BASE | {"analysis", "campaign", "published", "record", "report", "testbed"},
}


ABOVE_CHAPTERS = {
    "analysis.analysing",
    *(
        f"report.{name}"
        for name in ("comma_separated", "figures", "first_screen", "formats", "html", "latex", "markdown")
    ),
    *(f"report.{name}" for name in ("terminal", "terminal_screen")),
}
"""What asks all chapters for something; the other files of `analysis` and `report` are what chapters are made of."""


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
    if room in {"__init__", "cli", "entry"}:
        return
    allowed = MAY_IMPORT[room] | {room, "__version__"}
    assert {name.split(".")[0] for name in imports_of(path)} <= allowed


def test_report_takes_only_findings_from_the_analysis():
    for room, path in rooms():
        if room == "report":
            taken = {name for name in imports_of(path) if name.startswith("analysis")}
            assert all(name.startswith("analysis.findings") for name in taken), (path, taken)


def is_above_chapters(module: str) -> bool:
    return any(f"{module}.".startswith(f"{name}.") for name in ABOVE_CHAPTERS)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("room", ["analysis", "report", "chapters"])
def test_chapters_stand_above_the_parts_they_are_made_of_and_below_what_asks_them_all(room: str):
    for path in [path for of, path in rooms() if of == room]:
        module, taken = module_of(path), imports_of(path)
        if is_above_chapters(module):
            continue
        assert room == "chapters" or not any(name.startswith("chapters") for name in taken), path
        # `from fabricbench.analysis import analyse` is the one way round: it is imported when it is first asked for.
        above = {name for name in taken if is_above_chapters(name)} - ({"analysis.analysing.analyse"})
        assert not above, (path, above)


COMPUTES = ("fabricbench.analysis", "fabricbench.record", "fabricbench.statistics", "numpy", "scipy", "polars")
FINDINGS = ("fabricbench.analysis.findings", "fabricbench.analysis.material")


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def imported(tree: ast.Module, rooms: tuple[str, ...]) -> set[str]:
    """The names that a file imports from modules that begin so."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(rooms):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname or alias.name for alias in node.names if alias.name.startswith(rooms)}
    return found


@pytest.mark.parametrize("path", [path for room, path in rooms() if room == "chapters"], ids=lambda path: path.stem)
def test_what_a_chapter_shows_computes_no_statistics(path: Path):
    """Only `find` and what it calls may use the parts that compute."""
    tree = ast.parse(path.read_text())
    computing = imported(tree, COMPUTES) - imported(tree, FINDINGS)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    finds, left = set(), ["find"] if "find" in functions else []
    while left:
        name = left.pop()
        finds.add(name)
        left += [one for one in names_in(functions[name]) & functions.keys() if one not in finds]
    if path.stem != "__init__":
        for name in functions.keys() - finds:
            assert not names_in(functions[name]) & computing, name


@pytest.mark.slow
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


PAGE = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text()


def test_a_pingpong_passes_through_twelve_files_at_most():
    steps = re.findall(r"^\d+\. `([^`]+)`", PAGE, re.MULTILINE)
    assert 0 < len(steps) <= 12, "a stranger follows it in twelve files"
    assert [step for step in steps if not (PACKAGE.parents[1] / step).is_file()] == []


def test_what_the_page_names_is_there():
    named = set(re.findall(r"`((?:native|src|tests|docs|schema|examples)/[\w./-]+)`", PAGE))
    named |= {
        f"src/fabricbench/{path}"
        for path in re.findall(
            r"`((?:record|workload|launch|campaign|analysis|exchange|chapters|report)/[\w./]+)`", PAGE
        )
    }
    assert named
    assert sorted(path for path in named if not (PACKAGE.parents[1] / path.rstrip("/")).exists()) == []


def test_it_is_read_in_ten_minutes():
    assert len(PAGE.split()) <= 2300, "at some 230 words a minute"


CUTTING = {"split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix", "removesuffix"}
CUTS = {
    "analysis/caution/numbers.py": (1, "the reason of a failure, as the measurer told it"),
    "analysis/change.py": (3, "names of fields and of facts in the inventory"),
    "analysis/loads.py": (2, "a parameter as its workload writes it, and names in a definition"),
    "analysis/method.py": (5, "words of a command line"),
    "report/comma_separated.py": (1, "names of columns"),
    "report/formats.py": (1, "the size that an SVG declares"),
    "report/html/still.py": (3, "SVG as Vega wrote it: what a page says in its style, and names within"),
    "report/inventory_words.py": (2, "keys of facts in the inventory"),
    "report/terminal_screen.py": (1, "lines"),
    "report/words.py": (3, "typography"),
}
"""How often each file cuts or matches a text, and which: a list that only becomes shorter."""


def cuts_in(tree: ast.AST) -> int:
    """How many calls cut or match a text. `split()` at white space counts words, and arrays are split as well."""
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func.value)
            is_cut = node.func.attr in CUTTING and bool(node.args) and name != "np"
            found += is_cut or (node.func.attr in {"sub", "search", "match", "fullmatch", "findall"} and name.isupper())
            found += name == "re" and node.func.attr != "compile"
    return found


def test_what_is_told_to_people_is_not_cut_or_matched_again():
    """Analysis, chapters and reports pass typed values on; a sentence or a label that they made is read by people alone."""
    found = {
        str(path.relative_to(PACKAGE)): cuts
        for room, path in rooms()
        if room in ("analysis", "chapters", "report") and (cuts := cuts_in(ast.parse(path.read_text())))
    }
    assert found == {path: cuts for path, (cuts, _) in CUTS.items()}


@pytest.mark.slow
def test_a_class_has_a_name_of_its_own():
    """A public class is found by its name alone, whichever room it stands in."""
    found = [
        (node.name, str(path.relative_to(PACKAGE)))
        for _, path in rooms()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(found) > 400
    names = [name for name, _ in found]
    assert [(name, path) for name, path in found if names.count(name) > 1] == []


PROGRAMS = {
    "the measurer": ("base", "core", "mpi_operation", "pattern", "probe", "rdma", "transport"),
    "the switch": ("base", "switch"),
    "the farm": ("base", "core", "farm"),
}
"""What each program is made of, in native/."""


@pytest.mark.parametrize("rooms", PROGRAMS.values(), ids=PROGRAMS)
def test_a_native_class_has_a_name_of_its_own(rooms: tuple[str, ...]):
    """Two inline classes of one name in one program would be one to the linker, whichever it finds first."""
    headers = [path for room in rooms for path in (Path(__file__).parents[1] / "native" / room).rglob("*.hpp")]
    found = [(name, path.name) for path in headers for name in native_classes_in(path)]
    assert len(found) > 50
    names = [name for name, _ in found]
    assert [(name, path) for name, path in found if names.count(name) > 1] == []


def native_classes_in(path: Path) -> Iterator[str]:
    """Yield the classes that a header defines outside others, each with the namespaces that it is in."""
    inside: list[str] = []
    for line in path.read_text().splitlines():
        if opened := re.match(r"namespace ([\w:]*) ?{", line):
            inside.append(opened[1])
        elif line.startswith("}  // namespace"):
            inside.pop()
        elif defined := re.match(r"(?:template <.*> )?(?:class|struct|enum class) (\w+)(?: final)?(?: : .*)? {", line):
            yield "::".join((*inside, defined[1]))


VARIANT_IS_SHOWN_IN = {
    "analysis/cell_parts.py",  # the name of a test that failed
    "analysis/findings/cells.py",  # where it is written
    "analysis/measured.py",  # the name of a test
    "analysis/weighing.py",  # what a user wrote, against what reports show
}


def test_the_words_for_a_setup_are_no_key():
    for room, path in rooms():
        if room in ("analysis", "chapters", "report") and str(path.relative_to(PACKAGE)) not in VARIANT_IS_SHOWN_IN:
            tree = ast.parse(path.read_text())
            assert not any(
                getattr(node, "attr", getattr(node, "value", None)) == "variant" for node in ast.walk(tree)
            ), path


LINES, BRANCHES = 60, 30
LONGER = {
    "lab/guest.py init_script": "one script for a shell, as text",
}
MORE_BRANCHES = {
    "analysis/plotting.py find_plot",
    "analysis/rows.py choose_rows",
    "analysis/sides.py _joined_cell",
}
"""A list that only becomes shorter."""


def branches_in(function: ast.AST) -> int:
    """How many ways there are through a function, but for the first: conditions, loops, filters, and terms of conditions."""
    found = 0
    for node in ast.walk(function):
        found += isinstance(node, ast.If | ast.IfExp | ast.For | ast.While | ast.ExceptHandler | ast.match_case)
        found += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        found += 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return found


@pytest.mark.slow
def test_a_function_fits_on_a_screen():
    """Its body, that is, without its docstring; what a command takes stands before that."""
    longer, more_branches = set(), set()
    for _, path in rooms():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                name = f"{path.relative_to(PACKAGE)} {node.name}"
                longer |= {name} if body and body[-1].end_lineno - body[0].lineno >= LINES else set()
                more_branches |= {name} if branches_in(node) > BRANCHES else set()
    assert longer == set(LONGER)
    assert more_branches == MORE_BRANCHES
