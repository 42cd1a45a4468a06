"""A testbed that describes and proves itself, on four nodes over sshd: both fabrics found, all in order, and four things broken."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fabricbench as package
from cluster.nodes import FAST, RATES_BIT_S, SLOW, Cluster, Node, set_rate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

FABRICBENCH = f"{sys.prefix}/bin/fabricbench"
FILE = "/root/found.toml"
CHECK_SECONDS = 400


def found_by(node: Node) -> str:
    """The file that `init` writes there of the nodes, with the line rates that no driver of such a link tells."""
    node.said("rm", "-f", FILE)
    node.said(FABRICBENCH, "testbed", "init", "--hosts", "c[1-4]", "-o", FILE)
    text = node.said("cat", FILE)
    for interface, rate in RATES_BIT_S.items():
        line = f'interface = "{interface}"\n'
        assert text.count(f"\n{line}") == 1
        text = text.replace(f"\n{line}", f'\n{line}line_rate = "{rate}bit/s"\n')
    return text


def checked(node: Node, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    done = node.run(FABRICBENCH, "testbed", "check", FILE, "--format", "json", *options, seconds=CHECK_SECONDS)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    return done, json.loads(done.stdout)


def test_both_fabrics_are_found_by_a_head_that_is_on_neither_and_the_control_network_is_told_apart(cluster: Cluster):
    text = cluster.head.said(FABRICBENCH, "testbed", "init", "--hosts", "c[1-2],c[3-4]")
    file = tomllib.loads(text)
    assert file["testbed"]["nodes"] == "c[1-4]"
    assert file["testbed"]["launcher"] == "ssh"
    assert {one["interface"] for one in file["fabric"]} == {SLOW, FAST}
    assert "ctl0 is the control network" in text
    assert '# interface = "ctl0"' in text
    assert "lo on c[1-4]: the loopback interface" in text
    assert "MPI on c[1-4]: " in text


def test_a_host_that_is_not_there_refuses_the_file_by_name_and_says_how_to_go_on_without(cluster: Cluster):
    done = cluster.nodes[0].run(FABRICBENCH, "testbed", "init", "--hosts", "c[1-2],nowhere", "-o", "/root/none.toml")
    assert done.returncode == 3
    assert "nowhere" in done.stderr
    assert "--hosts 'c[1-2]'" in done.stderr
    assert cluster.nodes[0].run("ls", "/root/none.toml").returncode != 0


def test_what_init_found_passes_the_check_and_nothing_is_left_behind(cluster: Cluster):
    node = cluster.nodes[0]
    node.put(FILE, found_by(node))
    before = node.said("ls", "/tmp", "/root")
    done, found = checked(node)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["is_passed"]
    assert not [one for one in found["findings"] if one["severity"] == "error"]
    by_name = {one["fabric"]: one for one in found["fabrics"]}
    for name, rate in RATES_BIT_S.items():
        one = by_name[name]
        assert one["nodes"] == ["c1", "c2", "c3", "c4"]
        assert one["pairs"] == 12
        assert one["proof"] == "proven"
        assert one["datagram_bytes"] == 1472
        assert 0.8 * rate < one["lowest_bit_s"] <= one["highest_bit_s"] < 1.1 * rate
    assert set(found["clocks"]["ahead_s"]) == {"c1", "c2", "c3", "c4"}
    assert node.said("ls", "/tmp", "/root") == before


MISLED = """\
[testbed]
name = "misled"
nodes = "c[1-2]"

[[fabric]]
name = "slow"
interface = "slow0"
layers = ["mpi"]
mpi_environment = { FI_TCP_IFACE = "fast0" }
"""


def test_a_fabric_whose_mpi_talks_over_another_one_is_named_from_a_head_that_shares_no_file(cluster: Cluster):
    cluster.head.put(FILE, MISLED)
    done, found = checked(cluster.head)
    assert done.returncode == 3, done.stdout + done.stderr
    (error,) = [one for one in found["findings"] if one["severity"] == "error"]
    assert (error["fabric"], error["subject"]) == ("slow", "leak")
    assert "fast0 carried" in error["found"]
    assert found["fabrics"][0]["proof"] == "refuted"


def with_another_version(node: Node) -> None:
    """Let the installation at the same path be another version in the node's own mount namespace."""
    source = Path(package.__file__)
    node.put("/srv/other.py", source.read_text().replace(f'"{package.__version__}"', '"9.9.9"'))
    node.said("mount", "--bind", "/srv/other.py", str(source))


def test_a_dead_link_half_a_rate_another_mtu_and_another_version_are_each_named(mortal_cluster: Cluster):
    one, two, three, four = mortal_cluster.nodes
    one.put(FILE, found_by(one))
    two.said("ip", "link", "set", FAST, "down")
    set_rate(three, SLOW, RATES_BIT_S[SLOW] // 2)
    three.said("ip", "link", "set", FAST, "mtu", "9000")
    with_another_version(four)
    done, found = checked(one)
    assert done.returncode == 3, done.stdout + done.stderr
    errors = {
        (each["node"], each["fabric"], each["subject"]) for each in found["findings"] if each["severity"] == "error"
    }
    assert errors == {
        ("c2", FAST, "interface"),
        ("c3", SLOW, "rate"),
        ("c3", FAST, "mtu"),
        ("c4", "", "fabricbench"),
    }, done.stdout
    told = {each["subject"]: each for each in found["findings"]}
    assert "c3 sends slowly to all others" in told["rate"]["found"]
    assert "9.9.9" in told["fabricbench"]["found"]
    assert {one["fabric"]: one["left_out"] for one in found["fabrics"]} == {SLOW: ["c4"], FAST: ["c2", "c3", "c4"]}
