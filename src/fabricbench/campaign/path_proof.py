"""The path proof: did the traffic of each cell go over the fabric under test and nowhere else? Pure.

The measurer reads the counters of every interface on the host of ranks[0] around each cell. On a network layer the fabric's
interface must have carried at least the payload; what any other carried must be no more than control traffic explains. Without
such a proof a launch is not believed: MPI likes to take another way than it was told.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabricbench.model import Layer, Model, Pattern
from fabricbench.quantity import format_bytes
from fabricbench.record.lines import Cell, CellEnd, Header
from fabricbench.record.reading import Record
from fabricbench.testbed.model import Fabric

CONTROL_SHARE = 0.05
CONTROL_BYTES = 64 * 1024
"""What may go elsewhere: starting, barriers, acknowledgements; far less than the payload of any misled cell."""

BACKGROUND_BYTES_S = 512 * 1024
"""What a machine's own housekeeping (monitoring, a shared file system) may move meanwhile without casting doubt."""

MISSING_SHARE = 0.02
"""For messages that are counted as sent and were lost before the interface."""


class CellProof(Model):
    """What one cell moved: the payload that its samples imply, over the fabric's interface, and over all others."""

    cell: int
    layer: Layer
    payload_bytes: int
    fabric_sent: int
    fabric_received: int
    other_bytes: int
    violations: tuple[str, ...]


class PathProof(Model):
    """The proof of a launch. `interface` is the fabric's on the host of ranks[0], None for shared memory."""

    interface: str | None
    cells: tuple[CellProof, ...]

    @property
    def violations(self) -> tuple[str, ...]:
        """Why the launch is not believed; empty if it is."""
        return tuple(violation for cell in self.cells for violation in cell.violations)


def prove_path(record: Record, fabric: Fabric) -> PathProof:
    """Return the proof of every finished cell of a launch."""
    interface = _interface(record.header, fabric)
    pairs = [(cell.cell, cell.end) for cell in record.cells if cell.cell is not None and cell.end is not None]
    return PathProof(interface=interface, cells=tuple(_prove_cell(cell, end, interface, fabric) for cell, end in pairs))


def _interface(header: Header | None, fabric: Fabric) -> str | None:
    if not fabric.has_interface:
        return None
    found = header.ranks[0].interface if header is not None and header.ranks else None
    return found or fabric.interface


def _prove_cell(cell: Cell, end: CellEnd, interface: str | None, fabric: Fabric) -> CellProof:
    sent, received = _payload(cell, end)
    carried = end.interfaces.get(interface) if interface is not None else None
    fabric_sent = carried.sent if carried is not None else 0
    fabric_received = carried.received if carried is not None else 0
    own = interface if cell.layer is not Layer.MEMORY else None
    others = {name: each.sent + each.received for name, each in end.interfaces.items() if name != own}
    what = f"cell {cell.id} ({cell.layer} {cell.pattern} of {format_bytes(cell.message_bytes)})"
    moved = end.measured * cell.bytes_per_sample
    violations = list(_elsewhere(what, others, moved, end.seconds))
    if fabric.has_interface and cell.layer is not Layer.MEMORY:
        if interface is None or carried is None:
            violations.append(f"{what}: no counters of an interface of {fabric.name}, so its path is not proven")
        else:
            violations += _missing(what, interface, (sent, fabric_sent), (received, fabric_received))
    return CellProof(
        cell=cell.id,
        layer=cell.layer,
        payload_bytes=sent + received,
        fabric_sent=fabric_sent,
        fabric_received=fabric_received,
        other_bytes=sum(others.values()),
        violations=tuple(violations),
    )


def _payload(cell: Cell, end: CellEnd) -> tuple[int, int]:
    """Return the payload that the host of ranks[0] must have sent and received at least."""
    if cell.layer is Layer.MEMORY:
        return 0, 0
    moved = end.measured * cell.operations_per_sample * cell.messages_per_sample * cell.message_bytes
    lost = end.lost * cell.message_bytes
    if cell.pattern is Pattern.PINGPONG:
        return moved, max(0, moved - lost)
    return max(0, moved - lost), 0


def _missing(what: str, interface: str, sent: tuple[int, int], received: tuple[int, int]) -> Iterable[str]:
    for direction, (payload, carried) in (("sent", sent), ("received", received)):
        if carried < payload * (1 - MISSING_SHARE):
            yield f"{what}: {interface} {direction} {carried} B, but the payload is {payload} B: it went another way"


def _elsewhere(what: str, others: dict[str, int], moved: int, seconds: float) -> Iterable[str]:
    allowed = CONTROL_BYTES + CONTROL_SHARE * moved + BACKGROUND_BYTES_S * seconds
    for name, carried in others.items():
        if carried > allowed:
            yield f"{what}: {name} carried {carried} B, at most {allowed:.0f} B can be control traffic"
