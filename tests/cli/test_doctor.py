from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabricbench.cli import app
from support.processes import FABRICBENCH


def test_the_doctor_writes_json_that_scripts_can_read():
    result = CliRunner().invoke(app, ["doctor", "--format", "json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["processors"]["logical"] >= 1
    assert data["lab"]["mode"] in {"root", "user-namespace", "none"}
    assert data["inventory"]["kernel.release"] == data["kernel"]["release"]


def test_the_doctor_writes_text_with_facts_and_advice():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "cpu.model" in result.stdout
    assert "what to do:" in result.stdout or "nothing was found" in result.stdout


@pytest.mark.slow
def test_the_doctor_tells_of_a_library_that_stands_before_the_mpi_of_the_measurer(tmp_path: Path):
    (tmp_path / "libmpi.so.12").write_text("no library")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    command = [FABRICBENCH, "doctor", "--format", "json"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert found.returncode == 3, found.stderr
    assert "inventory" in json.loads(found.stdout)
    assert "fabricbench-probe does not start with MPICH" in found.stderr
    assert f"LD_LIBRARY_PATH brings it from {tmp_path}" in found.stderr
