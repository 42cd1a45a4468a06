"""What the nodes are like: the doctor's facts of each, and the versions of what measures. Kept in the manifest.

An inventory that a node does not give is said in its place; it never keeps a run from starting.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys

from fabricbench import __version__
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.mpi import find_starter
from fabricbench.native import build_info
from fabricbench.testbed.model import Testbed

DOCTOR_SECONDS = 60.0
"""A cold file system and a busy node; it takes under a second otherwise."""


def read_inventories(testbed: Testbed, launcher: Launcher) -> dict[str, dict[str, str]]:
    """Return the doctor's facts by node. All nodes are asked at once."""
    doctor = [sys.executable, "-m", "fabricbench.testbed.doctor", "--json"]
    asked = {
        node.name: subprocess.Popen(
            launcher.in_node(node.name, doctor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node in testbed.nodes
    }
    return {name: _answer(process) for name, process in asked.items()}


def read_versions() -> dict[str, str]:
    """Return what measures, and in which version."""
    starter = find_starter()
    return {
        "fabricbench": __version__,
        "python": platform.python_version(),
        "mpi": f"{starter.implementation.NAME} {starter.version}",
        "compiler": build_info().compiler,
        "build": build_info().build_type,
    }


def _answer(process: subprocess.Popen[str]) -> dict[str, str]:
    with process:
        try:
            stdout, stderr = process.communicate(timeout=DOCTOR_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return {"missing": f"the doctor did not answer within {DOCTOR_SECONDS:.0f} s"}
    try:
        facts = json.loads(stdout)["inventory"]
    except (json.JSONDecodeError, KeyError, TypeError):
        lines = stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        return {"missing": f"the doctor failed: {lines[-1]}"}
    return {str(what): str(value) for what, value in facts.items()}
