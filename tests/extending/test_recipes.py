"""The Python recipes of CONTRIBUTING.md, followed literally in a copy of the package: the files, the lines, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fabricbench
from fabricbench.native import native_file
from support.synthetic_run import ladder_cells, write_synthetic_run

ROOT = Path(__file__).parents[2]
RECIPES = (ROOT / "CONTRIBUTING.md").read_text()
FILES = {
    "starter": "src/fabricbench/launch/starter/gforker.py",
    "chapter": "src/fabricbench/chapters/launch_times.py",
    "workload": "src/fabricbench/workload/random_pairs.py",
    "ping": "src/fabricbench/exchange/ping.py",
}
DIFF = re.compile(r"^```diff\n\+\+\+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__ + type(one).__name__.lower()]
sys.path[:] = [sys.argv.pop(1), *sys.path]
"""
COMMAND_LINE = RUN + "from fabricbench.cli import main\nmain()\n"


def apply(diff: str, text: str) -> str:
    """Return a text with each part of a diff applied, whose lines are there once."""
    for part in diff.split("@@\n"):
        lines = part.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in (" ", sign)) for sign in "-+")
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with what the recipes add."""
    root = tmp_path_factory.mktemp("copy")
    there = Path(fabricbench.__file__).parent
    shutil.copytree(there, root / "src/fabricbench", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    for example, path in FILES.items():
        assert f"`{path}`" in RECIPES
        shutil.copy(ROOT / "examples/extending" / f"{example}.py", root / path)
    diffs = DIFF.findall(RECIPES)
    assert len(diffs) == len(FILES)
    for path, diff in diffs:
        (root / path).write_text(apply(diff, (root / path).read_text()))
    return root


def said(copy: Path, *arguments: str | Path, script: str = COMMAND_LINE) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, copy / "src", *arguments],
        env={**os.environ, "FABRICBENCH_BIN": str(native_file("build_info.json").parent), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_starter_is_listed(copy: Path):
    script = RUN + "from fabricbench.launch.mpi import STARTERS\nprint([one.NAME for one in STARTERS])\n"
    assert "gforker" in said(copy, script=script)


@pytest.mark.slow
def test_the_chapter_is_in_a_report(copy: Path, tmp_path: Path):
    write_synthetic_run(tmp_path / "run", cells=ladder_cells({"slow": 1e8, "fast": 1e9}, samples=20), blocks=6)
    assert "Times of launches" in said(copy, "report", tmp_path / "run", "--format", "text")


@pytest.mark.slow
def test_the_workload_is_listed(copy: Path):
    assert "random-pairs" in said(copy, "list", "workloads")


@pytest.mark.slow
def test_the_importer_reads_what_its_program_printed(copy: Path, tmp_path: Path):
    text = "PING b (10.0.0.2) 56(84) bytes of data.\nrtt min/avg/max/mdev = 0.271/0.308/3.425/0.150 ms\n"
    (tmp_path / "ping.txt").write_text(text)
    said(copy, "import", "--fabric", f"eth={tmp_path / 'ping.txt'}", "-o", tmp_path / "run")
    assert "by=ping" in said(copy, "show", tmp_path / "run", "--summary")
