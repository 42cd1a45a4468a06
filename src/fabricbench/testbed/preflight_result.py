"""What a preflight found: the nodes as they are, what is not as the testbed says, and that in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from ClusterShell.NodeSet import NodeSet, NodeSetException
from pydantic import Field

from fabricbench.errors import EnvironmentLacks, FabricbenchError, UsageError
from fabricbench.model import Model

SETTING = "setting"
"""The subject of what keeps a setting from being varied."""

OF_THE_ENVIRONMENT = {"reach", "fabricbench", "program", "mpi", "lab", SETTING}
"""The subjects that no change of the testbed file mends: a refusal for these alone says that the environment lacks something."""

MOST_TOLD = 20
"""How many findings a refusal lists; the table has them all."""

PAIR = " and "
"""Between the names of two fabrics that a finding is of."""

NODE = "NODE"
"""Stands for each node's name in what is said of several at once."""


class Severity(StrEnum):
    """Whether a finding refuses the run."""

    ERROR = "error"
    WARNING = "warning"


class Silent(Model):
    """A node that gave no facts: what was found instead, and what to do."""

    subject: str = "reach"
    found: str
    action: str


class Finding(Model):
    """What is not as the testbed says: on which node and fabric (empty: of the testbed as a whole), found, needed, what to do."""

    severity: Severity = Severity.ERROR
    node: str = ""
    fabric: str = ""
    subject: str
    found: str
    needed: str
    action: str


class Attachment(Model):
    """How a node is attached to a fabric."""

    interface: str
    address: str = ""
    mtu: int
    state: str


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
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What does not."""
        return tuple(one for one in self.findings if one.severity is Severity.WARNING)

    def refusal(self, *, with_findings: bool = True) -> FabricbenchError | None:
        """Return what to raise instead of starting a run; None where nothing speaks against it."""
        if not self.errors:
            return None
        is_usage = any(one.subject not in OF_THE_ENVIRONMENT for one in self.errors)
        problems = len(_shared_by_nodes(self.errors))
        lines = [
            f"the preflight of {self.testbed} found {problems} problem{'s' * (problems != 1)}",
            *(told(self.errors) if with_findings else ()),
        ]
        error = UsageError if is_usage else EnvironmentLacks
        return error("\n".join(lines), hint="mend this and give the same command again; nothing was written")


def told(findings: Iterable[Finding]) -> list[str]:
    """Return findings as lines, those that nodes share once: what was found, what is needed, what to do."""
    shared = _shared_by_nodes(findings)
    lines = []
    for (fabric, *texts), nodes in list(shared.items())[:MOST_TOLD]:
        found, needed, action = (text.replace(NODE, nodes[0]) if len(nodes) == 1 else text for text in texts)
        kind = "fabrics" if PAIR in fabric else "fabric"
        where = ", ".join(filter(None, (folded(nodes), f"{kind} {fabric}" if fabric else "")))
        lines += [f"  {where}{': ' * bool(where)}found {found}; needed: {needed}", f"      what to do: {action}"]
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
