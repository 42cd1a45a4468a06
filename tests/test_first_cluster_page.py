"""The page that people paste from: keys come before what needs them, and no ssh swallows the lines behind it."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs/first-cluster.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = "\n".join(text for language, text in BLOCKS if not language)


def test_keys_are_made_before_anything_goes_over_ssh():
    assert COMMANDS.index("ssh-copy-id") < min(COMMANDS.index(name) for name in ("scp ", "ssh -n"))


def test_no_ssh_reads_the_lines_that_were_pasted_behind_it():
    started = re.findall(r"(?:^|&&|;)\s*(ssh .*)", COMMANDS, re.MULTILINE)
    assert len(started) >= 4
    assert [line for line in started if not line.startswith("ssh -n ")] == []


def test_the_testbed_file_is_written_by_init_and_proven_before_anything_is_run():
    steps = ("fabricbench testbed init", "fabricbench testbed check", "fabricbench plan", "fabricbench run")
    assert [COMMANDS.index(step) for step in steps] == sorted(COMMANDS.index(step) for step in steps)
