"""Nodes whose settings tests may vary: folders of this machine, a setting is a file in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricbench.settings import HostSettings
from fabricbench.settings.session import Sides
from fabricbench.testbed.model import Fabric

FABRIC = Fabric(name="loopback", interface="lo")
NODES = ("a", "b")

READ = ("sh", "-c", 'cat "$PLACE/$0"')
WRITE = ("sh", "-c", 'test ! -e "$PLACE/stuck" && printf %s "$1" > "$PLACE/$0"')


def condition(**files: str) -> tuple:
    """What a condition sets: the content of files in each node's folder."""
    customs = [
        {"name": name, "read": [*READ, name], "write": [*WRITE, name, "{value}"], "value": value}
        for name, value in files.items()
    ]
    return HostSettings.model_validate({"custom": customs}).settings_on(FABRIC)


SIDES: Sides = {"plain": (), "one": condition(x="1"), "both": condition(x="2", y="3")}


class Cluster:
    """Folders that stand for nodes; one that is down cannot be reached."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for node in NODES:
            (root / node).mkdir(parents=True)
            (root / node / "x").write_text("0")
            (root / node / "y").write_text(f"of {node}")

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        down = self.root / node / "down"
        asks = f'test ! -e {down} || {{ echo "no route to {node}" >&2; exit 255; }}; exec "$@"'
        return ["env", f"PLACE={self.root / node}", "sh", "-c", asks, "sh", *tokens]

    def state(self) -> dict[str, str]:
        return {f"{node}.{name}": (self.root / node / name).read_text() for node in NODES for name in ("x", "y")}
