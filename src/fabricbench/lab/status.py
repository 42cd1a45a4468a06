"""What a lab looks like from outside: its nodes, its fabrics, what each switch has counted, and how late it released frames.

Lateness between two times is added up from the windows that the switch has written, in the format of
native/switch/lateness_file.hpp. Attribution is to spans of CLOCK_REALTIME, which all processes of a machine share; whoever asks
knows what was measured then.
"""

from __future__ import annotations

import json
import signal
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.lab.ledger import LedgerEntry
from fabricbench.lab.process import ProcessIdentity
from fabricbench.lab.topology import PlannedFabric, Rdma
from fabricbench.model import Model

_ANSWER_TIMEOUT_S = 0.5
_ANSWER_POLL_S = 0.005


class PortCounters(Model):
    """What one port of a switch has counted since the lab was started.

    `dropped` is what the emulated fabric drops, at the full buffer of a port say. The rest are the emulator's own failures: frames
    that the port's interface did not take (`unsent`), tries to send that found the socket's buffer full, frames that found the
    receive ring full, and frames that the timing model was told of after one with a later time.
    """

    interface: str
    received_frames: int
    received_bytes: int
    sent_frames: int
    sent_bytes: int
    dropped_frames: int
    dropped_bytes: int
    ring_lost_frames: int
    unsent_frames: int = 0
    unsent_bytes: int = 0
    send_retries: int = 0
    out_of_order_frames: int = 0


class Lateness(Model):
    """How much later than computed frames really left the switch, in nanoseconds: since its start, or during a span of time."""

    count: int
    p50: float
    p99: float
    maximum: float


class SwitchStatus(Model):
    """A switch: `dead` where its process is gone, `unknown` where it has not told."""

    state: Literal["idle", "busy", "dead", "unknown"]
    pid: int
    cpu: int | None
    ports: tuple[PortCounters, ...] = ()
    lateness_ns: Lateness | None = None
    lost_windows: int = 0
    """Windows of lateness that could not be kept: the switch's second thread got no processor for ten seconds."""


class NodeStatus(Model):
    """A node and its address on the control network and on each fabric."""

    name: str
    pid: int
    control_address: IPv4Address
    addresses: dict[str, IPv4Address]
    cpus: tuple[int, ...] = ()
    """Its own processors; empty: it shares the lab's `node_cpus` with the other nodes."""
    state: Literal["up", "dead"] = "up"
    """Whether the process that holds its namespaces is there."""
    guest_pid: int | None = None
    """The kernel of its guest, in a lab of guests; None where that has ended as well."""


class FabricStatus(Model):
    """A fabric: what was asked for, where it is on the nodes, and its switch."""

    name: str
    interface: str
    subnet: IPv4Network
    is_emulated: bool = True
    asked: EmulatedFabric
    switch: SwitchStatus


class LabStatus(Model):
    """A whole lab."""

    name: str
    mode: Literal["root", "user-namespace"]
    keeper_pid: int
    is_owned: bool
    owner_pid: int
    started_at: str
    node_cpus: tuple[int, ...]
    rdma: Rdma | None = None
    nodes: tuple[NodeStatus, ...]
    fabrics: tuple[FabricStatus, ...]


def read_status(entry: LedgerEntry, directory: Path) -> LabStatus:
    """Return the status of a running lab; each switch is asked for its counters as they are now."""
    topology = entry.topology
    return LabStatus(
        name=topology.name,
        mode="root" if entry.has_root else "user-namespace",
        keeper_pid=entry.keeper.pid,
        is_owned=entry.is_owned,
        owner_pid=entry.owner_pid,
        started_at=entry.started_at,
        node_cpus=topology.node_cpus,
        rdma=topology.rdma,
        nodes=tuple(
            NodeStatus(
                name=node.name,
                pid=entry.nodes[node.name].pid,
                state="up" if entry.nodes[node.name].is_alive else "dead",
                guest_pid=found.pid if (found := entry.guests.get(node.name)) and found.is_alive else None,
                control_address=node.control_address,
                cpus=node.cpus,
                addresses=dict(
                    zip((planned.fabric.name for planned in topology.fabrics), node.fabric_addresses, strict=True)
                ),
            )
            for node in topology.nodes
        ),
        fabrics=tuple(_fabric_status(planned, entry, directory) for planned in topology.fabrics),
    )


