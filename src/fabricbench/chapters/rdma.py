"""RDMA as the 2024 study shows it: bandwidth and latency by message size for each number of queue pairs, alone and three to one.

Beside every ratio stands what the fabric's ports counted meanwhile: retransmissions, congestion notifications, pauses; a table says
how the hosts of each fabric were attached: device, transport, address and what was in force on the paths. The study's
own words about its RoCE and InfiniBand stand above the tables; it publishes no numbers of these tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from fabricbench.analysis.findings import CellKey, Comparison, Findings, Interval
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.rdma_attachments import AttachedAlike, attachments_of, range_words, transport_words
from fabricbench.analysis.summary import interval
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Layer, Model, Pattern, RdmaDoor
from fabricbench.published.studies import study
from fabricbench.record.port_counters import PortEvent, event_words
from fabricbench.report.drawing.axes import (
    CHOSEN,
    colour_channel,
    connection,
    plotted_size,
    reader_params,
    size_channel,
    value_channel,
)
from fabricbench.report.drawing.figure import Figure, Panel, Spec, interval_note, mark, origin_note, sentences, tooltip
from fabricbench.report.drawing.intervals import interval_points
from fabricbench.report.tables import outcome_columns, undecided_rows
from fabricbench.report.words import (
    NOTHING,
    RECEIVE_WORDS,
    counted,
    effect_words,
    interval_words,
    p_words,
    size_words,
    verdict_words,
)
from fabricbench.statistics.order import median_interval
from fabricbench.table import Table, table
from fabricbench.testbed.preflight_result import folded

NAME = "rdma"
PORTS = "rdma-ports"
ATTACHED = "rdma-attachments"
STUDY = "xu-2024"
BOUNDS = " bounds "
"""What a note of a testbed says where something else than the network may be what is measured."""
QUIET = "nothing"
"""What ports counted where there was ordinary work alone."""
METHOD = """
RDMA bandwidth is what arrived at one receiver from all senders, whole messages over time; latency is the round trip, not
halved, beside queue pairs of other ranks where there are several. What ports counted is of the hosts of a test's ranks, from
before its messages were verified until it was over, over all launches; each kind is counted at one end alone. The path MTU is the
largest packet on the way, which the end with the smaller MTU decides; inline is what the queue pairs took of a message in their
request.
"""


class RdmaQuantity(StrEnum):
    """What a row is of."""

    BANDWIDTH = "bandwidth"
    LATENCY = "latency"


class RdmaPorts(Model):
    """What the ports of a fabric counted over all its `tests`, in words; None where none was read, in `unread` of them not.

    `bounds` is what its testbed says of what bounds it besides the network: the processors of a lab's guests, say.
    """

    fabric: str
    tests: int
    unread: int
    ports: str | None
    bounds: tuple[str, ...] = ()


class RdmaHosts(Model):
    """Hosts of a fabric that were attached alike, in words where cells differed: the path MTU may be `512 to 1024`."""

    fabric: str
    hosts: tuple[str, ...]
    port: str
    transport: str
    interface: str
    gid_index: int
    gids: tuple[str, ...]
    port_mtu: int
    path_mtu: str
    inline_bytes: str


class RdmaRow(Model):
    """One test on one fabric. `senders` send to the receiver at once, over `queue_pairs` each.

    `events` is what the fabric's ports counted in all launches, by kind, and `ports` says it in words; None where none was read.
    """

    fabric: str
    key: CellKey
    quantity: RdmaQuantity
    door: str
    message_bytes: int
    queue_pairs: int
    senders: int
    launches: int
    value: Interval
    events: dict[str, int] | None
    ports: str | None

    @property
    def load(self) -> str:
        """`alone`, or `3 to 1`."""
        return "alone" if self.senders == 1 else f"{self.senders} to 1"


ROWS = Rows(NAME, RdmaRow)
ATTACHED_ROWS = Rows(ATTACHED, RdmaHosts)
PORT_ROWS = Rows(PORTS, RdmaPorts)


def find(material: Material) -> Found:
    """Return the bandwidths and latencies over RDMA of every side, alone and under load."""
    rows = [
        row
        for side in material.sides
        for cell in side.cells.values()
        if (row := _row(side, cell, material.confidence)) is not None
    ]
    return {
        NAME: tuple(sorted(rows, key=_in_order)),
        PORTS: tuple(_ports(rows, material.sides)),
        ATTACHED: tuple(_attached(one) for side in material.sides for one in attachments_of(side)),
    }


def _attached(alike: AttachedAlike) -> RdmaHosts:
    return RdmaHosts(
        fabric=alike.fabric,
        hosts=alike.hosts,
        port=f"{alike.device}/{alike.port}",
        transport=transport_words(alike),
        interface=alike.netdev,
        gid_index=alike.gid_index,
        gids=alike.gids,
        port_mtu=alike.port_mtu,
        path_mtu=range_words(alike.path_mtus),
        inline_bytes=range_words(alike.inline_bytes),
    )


def _ports(rows: Sequence[RdmaRow], sides: Sequence[Side]) -> Iterator[RdmaPorts]:
    notes = {side.name: side.run.manifest.testbed.notes for side in sides}
    for fabric in dict.fromkeys(row.fabric for row in rows):
        mine = [row.events for row in rows if row.fabric == fabric]
        told = [events for events in mine if events is not None]
        total = {event: sum(events.get(event.name.lower(), 0) for events in told) for event in PortEvent}
        yield RdmaPorts(
            fabric=fabric,
            tests=len(mine),
            unread=len(mine) - len(told),
            ports=(event_words(total) or QUIET) if told else None,
            bounds=tuple(note for note in notes[fabric] if BOUNDS in note),
        )


def _row(side: Side, cell: CellMeasured, confidence: float) -> RdmaRow | None:
    """Return the row of a cell; None for one that the table does not have."""
    key, facts = cell.key, cell.facts
    senders, queue_pairs = 1, 1
    if key.layer is not Layer.RDMA:
        return None
    if key.pattern is Pattern.INCAST and facts.congestor is None:
        quantity, senders, queue_pairs = RdmaQuantity.BANDWIDTH, len(facts.ranks) - 1, facts.flows
    elif key.pattern is Pattern.PINGPONG:
        quantity = RdmaQuantity.LATENCY
        load = facts.congestor
        if load is not None and (load.is_idle or load.pattern is not Pattern.INCAST or load.layer is not Layer.RDMA):
            return None
        if load is not None:  # the first rank of the ping-pong sends to the same host
            senders, queue_pairs = len(load.ranks), int(load.parameters.get("flows", 1))
    else:
        return None
    events = {event: number for event in PortEvent if (number := cell.happened(event)) is not None}
    return RdmaRow(
        fabric=side.name,
        key=key,
        quantity=quantity,
        door=str(facts.parameters.get("door", RdmaDoor.SEND.value)),
        message_bytes=key.message_bytes,
        queue_pairs=queue_pairs,
        senders=senders,
        launches=int(np.count_nonzero(~np.isnan(cell.launch_values))),
        value=interval(median_interval(cell.launch_values, confidence)),
        events={event.name.lower(): number for event, number in events.items()} or None,
        ports=(event_words(events) or QUIET) if events else None,
    )


def _in_order(row: RdmaRow) -> tuple[object, ...]:
    return row.quantity, row.door, row.key.receive, row.senders, row.queue_pairs, row.message_bytes


def rows(findings: Findings, quantity: RdmaQuantity) -> list[RdmaRow]:
    """Return the rows of a table in its order, the fabrics of each test side by side."""
    return [row for row in ROWS.of(findings) if row.quantity is quantity]


def tables(findings: Findings) -> NamedTables:
    """Return the tables of the chapter with their titles."""
    return [
        ("Bandwidth", rdma_table(findings, RdmaQuantity.BANDWIDTH)),
        ("Latency, round trips", rdma_table(findings, RdmaQuantity.LATENCY)),
        *attached_tables(findings),
    ]


def attached_tables(findings: Findings) -> NamedTables:
    """Return the one table that has no figure before it."""
    return [("How the hosts were attached", attached_table(findings))]


MOST_GIDS = 2
"""So many addresses stand in a table; the record has all."""


def attached_table(findings: Findings) -> Table:
    """A row for each fabric and kind of attachment: device, port, transport, address, and what was in force on the paths."""
    columns = (
        "Fabric",
        "Hosts",
        "Port",
        "Transport",
        "Interface",
        "GID index",
        "GID",
        "Port MTU",
        "Path MTU",
        "Inline",
    )
    lines = [
        (
            one.fabric,
            folded(one.hosts),
            one.port,
            one.transport,
            one.interface or NOTHING,
            str(one.gid_index),
            ", ".join(one.gids[:MOST_GIDS]) + (" ..." if len(one.gids) > MOST_GIDS else ""),
            str(one.port_mtu),
            one.path_mtu or NOTHING,
            f"{one.inline_bytes} B",
        )
        for one in ATTACHED_ROWS.of(findings)
    ]
    return table(columns, lines, (5, 7, 8, 9))


def rdma_table(findings: Findings, quantity: RdmaQuantity) -> Table:
    """A row for each test and pair of fabrics: both medians, how many times faster, the verdict, what the ports counted.

    Where no two fabrics were compared, a row for each test and fabric.
    """
    found = rows(findings, quantity)
    by_key = {(row.key, row.fabric): row for row in found}
    compared = {row.key: list(_comparisons(findings, row.key)) for row in found}
    pairs = [
        (by_key[row.key, row.fabric], one) for row in found for one in compared[row.key] if one.fabric_a == row.fabric
    ]
    pairs = [(row, one) for row, one in pairs if (row.key, one.fabric_b) in by_key]
    if not pairs:
        return _of_single_fabrics(found)
    head, _, n, verdict = outcome_columns(findings)
    lines = [
        (
            *_place(row),
            f"{one.fabric_b} : {one.fabric_a}",
            interval_words(row.key.metric, row.value),
            interval_words(row.key.metric, by_key[row.key, one.fabric_b].value),
            effect_words(one),
            p_words(one.p_adjusted),
            verdict_words(one, findings.margin),
            port_words(row),
            port_words(by_key[row.key, one.fabric_b]),
            str(one.launches),
        )
        for row, one in pairs
    ]
    names = {(one.fabric_a, one.fabric_b) for _, one in pairs}
    a, b = next(iter(names)) if len(names) == 1 else ("A", "B")
    columns = (
        *PLACE,
        "B : A",
        f"{a}, median",
        f"{b}, median",
        head,
        "p, corrected",
        verdict,
        f"Ports of {a}",
        f"Ports of {b}",
        n,
    )
    made = table(
        columns,
        lines,
        (0, 1, 5, 6, 7, 8, 12),
        undecided_rows([one for _, one in pairs]),
        spare=(n, "p, corrected", "B : A"),
    )
    made = made.without(4) if len(names) == 1 else made
    return made if len({row.door for row in found}) > 1 else made.without(3)


PLACE = ("Message", "Queue pairs", "Load", "Door")


def _place(row: RdmaRow) -> tuple[str, str, str, str]:
    waits = "" if row.key.receive.value == "blocking" else f", {RECEIVE_WORDS[row.key.receive]}"
    return size_words(row.message_bytes), str(row.queue_pairs), f"{row.load}{waits}", row.door


def _of_single_fabrics(found: Sequence[RdmaRow]) -> Table:
    lines = [
        (*_place(row), row.fabric, interval_words(row.key.metric, row.value), port_words(row), str(row.launches))
        for row in found
    ]
    return table((*PLACE, "Fabric", "Median", "Ports", "Launches"), lines, (0, 1, 5, 7))


def port_words(row: RdmaRow) -> str:
    """Return what the ports counted: `12 retransmissions, 3 pauses`, `nothing`; a dash where they were not read."""
    return NOTHING if row.ports is None else row.ports


def _comparisons(findings: Findings, key: CellKey) -> Iterator[Comparison]:
    return (one for one in findings.cells if one.key == key)


def lines(findings: Findings) -> list[str]:
    """Return what the ports counted in all, fabric by fabric, and what the study found."""
    told = PORT_ROWS.of(findings)
    if not told:
        return []
    said = []
    for one in told:
        unread = f"; of {counted(one.unread, 'test')} no port was read" if one.ports is not None and one.unread else ""
        counts = "no port could be read" if one.ports is None else f"the ports counted {one.ports}"
        said.append(f"{one.fabric}: {counts} in {counted(one.tests, 'test')}{unread}.")
    facts = study(STUDY)
    bandwidth, latency = (facts.fact("results", f"congestion_{name}") for name in ("bandwidth", "latency"))
    bounds = dict.fromkeys(note for one in told for note in one.bounds)
    return [
        *(f"Not the network alone is measured: {note}." for note in bounds),
        *said,
        f"Published for RoCE and InfiniBand at 100 Gbit/s: bandwidth {bandwidth}; latency {latency} ({facts.citation}).",
    ]


def bandwidth(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the bandwidth over message size: a panel for each load and number of queue pairs."""
    return _figure(findings, RdmaQuantity.BANDWIDTH, "RDMA bandwidth", is_interactive)


