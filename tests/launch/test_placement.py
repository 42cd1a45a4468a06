"""Which rank runs where, asked of the ranks themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.lab import LabLauncher
from fabricbench.launch.mpi import find_starter


@pytest.mark.lab
@pytest.mark.mpi
def test_ranks_go_around_the_nodes_of_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    script = tmp_path / "who.sh"
    script.write_text("echo ${PMI_RANK}${OMPI_COMM_WORLD_RANK} $(hostname)\n")
    lab = Lab.up("around", 3, parse_fabrics("fast-ethernet"), owned=True)
    try:
        launcher = LabLauncher(lab, find_starter(), None)
        command = launcher.command(lab.testbed().fabrics[0], ["/bin/sh", str(script)], tmp_path, 8)
        done = subprocess.run(
            command.tokens, cwd=command.directory, capture_output=True, text=True, timeout=60, check=True
        )
    finally:
        lab.down()
    where = dict(line.split() for line in done.stdout.splitlines())
    assert where == {str(rank): f"n{rank % 3}" for rank in range(8)}
