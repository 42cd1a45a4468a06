from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.native import native_file

_numbers = itertools.count()


@pytest.fixture
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of the test's own, so that labs of other runs beside it do not matter."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def lab_mode(own_ledger: Path) -> str:
    """Skips, with the reason, where no lab can be had."""
    support = lab_support()
    if support.mode == "none":
        pytest.skip(f"no lab can be had here: {support.reason}")
    try:
        native_file("fabricbench-switch")
    except EnvironmentLacks as error:
        pytest.skip(error.message)
    return support.mode


@pytest.fixture
def start_lab(lab_mode: str) -> Iterator[Callable[..., Lab]]:
    """Starts owned labs and ends them when the test is over."""
    assert lab_mode != "none"
    started: list[Lab] = []

    def start(fabrics: str = "fast-ethernet", nodes: int = 2, name: str | None = None) -> Lab:
        started.append(Lab.up(name or f"test{next(_numbers)}", nodes, parse_fabrics(fabrics), owned=True))
        return started[-1]

    yield start
    for lab in started:
        lab.down()


@pytest.fixture
def run_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in a node and returns what it did."""

    def run(
        lab: Lab, node: str, *command: str, environment: Mapping[str, str] | None = None, timeout_s: float = 30
    ) -> subprocess.CompletedProcess[str]:
        tokens = lab.command_in(node, command, working_directory=Path("/"), environment=environment or {})
        return subprocess.run(tokens, capture_output=True, text=True, timeout=timeout_s, check=False)

    return run


@pytest.fixture
def run_cli(own_ledger: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `fabricbench` as users do."""

    def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from fabricbench.cli import main; main()", *arguments]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            input=given,
            env={**os.environ, "XDG_STATE_HOME": str(own_ledger)},
        )

    return run
