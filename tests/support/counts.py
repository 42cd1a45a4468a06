"""Counters of a test of two ranks whose costs are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricbench.record.counters import Counter, CounterScope
from fabricbench.record.lines import Counters


@dataclass(frozen=True)
class Counted:
    """What each rank takes of a message that it sends or receives: user and system, ns; `busy` is its share of a processor.

    `sent` and `received` are those of the first rank, the second's the other way round. `more` goes to the counters of each rank,
    `host` to those of each host, `machine` to those of each machine; `machines` is how many the two ranks are on.
    """

    user: tuple[float, float] = (2_000.0, 3_000.0)
    system: tuple[float, float] = (4_000.0, 5_000.0)
    busy: tuple[float, float] = (0.5, 0.25)
    sent: int = 1_000
    received: int = 1_000
    more: Mapping[Counter, int] = field(default_factory=dict)
    host: Mapping[Counter, int] = field(default_factory=lambda: {Counter.TCP_RETRANSMISSIONS: 0})
    machine: Mapping[Counter, int] = field(
        default_factory=lambda: {
            Counter.INTERRUPTS: 3_000,
            Counter.BUSY_NS: 60_000_000,
            Counter.IDLE_NS: 40_000_000,
            Counter.STOLEN_NS: 0,
        }
    )
    machines: int = 1


READING = {CounterScope.RANK: 4_000, CounterScope.HOST: 30_000, CounterScope.MACHINE: 50_000}
"""What the readings of each take, ns."""


def counters_of(one: Counted, cell: int, factor: float = 1.0) -> list[Counters]:
    """Return the lines of a cell; all times are so many times as long."""
    lines = []
    passed = one.sent + one.received
    for rank in (0, 1):
        user, system = (round(factor * each[rank] * passed) for each in (one.user, one.system))
        counts = {
            Counter.ELAPSED_NS: round((user + system) / one.busy[rank]),
            Counter.MESSAGES_SENT: (one.sent, one.received)[rank],
            Counter.MESSAGES_RECEIVED: (one.received, one.sent)[rank],
            Counter.USER_NS: user,
            Counter.SYSTEM_NS: system,
            Counter.VOLUNTARY_SWITCHES: passed // 2,
            Counter.INVOLUNTARY_SWITCHES: 0,
        }
        lines.append(_line(cell, rank, CounterScope.RANK, {**counts, **one.more}))
        lines.append(_line(cell, rank, CounterScope.HOST, one.host))
    lines += [_line(cell, rank, CounterScope.MACHINE, one.machine) for rank in range(one.machines)]
    return lines


def _line(cell: int, rank: int, scope: CounterScope, counts: Mapping[Counter, int]) -> Counters:
    reading = {Counter.READING_NS: READING[scope]}
    return Counters(cell=cell, rank=rank, scope=scope, counts={**reading, **counts})
