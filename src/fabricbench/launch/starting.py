"""Where the ranks of a launch run, and what they share there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PRELOAD = "LD_PRELOAD"

WORKING_DIRECTORY = "/"
"""Where ranks on several hosts start: one that every host has. A starter would change to its own, the launch's directory, which
only rank 0's host need have; hydra starts no rank without it."""


@dataclass(frozen=True)
class Placement:
    """One rank on each host, in their order, and around again where there are more ranks: rank i is on host i modulo the hosts.

    No hosts: all ranks on this machine.
    `agent` replaces ssh as the program that reaches a host. `control_interface` carries the starter's own traffic. `preload` is a
    library put before the ranks' others: nodes that share processors need one whose `sched_yield` sleeps.
    """

    ranks: int
    hosts: tuple[str, ...] = ()
    agent: Path | None = None
    control_interface: str | None = None
    preload: Path | None = None

    @property
    def ranks_on_each_host(self) -> int:
        """How many ranks a host has at most."""
        return -(-self.ranks // max(1, len(self.hosts)))

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the ranks: those given, and the preload before whatever they preload themselves."""
        if self.preload is None:
            return dict(given)
        return {**given, PRELOAD: ":".join(filter(None, (str(self.preload), given.get(PRELOAD))))}
