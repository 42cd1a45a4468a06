"""What carries a tunnel, as the kernel tells of tunnels in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MAKE = """
set -e
ip link set lo up
ip link add eth0 type veth peer name far
ip address add 10.77.1.1/24 dev eth0
ip link set eth0 up
ip link set far up
ip link add vx0 type vxlan id 42 dstport 4789 local 10.77.1.1 remote 10.77.1.2
ip link add vxd type vxlan id 43 dstport 4790 local 10.77.1.1 remote 10.77.1.2 dev eth0
ip link add vxf type vxlan id 44 dstport 4791 local 10.77.1.1 nolearning
bridge fdb append 00:00:00:00:00:00 dev vxf dst 10.77.1.3
ip address add 10.78.0.1/24 dev vx0
ip link set vx0 up
ip link add vxx type vxlan id 45 dstport 4792 local 10.78.0.1 remote 10.78.0.2
ip link add vxn type vxlan id 46 dstport 4793 local 10.77.1.1 remote 192.168.9.9
exec "$@"
"""

READ = """
import json
from fabricbench.testbed.node_facts import read_node_interfaces
print(json.dumps({one.name: one.carriers for one in read_node_interfaces()}))
"""


def test_a_tunnels_carrier_is_the_route_to_its_peer_or_the_device_that_it_was_made_on():
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", MAKE, "sh", sys.executable, "-c", READ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode != 0 and "Traceback" not in done.stderr:
        pytest.skip(f"no such interfaces can be made here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: found[name] for name in ("vx0", "vxd", "vxf", "eth0")} == {
        "vx0": ["eth0"],
        "vxd": ["eth0"],
        "vxf": ["eth0"],
        "eth0": [],
    }
    assert set(found["vxx"]) == {"vx0", "eth0"}, "a tunnel in a tunnel is carried by both"
    assert found["vxn"] == [""], "nobody can tell where a peer without a route is"
