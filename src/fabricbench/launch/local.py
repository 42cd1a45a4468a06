"""Launches all ranks on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricbench.launch.command import Command
from fabricbench.launch.mpi import Starter
from fabricbench.launch.placement import Placement
from fabricbench.launch.waiting import WAITING_ASLEEP
from fabricbench.launch.watch import guarded
from fabricbench.record.launch import CellLateness
from fabricbench.testbed.model import Fabric, Lost


class LocalLauncher:
    """All ranks here: they share the processors, so those that wait for a network must sleep."""

    def __init__(self, starter: Starter, preload: Path | None) -> None:
        self._starter = starter
        self._preload = preload

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program here."""
        placement = Placement(ranks=ranks, preload=self._preload_on(fabric))
        tokens = self._starter.tokens(placement, fabric, list(program))
        return Command(guarded(tokens), directory)

    def in_node(self, _node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens as they are: this machine is the node."""
        return list(tokens)

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        """Return how ranks wait."""
        return WAITING_ASLEEP if self._preload_on(fabric) else {}

    def _preload_on(self, fabric: Fabric) -> Path | None:
        """Nothing over shared memory: no descriptor tells of data there, so sleeping on descriptors would miss it."""
        return self._preload if fabric.has_interface else None

    def lost(self) -> Lost | None:
        """Return nothing: what is gone here is told by the launch that fails."""
        return None

    def switches(self) -> dict[str, Any]:
        """Return nothing: no fabric here is emulated."""
        return {}

    def lateness(self, _fabric: Fabric, _spans: Mapping[int, tuple[int, int]]) -> dict[int, CellLateness]:
        """Return nothing, for the same reason."""
        return {}
