"""In what the nodes of a testbed differ, from their inventories: what most have, and who has something else. Pure.

A cluster compares fabrics well only where its nodes are alike: one with an older firmware or half of its PCIe lanes is slow in
every launch, and looks like the fabric.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabricbench.testbed.model import Testbed
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, folded

PASSING = ("load", "advice", "allowance.shared_memory_bytes", "allowance.processes")
"""What an inventory tells of the moment, not of the configuration."""

MISSING = "missing"
"""Stands in the inventory of a node that gave none: the preflight tells of that."""

OF_ONE_NODE = re.compile(
    r"""
    net\.(.+)\.(mac|state) |              # no two are the same; what is up is the preflight's to tell
    net\.(.+)\.adapter\.interrupt\w* |    # irqbalance and drivers deal them out anew at each start
    net\.(.+)\.adapter\.pcie\.address | rdma\.(.+)\.pcie\.address |
    net\.lo\..* |
    kernel\.version                       # of one release there may be several builds
    """,
    re.VERBOSE,
)
"""What differs from node to node though they are alike."""

SAME_SHARE = 0.01
"""Memory that a kernel keeps for itself differs by less from node to node of one kind."""

ABSENT = "none"

ACTIONS = {
    r"net\..*\.firmware|rdma\..*\.firmware": "put the same firmware on every adapter",
    r"net\..*\.driver.*": "the same adapter with the same driver on every node",
    r".*\.pcie\..*": "reseat the card, or compare its slot with that of the other nodes",
    r"net\..*\.speed_bit_s|net\..*\.duplex|rdma\..*\.rate_bit_s": "check cable, transceiver and switch port of these nodes",
    r"net\..*\.mtu": "ip link set dev INTERFACE mtu N on these nodes, as on the others",
    r"net\..*\.(offloads|coalescing|rings)\..*|net\..*\.pause\..*": "ethtool -K, -C, -G or -A on these nodes, as on the others",
    r"rdma\..*": "look at these ports with `ibstat` or `rdma link`; is the switch port up, the subnet manager there?",
    r"sysctl\..*": "sysctl -w on these nodes, and in /etc/sysctl.d, as on the others",
    r"limits\..*": "the same /etc/security/limits.conf, and limits of sshd and slurmd, on every node",
    r"cpu\.governors|cpu\.frequency.*|cpu\.has_turbo": "cpupower frequency-set --governor performance on every node",
    r"cpu\..*|memory_bytes": "leave the nodes of another kind out of the testbed, or measure them by themselves",
    r"kernel\..*|clock\..*|hugepages\..*": "boot every node with the same kernel and the same command line",
    r"mpi\..*|python": "install the same on every node",
}
"""What to do about a difference, by the fact; the first that fits counts."""

OTHERWISE = "make the nodes alike, or leave these out of the testbed"


@dataclass(frozen=True)
class NodeDifference:
    """A fact that nodes do not share: what most have, and the others by what they have instead. `nodes` is how many there are."""

    fact: str
    usual: str
    usual_nodes: tuple[str, ...]
    others: Mapping[str, tuple[str, ...]]

    def found(self, value: str) -> str:
        """Return what is to be said of the nodes that have another value."""
        rest = len(self.usual_nodes)
        return f"{self.fact} {value} where {rest} other {'nodes have' if rest > 1 else 'node has'} {self.usual}"

    def words(self) -> str:
        """Return it whole: who has what, and what the others have."""
        rest = len(self.usual_nodes)
        others = "; ".join(f"{folded(nodes)}: {value}" for value, nodes in self.others.items())
        return f"{self.fact}: {others}; the other {f'{rest} have' if rest > 1 else 'one has'} {self.usual}"

    @property
    def action(self) -> str:
        """What to do about it."""
        return next((text for form, text in ACTIONS.items() if re.fullmatch(form, self.fact)), OTHERWISE)


def find_differences(inventories: Mapping[str, Mapping[str, str]]) -> tuple[NodeDifference, ...]:
    """Return in what nodes differ, by fact. What most have is usual; of two that are as frequent, what the first node has."""
    told = {node: facts for node, facts in inventories.items() if MISSING not in facts}
    if len(told) < 2:
        return ()
    return tuple(_differences(told))


def differences_in(testbed: Testbed, inventories: Mapping[str, Mapping[str, str]]) -> tuple[NodeDifference, ...]:
    """Return in what the nodes of a testbed differ that one fabric is measured over."""
    if len(testbed.node_sets) == 1:
        return find_differences(inventories)
    found: list[NodeDifference] = []
    for nodes in testbed.node_sets:
        own = {node: inventories[node] for node in nodes if node in inventories}
        found += [one for one in find_differences(own) if one not in found]
    return tuple(found)


def _differences(told: Mapping[str, Mapping[str, str]]) -> Iterator[NodeDifference]:
    having = {node: {part for fact in facts if (part := _part(fact))} for node, facts in told.items()}
    shared = set[str].intersection(*having.values())
    for fact in sorted({fact for facts in told.values() for fact in facts}):
        if fact.startswith(PASSING) or OF_ONE_NODE.fullmatch(fact):
            continue
        part = _part(fact)
        values = {node: facts.get(fact, ABSENT) for node, facts in told.items()}
        if part and part not in shared:
            if not any(f"{part}.driver" in facts for facts in told.values()):
                continue  # a virtual one: their names come and go
            if fact != f"{part}.driver":  # it is said once that some nodes do not have it
                values = {node: value for node, value in values.items() if part in having[node]}
        if (found := _difference(fact, values)) is not None:
            yield found


def _difference(fact: str, values: Mapping[str, str]) -> NodeDifference | None:
    usual, count = Counter(values.values()).most_common(1)[0]
    if count == len(values):
        return None
    others: dict[str, list[str]] = {}
    for node, value in values.items():
        if value != usual and not _is_same(fact, value, usual):
            others.setdefault(value, []).append(node)
    if not others:
        return None
    return NodeDifference(
        fact=fact,
        usual=usual,
        usual_nodes=tuple(node for node, value in values.items() if value == usual),
        others={value: tuple(nodes) for value, nodes in others.items()},
    )


PARTS = re.compile(
    r"(net\..+?)\.(?:adapter|coalescing|driver|duplex|has_rps|mac|mtu|numa_node|offloads|receive_queues|rings|speed_bit_s|state|"
    r"transmit_queues)\b.*"
)


def _part(fact: str) -> str:
    """Return `net.eth0` of `net.eth0.adapter.firmware`, whatever dots the interface's own name has; else nothing."""
    found = PARTS.fullmatch(fact)
    return found.group(1) if found else ""


def _is_same(fact: str, value: str, usual: str) -> bool:
    if fact != "memory_bytes" or not (value.isdigit() and usual.isdigit()):
        return False
    return abs(int(value) - int(usual)) <= SAME_SHARE * int(usual)


JUDGED = re.compile(r"net\..*\.mtu|mpi\.version")
"""What a preflight judges by itself, against the testbed or what is here."""


def as_findings(differences: Iterable[NodeDifference]) -> Iterator[Finding]:
    """Yield a warning for each node that is unlike the others; those of nodes that agree are told as one."""
    for one in differences:
        if JUDGED.fullmatch(one.fact):
            continue
        for value, nodes in one.others.items():
            for node in nodes:
                yield Finding(
                    severity=FindingSeverity.WARNING,
                    node=node,
                    subject="difference",
                    found=one.found(value),
                    needed="the same on every node, else its difference looks like the fabric's",
                    action=one.action,
                )
