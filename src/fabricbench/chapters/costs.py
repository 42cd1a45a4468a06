"""What a message costs the processors at both its ends, what is left of them for computing, and what the kernel noted meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.costs import cost_ratios, message_cost, not_counted, read_counters
from fabricbench.analysis.findings import CellKey, Findings, Interval, is_basic
from fabricbench.analysis.findings.costs import (
    EVENTS,
    HARDWARE,
    OF_MACHINES,
    CostRatio,
    Counter,
    MessageCost,
    NotCountedOnFabric,
    Uncounted,
)
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import in_order
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Metric
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import enumeration
from fabricbench.report.words import (
    NOTHING,
    cell_words,
    interval_words,
    ratio_words,
    share_interval_parts,
    share_words,
    value_words,
)
from fabricbench.table import Table, table

COSTS = Rows("costs", MessageCost)
RATIOS = Rows("cost-ratios", CostRatio)
NOT_COUNTED = Rows("not-counted", NotCountedOnFabric)
TIME = Metric.ROUND_TRIP_TIME
"""How times are written."""
METHOD = """
Processor time of a message is the user and system time of a rank's process (getrusage) between the readings before and after a
test, over all messages that it sent and received meanwhile, those of the warm-up among them; both ends together are one message's
way from one rank to the other. What the kernel does in interrupts may be counted for whichever process was interrupted, or for
none: the machines' columns count it all, with all else that ran there. The kernel estimates by its tick how time is split into user
and system; their sum is exact. Of each launch one value is taken, and the median over launches is shown with its {level} interval,
each of its row alone; ratios are geometric means over launches of the same blocks.
"""

COUNTER_WORDS = {
    Counter.CYCLES: "cycles",
    Counter.INSTRUCTIONS: "instructions",
    Counter.CACHE_MISSES: "cache misses",
    Counter.USER_CYCLES: "cycles outside the kernel",
    Counter.USER_INSTRUCTIONS: "instructions outside the kernel",
    Counter.USER_CACHE_MISSES: "cache misses outside the kernel",
    Counter.MIGRATIONS: "moves to another processor",
    Counter.MAJOR_FAULTS: "page faults that read a disk",
    Counter.INTERRUPTS: "interrupts",
    Counter.DEVICE_INTERRUPTS: "interrupts of the adapter",
    Counter.SOFTIRQS: "softirqs",
    Counter.RECEIVE_SOFTIRQS: "receive softirqs",
    Counter.SEND_SOFTIRQS: "send softirqs",
    Counter.CONTEXT_SWITCHES: "context switches",
    Counter.TCP_SENT: "TCP segments sent",
    Counter.TCP_RECEIVED: "TCP segments received",
    Counter.TCP_RETRANSMISSIONS: "TCP segments sent again",
    Counter.TCP_TIMEOUTS: "TCP time-outs",
    Counter.TCP_DELAYED_ACKS: "delayed TCP acknowledgements",
    Counter.TCP_DROPS: "TCP segments dropped by a full receiver",
    Counter.UDP_RECEIVE_DROPS: "datagrams dropped by a full receive buffer",
    Counter.UDP_SEND_DROPS: "datagrams dropped by a full send buffer",
    Counter.IP_DROPS: "packets dropped by IP",
    Counter.PORT_RECEIVE_DROPS: "packets dropped by the receiving port",
    Counter.PORT_SEND_DROPS: "packets dropped by the sending port",
    Counter.PORT_ERRORS: "errors of the port",
    Counter.BUSY_NS: "busy time of the machine",
    Counter.IDLE_NS: "idle time of the machine",
    Counter.INTERRUPT_NS: "time in interrupts",
    Counter.SOFTIRQ_NS: "time in softirqs",
    Counter.STOLEN_NS: "time that the hypervisor took",
}
"""What a counter is, in sentences and headings."""


def find(material: Material) -> Found:
    """Return what messages cost on each fabric, how fabrics compare in it, and what was not counted."""
    read = {side.name: (side, read_counters(side)) for side in material.sides}
    costs = [
        cost
        for side, cells in read.values()
        for key in sorted(cells, key=in_order)
        if (cost := message_cost(side, cells[key], material.confidence)) is not None
    ]
    ratios = [
        row
        for pairing in material.pairings
        if pairing.is_paired
        for row in cost_ratios(read[pairing.a.name], read[pairing.b.name], material.confidence)
    ]
    missing = [one for side in material.sides for one in not_counted(side)]
    return {COSTS.name: tuple(costs), RATIOS.name: tuple(ratios), NOT_COUNTED.name: tuple(missing) if costs else ()}


def lines(findings: Findings) -> Sequence[str]:
    """Say what a small message costs on each layer, where fabrics differ, and what was and was not counted."""
    return [
        *_leading_lines(findings),
        *_spinning_lines(findings),
        *_event_lines(findings),
        *_machine_lines(findings),
        *_missing_lines(findings),
        *_reading_lines(findings),
    ]


def _leading_lines(findings: Findings) -> Iterator[str]:
    """Yield a sentence for the smallest message of the ping-pong and the stream of each layer, of receivers that sleep."""
    rows = [row for row in COSTS.of(findings) if not row.spins and is_basic(row.key)]
    first: dict[tuple[object, ...], CellKey] = {}
    for row in rows:
        kind = (row.key.layer, row.key.pattern, row.key.receive)
        first.setdefault(kind, row.key)
    clear = {(row.key, row.fabric_a, row.fabric_b): row for row in RATIOS.of(findings) if row.is_clear}
    for key in first.values():
        of_key = [row for row in rows if row.key == key]
        told = enumeration(
            [
                f"{value_words(TIME, row.time.value)} on {row.fabric} ({share_words(_left(row.ends[0].busy.value))} and "
                f"{share_words(_left(row.ends[1].busy.value))} of a processor left at its ends)"
                for row in of_key
            ]
        )
        differ = [_ratio_sentence(row) for name, row in clear.items() if name[0] == key]
        yield (
            f"{cell_words(key)}: a message takes {told} of processor time at both ends together"
            + "".join(f"; {one}" for one in differ)
            + "."
        )


def _left(busy: float) -> float:
    """Return what is left of a processor for computing."""
    return max(0.0, 1.0 - busy)


def _ratio_sentence(row: CostRatio) -> str:
    takes_less = row.ratio.value < 1.0
    words = ratio_words(row.ratio.value, row.ratio.low, row.ratio.high, is_of_a=takes_less)
    more, less = (row.fabric_a, row.fabric_b) if takes_less else (row.fabric_b, row.fabric_a)
    return f"{words} as much on {more} as on {less}"


def _spinning_lines(findings: Findings) -> Iterator[str]:
    if any(row.spins for row in COSTS.of(findings)):
        yield (
            "Where receivers poll, nothing of their processors is left by definition, and processor time is the time that passes: "
            "only tests whose receivers sleep tell what a message costs."
        )


def _event_lines(findings: Findings) -> Iterator[str]:
    """Yield a line for what was counted nowhere; what was is in a table."""
    rows = COSTS.of(findings)
    silent = [
        counter
        for counter in EVENTS
        if any(counter in row.events for row in rows) and not any(row.events.get(counter) for row in rows)
    ]
    if silent:
        yield f"In none of these tests were there any {enumeration([COUNTER_WORDS[one] for one in silent], 'or')}."


def _machine_lines(findings: Findings) -> Iterator[str]:
    """Yield how busy machines were beside the ranks, and what hypervisors took."""
    rows = COSTS.of(findings)
    busy = [row.machine_busy.value for row in rows if row.machine_busy is not None]
    if busy:
        also = ", the emulated switch of a lab included" if findings.is_emulated else ""
        yield f"Meanwhile {_range(busy)} of all processor time of the machines was used, by whatever ran there{also}."
    stolen = [row.stolen.value for row in rows if row.stolen is not None]
    if any(stolen):
        yield f"The hypervisor took {_range(stolen)} of it: times are longer by that."


def _range(shares: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(share_words(end) for end in (min(shares), max(shares))))


def _missing_lines(findings: Findings) -> Iterator[str]:
    """Yield what was not counted, and how to get it."""
    told: dict[tuple[Counter, ...], tuple[str, Uncounted, str]] = {}
    fabrics: dict[tuple[Counter, ...], list[str]] = {}
    for row in NOT_COUNTED.of(findings):
        told.setdefault(row.counters, (row.detail, row.why, how_to_count(row)))
        fabrics.setdefault(row.counters, []).append(row.fabric)
    everywhere = len(findings.fabrics)
    for counters, (detail, _, how) in told.items():
        where = (
            ""
            if len(set(fabrics[counters])) == everywhere
            else f" on {enumeration(list(dict.fromkeys(fabrics[counters])))}"
        )
        words = enumeration([COUNTER_WORDS.get(one, one.value) for one in counters])
        yield f"Not counted{where}: {words} ({detail}){how}."


OF_PERF = {*HARDWARE, Counter.MIGRATIONS}


def how_to_count(row: NotCountedOnFabric) -> str:
    """Return what would let counters be counted, as the end of a sentence; nothing where nothing would."""
    if not OF_PERF.isdisjoint(row.counters):
        if row.why is Uncounted.UNASKED:
            return "; `hardware_counters = true` in the campaign asks for it, and slows receivers that sleep"
        if row.why is Uncounted.FORBIDDEN:
            return "; sysctl kernel.perf_event_paranoid=1 on the nodes, or CAP_PERFMON for the ranks, allows it"
        return "; virtual machines have them only where their host passes its performance counters on"
    return "; the ranks need to read that file" if row.why is Uncounted.FORBIDDEN else ""


def _reading_lines(findings: Findings) -> Iterator[str]:
    reading = [row.reading_ns.value for row in COSTS.of(findings)]
    if reading:
        ends = " to ".join(dict.fromkeys(value_words(TIME, end) for end in (min(reading), max(reading))))
        yield f"Reading the counters took {ends} a test, before its first message and after its last."


def tables(findings: Findings) -> NamedTables:
    """Return the time of messages, what processors counted of them, what machines did, and what happened rarely."""
    return [
        ("Processor time of a message", time_table(findings)),
        ("What processors count of a message", hardware_table(findings)),
        ("What machines do for a message, whatever it is for", machine_table(findings)),
        ("What hosts and ports counted, over all launches", event_table(findings)),
        ("Processor time of a message on one fabric over that on another", ratio_table(findings)),
    ]


def end_words(key: CellKey) -> tuple[str, str]:
    """Return what the two ranks of a test are called."""
    return ("sender", "receiver") if PATTERNS[key.pattern].is_stream else ("first rank", "second rank")


def time_table(findings: Findings) -> Table:
    """A row for each test, fabric and end: its processor time of a message, and what is left of the processor."""
    rows = []
    for one in COSTS.of(findings):
        for name, end in zip(end_words(one.key), one.ends, strict=True):
            rows.append(
                (
                    cell_words(one.key),
                    one.fabric,
                    name,
                    interval_words(TIME, end.time),
                    value_words(TIME, end.user.value),
                    value_words(TIME, end.system.value),
                    "spins" if one.spins else share_interval_parts(_left_of(end.busy)),
                    number_words(end.switches),
                )
            )
        rows.append(
            (
                cell_words(one.key),
                one.fabric,
                "both",
                interval_words(TIME, one.time),
                value_words(TIME, sum(end.user.value for end in one.ends)),
                value_words(TIME, sum(end.system.value for end in one.ends)),
                NOTHING,
                number_words_of(sum(end.switches.value for end in one.ends)),
            )
        )
    columns = ("Test", "Fabric", "End", "A message", "User", "System", "Processor left", "Switches a message")
    return table(columns, rows, range(3, len(columns)), spare=("User", "System", "Switches a message"))


def _left_of(busy: Interval) -> Interval:
    """Return what is left of a processor for computing, with its interval."""
    low, high = (None if end is None else _left(end) for end in (busy.high, busy.low))
    return Interval(value=_left(busy.value), low=low, high=high)


def number_words(one: Interval) -> str:
    """Return a number of events of a message."""
    return number_words_of(one.value)


def number_words_of(value: float) -> str:
    """Return `1.02`, `0.0031`, `12,400`."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def hardware_table(findings: Findings) -> Table:
    """A row for each test, fabric and end of what its processors count; without columns of what nobody counted."""
    costs = COSTS.of(findings)
    counted = [one for one in HARDWARE if any(one in end.hardware for row in costs for end in row.ends)]
    rows = [
        (
            cell_words(row.key),
            row.fabric,
            name,
            *(number_words(end.hardware[one]) if one in end.hardware else NOTHING for one in counted),
        )
        for row in costs
        for name, end in zip(end_words(row.key), row.ends, strict=True)
        if end.hardware
    ]
    columns = ("Test", "Fabric", "End", *(_heading(one) for one in counted))
    return table(columns, rows, range(3, len(columns)))


