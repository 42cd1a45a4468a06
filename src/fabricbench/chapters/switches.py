"""What the switch of a fabric is, as measurements tell: line rate, store-and-forward or cut-through, delay, buffer of a port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.switches import Buffer, FabricSwitch, FrameDifference, Seen, SwitchUnknown
from fabricbench.analysis.material import Material
from fabricbench.analysis.switches import fabric_switch, frame_differences, frame_path
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, Rows
from fabricbench.model import Metric
from fabricbench.quantity import enumeration
from fabricbench.report.words import (
    NOTHING,
    cell_words,
    factor_words,
    interval_words,
    layer_words,
    size_words,
    value_words,
)
from fabricbench.table import Table, table

NAME, DIFFERENCES = "switches", "frame-differences"
SWITCH_ROWS = Rows(NAME, FabricSwitch)
DIFFERENCE_ROWS = Rows(DIFFERENCES, FrameDifference)
TIME, RATE = Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT
METHOD = """
Switches: the line rate is that of the fastest stream with what its frames take on the wire (framing as the testbed says, its rate
is not looked at), or, where it is clearly larger, 8 over the time of each byte of messages of several frames. Times of messages
that one frame holds grow by 8/rate for each byte on the wire and each link that serialises the frame: twice where the switch
stores it, once where it forwards at once. They are what passes between the hosts by their own stamps, the lower quartile of each
launch, or else half of round trips. The delay is what is left of that: propagation and the switch's latency, with what a switch
that forwards at once reads before. A burst from a faster link to a slower one queues (k - 1) (1 - out/in) frames before its k-th:
the first loss tells the buffer. Medians over launches with their {level} intervals.
"""


def find(material: Material) -> Found:
    """Return what is known of each fabric's switch, and how much longer frames take on one fabric than on another of its rate."""
    paths = {side.name: frame_path(side, material.stages.get(side.name, {})) for side in material.sides}
    switches = [fabric_switch(path, material.confidence) for path in paths.values()]
    told = {one.fabric for one in switches if one is not None}
    differences = [
        row
        for pairing in material.pairings
        if pairing.is_paired and {pairing.a.name, pairing.b.name} <= told
        for row in frame_differences(paths[pairing.a.name], paths[pairing.b.name], material.confidence)
    ]
    return {NAME: tuple(one for one in switches if one is not None), DIFFERENCES: tuple(differences)}


def tables(findings: Findings) -> NamedTables:
    """Return what each switch is, and what frames take longer between fabrics of one rate."""
    return [("", _switch_table(findings)), ("Frames at one line rate, one way", _difference_table(findings))]


def _switch_table(findings: Findings) -> Table:
    rows = [
        (
            one.fabric,
            interval_words(RATE, one.line_rate_bit_s),
            NOTHING if one.forwarding is None else one.forwarding.value,
            factor_words(one.serialisations),
            _delay(one),
            NOTHING if one.buffer is None else buffer_words(one.buffer),
        )
        for one in SWITCH_ROWS.of(findings)
        if (one.line_rate_bit_s, one.forwarding, one.buffer) != (None, None, None)
    ]
    columns = ("Fabric", "Line rate", "Forwards", "Serialised", "Beside that, one way", "Buffer of a port")
    made = table(columns, rows, (1, 3, 4, 5), spare=("Serialised",), result="Forwards")
    return made if any(row[5] != NOTHING for row in rows) else made.without(5)


CLOCK_NS = 1.0
"""Stamps are whole nanoseconds; a delay that comes out below 0 is kept as 0 (docs/explain.md)."""


def _delay(one: FabricSwitch) -> str:
    """Return `5.2 µs (5.1 to 5.3 µs)`; of whole round trips what it is at most, as hosts are in it."""
    if one.delay_ns is None:
        return NOTHING
    if one.seen is Seen.BETWEEN_HOSTS and one.delay_ns.high is not None and one.delay_ns.high < CLOCK_NS:
        return "nothing that these times tell"
    if one.seen is Seen.BETWEEN_HOSTS:
        return interval_words(TIME, one.delay_ns)
    return f"at most {value_words(TIME, _upper(one.delay_ns))}, hosts included"


def _upper(one: Interval) -> float:
    return one.value if one.high is None else one.high


def buffer_words(one: Buffer) -> str:
    """Return `512 KiB (511.5 to 512.6 KiB): 340 frames of 1538 B`."""
    low, high = (size_words(round(end)) for end in (one.low_bytes, one.high_bytes))
    frames = f"{one.frames_low}" if one.frames_low == one.frames_high else f"{one.frames_low} to {one.frames_high}"
    return f"{low} to {high}: {frames} frames of {size_words(one.frame_bytes)}"


def _difference_table(findings: Findings) -> Table:
    rows = [
        (f"{one.fabric_b} − {one.fabric_a}", cell_words(one.key), one.seen.value, interval_words(TIME, one.difference))
        for one in DIFFERENCE_ROWS.of(findings)
    ]
    return table(("Fabrics", "Message", "Seen", "Difference"), rows, (3,), spare=("Seen",), result="Difference")