def _fabric_status(planned: PlannedFabric, entry: LedgerEntry, directory: Path) -> FabricStatus:
    name = planned.fabric.name
    return FabricStatus(
        name=name,
        interface=planned.interface,
        subnet=planned.subnet,
        asked=planned.fabric,
        switch=_switch_status(entry.switches[name], planned.cpu, directory / f"switch-{name}.status.json"),
    )


def _switch_status(process: ProcessIdentity, cpu: int | None, path: Path) -> SwitchStatus:
    before = _written_at(path)
    if not process.kill(signal.SIGUSR1):
        return SwitchStatus(state="dead", pid=process.pid, cpu=cpu)
    deadline = time.monotonic() + _ANSWER_TIMEOUT_S
    while _written_at(path) == before and time.monotonic() < deadline:
        time.sleep(_ANSWER_POLL_S)
    try:
        told = json.loads(path.read_text())
        # The switch tells its PID inside the lab, and may tell more than is shown.
        return SwitchStatus(
            state=told["state"],
            pid=process.pid,
            cpu=cpu,
            ports=tuple(
                PortCounters(**{field: port[field] for field in PortCounters.model_fields if field in port})
                for port in told["ports"]
            ),
            lateness_ns=Lateness(**{field: told["lateness_ns"][field] for field in Lateness.model_fields}),
            lost_windows=told.get("lost_windows", 0),
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return SwitchStatus(state="unknown", pid=process.pid, cpu=cpu)


def _written_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


OLD_SUFFIX = ".old"
"""The full file before the one that grows."""

CROSSING_COLUMNS = 4
LONGEST_CROSSING_NS = 10_000_000_000
"""No frame is longer in a switch: two neighbouring lines may be in another order than their arrivals by so much."""

Span = tuple[int, int]
"""Begin and end, ns since 1970."""


class LatenessDuring(Model):
    """How much later than computed frames left a switch during a span, in ns; the mean and quantiles at most an eighth too high.

    `held_share` is the share of the span in which some frame was held that should have left, at most: windows at its edges count.
    None where the lab was started by a version that does not tell.
    """

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    maximum: float
    held_share: float | None


@dataclass(frozen=True)
class Window:
    """What left in one window: `frames` are pairs, so many frames that were at most so many ns late."""

    begin_ns: int
    end_ns: int
    maximum_ns: int
    held_ns: int | None
    frames: tuple[tuple[int, int], ...]


def read_lateness(path: Path, spans: Mapping[int, Span]) -> dict[int, LatenessDuring]:
    """Return, for each span, how late frames were that left during it.

    One without a frame, or of which windows were dropped because it is too long ago, is left out; so is everything where
    the switch has written nothing. A line that cannot be read (its disk was full) is passed over.
    """
    if not spans:
        return {}
    first, last = min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
    old, lines = _lines(path.with_name(path.name + OLD_SUFFIX)), _lines(path)
    windows = _between(old + lines, first, last)
    # Nothing was dropped where there is no old file; one of which no line can be read does not say how much was.
    kept_from = next((window.begin_ns for window in map(_window, old) if window is not None), last) if old else first
    found = {key: lateness_between(windows, span) for key, span in spans.items() if span[0] >= kept_from}
    return {key: lateness for key, lateness in found.items() if lateness is not None}


def read_windows(path: Path, span: Span) -> list[Window]:
    """Return the windows that touch a span, in the order of time."""
    return _between(_lines(path.with_name(path.name + OLD_SUFFIX)) + _lines(path), *span)


def read_crossings(path: Path, spans: Mapping[int, Span]) -> dict[int, list[list[int]]]:
    """Return, for each span, the frames of measured stages that came during it, a row each: what native/switch/crossings.hpp has.

    Columns: arrival, the time that its links alone take, when it was due at the node, when it was there; ns, all but the second
    since 1970. A span without any is left out.
    """
    if not spans:
        return {}
    first = min(begin for begin, _ in spans.values())
    rows = []
    for line in reversed(_lines(path.with_name(path.name + OLD_SUFFIX)) + _lines(path)):
        row = _crossing(line)
        if row is None:
            continue
        if row[0] < first - LONGEST_CROSSING_NS:  # lines are in the order in which frames left
            break
        rows.append(row)
    found = {key: [row for row in reversed(rows) if begin <= row[0] <= end] for key, (begin, end) in spans.items()}
    return {key: of_span for key, of_span in found.items() if of_span}


def _crossing(line: bytes) -> list[int] | None:
    """Return the numbers of a line; None where a full disk cut it short."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, list) and len(told) == CROSSING_COLUMNS else None


def lateness_between(windows: Sequence[Window], span: Span) -> LatenessDuring | None:
    """Return the lateness of the frames in the windows that lie wholly in a span; None without a frame.

    A window at an edge holds frames of what ran before or after, a flood say; it counts only where no window is whole.
    """
    begin, end = span
    touching = [one for one in windows if one.end_ns > begin and one.begin_ns < end]
    whole = [one for one in touching if one.begin_ns >= begin and one.end_ns <= end]
    counted = whole or touching
    frames: Counter[int] = Counter()
    for window in counted:
        for late_ns, number in window.frames:
            frames[late_ns] += number
    count = sum(frames.values())
    if not count:
        return None
    maximum = max(one.maximum_ns for one in counted)
    held = [one.held_ns for one in touching]
    return LatenessDuring(
        count=count,
        mean=min(sum(late_ns * number for late_ns, number in frames.items()) / count, maximum),
        p50=min(_quantile(frames, count, 50), maximum),
        p90=min(_quantile(frames, count, 90), maximum),
        p99=min(_quantile(frames, count, 99), maximum),
        maximum=maximum,
        held_share=None if None in held else min(sum(filter(None, held)) / max(end - begin, 1), 1.0),
    )


def _quantile(frames: Counter[int], count: int, percent: int) -> int:
    rank, seen = -(-count * percent // 100), 0
    for late_ns in sorted(frames):
        seen += frames[late_ns]
        if seen >= rank:
            return late_ns
    raise AssertionError


def _lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file; the last may still be written."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []


def _between(lines: Sequence[bytes], begin_ns: int, end_ns: int) -> list[Window]:
    """Return the windows that touch a span, of lines in the order of time: a long file is not read for a short span."""

    def readable_until(at: int) -> int:
        return next((each for each in range(at, 0, -1) if _window(lines[each]) is not None), 0)

    def begin_until(at: int) -> int:
        window = _window(lines[readable_until(at)])
        return window.begin_ns if window is not None else -1

    at = readable_until(bisect_left(range(len(lines)), begin_ns, key=begin_until) - 1)
    windows = []
    for window in map(_window, lines[at:]):
        if window is None:
            continue
        if window.begin_ns >= end_ns:
            break
        windows.append(window)
    return windows


def _window(line: bytes) -> Window | None:
    """Return the window of a line; None where a full disk cut it short."""
    try:
        told = json.loads(line)
        frames = tuple((int(late_ns), int(number)) for late_ns, number in told["frames"])
        begin, end, maximum = (int(told[name]) for name in ("begin_unix_ns", "end_unix_ns", "maximum"))
        return Window(begin, end, maximum, None if "held_ns" not in told else int(told["held_ns"]), frames)
    except (ValueError, KeyError, TypeError):
        return None
