"""A short, seeded part of benchmarks/hostile.py: hostile run directories reach nothing outside and end in clear errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTANTS, PARTS = 12, 2
"""In parts, so that several processors share them; the benchmark makes ten thousand."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_run_directories_end_in_clear_errors_write_nothing_outside_and_change_no_figure_without_a_word(
    part: int,
):
    # A process of its own: its forks must not lack threads that this one has started.
    each = MUTANTS // PARTS
    numbers = ["--first", str(part * each), "--count", str(each), "--seed", "7"]
    command = [sys.executable, "-m", "benchmarks.hostile", *numbers]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=560, check=False)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
    assert f"{each} hostile run directories" in found.stdout
