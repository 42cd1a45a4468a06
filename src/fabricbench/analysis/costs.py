"""From the counters of cells to what a message costs the processors: launch by launch, on each fabric and between two.

A message is sent by one rank and received by another. What a rank takes of one is its processor time over all messages that it sent
and received, those of the warm-up among them; what a message takes is the sum of both ranks'. Of a ping-pong, in which each rank
sends as many as it receives, that is a round trip's time over its two messages. Only tests of two ranks tell their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.cell_parts import Keys
from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.costs import (
    EVENTS,
    HARDWARE,
    OF_MACHINES,
    CostRatio,
    EndCost,
    MessageCost,
    NotCountedOnFabric,
)
from fabricbench.analysis.measured import Side, in_order, plain_key
from fabricbench.analysis.summary import geometric_mean, over_launches
from fabricbench.model import Receive
from fabricbench.record.counters import Counter, CounterScope, NotCounted
from fabricbench.record.launch import scan_table
from fabricbench.record.tables import COUNTERS

Floats = NDArray[np.float64]
Counts = Mapping[Counter, int]


@dataclass(frozen=True)
class CountsOfLaunch:
    """The counters of a cell of two ranks in one launch: of its ranks in their order, and of its hosts and machines, one each."""

    ranks: tuple[Counts, Counts]
    hosts: tuple[Counts, ...]
    machines: tuple[Counts, ...]

    @property
    def messages(self) -> int:
        """Messages that were sent, by either rank."""
        return sum(one.get(Counter.MESSAGES_SENT, 0) for one in self.ranks)

    def of_message(self, rank: int, *counters: Counter) -> float:
        """Return what a rank counted of each message that it sent or received; NaN where a counter is missing."""
        counts = self.ranks[rank]
        passed = counts.get(Counter.MESSAGES_SENT, 0) + counts.get(Counter.MESSAGES_RECEIVED, 0)
        if not passed or any(one not in counts for one in counters):
            return float("nan")
        return sum(counts[one] for one in counters) / passed

    def of_scope(self, scope: CounterScope) -> tuple[Counts, ...]:
        """Return the counters of a scope."""
        return {CounterScope.RANK: self.ranks, CounterScope.HOST: self.hosts, CounterScope.MACHINE: self.machines}[
            scope
        ]

    def total(self, scope: CounterScope, counter: Counter) -> float:
        """Return a counter's sum over all of a scope; NaN where one of them lacks it."""
        all_of = self.of_scope(scope)
        if not all_of or any(counter not in one for one in all_of):
            return float("nan")
        return float(sum(one[counter] for one in all_of))


@dataclass
class CountsOfCell:
    """The same of all launches of a side, by the index of its block."""

    key: CellKey
    launches: dict[int, CountsOfLaunch] = field(default_factory=dict)


def read_counters(side: Side) -> dict[CellKey, CountsOfCell]:
    """Return the counters of each cell of two ranks of a side that tell of its messages."""
    found: dict[CellKey, CountsOfCell] = {}
    for run in range(len(side.runs)):
        launches = [one for one in side.launches_of_run(run) if one.summary.has(COUNTERS)]
        cells = _cells(side, run) if launches else {}
        for launch in launches:
            of_launch = cells.get(launch.launch_id, {})
            table = scan_table(launch.directory, COUNTERS).filter(pl.col("cell").is_in(list(of_launch)))
            index = side.blocks.index(launch.block)
            for number, read in by_cell(table.collect()).items():
                key, ranks = of_launch[number]
                counts = counts_of(read, ranks)
                if counts is not None:
                    found.setdefault(key, CountsOfCell(key)).launches[index] = counts
    return found


CellsOfLaunches = dict[str, dict[int, tuple[CellKey, tuple[int, ...]]]]
"""By launch and a cell's number: the cell, and its ranks."""


