"""The page that people paste from: keys come before what needs them, and no ssh swallows the lines behind it."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs/first-cluster.md").read_text()
COMMANDS = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_keys_are_made_before_anything_goes_over_ssh():
    assert COMMANDS.index("ssh-copy-id") < min(COMMANDS.index(name) for name in ("scp ", "ssh -n"))


def test_no_ssh_reads_the_lines_that_were_pasted_behind_it():
    started = re.findall(r"(?:^|&&|;)\s*(ssh .*)", COMMANDS, re.MULTILINE)
    assert len(started) >= 4
    assert [line for line in started if not line.startswith("ssh -n ")] == []
