"""Paths by interfaces that no testbed names: other names, labels, tunnels; and a node whose traffic takes another way."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from cluster.nodes import FAST, SLOW, Cluster, Node

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

FABRICBENCH = f"{sys.prefix}/bin/fabricbench"
RUN = "/root/run"

TESTBED = """\
[testbed]
name = "odd"
launcher = "ssh"
nodes = "c[1-2]"
"""

OWN_PROGRAM = """\
[campaign]
blocks = 2
unfit = "leave out"

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "stream"
message_bytes = ["64KiB"]
maximum_seconds = "200ms"

[[workload]]
kind = "command"
name = "ring"
command = ["fabricbench-npb", "is", "--class", "S"]
ranks = [2]
success = { found = ["verification +successful"] }
figure = [{ name = "time", regex = "^ +time +([0-9.]+) s$", unit = "s", better = "lower" }]
"""

EVERY_LOAD = """\
[campaign]
blocks = 2
unfit = "leave out"

[[experiment]]
layers = ["mpi"]
pattern = "stream"
message_bytes = ["64KiB"]
maximum_seconds = "100ms"

[[experiment]]
layers = ["mpi"]
pattern = "allreduce"
message_bytes = ["64KiB"]
maximum_seconds = "100ms"

[[experiment]]
layers = ["mpi"]
pattern = "message-rate"
message_bytes = ["1KiB"]
maximum_seconds = "100ms"

[[npb]]
benchmarks = ["IS"]
class = "S"
ranks = [2]
"""

LAUNCHES = """
import json, pathlib, sys
print(json.dumps([json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("launches/*/launch.json")]))
"""


def measured(
    node: Node, fabrics: str, *, campaign: str = OWN_PROGRAM, exit_code: int = 0
) -> tuple[list[dict[str, Any]], str]:
    """Return the launches of a run of that campaign over these fabrics, and what the run said."""
    node.put("/root/testbed.toml", TESTBED + fabrics)
    node.put("/root/campaign.toml", campaign)
    done = node.run(
        FABRICBENCH, "run", "/root/campaign.toml", "--testbed", "/root/testbed.toml", "-o", RUN, seconds=300
    )
    assert done.returncode == exit_code, done.stderr[-3000:]
    stored: list[dict[str, Any]] = json.loads(node.said(f"{sys.prefix}/bin/python", "-c", LAUNCHES, RUN))
    return stored, done.stderr


def proofs(stored: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["facts"]["proof"], str(one["facts"]["invalid_because"] or "")) for one in stored}


def test_a_fabric_by_subnet_is_proven_on_interfaces_of_other_names_and_with_labels(mortal_cluster: Cluster):
    one, other = mortal_cluster.nodes[:2]
    other.said("ip", "link", "set", FAST, "down")
    other.said("ip", "link", "set", FAST, "name", "fab7")
    other.said("ip", "link", "set", "fab7", "up")
    for number, node in enumerate((one, other), 1):
        node.said("ip", "address", "add", f"10.81.0.{number}/24", "dev", SLOW, "label", f"{SLOW}:1")
    stored, _ = measured(
        one,
        """
[[fabric]]
name = "renamed"
subnet = "10.79.2.0/24"
[[fabric]]
name = "labelled"
subnet = "10.81.0.0/24"
""",
    )
    assert len(stored) == 8
    assert proofs(stored) == {("proven", "")}
    by_host = {one["header"]["fabric"]: one["facts"]["path_proof"]["interfaces"] for one in stored}
    assert by_host == {"renamed": {"c1": FAST, "c2": "fab7"}, "labelled": {"c1": SLOW, "c2": SLOW}}


def test_a_tunnel_is_proven_by_what_crosses_it_and_its_carrier_is_named(mortal_cluster: Cluster):
    one, other = mortal_cluster.nodes[:2]
    for number, node in enumerate((one, other), 1):
        peer = f"10.79.2.{3 - number}"
        node.said(
            "ip",
            "link",
            "add",
            "vx0",
            "type",
            "vxlan",
            "id",
            "42",
            "dstport",
            "4789",
            "local",
            f"10.79.2.{number}",
            "remote",
            peer,
        )
        node.said("ip", "link", "set", "vx0", "mtu", "1450", "up")
        node.said("ip", "address", "add", f"10.82.0.{number}/24", "dev", "vx0")
    stored, said = measured(
        one,
        """
[[fabric]]
name = "bare"
interface = "fast0"
[[fabric]]
name = "overlay"
interface = "vx0"
mtu = 1450
""",
    )
    assert proofs(stored) == {("proven", "")}
    assert "vx0 is a tunnel (vxlan) over fast0" in said
    assert "overlay (vx0) is a tunnel over fast0, which is bare" in said
    carriers = {one["header"]["fabric"]: one["facts"]["path_proof"]["carriers"] for one in stored}
    assert carriers == {"bare": {}, "overlay": {"c1": ["fast0"], "c2": ["fast0"]}}


def test_a_node_whose_traffic_takes_another_way_refutes_a_launch_and_is_named(mortal_cluster: Cluster):
    """Addresses of one fabric are routed over another, on the second node alone: what it sends takes that."""
    one, other = mortal_cluster.nodes[:2]
    for node in (one, other):
        lax = (f"net.ipv4.conf.{where}.rp_filter=0" for where in ("all", FAST, SLOW))
        node.said("sysctl", "-q", "-w", *lax)
    other.said("ip", "route", "add", "10.79.2.1/32", "dev", SLOW, "src", "10.79.2.2")
    stored, said = measured(
        one,
        '\n[[fabric]]\nname = "fast"\ninterface = "fast0"\n',
        campaign=OWN_PROGRAM.replace('"tcp", "mpi"', '"mpi"'),
        exit_code=4,  # the workload gave nothing
    )
    assert "LOST: ring.2 gave nothing on fast: all 2 launches invalid" in said
    refuted = [one for one in stored if one["facts"]["proof"] == "refuted"]
    assert refuted, proofs(stored)
    assert any("on c2: " in why and SLOW in why for one in refuted for why in one["facts"]["invalid_because"]), proofs(
        stored
    )


def test_an_mpi_that_talks_over_another_fabric_is_refuted_in_collectives_floods_and_kernels_as_in_streams(
    mortal_cluster: Cluster,
):
    stored, said = measured(
        mortal_cluster.nodes[0],
        """
[[fabric]]
name = "fast"
interface = "fast0"
[[fabric]]
name = "slow"
interface = "slow0"
mpi_environment = { FI_TCP_IFACE = "fast0" }
""",
        campaign=EVERY_LOAD,
        exit_code=4,
    )
    assert proofs([one for one in stored if one["header"]["fabric"] == "fast"]) == {("proven", "")}
    misled = [one for one in stored if one["header"]["fabric"] == "slow"]
    assert {one["facts"]["proof"] for one in misled} == {"refuted"}
    cells = [cell for one in misled for cell in one["facts"]["path_proof"]["cells"]]
    assert {cell["cell"] for cell in cells} == {
        0,
        1,
        2,
        3,
    }  # not of each launch: a busy machine may cost one its common start
    assert all(cell["violations"] for cell in cells)
    assert "LOST" in said
