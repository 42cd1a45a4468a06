"""Nodes behind an `ssh` of our own: a program on the PATH that answers for each node as a file beside it says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fabricbench import __version__
from fabricbench.native import builds_of, native_file
from fabricbench.testbed.doctor import find_mpi
from support.scripts import script

SSH = """while [ "$1" != -- ]; do shift; done
echo $$ >> {folder}/asked
[ -e {folder}/"$2" ] || {{ echo "ssh: Could not resolve hostname $2: Name or service not known" >&2; exit 255; }}
. {folder}/"$2"
"""


class FakeNodes:
    """The nodes that the fake ssh knows; all others have no name."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        folder.mkdir()
        script(folder / "ssh", SSH.format(folder=folder))
        monkeypatch.setenv("PATH", str(folder), prepend=":")

    def answer(self, node: str, inventory: Mapping[str, str] | None = None, **facts: Any) -> None:
        """Let a node tell of two interfaces, eth0 and eth1, except for what the facts say otherwise, and of that inventory."""
        number = 1 + int("".join(filter(str.isdigit, node)) or 0)
        told = {
            "host": node,
            "version": __version__,
            "programs": {str(native_file("fabricbench-probe")): f"fabricbench-probe {__version__}"},
            "interfaces": [interface("lo", 65536, "127.0.0.1/8"), *usual_interfaces(number)],
            "builds": builds_of([str(native_file("fabricbench-probe"))]),
            "architecture": os.uname().machine,
            "load": 0.1,
            "processors": 8,
            **facts,
        }
        line = json.dumps({"inventory": {"mpi.version": find_mpi().version} | dict(inventory or {}), "node": told})
        self.behave(node, f"echo 'a login shell greets'; cat <<'END'\n{line}\nEND")

    def behave(self, node: str, script: str) -> None:
        """Let a node run this when it is asked."""
        (self._folder / node).write_text(script + "\n")

    @property
    def asked(self) -> list[int]:
        """The process ids of every ssh that was started."""
        path = self._folder / "asked"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def interface(name: str, mtu: int = 1500, *addresses: str, state: str = "up") -> Mapping[str, Any]:
    """One interface as a node tells of it."""
    return {"name": name, "mtu": mtu, "state": state, "addresses": list(addresses)}


def usual_interfaces(number: int) -> list[Mapping[str, Any]]:
    """The interfaces eth0 and eth1 of the node of that number."""
    return [interface("eth0", 1500, f"10.1.0.{number}/24"), interface("eth1", 9000, f"10.2.0.{number}/24")]
