"""Testbeds and campaigns that the tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.model import Layer
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from support.execution import Setting
from support.fake_nodes import FakeNodes


@pytest.fixture
def testbed() -> Testbed:
    """Two nodes, a fabric of MTU 1500 and one of MTU 9000."""
    return Testbed(
        name="two",
        launcher=LauncherKind.SSH,
        nodes=(Node(name="a"), Node(name="b")),
        fabrics=(
            Fabric(name="slow", interface="eth0", subnet="10.1.0.0/24", mtu=1500),
            Fabric(name="fast", interface="eth1", subnet="10.2.0.0/24", mtu=9000),
        ),
    )


@pytest.fixture
def rdma_testbed(testbed: Testbed) -> Testbed:
    """The same, and both fabrics have RDMA."""
    fabrics = tuple(fabric.model_copy(update={"layers": tuple(Layer)}) for fabric in testbed.fabrics)
    return testbed.model_copy(update={"fabrics": fabrics})


@pytest.fixture
def local_testbed() -> Testbed:
    """One node, its loopback and its shared memory."""
    return Testbed(
        name="local",
        launcher=LauncherKind.LOCAL,
        nodes=(Node(name="localhost"),),
        fabrics=(
            Fabric(name="loopback", interface="lo", subnet="127.0.0.0/8", mtu=65536),
            Fabric(name="shared-memory", layers=(Layer.MEMORY, Layer.MPI)),
        ),
    )


@pytest.fixture
def setting(tmp_path: Path, testbed: Testbed) -> Setting:
    return Setting(tmp_path, testbed)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNodes:
    """Nodes c0, c1 and c2 that are as the testbed says."""
    made = FakeNodes(tmp_path / "nodes", monkeypatch)
    for number in range(3):
        made.answer(f"c{number}")
    return made
