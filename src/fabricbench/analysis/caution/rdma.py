"""Warnings about RDMA: what ports lost and were told to wait for, and ends that are not attached alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from fabricbench.analysis.findings import Caution, Severity
from fabricbench.analysis.material import Material, name_of, warn
from fabricbench.analysis.measured import CellMeasured
from fabricbench.analysis.rdma_attachments import AttachedAlike, attachments_of, path_mtu_words, transport_words
from fabricbench.quantity import count, enumeration
from fabricbench.record.port_counters import LOSSES, PortEvent, plural_of
from fabricbench.testbed.preflight_result import folded

LOST_SHARE = 1e-4
"""Losses that ports counted are told from one in so many messages on: what is lost waits for a time-out of milliseconds, and a
message takes microseconds."""


def port_events(material: Material) -> Iterator[Caution]:
    """Tell where ports counted losses at a rate that matters, or something that a compared fabric had none of."""
    for side in material.sides:
        for event in (*LOSSES, PortEvent.PAUSE, PortEvent.CREDIT_WAIT):
            found: dict[str, _Counted] = {}
            for key, cell in side.cells.items():
                number = cell.happened(event)
                if not number or (event in LOSSES and event is not _loss_of(cell)):
                    continue
                others = [other.name for other in material.sides if _had_none(other.cells.get(key), event)]
                is_much = event in LOSSES and number >= LOST_SHARE * _messages(cell)
                if others or is_much:
                    counted = found.setdefault(name_of(cell), _Counted())
                    counted.add(number, _messages(cell), others, is_much=is_much)
            if found:
                yield warn(Severity.WARNING, side.name, _port_event_words(event, found))


@dataclass
class _Counted:
    """What ports counted in the tests of a name, over so many messages, and on which of the compared fabrics nothing of it was."""

    number: int = 0
    messages: float = 0.0
    quiet: dict[str, None] = field(default_factory=dict)
    is_much: bool = False

    def add(self, number: int, messages: float, quiet: Iterable[str], *, is_much: bool) -> None:
        """Add those of another test."""
        self.number += number
        self.messages += messages
        self.quiet |= dict.fromkeys(quiet)
        self.is_much |= is_much


def _port_event_words(event: PortEvent, found: Mapping[str, _Counted]) -> str:
    worst = max(found, key=lambda name: found[name].number)
    of_worst = found[worst]
    rate = (
        f", {of_worst.number / of_worst.messages:.2g} a measured message"
        if event in LOSSES and of_worst.messages
        else ""
    )
    text = f"the ports counted {plural_of(event)} in {count(len(found), 'test')}, most in {worst} ({of_worst.number:,}{rate})"
    if quiet := list(dict.fromkeys(name for one in found.values() for name in one.quiet)):
        text += f", and none of them on {enumeration(quiet)}: their ratios do not compare the links alone"
    if any(one.is_much for one in found.values()):
        text += "; packets were lost, and what is measured there is how the adapters recover as much as the link"
    return text


def _loss_of(cell: CellMeasured) -> PortEvent | None:
    """Return what tells of a cell's losses: a loss that a sender mended is not told again as what its receiver found."""
    return next((event for event in LOSSES if cell.happened(event)), None)


def _messages(cell: CellMeasured) -> float:
    return cell.total_bytes / cell.key.message_bytes if cell.key.message_bytes else 0.0


def _had_none(cell: CellMeasured | None, event: PortEvent) -> bool:
    return cell is not None and cell.happened(event) == 0


def unlike_ends(material: Material) -> Iterator[Caution]:
    """Tell where the hosts of one fabric are not attached alike: the smaller MTU is in force on every path between them."""
    for side in material.sides:
        alike = attachments_of(side)
        for words in (transport_words, _port_mtu_words):
            by_words: dict[str, list[str]] = {}
            for one in alike:
                by_words.setdefault(words(one), []).extend(one.hosts)
            if len(by_words) > 1:
                told = ", ".join(f"{what} on {folded(hosts)}" for what, hosts in by_words.items())
                smallest = path_mtu_words(alike)
                in_force = f"; the path MTU in force was {smallest}" if smallest else ""
                yield warn(Severity.WARNING, side.name, f"its ends of RDMA differ: {told}{in_force}")


def unlike_fabrics(material: Material) -> Iterator[Caution]:
    """Tell where two fabrics are not the same kind of RDMA, or cut messages into other packets."""
    told = [(side.name, attachments_of(side)) for side in material.sides]
    for (name, one), (other_name, other) in combinations([(name, alike) for name, alike in told if alike], 2):
        mine, theirs = _kind_words(one), _kind_words(other)
        if mine != theirs:
            text = f"RDMA over {name} was {mine}, over {other_name} {theirs}: ratios of layer rdma compare that too"
            yield warn(Severity.NOTE, f"{other_name} / {name}", text)


def _port_mtu_words(one: AttachedAlike) -> str:
    return f"port MTU {one.port_mtu}"


def _kind_words(alike: Iterable[AttachedAlike]) -> str:
    every = list(alike)
    kinds = enumeration(list(dict.fromkeys(transport_words(one) for one in every)))
    mtu = path_mtu_words(every)
    return f"{kinds} with path MTU {mtu}" if mtu else kinds