def _cells(side: Side, run: int) -> CellsOfLaunches:
    """Return the measured cells of two ranks of a run, but for those with stamps."""
    keys = Keys(side.runs[run])
    done = side.runs[run].cells().filter(pl.col("status") == "done", pl.col("ranks").list.len() == 2)
    found: CellsOfLaunches = {}
    for row in done.iter_rows(named=True):
        key = keys.of(row)
        if plain_key(key) is None:
            found.setdefault(str(row["launch_id"]), {})[int(row["cell"])] = key, tuple(row["ranks"])
    return found


CountsByReader = dict[tuple[CounterScope, int], dict[Counter, int]]
"""By scope and the rank that read them."""

_COUNTERS = {counter.value: counter for counter in Counter}
_SCOPES = {scope.value: scope for scope in CounterScope}
"""Looked up: a report reads millions of rows."""


def by_cell(rows: pl.DataFrame) -> dict[int, CountsByReader]:
    """Return rows of `counter_frame.COUNTER_SCHEMA` by the cell's number."""
    found: dict[int, CountsByReader] = {}
    for cell, rank, scope, counter, count in rows.iter_rows():
        found.setdefault(cell, {}).setdefault((_SCOPES[scope], rank), {})[_COUNTERS[counter]] = count
    return found


def counts_of(read: CountsByReader, ranks: Sequence[int]) -> CountsOfLaunch | None:
    """Return the counters of a cell of two ranks; None where these do not tell how many messages they had."""
    first, second = (read.get((CounterScope.RANK, rank), {}) for rank in ranks)
    if not all(Counter.MESSAGES_SENT in one and Counter.ELAPSED_NS in one for one in (first, second)):
        return None
    hosts, machines = (
        tuple(one for (scope, _), one in read.items() if scope is wanted)
        for wanted in (CounterScope.HOST, CounterScope.MACHINE)
    )
    return CountsOfLaunch((first, second), hosts, machines)


class _OverLaunches:
    """Values of a cell's launches on a side, and what they come to over launches."""

    def __init__(self, side: Side, cell: CountsOfCell, confidence: float) -> None:
        self._cell, self._width, self._confidence = cell, len(side.blocks), confidence

    def values(self, of_launch: Callable[[CountsOfLaunch], float]) -> Floats:
        found = np.full(self._width, np.nan)
        for index, launch in self._cell.launches.items():
            found[index] = of_launch(launch)
        return found

    def median(self, of_launch: Callable[[CountsOfLaunch], float]) -> Interval | None:
        return over_launches(self.values(of_launch), self._confidence)


TIME = (Counter.USER_NS, Counter.SYSTEM_NS)
SWITCHES = (Counter.VOLUNTARY_SWITCHES, Counter.INVOLUNTARY_SWITCHES)


def _time(one: CountsOfLaunch) -> float:
    """Return the processor time of a message in a launch, at both ranks."""
    return one.of_message(0, *TIME) + one.of_message(1, *TIME)


def message_cost(side: Side, cell: CountsOfCell, confidence: float) -> MessageCost | None:
    """Return what the messages of a test cost on a fabric; None where no launch tells."""
    over = _OverLaunches(side, cell, confidence)
    ends = [_end_cost(over, rank) for rank in (0, 1)]
    time, reading = over.median(_time), over.median(_reading)
    if time is None or reading is None or ends[0] is None or ends[1] is None:
        return None
    launches = cell.launches.values()
    rates = {counter: over.median(lambda one, c=counter: _rate(one, c)) for counter in OF_MACHINES}  # type: ignore[misc]
    sums = {counter: [one.total(scope, counter) for one in launches] for counter, scope in EVENTS.items()}
    return MessageCost(
        fabric=side.name,
        key=cell.key,
        launches=len(cell.launches),
        messages=sum(one.messages for one in launches),
        spins=spins(cell.key.receive, [end.busy.value for end in (ends[0], ends[1])]),
        ends=(ends[0], ends[1]),
        time=time,
        per_message={counter: rate for counter, rate in rates.items() if rate is not None},
        events={counter: round(np.nansum(one)) for counter, one in sums.items() if not np.isnan(one).all()},
        machine_busy=over.median(lambda one: _share_of_machines(one, Counter.BUSY_NS)),
        stolen=over.median(lambda one: _share_of_machines(one, Counter.STOLEN_NS)),
        reading_ns=reading,
    )


