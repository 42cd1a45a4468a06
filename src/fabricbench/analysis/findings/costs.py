"""What messages cost the processors: of a test on a fabric, at each of its two ranks and together."""

from __future__ import annotations

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model
from fabricbench.record.counters import Counter, CounterScope, Uncounted

__all__ = ["Counter", "Uncounted"]  # what chapters name in what they show


class EndCost(Model):
    """One rank of a test of two: what its process takes of a message that it sends or receives.

    `user` and `system` are processor time, `time` both together, in ns a message; `busy` is the share of a processor that it takes
    while it is measured, which exceeds 1 where a library has threads of its own. `switches` are context switches a message;
    `hardware` has cycles, instructions and cache misses a message where they are counted.
    """

    user: Interval
    system: Interval
    time: Interval
    busy: Interval
    switches: Interval
    hardware: dict[Counter, Interval] = {}


class MessageCost(Model):
    """A test of two ranks on a fabric whose processor time was counted; `ends` are its ranks in their order.

    `time` is what a message takes at the rank that sends it and at the one that receives it together, ns. `spins`: its receivers
    poll, or their library does, so that processor time is time that passes. `per_message` are events a message over whole machines,
    whatever they were for. `events` are sums over all launches of what hosts and ports count rarely. `machine_busy` and `stolen`
    are shares of the time of all processors of its machines; `reading_ns` is what the readings of a launch took on the rank that
    reads most.
    """

    fabric: str
    key: CellKey
    launches: int
    messages: int
    spins: bool
    ends: tuple[EndCost, EndCost]
    time: Interval
    per_message: dict[Counter, Interval] = {}
    events: dict[Counter, int] = {}
    machine_busy: Interval | None = None
    stolen: Interval | None = None
    reading_ns: Interval


class CostRatio(Model):
    """How many times as much processor time a message takes on fabric B as on A, both ranks together, by launches of a block."""

    fabric_a: str
    fabric_b: str
    key: CellKey
    ratio: Interval

    @property
    def is_clear(self) -> bool:
        """Whether the interval says which takes more."""
        low, high = self.ratio.low, self.ratio.high
        return low is not None and high is not None and not low <= 1.0 <= high


class NotCountedOnFabric(Model):
    """Counters that hosts of a fabric could not read: on so many ranks of so many launches at most."""

    fabric: str
    counters: tuple[Counter, ...]
    why: Uncounted
    detail: str
    ranks: int
    launches: int


EVENTS: dict[Counter, CounterScope] = {
    Counter.TCP_RETRANSMISSIONS: CounterScope.HOST,
    Counter.TCP_TIMEOUTS: CounterScope.HOST,
    Counter.TCP_DELAYED_ACKS: CounterScope.HOST,
    Counter.TCP_DROPS: CounterScope.HOST,
    Counter.UDP_RECEIVE_DROPS: CounterScope.HOST,
    Counter.UDP_SEND_DROPS: CounterScope.HOST,
    Counter.IP_DROPS: CounterScope.HOST,
    Counter.PORT_RECEIVE_DROPS: CounterScope.HOST,
    Counter.PORT_SEND_DROPS: CounterScope.HOST,
    Counter.PORT_ERRORS: CounterScope.HOST,
    Counter.MAJOR_FAULTS: CounterScope.RANK,
    Counter.MIGRATIONS: CounterScope.RANK,
}
"""What is told as a sum: rare where all is well."""

HARDWARE = (
    Counter.CYCLES,
    Counter.INSTRUCTIONS,
    Counter.CACHE_MISSES,
    Counter.USER_CYCLES,
    Counter.USER_INSTRUCTIONS,
    Counter.USER_CACHE_MISSES,
)

OF_MACHINES = (
    Counter.INTERRUPTS,
    Counter.DEVICE_INTERRUPTS,
    Counter.SOFTIRQS,
    Counter.RECEIVE_SOFTIRQS,
    Counter.SEND_SOFTIRQS,
    Counter.CONTEXT_SWITCHES,
)
"""What whole machines count, for each message."""
