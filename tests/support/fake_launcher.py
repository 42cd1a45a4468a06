"""A launcher whose measurer is `fake_probe.py`: real processes, invented numbers, failures on demand."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricbench.launch.launcher import Command, OnThisMachine
from fabricbench.launch.watch import guarded
from fabricbench.record.crossings import Crossings
from fabricbench.record.launch import CellLateness
from fabricbench.testbed.model import Fabric, Lost

FAKE_PROBE = Path(__file__).with_name("fake_probe.py")


class FakeLauncher(OnThisMachine):
    """Notes what was started; `behave` says how the next starts of a launch go."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.started: list[str] = []
        self.what_is_lost: Lost | None = None
        self.what_is_stopped: Lost | None = None
        self.lost_in: dict[str, Lost] = {}
        """Launches during which a part of the testbed ends."""
        self.silent: dict[str, str] = {}
        self.nodes_die_in: dict[str, dict[str, str]] = {}
        """Launches in which nodes fail: these do not answer from then on, each for a reason; the launch behaves as it is told."""
        directory.mkdir(exist_ok=True)

    def behave(self, launch_id: str, *words: str) -> None:
        (self._directory / launch_id).write_text("\n".join(words))

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        del fabric, program
        launch_id, plan = directory.name, directory / "plan.json"
        self.started.append(launch_id)
        self.silent |= self.nodes_die_in.pop(launch_id, {})
        self.what_is_lost = self.lost_in.pop(launch_id, self.what_is_lost)
        tokens = [sys.executable, "-S", str(FAKE_PROBE), str(plan), str(self._directory / launch_id), str(ranks)]
        return Command(guarded(tokens), directory)

    def meeting_address(self, fabric: Fabric) -> str:
        del fabric
        return "127.0.0.1"

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        del node
        return list(tokens)

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        del fabric
        return {"mpi waits": "not at all"}

    def failed_nodes(self) -> Mapping[str, str]:
        return self.silent

    def lost(self, fabric: Fabric | None = None) -> Lost | None:
        lost = self.what_is_lost
        return lost if lost is None or fabric is None or lost.fabric in ("", fabric.name) else None

    def stopped(self) -> Lost | None:
        return self.what_is_stopped

    def switches(self) -> dict[str, Any]:
        return {"slow": {"state": "idle"}}

    def crossings(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> dict[int, Crossings]:
        del fabric, spans
        return {}

    def lateness(self, fabric: Fabric, spans: Mapping[int, tuple[int, int]]) -> dict[int, CellLateness]:
        del fabric
        return {
            cell: CellLateness(count=end - begin, mean=1, p50=1, p90=1, p99=2, maximum=3)
            for cell, (begin, end) in spans.items()
        }
