"""What `tools/demo` does with each end of its run: a dossier wherever anything was measured, and the run's exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "tools/demo"
FAKE = """#!/bin/sh
echo "$*" >> {log}
[ "$1" = run ] || exit 0
case "$*" in *lab:*) ;; *) exit 0 ;; esac
for directory; do :; done
[ {code} -eq 3 ] || mkdir -p "$directory/launches"
exit {code}
"""


@pytest.mark.parametrize(
    ("code", "ended", "commands"),
    [
        (0, 0, ["run", "report"]),
        (4, 4, ["run", "report"]),  # a busy machine: some results could not be measured, and the rest had no dossier
        (3, 0, ["run", "run", "report"]),
        (130, 130, ["run"]),
    ],
)
def test_a_demo_that_measured_anything_has_a_dossier(tmp_path: Path, code: int, ended: int, commands: list[str]):
    program, log = tmp_path / "fabricbench", tmp_path / "log"
    program.write_text(FAKE.format(log=log, code=code))
    program.chmod(0o755)
    found = subprocess.run([DEMO, program, tmp_path / "demo"], check=False, capture_output=True, text=True, timeout=30)
    assert found.returncode == ended
    assert [line.split()[0] for line in log.read_text().splitlines()] == commands
    assert ("open it in a browser" in found.stdout) is ("report" in commands)
