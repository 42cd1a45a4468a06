"""Launches all ranks on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fabricbench.launch.launcher import Command, OnThisMachine, RealMachines
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.starting import Placement
from fabricbench.launch.watch import guarded
from fabricbench.testbed.model import Fabric, Layout


class LocalLauncher(OnThisMachine, RealMachines):
    """All ranks here: they share the processors, so those that wait for a network must sleep."""

    def __init__(
        self,
        starter: MpiStarter,
        preload: Path | None,
        layout: Layout | None = None,
        loopback: Path | None = None,
    ) -> None:
        self._starter = starter
        self._preload = preload
        self._layout = layout or Layout()
        self._loopback = loopback

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program here."""
        tokens = guarded(self._starter.tokens(self._placement(fabric, ranks), fabric, program))
        return Command(tokens, directory, cleared=self._starter.foreign(fabric).names)

    def meeting_address(self, _fabric: Fabric) -> str:
        """Return this machine's address for itself."""
        return "127.0.0.1"

    def in_node(self, _node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens as they are: this machine is the node."""
        return list(tokens)

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        """Return how ranks are started and how they wait."""
        return self._starter.conditions(self._placement(fabric, 1), fabric)

    def _placement(self, fabric: Fabric, ranks: int) -> Placement:
        """Nothing is preloaded over shared memory: no descriptor tells of data there, so sleeping on descriptors would miss it."""
        preload = self._preload if fabric.has_interface else None
        return Placement(ranks, layout=self._layout, preload=preload, loopback=self._loopback)
