"""What `tools/demo` does with each end of its run: one without a lab where there can be none, and the run's exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "tools/demo"
FAKE = """#!/bin/sh
echo "$*" >> {log}
case "$*" in *lab:*) ;; *) exit 0 ;; esac
for directory; do :; done
[ {code} -eq 3 ] || mkdir -p "$directory/launches"
exit {code}
"""


@pytest.mark.parametrize(
    ("code", "ended", "testbeds"),
    [(0, 0, ["lab"]), (4, 4, ["lab"]), (3, 0, ["lab", "local"]), (130, 130, ["lab"])],
)
def test_a_demo_ends_as_its_run_which_writes_the_dossier(tmp_path: Path, code: int, ended: int, testbeds: list[str]):
    program, log = tmp_path / "fabricbench", tmp_path / "log"
    program.write_text(FAKE.format(log=log, code=code))
    program.chmod(0o755)
    found = subprocess.run([DEMO, program, tmp_path / "demo"], check=False, capture_output=True, text=True, timeout=30)
    assert found.returncode == ended
    runs = [line.split() for line in log.read_text().splitlines()]
    assert [words[words.index("--testbed") + 1].partition(":")[0] for words in runs] == testbeds
    assert all("--report" in words for words in runs)
