from __future__ import annotations

import subprocess
import sys

HEAVY = ("scipy", "numpy", "polars", "pyroute2", "matplotlib", "jinja2")
"""What only some commands need, and what takes longer to import than the rest together."""


def test_the_command_line_starts_without_what_only_some_commands_need():
    script = f"import sys, fabricbench.cli; print(*({{*{HEAVY}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == []
