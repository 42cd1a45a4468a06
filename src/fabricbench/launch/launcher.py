"""What a launcher is: it turns "this program on this fabric" into tokens. Each launcher is a file beside this one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fabricbench.lab.process import ProcessIdentity
from fabricbench.record.crossings import Crossings
from fabricbench.record.launch import CellLateness
from fabricbench.testbed.model import Fabric, Lost, Node


@dataclass(frozen=True)
class Command:
    """What is started, as tokens and never as a shell string.

    `environment` is added to that of the caller, of which `cleared` are taken away before. `beside` are processes that it needs and
    does not start, an emulated switch say: PID -> what it is. `is_here`: its ranks run on this machine.
    """

    tokens: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    cleared: tuple[str, ...] = ()
    beside: Mapping[int, str] = field(default_factory=dict)
    is_here: bool = True

    def __str__(self) -> str:
        """Return a line that a shell would take, for people to read and to try."""
        added = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        taken = shlex.join(["env", *(word for name in self.cleared for word in ("-u", name))]) if self.cleared else ""
        return " ".join(filter(None, (added, taken, shlex.join(self.tokens))))

    @property
    def whole_environment(self) -> dict[str, str]:
        """The environment that it is started in."""
        inherited = {name: value for name, value in os.environ.items() if name not in self.cleared}
        return {**inherited, **self.environment}


class Launcher(Protocol):
    """Starts programs over a testbed's nodes. Building a command starts nothing."""

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program (tokens) with so many ranks on a fabric, in that directory, under the guard."""

    def meeting_address(self, fabric: Fabric) -> str:
        """Return where the other ranks of a launch find rank 0: its address on the fabric, else its node's name."""

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that run something else on a node, an inventory say."""

    def in_nodes(self, nodes: Sequence[str], module: str, *arguments: str) -> list[str] | None:
        """Return the tokens that run a module of ours on all these nodes, with lines behind `NODE: `; None: one by one."""

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        """Return what a reader must know of how programs are started on that fabric: what -> fact."""

    def stage(self, directory: Path, fabric: Fabric) -> Path:
        """Return the directory of a launch on a fabric as rank 0 sees it, with all that is in it; NotStaged where it cannot."""

    def collect(self, directory: Path) -> None:
        """Bring what a launch left on rank 0's node into its directory, if it is not there; NotStaged where it cannot be had."""

    def silent_seconds(self, directory: Path, paths: Sequence[Path]) -> float | None:
        """Return how long no file of a launch has grown on rank 0's node; None where that is to be seen in the directory."""

    def failed_nodes(self) -> Mapping[str, str]:
        """Ask every node that is a machine of its own; return those that do not answer, each with the reason."""

    def lives_with(self) -> ProcessIdentity | None:
        """Return the process that the nodes end with; None where they are machines."""

    def lost(self, fabric: Fabric | None = None) -> Lost | None:
        """Return what is gone that a launch on the fabric needs, or one on any; None while it is whole, or cannot be told."""

    def stopped(self) -> Lost | None:
        """Return what of the testbed stands still and may go on; None while all goes on, or where that cannot be told."""

    def switches(self) -> dict[str, Any]:
        """Return the counters of emulated switches by fabric; empty where the fabrics are real."""

    def lateness(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> dict[int, CellLateness]:
        """Return how late the fabric's emulated switch was in each span (begin and end, ns since 1970); empty where it is real."""

    def crossings(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, Crossings]:
        """Return the frames of measured stages that crossed the emulated switch in each span; empty where the fabric is real."""


def meeting_address(node: Node, fabric: Fabric) -> str:
    """Return where a node is found on a fabric: by its address, where the testbed tells it, else by its name."""
    return str(node.address_on(fabric) or node.name)


class OnThisMachine:
    """What launchers share whose nodes are all on this machine: rank 0 sees every file that is here, and no node fails alone."""

    def stage(self, directory: Path, _fabric: Fabric) -> Path:
        """Return the directory itself."""
        return directory

    def collect(self, _directory: Path) -> None:
        """Do nothing."""

    def silent_seconds(self, _directory: Path, _paths: Sequence[Path]) -> float | None:
        """Return None: how long the nodes' files have not grown is not known."""
        return None

    def in_nodes(self, _nodes: Sequence[str], _module: str, *_arguments: str) -> list[str] | None:
        """Return None: they are asked one by one."""
        return None

    def failed_nodes(self) -> Mapping[str, str]:
        """Return no node: which of them failed is not known."""
        return {}


class RealMachines:
    """What launchers over real machines share: nothing is emulated, and what is gone is told by the launch that fails."""

    def lives_with(self) -> ProcessIdentity | None:
        """Return None: no process of another's holds them up."""
        return None

    def lost(self, _fabric: Fabric | None = None) -> Lost | None:
        """Return None: what is gone is told by the launch that fails."""
        return None

    def stopped(self) -> Lost | None:
        """Return None: there is no emulated switch."""
        return None

    def switches(self) -> dict[str, Any]:
        """Return an empty mapping: there is no emulated switch."""
        return {}

    def lateness(self, _fabric: Fabric, _spans: Mapping[int, tuple[int, int]]) -> dict[int, CellLateness]:
        """Return an empty mapping: there is no emulated switch."""
        return {}

    def crossings(self, _fabric: Fabric, _spans: Mapping[int, tuple[int, int]]) -> Mapping[int, Crossings]:
        """Return an empty mapping: there is no emulated switch."""
        return {}
