"""What a preflight found: the nodes as they are, what is not as the testbed says, and that in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from ClusterShell.NodeSet import NodeSet, NodeSetException
from pydantic import Field

from fabricbench.errors import EnvironmentLacks
from fabricbench.model import Model

SETTING = "setting"
"""The subject of what keeps a setting from being varied."""

ALLOWANCE = "allowance"
"""The subject of what a node's container or job withholds."""

REACH = "reach"
"""The subject of a node that gives no answer."""

UNUSABLE = {REACH, "fabricbench", "program", "mpi", "lab", SETTING, ALLOWANCE}
"""The subjects of what keeps a node itself from being used, whatever its fabrics are like."""

MOST_TOLD = 20
"""How many findings a refusal lists; the table has them all."""


class NodesSilent(EnvironmentLacks):
    """Among what is not as the testbed says are nodes that give no answer: the others may be used without them."""


PAIR = " and "
"""Between the names of two fabrics that a finding is of."""

NODE = "NODE"
"""Stands for each node's name in what is said of several at once."""


class FindingSeverity(StrEnum):
    """Whether a finding refuses the run."""

    ERROR = "error"
    WARNING = "warning"


class Silent(Model):
    """A node that gave no facts: what was found instead, and what to do."""

    subject: str = REACH
    found: str
    action: str


class Finding(Model):
    """What is not as the testbed says: on which node and fabric (empty: of the testbed as a whole), found, needed, what to do."""

    severity: FindingSeverity = FindingSeverity.ERROR
    node: str = ""
    fabric: str = ""
    subject: str
    found: str
    needed: str
    action: str


class Attachment(Model):
    """How a node is attached to a fabric. `carriers` are what its interface's packets leave by, if that is a tunnel."""

    interface: str
    address: str = ""
    mtu: int
    state: str
    carriers: tuple[str, ...] = ()


class NodeResult(Model):
    """A node as it was found; `host`, `version` and what follows are empty where it was silent."""

    name: str
    host: str = ""
    version: str = ""
    load: float | None = None
    processors: int | None = None
    attachments: dict[str, Attachment] = {}


class Preflight(Model):
    """The nodes as they were found and what is wrong. `is_skipped`: nothing was looked at, because somebody asked for that.

    `inventories` are the doctor's facts by node; a run keeps them in its manifest, and not here.
    """

    testbed: str = ""
    is_skipped: bool = False
    nodes: tuple[NodeResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    inventories: dict[str, dict[str, str]] = Field(default={}, exclude=True)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What refuses a run."""
        return tuple(one for one in self.findings if one.severity is FindingSeverity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What does not."""
        return tuple(one for one in self.findings if one.severity is FindingSeverity.WARNING)

    @property
    def carriers(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """What carries each tunnel that is a fabric's interface, by host and tunnel."""
        return {
            node.host: found
            for node in self.nodes
            if (found := {one.interface: one.carriers for one in node.attachments.values() if one.carriers})
        }

    def refusal(self, *, with_findings: bool = True) -> EnvironmentLacks | None:
        """Return what to raise instead of starting a run; None where nothing speaks against it.

        Whether the file or the node is wrong nobody can tell from here; a file that cannot be used by itself is refused on reading.
        """
        if not self.errors:
            return None
        problems = len(_shared_by_nodes(self.errors))
        lines = [
            f"the preflight of {self.testbed} found {problems} problem{'s' * (problems != 1)}",
            *(told(self.errors) if with_findings else ()),
        ]
        error = NodesSilent if any(one.subject == REACH for one in self.errors) else EnvironmentLacks
        return error("\n".join(lines), hint="mend this and give the same command again; nothing was written")


def told(findings: Iterable[Finding]) -> list[str]:
    """Return findings as lines, those that nodes share once: what was found, what is needed, what to do.

    What was found names all of the nodes; in what to do, of several, NODE stands for each.
    """
    shared = _shared_by_nodes(findings)
    lines = []
    for (fabric, found, needed, action), nodes in list(shared.items())[:MOST_TOLD]:
        names = folded(nodes)
        each = f" ({NODE}: each of {names})" if NODE in action else ""
        what_to_do = action.replace(NODE, nodes[0]) if len(nodes) == 1 else f"{action}{each}"
        kind = "fabrics" if PAIR in fabric else "fabric"
        where = ", ".join(filter(None, (names, f"{kind} {fabric}" if fabric else "")))
        said = f"found {found.replace(NODE, names)}; needed: {needed}"
        lines += [f"  {where}{': ' * bool(where)}{said}", f"      what to do: {what_to_do}"]
    if len(shared) > MOST_TOLD:
        lines.append(f"  and {len(shared) - MOST_TOLD} more: `fabricbench doctor --testbed` lists them all")
    return lines


def _shared_by_nodes(findings: Iterable[Finding]) -> dict[tuple[str, str, str, str], list[str]]:
    """Return fabric, found, needed and action of what nodes share, with those nodes."""
    shared: dict[tuple[str, str, str, str], list[str]] = {}
    for one in findings:
        found, action = (_without_node(text, one.node) for text in (one.found, one.action))
        shared.setdefault((one.fabric, found, one.needed, action), []).append(one.node)
    return shared


def _without_node(text: str, node: str) -> str:
    """Return a text with NODE for the node's name, where that stands by itself: a node may be called `a`."""
    return re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w-])", NODE, text) if node else text


def folded(nodes: Iterable[str]) -> str:
    """Return node names as a node set, `c[1-3]`."""
    names = [name for name in nodes if name]
    try:
        return str(NodeSet(",".join(names))) if names else ""
    except NodeSetException:
        return ", ".join(names)
