"""CONTRIBUTING.md shows the examples of examples/extending as they stand: what is shown is what the tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples/extending").rglob("*") if path.is_file() and path.suffix != ".pyc")
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_stands_in_it_verbatim(path: Path):
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert path.read_text() in blocks, f"no code block of CONTRIBUTING.md is {path.relative_to(ROOT)}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_named_beside_it(path: Path):
    assert path.relative_to(ROOT).as_posix() in (ROOT / "CONTRIBUTING.md").read_text()
