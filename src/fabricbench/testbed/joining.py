"""Whether the nodes of a testbed are joined as its file says, beyond a preflight: link speeds, clocks, and who reaches whom.

Pure: what nodes told goes in, findings come out. Of a network whose every link answers nothing, nothing is concluded: kernels
answer for closed ports (`reaching`), and a firewall that drops silently looks the same. The measurement that follows decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from statistics import median

from fabricbench.model import Model
from fabricbench.quantity import format_bit_s, format_seconds, write_bit_s
from fabricbench.testbed.attachments import attachments_of
from fabricbench.testbed.discovery import speed_bit_s
from fabricbench.testbed.model import Fabric, Testbed
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, folded

SPEED_SLACK = 0.05
"""A line rate may be written rounded."""

SLOW_SOURCES = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
"""Clock sources of which each reading takes a microsecond, or that count too coarsely to time a message."""

LARGEST_OFFSET_S = 1.0
"""Journals and logs of nodes cannot be put side by side beyond that; what is measured rests on no clock of the day."""


def judge_members(testbed: Testbed) -> Iterator[Finding]:
    """Yield the fabrics that join fewer than two nodes, as the testbed tells: they have no pairs."""
    for fabric in testbed.fabrics:
        nodes = testbed.joined_by(fabric)
        if fabric.has_interface and len(nodes) < 2:
            yield Finding(
                fabric=fabric.name,
                subject="nodes",
                found=f"{nodes[0].name} alone" if nodes else "none of the testbed's nodes",
                needed="two nodes at least: nothing else crosses a network",
                action=f"list the others in `nodes` of fabric {fabric.name}, or take it out of the testbed",
            )


def judge_speeds(testbed: Testbed, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Yield the interfaces that run at another rate than the testbed says, as their drivers tell; of bonds nobody tells it."""
    for fabric in testbed.fabrics:
        if fabric.wire is None or not fabric.has_interface:
            continue
        wanted = fabric.wire.line_rate_bit_s
        odd: dict[str, tuple[str, float]] = {}
        nodes = testbed.joined_by(fabric)
        for node in nodes:
            if node.name not in facts:
                continue
            for one in attachments_of(testbed, node, facts[node.name])[0]:
                speed = None if one.interface.kind else speed_bit_s(one.interface, facts[node.name])
                if one.fabric is fabric and speed is not None and abs(speed / wanted - 1) > SPEED_SLACK:
                    odd[node.name] = (one.interface.name, speed)
        is_of_all = len(odd) == len(nodes) and len({speed for _, speed in odd.values()}) == 1
        for name, (interface, speed) in odd.items():
            mend = f"check cable, transceiver and switch port; `ethtool {interface}` there shows what both ends offer"
            yield Finding(
                node=name,
                fabric=fabric.name,
                subject="speed",
                found=f"{interface} at {format_bit_s(speed)}",
                needed=f"{format_bit_s(wanted)}, the testbed's line rate",
                action=f'write `line_rate = "{write_bit_s(speed)}"` in the testbed, or {mend}' if is_of_all else mend,
            )


@dataclass(frozen=True)
class ClockReading:
    """A node's clock of the day, read at some time within a span by the clock of the machine that asked; all in ns since 1970."""

    unix_ns: int
    asked_ns: tuple[int, int]

    @property
    def offset_s(self) -> float:
        """How far the node is ahead, by the middle of the span."""
        return (self.unix_ns - sum(self.asked_ns) / 2) * 1e-9

    @property
    def error_s(self) -> float:
        """By how much that may be wrong."""
        return (self.asked_ns[1] - self.asked_ns[0]) * 0.5e-9


def judge_clocks(facts: Mapping[str, NodeFacts], readings: Mapping[str, ClockReading]) -> Iterator[Finding]:
    """Yield the nodes whose clock is read slowly, differs in its source, or is provably off from the others'."""
    sources = {name: one.clock_source for name, one in facts.items() if one.clock_source}
    usual = Counter(sources.values()).most_common(1)
    for name, source in sources.items():
        if source in SLOW_SOURCES or source != usual[0][0]:
            is_slow = source in SLOW_SOURCES
            yield Finding(
                severity=FindingSeverity.ERROR if is_slow else FindingSeverity.WARNING,
                node=name,
                subject="clock",
                found=f"clock source {source}" + (", of which each reading takes a microsecond" if is_slow else ""),
                needed=f"{'tsc' if is_slow else usual[0][0]}" + ("" if is_slow else ", as on most nodes"),
                action="boot with tsc=reliable, or write tsc to /sys/devices/system/clocksource/clocksource0/current_clocksource",
            )
    middle = median(one.offset_s for one in readings.values()) if readings else 0.0
    for name, one in readings.items():
        off = one.offset_s - middle
        if abs(off) - one.error_s > LARGEST_OFFSET_S:
            yield Finding(
                node=name,
                subject="clock",
                found=f"a clock that is {format_seconds(abs(off))} {'ahead of' if off > 0 else 'behind'} the others "
                f"(within {format_seconds(one.error_s)})",
                needed=f"at most {format_seconds(LARGEST_OFFSET_S)}",
                action="synchronise it: start chronyd or systemd-timesyncd there, and look at `chronyc tracking`",
            )


