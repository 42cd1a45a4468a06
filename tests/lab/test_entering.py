from __future__ import annotations

import subprocess
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from fabricbench.lab.agent import agent_of_nodes
from fabricbench.lab.lab import command_from_outside
from support.scripts import script


def test_root_enters_without_a_user_namespace_and_others_with_one():
    def tokens(*, has_root: bool) -> list[str]:
        return command_from_outside(
            42,
            ["prog", "an argument"],
            has_root=has_root,
            cpus=[0, 2],
            working_directory=Path("/w"),
            environment={"A": "b c"},
        )

    assert "--user" not in tokens(has_root=True)
    assert "--user" in tokens(has_root=False)
    assert tokens(has_root=True)[-3:] == ["A=b c", "prog", "an argument"]
    assert tokens(has_root=True)[tokens(has_root=True).index("--cpu-list") + 1] == "0,2"


ADDRESSES = {
    "n0": (IPv4Address("10.98.0.1"), IPv4Address("10.98.1.1")),
    "n1": (IPv4Address("10.98.0.2"), IPv4Address("10.98.1.2")),
}

CallAgent = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def called(tmp_path: Path):
    """Calls the agent with a stand-in for nsenter that shows what it was given."""
    script(tmp_path / "nsenter", 'printf "%s\\n" "$@"')
    (tmp_path / "agent").write_text(agent_of_nodes({"n0": 7, "n1": 8}, ADDRESSES, {"n0": [0], "n1": [0]}))

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(tmp_path / "agent"), *arguments],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )

    return call


def test_the_agent_drops_what_is_meant_for_ssh_and_keeps_the_command(called: CallAgent):
    given = called(
        "-x", "-o", "BatchMode yes", "-l", "somebody", "n1", "prog", "--flag", "'quoted text'"
    ).stdout.splitlines()
    assert given[:2] == ["--target", "8"]
    assert given[-1] == "prog --flag 'quoted text'"


def test_the_agent_names_the_nodes_when_it_is_asked_for_another(called: CallAgent):
    refused = called("n7", "prog")
    assert refused.returncode == 255
    assert "no node n7; there are n0 n1" in refused.stderr


@pytest.mark.parametrize("address", ["10.98.0.2", "10.98.1.2"])
def test_the_agent_knows_a_node_by_each_of_its_addresses(called: CallAgent, address: str):
    given = called("-n", address, "prog").stdout.splitlines()
    assert given[:2] == ["--target", "8"]
    assert given[-1] == "prog"