REASONS = {
    SwitchUnknown.RATE: "no stream was measured: add streams of full frames, or measure the campaign switch",
    SwitchUnknown.SIZES: "too few sizes that one frame holds were measured: measure the campaign switch (five, with stages)",
    SwitchUnknown.UNDECIDED: "the interval of the slope holds both: add blocks, or measure with stages on an idle machine",
    SwitchUnknown.LAUNCHES: "so few launches give no interval: add blocks",
    SwitchUnknown.FASTER_SENDER: "no stream is faster than between the first two ranks, so that bursts do not queue: take a "
    "receiver with a slower link (in a lab n1.rate=), and measure a stream of the sender to another node",
    SwitchUnknown.NO_BURSTS: "no bursts were measured",
    SwitchUnknown.NO_LOSS: "no burst lost anything: measure longer ones",
    SwitchUnknown.ALL_LOST: "the shortest burst lost something: measure shorter ones",
}


def lines(findings: Findings) -> Sequence[str]:
    """Return a sentence for each fabric, what a switch adds beside another fabric, and what cannot be said with what would tell."""
    found = SWITCH_ROWS.of(findings)
    return [
        *(line for one in found for line in _switch_lines(one)),
        *(_difference_line(one) for one in DIFFERENCE_ROWS.of(findings)),
        *_unknown_lines(found),
        *(line for one in found for line in _burst_lines(one)),
    ]


def _unknown_lines(found: Sequence[FabricSwitch]) -> Iterator[str]:
    """Yield a sentence for each reason for which something cannot be said, of whichever fabrics."""
    lacking: dict[SwitchUnknown, dict[tuple[str, ...], list[str]]] = {}
    for one in found:
        for reason in dict.fromkeys(one.lacking.values()):
            what = tuple(name for name, why in one.lacking.items() if why is reason)
            lacking.setdefault(reason, {}).setdefault(what, []).append(one.fabric)
    for reason, those in lacking.items():
        if reason is not SwitchUnknown.NO_BURSTS:
            for what, fabrics in those.items():
                yield f"{enumeration(fabrics)}: cannot say the {enumeration(what, 'or')}: {REASONS[reason]}."


def _switch_lines(one: FabricSwitch) -> Iterator[str]:
    if one.forwarding is not None:
        layer = "" if one.key is None else f", {layer_words(one.key.layer, one.key.receive)}"
        yield (
            f"{one.fabric}{layer}: {one.forwarding.value}: a frame is serialised {factor_words(one.serialisations)} at "
            f"{interval_words(RATE, one.line_rate_bit_s)}, and takes {_delay(one)} beside."
        )
    if one.buffer is not None:
        yield (
            f"{one.fabric}: a burst of {one.buffer.lossless} frames comes whole, one of {one.buffer.lossy} does not: the port "
            f"holds {buffer_words(one.buffer)}. What the receiving host drops would count as lost too."
        )


def _burst_lines(one: FabricSwitch) -> Iterator[str]:
    if one.to_measure:
        sizes = ", ".join(map(str, one.to_measure))
        yield f'{one.fabric}: the buffer more closely, in a campaign file with the pattern "burst": messages = [{sizes}].'


def _difference_line(one: FrameDifference) -> str:
    value, low, high = one.difference.value, one.difference.low, one.difference.high
    slow, fast = (one.fabric_b, one.fabric_a) if value > 0 else (one.fabric_a, one.fabric_b)
    if low is None or high is None or low <= 0.0 <= high:
        return f"{cell_words(one.key)}: that frames take longer on {slow} than on {fast} is not shown."
    ends = sorted(map(abs, (low, high)))
    shown = interval_words(TIME, Interval(value=abs(value), low=ends[0], high=ends[1]))
    return (
        f"{cell_words(one.key)}: a frame takes {shown} longer one way on {slow} than on {fast}, at the same line rate: what the "
        f"switch of {slow} adds, if {fast} has none."
    )


def records(findings: Findings) -> Records:
    """Return the switches, with their buffers in columns, and the differences."""
    return {
        NAME: [
            one.model_dump(mode="json", exclude={"buffer", "lacking", "sizes", "to_measure", "rate_key"})
            | {
                f"buffer_{name}": None if one.buffer is None else getattr(one.buffer, name)
                for name in Buffer.model_fields
            }
            for one in SWITCH_ROWS.of(findings)
        ],
        DIFFERENCES: DIFFERENCE_ROWS.of(findings),
    }


CHAPTER = Chapter(
    name=NAME,
    title="What the switches are",
    needs="ping-pongs of three sizes within a frame with stages (five without), and streams: the campaign switch has them",
    find=find,
    method=METHOD,
    is_of_measuring=True,
    tables=tables,
    lines=lines,
    records=records,
    on_page=OnPage(entry="Switches", is_open=False),
)
