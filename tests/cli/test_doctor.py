from __future__ import annotations

import json

from typer.testing import CliRunner

from fabricbench.cli import app


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
