"""The nodes that all tests here share, and what is installed on them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.nodes import Cluster, four_nodes, installed_here, why_none

INSTALL_SECONDS = 300


@pytest.fixture(scope="session")
def _nodes_can_be_had() -> None:
    reason = why_none()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(_nodes_can_be_had: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes and a head, on which fabricbench runs as it was built here; who ends one of them takes `mortal_cluster`."""
    with four_nodes(tmp_path_factory.mktemp("cluster"), installed_here()) as found:
        yield found


@pytest.fixture
def mortal_cluster(_nodes_can_be_had: None, tmp_path: Path) -> Iterator[Cluster]:
    """The same for one test alone, which may do to it what it likes. It takes about a second."""
    with four_nodes(tmp_path, installed_here()) as found:
        yield found


@pytest.fixture(scope="session")
def installed_wheel(cluster: Cluster, wheel: Path) -> Path:
    """The environment into which the wheel was installed once, as on any machine, in a folder that all nodes may read."""
    environment = cluster.shared / "fabricbench"
    for tokens in (
        [f"{sys.base_prefix}/bin/python3", "-m", "venv", environment],
        [environment / "bin/pip", "install", "-q", "--no-cache-dir", wheel],
    ):
        done = subprocess.run(tokens, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        assert done.returncode == 0, f"{tokens}: {done.stderr}"
    return environment