class Reached(Model):
    """What a node found of its peers, by their addresses: those that answer, and those that a message of full MTU reaches.

    `too_long` tells that the node's own interface refuses a message of that length. `problem` says why nothing was tried.
    """

    answering: tuple[IPv4Address, ...] = ()
    full: tuple[IPv4Address, ...] = ()
    too_long: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Reachability:
    """What the nodes of a fabric found of each other: each node's address, and what it reached, by the nodes' names."""

    fabric: Fabric
    addresses: Mapping[str, IPv4Address]
    reached: Mapping[str, Reached]

    def silent_pairs(self) -> set[tuple[str, str]]:
        """Return the ordered pairs of which the second does not answer the first."""
        return self._missing({name: set(one.answering) for name, one in self.reached.items()})

    def cut_pairs(self) -> set[tuple[str, str]]:
        """Return the ordered pairs that answer, of which a message of full MTU does not come there."""
        full = {name: set(one.full) for name, one in self.reached.items()}
        silent = self.silent_pairs()
        return self._missing(full) - silent - {(other, one) for one, other in silent}

    def _missing(self, found: Mapping[str, set[IPv4Address]]) -> set[tuple[str, str]]:
        return {
            (one, other)
            for one, seen in found.items()
            for other, address in self.addresses.items()
            if other != one and not self.reached[one].problem and address not in seen
        }

    @property
    def pairs(self) -> int:
        """How many ordered pairs were asked for."""
        return len(self.reached) * (len(self.addresses) - 1)


def judge_way(way: Reachability) -> Iterator[Finding]:
    """Yield the nodes and pairs of a fabric that do not reach each other, or not with messages of full MTU."""
    name, mtu = way.fabric.name, way.fabric.mtu
    silent, cut = way.silent_pairs(), way.cut_pairs()
    if silent and len(silent) == way.pairs:
        yield Finding(
            severity=FindingSeverity.WARNING,
            fabric=name,
            subject="link",
            found="that no node answers another: its kernel refuses no connection to a closed port",
            needed="an answer, or what is measured below has to show that the network carries anything",
            action="let ICMP and refused TCP connections through the nodes' firewalls on this fabric",
        )
        silent, cut = set(), set()
    for node, others in _blamed(silent, way.addresses):
        yield Finding(
            node=node,
            fabric=name,
            subject="link",
            found=f"no answer between {node} and {folded(others)}",
            needed="every pair of nodes reaches each other",
            action="check the cable, the switch's port and its VLAN, routes (`ip route get ADDRESS`) and firewalls there",
        )
    if cut and len(cut) == way.pairs - len(silent) and not any(way.reached[one].too_long for one, _ in cut):
        yield Finding(
            severity=FindingSeverity.WARNING,
            fabric=name,
            subject="path-mtu",
            found=f"that no message of the full MTU {mtu} is answered",
            needed="an answer (ICMP port unreachable), or what is measured below has to show that such messages pass",
            action=f"`ping -M do -s {mtu - 28} ADDRESS` tells: raise the switches' MTU, or let ICMP through",
        )
        cut = set()
    for node, others in _blamed(cut, way.addresses):
        yield Finding(
            node=node,
            fabric=name,
            subject="path-mtu",
            found=f"messages of the full MTU {mtu} lost between {node} and {folded(others)}, shorter ones pass",
            needed=f"MTU {mtu} on the whole way",
            action=f"raise the MTU of the switch's ports on the way; `ping -M do -s {mtu - 28} ADDRESS` shows it",
        )
    for node, one in way.reached.items():
        if one.problem:
            yield Finding(
                node=node,
                fabric=name,
                subject="link",
                found=f"that its peers cannot be asked: {one.problem}",
                needed="an address that a program may use",
                action="run `fabricbench doctor` there, and look at its addresses",
            )


def _blamed(pairs: Iterable[tuple[str, str]], nodes: Iterable[str]) -> list[tuple[str, Sequence[str]]]:
    """Return nodes with the others that they miss, as few as explain all: first those that miss all others, then by their pairs."""
    left = {frozenset(pair) for pair in pairs}
    names = list(nodes)
    found: list[tuple[str, Sequence[str]]] = []
    while left:
        missing = Counter(name for pair in left for name in pair)
        worst = max(names, key=lambda name: missing[name])  # the first of as many
        others = [name for name in names if name != worst and frozenset((worst, name)) in left]
        found.append((worst, others))
        left -= {frozenset((worst, name)) for name in others}
    return found