def machine_table(findings: Findings) -> Table:
    """A row for each test and fabric: events of its machines over messages; without columns in which nothing was counted."""
    costs = COSTS.of(findings)
    shown = [one for one in OF_MACHINES if any(one in row.per_message and row.per_message[one].value for row in costs)]
    rows = [
        (
            cell_words(row.key),
            row.fabric,
            *(number_words(row.per_message[one]) if one in row.per_message else NOTHING for one in shown),
        )
        for row in costs
        if shown
    ]
    columns = ("Test", "Fabric", *(_heading(one) for one in shown))
    return table(columns, rows, range(2, len(columns)))


def event_table(findings: Findings) -> Table:
    """A row for each test and fabric in which something was counted, a column for each of what was counted anywhere."""
    costs = COSTS.of(findings)
    shown = [one for one in EVENTS if any(row.events.get(one) for row in costs)]
    rows = [
        (
            cell_words(row.key),
            row.fabric,
            f"{row.messages:,}",
            *(f"{row.events[one]:,}" if one in row.events else NOTHING for one in shown),
        )
        for row in costs
        if any(row.events.get(one) for one in shown)
    ]
    columns = ("Test", "Fabric", "Messages", *(_heading(one) for one in shown))
    return table(columns, rows, range(2, len(columns)))


def ratio_table(findings: Findings) -> Table:
    """A row for each test and two fabrics of which one clearly takes more, of receivers that sleep."""
    spinning = {row.key for row in COSTS.of(findings) if row.spins}
    rows = [
        (
            cell_words(row.key),
            f"{row.fabric_b} over {row.fabric_a}",
            ratio_words(row.ratio.value, row.ratio.low, row.ratio.high, is_of_a=False),
        )
        for row in RATIOS.of(findings)
        if row.is_clear and row.key not in spinning
    ]
    return table(("Test", "Fabrics", "Processor time"), rows, [2])


def _heading(counter: Counter) -> str:
    words = COUNTER_WORDS[counter]
    return words[0].upper() + words[1:]


CHAPTER = Chapter(
    name=COSTS.name,
    title="What a message costs the processors",
    needs="a run of this version with ping-pongs or streams of two ranks",
    find=find,
    method=METHOD,
    is_of_measuring=True,
    tables=tables,
    lines=lines,
    rows=(COSTS, RATIOS, NOT_COUNTED),
    on_page=OnPage(entry="Processor time", is_open=False),
)
