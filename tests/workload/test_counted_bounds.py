"""What a launch's folder holds may be anybody's: reading it ends, whatever stands there."""

from __future__ import annotations

import os
from pathlib import Path

from fabricbench.workload.adapter import read_output
from fabricbench.workload.counted import Around, read_around


def test_a_pipe_in_place_of_an_output_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "out")
    assert read_output(tmp_path / "out") == ""


def test_what_was_counted_around_a_program_is_read_up_to_a_bound(tmp_path: Path):
    path = tmp_path / "around.json"
    for text in ("[" * 100_000, '{"exit_code": 0' + " " * 2_000_000 + "}"):
        path.write_text(text)
        assert read_around(path) == Around()
