"""Nodes whose name servers are silent, as private compute nodes have them."""

from __future__ import annotations

import sys
import time

import pytest

from cluster.nodes import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

FABRICBENCH = f"{sys.prefix}/bin/fabricbench"

TESTBED = """\
[testbed]
name = "nameless"
launcher = "ssh"
nodes = "c[1-2]"
reach = ["ssh", "-o", "BatchMode=yes", "{node}", "{line}"]

[[fabric]]
name = "fast"
interface = "fast0"
"""

SILENT = """
umask 022
printf 'nameserver 10.79.0.250\\nnameserver 10.79.0.251\\n' > /etc/resolv.conf
printf '127.0.0.1 localhost\\n10.79.0.1 c1\\n' > /etc/hosts
for address in 250 251; do ip neigh replace 10.79.0.$address lladdr 02:00:00:00:00:99 dev ctl0 nud permanent; done
"""
"""Frames to a name server go to nobody, who refuses nothing."""


def test_a_node_whose_name_server_is_silent_is_told_and_not_blamed_on_ssh(mortal_cluster: Cluster):
    one, other = mortal_cluster.nodes[:2]
    other.said("sh", "-c", SILENT)
    one.put("/root/testbed.toml", TESTBED)
    begin = time.monotonic()
    done = one.run(FABRICBENCH, "doctor", "--testbed", "/root/testbed.toml", seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "that nobody told within 2 s what the node's own name c2 leads to" in said
    assert "firewall" not in said
    assert time.monotonic() - begin < 100