def latency(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the round trip over message size, likewise."""
    return _figure(findings, RdmaQuantity.LATENCY, "RDMA latency", is_interactive)


def _figure(findings: Findings, quantity: RdmaQuantity, title: str, is_interactive: bool) -> Figure | None:
    found = rows(findings, quantity)
    if not found:
        return None
    groups: dict[tuple[object, ...], list[RdmaRow]] = {}
    for row in found:
        groups.setdefault((row.door, row.key.receive, row.senders, row.queue_pairs), []).append(row)
    doors, receives = len({row.door for row in found}) > 1, len({row.key.receive for row in found}) > 1
    panels = tuple(
        _panel(findings, group, found, _title(group[0], doors, receives), is_interactive) for group in groups.values()
    )
    what = (
        "What arrives at the receiver from all senders, over message size."
        if quantity is RdmaQuantity.BANDWIDTH
        else "Round trips over message size, alone and beside ranks that load the link of the other end."
    )
    caption = sentences(
        f"{what} A panel for each load and number of queue pairs of each sender; all share their axes.",
        interval_note(findings, (row.launches for row in found)),
        "What the ports counted: in the table, and under the pointer.",
        origin_note(findings),
    )
    return Figure(f"rdma-{quantity}", title, caption, panels, rdma_table(findings, quantity), is_switchable=True)


def _title(row: RdmaRow, doors: bool, receives: bool) -> str:
    load = f"{row.load}, {counted(row.queue_pairs, 'queue pair')}"
    parts = (load, row.door if doors else "", RECEIVE_WORDS[row.key.receive] if receives else "")
    return ", ".join(filter(None, parts))


def _panel(
    findings: Findings, group: Sequence[RdmaRow], every: Sequence[RdmaRow], title: str, is_interactive: bool
) -> Panel:
    metric = group[0].key.metric
    values: list[dict[str, Any]] = [
        {
            "fabric": row.fabric,
            "receive": RECEIVE_WORDS[row.key.receive],
            "size": plotted_size(row.message_bytes),
            "value": row.value.value,
            "low": row.value.low,
            "high": row.value.high,
            "message": size_words(row.message_bytes),
            "median": interval_words(metric, row.value),
            "ports": port_words(row),
            "launches": str(row.launches),
        }
        for row in group
    ]
    ends = [end for row in every for end in (row.value.value, row.value.low, row.value.high) if end]
    x, y = size_channel([row.message_bytes for row in every]), value_channel(metric, ends)
    shared = {"x": x, "color": colour_channel(findings, has_legend=not is_interactive)}
    hint = tooltip("fabric", "message", "median", "ports", "launches")
    sizes = len({row.message_bytes for row in group})
    layers = [
        mark("line", {**shared, "y": y}, keep=[CHOSEN], **connection(sizes)),
        *interval_points(findings, shared, "y", y, hint, has_legend=not is_interactive),
    ]
    spec: Spec = {"data": {"values": values}, "params": reader_params(findings), "layer": layers}
    return Panel(title, spec, {"layer": Layer.RDMA.value}, height=180)


CHAPTER = Chapter(
    name=NAME,
    title="RDMA",
    needs="bandwidths or round trips over layer rdma",
    find=find,
    tables=tables,
    lines=lines,
    method=METHOD,
    is_of_measuring=True,
    figures={"rdma-bandwidth": bandwidth, "rdma-latency": latency},
    on_page=OnPage(tables=attached_tables),
)
