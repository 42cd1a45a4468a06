"""What `Lab.up` tells the keeper, and the word that lets the lab outlive its caller."""

from __future__ import annotations

from pathlib import Path

from fabricbench.lab.topology import Topology
from fabricbench.model import Model

STAY = b"stay\n"


class KeeperOrder(Model):
    """What the keeper is told: the plan, whether it is root, where files are, and the switch's program."""

    topology: Topology
    has_root: bool
    directory: Path
    switch_program: Path

    @property
    def hosts(self) -> Path:
        """The nodes' /etc/hosts."""
        return self.directory / "hosts"

    def switch_file(self, fabric: str, suffix: str) -> Path:
        """Return a file of the fabric's switch: `json` (configuration), `status.json`, `lateness.jsonl` or `log`."""
        return switch_file(self.directory, fabric, suffix)


def switch_file(directory: Path, fabric: str, suffix: str) -> Path:
    """Return a file of a fabric's switch in the lab's directory."""
    return directory / f"switch-{fabric}.{suffix}"