SPINNING = 0.9
"""Of a processor: a library whose rank takes more of it while it waits is taken to spin."""


def spins(receive: Receive, busy: Sequence[float]) -> bool:
    """Tell whether receivers spin: by how sockets were asked to wait, of a library by what its ranks take of their processors."""
    return receive is Receive.POLLING or (receive is Receive.LIBRARY and max(busy) > SPINNING)


def _end_cost(over: _OverLaunches, rank: int) -> EndCost | None:
    def each(*counters: Counter) -> Interval | None:
        return over.median(lambda one: one.of_message(rank, *counters))

    def busy(one: CountsOfLaunch) -> float:
        counts = one.ranks[rank]
        return sum(counts.get(counter, 0) for counter in TIME) / max(counts[Counter.ELAPSED_NS], 1)

    user, system, time = each(Counter.USER_NS), each(Counter.SYSTEM_NS), each(*TIME)
    share, switches = over.median(busy), each(*SWITCHES)
    if user is None or system is None or time is None or share is None or switches is None:
        return None
    hardware = {counter: found for counter in HARDWARE if (found := each(counter)) is not None}
    return EndCost(user=user, system=system, time=time, busy=share, switches=switches, hardware=hardware)


def _rate(one: CountsOfLaunch, counter: Counter) -> float:
    """Return how often machines counted something for each message that was sent."""
    return one.total(CounterScope.MACHINE, counter) / one.messages if one.messages else float("nan")


def _share_of_machines(one: CountsOfLaunch, counter: Counter) -> float:
    """Return a share of the time of all processors of a launch's machines."""
    parts = (Counter.BUSY_NS, Counter.IDLE_NS, Counter.STOLEN_NS)
    whole = sum(one.total(CounterScope.MACHINE, part) for part in parts)
    return one.total(CounterScope.MACHINE, counter) / whole if whole > 0 else float("nan")


def _reading(one: CountsOfLaunch) -> float:
    """Return what all readings took, on the rank that reads for its host and machine as well."""
    return sum(
        max((counts.get(Counter.READING_NS, 0) for counts in one.of_scope(scope)), default=0) for scope in CounterScope
    )


Read = tuple[Side, Mapping[CellKey, CountsOfCell]]
"""A side, and the counters of its tests."""


def cost_ratios(a: Read, b: Read, confidence: float) -> Iterator[CostRatio]:
    """Yield how the processor time of a message compares between two fabrics, of tests that both have in the same blocks."""
    (side_a, cells_a), (side_b, cells_b) = a, b
    for key in sorted(set(cells_a) & set(cells_b), key=in_order):
        of_a, of_b = (
            {
                side.blocks[index]: np.log(time)
                for index, launch in cells[key].launches.items()
                if (time := _time(launch)) > 0.0
            }
            for side, cells in (a, b)
        )
        shared = sorted(set(of_a) & set(of_b))
        found = geometric_mean(np.array([of_b[block] - of_a[block] for block in shared]), confidence)
        if found is not None:
            yield CostRatio(fabric_a=side_a.name, fabric_b=side_b.name, key=key, ratio=found)


def not_counted(side: Side) -> Iterator[NotCountedOnFabric]:
    """Yield what hosts of a side could not count: each once."""
    told: dict[tuple[object, ...], list[NotCounted]] = {}
    for launch in side.launches:
        for one in () if launch.summary.header is None else launch.summary.header.not_counted:
            told.setdefault((one.counters, one.why, one.detail), []).append(one)
    for same in told.values():
        yield NotCountedOnFabric(
            fabric=side.name,
            counters=same[0].counters,
            why=same[0].why,
            detail=same[0].detail,
            ranks=max(one.ranks for one in same),
            launches=len(same),
        )
