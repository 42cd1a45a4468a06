"""What the README promises of a real cluster, on nodes with file systems of their own: the wheel, ssh, a testbed, a dossier."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cluster.nodes import FAST, HEAD, NETWORKS, NODES, Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

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


def test_the_nodes_share_no_file_and_no_network_but_their_links(cluster: Cluster):
    one, *others = cluster.nodes
    for folder in ("tmp", "srv", "etc"):
        one.put(f"/{folder}/only-here", "x")
        for other in (*others, cluster.head):
            assert other.run("ls", f"/{folder}/only-here").returncode != 0
    assert [node.said("hostname").strip() for node in (*cluster.nodes, cluster.head)] == [*NODES, HEAD]
    for node in cluster.nodes:
        assert "default" not in node.said("ip", "route")
        found = {link["ifname"] for link in json.loads(node.said("ip", "-j", "link"))}
        assert set(NETWORKS) <= found
    assert cluster.head.run("ip", "link", "show", FAST).returncode != 0
    assert cluster.nodes[0].run("touch", str(cluster.shared / "x")).returncode != 0


def test_two_fabrics_of_two_nodes_are_measured_over_ssh_compared_and_put_into_a_dossier(
    cluster: Cluster, installed_wheel: Path
):
    one, other = cluster.nodes[:2]
    program = str(installed_wheel / "bin/fabricbench")
    one.put("/root/my-cluster.toml", TESTBED)
    one.put("/root/campaign.toml", CAMPAIGN)
    one.said(program, "run", "/root/campaign.toml", "--testbed", "/root/my-cluster.toml", "-o", "/root/runs/a")
    assert other.run("ls", "/root/runs").returncode != 0

    stored = json.loads(one.said(str(installed_wheel / "bin/python"), "-c", LAUNCHES, "/root/runs/a"))
    assert len(stored) == 6
    for launch in stored:
        assert launch["complete"]
        assert launch["failed"] == 0
        facts = launch["facts"]
        assert facts["is_valid"], facts["invalid_because"]
        assert facts["path_proof"]
        assert {rank["host"] for rank in launch["header"]["ranks"]} == {"c1", "c2"}

    one.said(program, "report", "/root/runs/a")
    dossier = one.said("cat", "/root/runs/a/dossier.html")
    assert "two-nodes" in dossier
    assert {"slow", "fast"} <= set(re.findall(r"\w+", dossier))

    compared = json.loads(one.said(program, "compare", "/root/runs/a", "--format", "json"))
    pairs = {frozenset((row["fabric_a"], row["fabric_b"])) for row in compared}
    assert pairs == {frozenset(("slow", "fast"))}
