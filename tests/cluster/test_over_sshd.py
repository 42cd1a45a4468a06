"""What the README promises of a real cluster, on two nodes with file systems of their own: the wheel, ssh, a testbed, a dossier."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster.nodes import NETWORKS, Node, python_folders, two_nodes, why_none

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

INSTALL_SECONDS, RUN_SECONDS = 300, 300
ENVIRONMENT = "/srv/fabricbench"
PROGRAM = f"{ENVIRONMENT}/bin/fabricbench"

TESTBED = """\
[testbed]
name = "two-nodes"
launcher = "ssh"
nodes = "c[1-2]"

[[fabric]]
name = "slow"
interface = "slow0"
line_rate = "200Mbit/s"

[[fabric]]
name = "fast"
interface = "fast0"
line_rate = "1Gbit/s"
"""

CAMPAIGN = """\
[campaign]
blocks = 3

[[experiment]]
layers = ["udp", "tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64B"]
maximum_seconds = "100ms"

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "stream"
message_bytes = ["64KiB"]
maximum_seconds = "200ms"
"""


LAUNCHES = """
import json, pathlib, sys
print(json.dumps([json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("launches/*/launch.json")]))
"""


@pytest.fixture(scope="module")
def nodes(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """Two nodes, the wheel installed at the same path on each."""
    packages = [Path(folder) for folder in os.environ.get("PIP_FIND_LINKS", "").split() if Path(folder).is_dir()]
    with two_nodes(tmp_path_factory.mktemp("cluster"), [*python_folders(), wheel.parent, *packages]) as both:
        with ThreadPoolExecutor(len(both)) as pool:
            list(pool.map(lambda node: _install(node, wheel), both))
        yield both


def _install(node: Node, wheel: Path) -> None:
    """Install as on any machine; from the registries, so in this machine's network and the node's file systems."""
    python = f"{sys.base_prefix}/bin/python3"
    for tokens in (
        [python, "-m", "venv", ENVIRONMENT],
        [f"{ENVIRONMENT}/bin/pip", "install", "-q", "--no-cache-dir", str(wheel)],
    ):
        done = node.run(*tokens, seconds=INSTALL_SECONDS, namespaces=("--mount",))
        assert done.returncode == 0, f"{tokens} on {node.name}: {done.stderr}"


@pytest.fixture(scope="module", autouse=True)
def _cluster_can_be_had() -> None:
    reason = why_none()
    if reason is not None:
        pytest.skip(reason)


def said_by(node: Node, *tokens: str) -> str:
    """What a command says there, once it has ended well."""
    done = node.run(*tokens, seconds=RUN_SECONDS)
    assert done.returncode == 0, f"{tokens[0]} ended with {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout


def put(node: Node, path: str, text: str) -> None:
    said_by(node, "sh", "-c", 'printf %s "$1" > "$2"', "sh", text, path)


def test_the_nodes_are_two_hosts_that_share_no_file_and_no_network_but_their_links(nodes: tuple[Node, Node]):
    one, other = nodes
    put(one, "/tmp/only-here", "x")
    put(one, "/srv/only-here", "x")
    put(one, "/etc/only-here", "x")
    for folder in ("tmp", "srv", "etc"):
        assert one.run("ls", f"/{folder}/only-here").returncode == 0
        assert other.run("ls", f"/{folder}/only-here").returncode != 0
    assert [node.run("hostname").stdout.strip() for node in nodes] == ["c1", "c2"]
    for node in nodes:
        assert set(json.loads(node.run("ip", "-j", "route").stdout)[0])
        assert "default" not in node.run("ip", "route").stdout
        found = {link["ifname"] for link in json.loads(node.run("ip", "-j", "link").stdout)}
        assert set(NETWORKS) <= found


def test_two_fabrics_of_two_nodes_are_measured_over_ssh_compared_and_put_into_a_dossier(nodes: tuple[Node, Node]):
    one, other = nodes
    put(one, "/root/my-cluster.toml", TESTBED)
    put(one, "/root/campaign.toml", CAMPAIGN)
    said_by(one, PROGRAM, "run", "/root/campaign.toml", "--testbed", "/root/my-cluster.toml", "-o", "/root/runs/a")
    assert other.run("ls", "/root/runs").returncode != 0

    stored = json.loads(said_by(one, f"{ENVIRONMENT}/bin/python", "-c", LAUNCHES, "/root/runs/a"))
    assert len(stored) == 6
    for launch in stored:
        assert launch["complete"]
        assert launch["failed"] == 0
        facts = launch["facts"]
        assert facts["is_valid"], facts["invalid_because"]
        assert facts["path_proof"]
        assert {rank["host"] for rank in launch["header"]["ranks"]} == {"c1", "c2"}

    said_by(one, PROGRAM, "report", "/root/runs/a")
    dossier = said_by(one, "cat", "/root/runs/a/dossier.html")
    assert "two-nodes" in dossier
    assert {"slow", "fast"} <= set(re.findall(r"\w+", dossier))

    compared = json.loads(said_by(one, PROGRAM, "compare", "/root/runs/a", "--format", "json"))
    pairs = {frozenset((row["fabric_a"], row["fabric_b"])) for row in compared}
    assert pairs == {frozenset(("slow", "fast"))}
