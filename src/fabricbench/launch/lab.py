"""Launches inside a lab: the MPI starter runs in the first node and reaches the others through the lab's own agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fabricbench.lab.process import ProcessIdentity
from fabricbench.launch.launcher import Command, OnThisMachine, meeting_address
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.starting import Placement
from fabricbench.launch.watch import guarded
from fabricbench.record.crossings import Crossings
from fabricbench.record.launch import CellLateness
from fabricbench.testbed.model import Fabric, Layout, Lost, Testbed


class EnterableLab(Protocol):
    """What of `fabricbench.lab.Lab` is needed to launch in it."""

    @property
    def agent(self) -> Path:
        """The ssh-like program that reaches a node from inside."""

    @property
    def directory(self) -> Path:
        """Where the lab keeps its files; they go with it."""

    @property
    def control_interface(self) -> str:
        """The interface of the control network, the same on each node."""

    def command_in(
        self, node: str, command: Sequence[str], *, working_directory: Path, environment: Mapping[str, str]
    ) -> list[str]:
        """Return tokens that, run outside, execute the command inside the node."""

    def command_in_each(self, nodes: Sequence[str], module: str, arguments: Sequence[str]) -> list[str] | None:
        """Return tokens that, run outside, run a module of ours in each of these nodes; None where that is one by one."""

    def testbed(self) -> Testbed:
        """Return the testbed that the lab is."""

    @property
    def keeper(self) -> ProcessIdentity:
        """The process that the lab ends with."""

    def processes(self, needed: str | None = None) -> Mapping[int, str]:
        """Return the lab's own processes that a launch on the `needed` fabric needs, or one on any: PID -> what it is."""

    def lost(self, needed: str | None = None) -> Lost | None:
        """Return which process of the lab has ended, of the switches that of the `needed` fabric or any; None while all live."""

    def stopped(self) -> Lost | None:
        """Return which process of the lab stands still; None while all go on."""

    def status(self) -> Any:
        """Return the state of nodes and switches."""

    def lateness(self, interface: str, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, Any]:
        """Return how late the switch behind an interface was in each span."""

    def crossings(self, interface: str, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, list[list[int]]]:
        """Return the frames of measured stages that crossed the switch behind an interface in each span."""


class LabLauncher(OnThisMachine):
    """One rank on each node of a lab, and around again. The nodes share processors, so ranks that wait must sleep."""

    def __init__(
        self,
        lab: EnterableLab,
        starter: MpiStarter,
        preload: Path | None,
        layout: Layout | None = None,
        testbed: Testbed | None = None,
    ) -> None:
        """Start ranks on all nodes of the lab, or on those of a `testbed` that is a part of it."""
        self._lab = lab
        self._testbed = testbed or lab.testbed()
        self._starter = starter
        self._preload = preload
        self._layout = layout or Layout()

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program in the lab. The guard runs inside, where it can adopt and end what the starter leaves."""
        placement = self._placement(fabric, ranks)
        inside = guarded(self._starter.tokens(placement, fabric, program))
        tokens = self._lab.command_in(placement.hosts[0], inside, working_directory=directory, environment={})
        cleared = self._starter.foreign(fabric).names
        return Command(tuple(tokens), directory, cleared=cleared, beside=self._lab.processes(fabric.network))

    def meeting_address(self, fabric: Fabric) -> str:
        """Return the first node's address on the fabric."""
        first = self._testbed.nodes_of(fabric)[0].name
        return meeting_address(next(node for node in self._lab.testbed().nodes if node.name == first), fabric)

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that run something in a node."""
        return self._lab.command_in(node, tokens, working_directory=Path("/"), environment={})

    def in_nodes(self, nodes: Sequence[str], module: str, *arguments: str) -> list[str] | None:
        """Return the tokens that run a module of ours in all these nodes."""
        return self._lab.command_in_each(nodes, module, arguments)

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        """Return how ranks are started and how they wait."""
        return self._starter.conditions(self._placement(fabric, 1), fabric)

    def _placement(self, fabric: Fabric, ranks: int) -> Placement:
        return Placement(
            ranks=ranks,
            hosts=tuple(node.name for node in self._testbed.nodes_of(fabric)[:ranks]),
            layout=self._layout,
            agent=self._lab.agent,
            control_interface=self._lab.control_interface,
            scratch=self._lab.directory,
            preload=self._preload,
        )

    def lives_with(self) -> ProcessIdentity:
        """Return the lab's keeper."""
        return self._lab.keeper

    def lost(self, fabric: Fabric | None = None) -> Lost | None:
        """Return what of the lab has ended."""
        return self._lab.lost(None if fabric is None else fabric.network)

    def stopped(self) -> Lost | None:
        """Return what of the lab stands still."""
        return self._lab.stopped()

    def switches(self) -> dict[str, Any]:
        """Return what each switch has forwarded and dropped so far."""
        status = self._lab.status().model_dump(mode="json")
        return {fabric["name"]: fabric["switch"] for fabric in status["fabrics"]}

    def lateness(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> dict[int, CellLateness]:
        """Return how late the fabric's switch was in each span. By interface: a fabric may go by two names."""
        found = self._lab.lateness(fabric.interface, spans) if fabric.interface is not None else {}
        return {key: CellLateness.model_validate(one.model_dump()) for key, one in found.items()}

    def crossings(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> Mapping[int, Crossings]:
        """Return the frames of measured stages that crossed the fabric's switch in each span."""
        found = self._lab.crossings(fabric.interface, spans) if fabric.interface is not None else {}
        return {key: np.array(rows, dtype=np.int64) for key, rows in found.items()}
