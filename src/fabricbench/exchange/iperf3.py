"""iperf3: its JSON (`-J`, also as a stream of events) and its text. What arrived at the receiver counts, over all streams.

Rates are in decimal bits; amounts of the text are in 2^20 bytes and so on. Each write has `blksize` bytes, which the text tells
only with `-V`: there `--message-bytes` has to say it (https://software.es.net/iperf).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import (
    EXACT,
    BelowLastDigitError,
    PrintedNumber,
    RowError,
    TextLine,
    TextReading,
    lines_of,
    read_number,
    read_whole,
    unix_ns,
)
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "iperf3"
TITLE = "iperf3"

LAYERS: Mapping[str, Layer] = {"TCP": Layer.TCP, "UDP": Layer.UDP}

IS_JSON = re.compile(r'\s*\{\s*"(?:start"\s*:|event"\s*:\s*"start")')
IS_TEXT = re.compile(r"\[ *ID\](?:\[Role\])? +Interval +Transfer +(?:Bitrate|Bandwidth)")
NO_NUMBER = re.compile(r"(:\s*)-?nan\b")


def is_it(text: str) -> bool:
    """Tell by the beginning of its JSON, or by the names of its columns."""
    if IS_JSON.match(text):
        return '"iperf 3' in text[:10_000]
    return any(IS_TEXT.match(line) for line in text.split("\n") if line.startswith("["))


def read(text: str) -> Imported:
    """Return the throughput of each test; ValueError where JSON is not whole or tells an error."""
    found = TextReading()
    versions: list[str] = []
    started: list[int] = []
    if IS_JSON.match(text):
        for document in _documents(text):
            _read_document(document, found)
            versions.append(str(_at(document, "start", "version")).removeprefix("iperf "))
            seconds = str(_at(document, "start", "timestamp", "timesecs"))
            started += [int(seconds) * 1_000_000_000] if seconds.isdigit() and len(seconds) < 12 else []
    else:
        versions = _read_text(lines_of(text), found)
        started = [time for one in TIME.finditer(text) if (time := unix_ns(one["time"], "%a, %d %b %Y %H:%M:%S GMT"))]
    return Imported(
        program="iperf3",
        version=", ".join(dict.fromkeys(versions)) or "of unknown version",
        statistic="what arrived at the receiver over the whole time, all streams together",
        cells=tuple(found.cells),
        started_unix_ns=min(started, default=None),
        notes=tuple(found.notes),
    )


Object = dict[str, Any]


def _documents(text: str) -> Iterator[Object]:
    """Yield the objects of a text, numbers as they are printed; a document that is there twice, as 3.16 writes it, once."""
    plain = NO_NUMBER.sub(r"\1null", text)
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_pairs)
    objects, position = [], 0
    while (begin := re.compile(r"\s*").match(plain, position)) is not None and begin.end() < len(plain):
        try:
            one, position = decoder.raw_decode(plain, begin.end())
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", text.count("\n") + 1)
            raise ValueError(
                f"line {line}: its JSON is not whole: {getattr(error, 'msg', 'it goes too deep')}"
            ) from None
        if not isinstance(one, dict):
            raise ValueError("what stands beside its JSON is no object")  # noqa: TRY004 - of a text that is read
        if one not in objects:
            objects.append(one)
    if objects and "event" in objects[0]:
        yield {str(one.get("event")): one.get("data", {}) for one in objects}
    else:
        yield from objects


TWICE = "a key that is there twice"


def _pairs(pairs: Sequence[tuple[str, Any]]) -> Object:
    """Return an object; of sums that two directions wrote under one name nobody knows which is which."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found |= dict.fromkeys({name for name in names if names.count(name) > 1 and name.startswith("sum")}, TWICE)
    return found


def _at(document: Any, *names: str) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _read_document(document: Object, found: TextReading) -> None:
    error = _at(document, "error")
    if error:
        raise ValueError(f"its test failed: {str(error)[:200]!r}")
    test = _at(document, "start", "test_start")
    try:
        rates = _rates(document, found, is_both=_at(test, "bidir") == "1")
        found.cells.append(
            ImportedCell(
                pattern=Pattern.BISTREAM if len(rates) > 1 else Pattern.STREAM,
                message_bytes=read_whole(str(_at(test, "blksize")), "blksize"),
                values=(sum(one.value for one in rates),),
                printed_step=sum(one.step for one in rates),
                layer=LAYERS.get(str(_at(test, "protocol"))),
                ranks=2,
                parameters=_parameters(str(_at(test, "num_streams")), is_reverse=_at(test, "reverse") == "1"),
            )
        )
    except RowError as why:
        raise ValueError(f"no throughput can be read from it: {why}") from None


def _rates(document: Object, found: TextReading, *, is_both: bool) -> list[PrintedNumber]:
    """Return what arrived in each direction; RowError where a direction is missing."""
    sums = [_at(document, "end", name) for name in ("sum_received", "sum_received_bidir_reverse")]
    whole = [one for one in sums if isinstance(one, dict)]
    if is_both and len(whole) < len(sums):
        raise RowError("its version writes one direction over the other")
    if not whole:
        return [_sent(_at(document, "end", "sum"), found)]
    if str(_at(document, "start", "test_start", "omit")) in ("None", "0"):  # else the two count from other bytes on
        is_tcp = _at(document, "start", "test_start", "protocol") == "TCP"
        for sent, received in zip(("sum_sent", "sum_sent_bidir_reverse"), sums[: 2 if is_both else 1], strict=False):
            moved = str(_at(document, "end", sent, "bytes"))
            if moved not in ("None", "0"):
                _check_arrived(_Amount.read(moved), _Amount.read(str(_at(received, "bytes"))), is_tcp=is_tcp)
    return [_rate(one) for one in whole[: 2 if is_both else 1]]


@dataclass(frozen=True)
class _Amount:
    """What one end counted: bytes, and as it was printed."""

    size: PrintedNumber
    printed: str

    @staticmethod
    def read(moved: str, unit: str = "") -> _Amount:
        return _Amount(read_number(moved, "the amount").times(BINARY[unit]), f"{moved} {unit}Bytes")


def _check_arrived(sent: _Amount, arrived: _Amount, *, is_tcp: bool) -> None:
    """Raise RowError where more arrived than was sent, or so little that TCP would have sent it again."""
    slack = (sent.size.step + arrived.size.step) / 2 * (1 + EXACT)
    if arrived.size.value > sent.size.value + slack:
        raise RowError(f"{arrived.printed} arrived, more than the {sent.printed} that were sent")
    if is_tcp and arrived.size.value < LEAST_OF_TCP * sent.size.value - slack:
        raise RowError(f"{arrived.printed} arrived of {sent.printed} that were sent, and TCP loses none")


LEAST_OF_TCP = 0.9
"""What is under way when a test ends is a smaller share."""


def _parameters(streams: str, *, is_reverse: bool) -> CellParameters:
    number = read_whole(streams, "num_streams")
    flows: CellParameters = (("flows", number),) if number != 1 else ()
    return (*flows, ("direction", "reverse")) if is_reverse else flows


def _rate(one: Mapping[str, Any]) -> PrintedNumber:
    """Return a sum's rate, which its bytes and seconds must give."""
    rate = read_number(str(one.get("bits_per_second")), "bits_per_second")
    moved, seconds = (read_number(str(one.get(name)), name) for name in ("bytes", "seconds"))
    if abs(8 * moved.value / seconds.value - rate.value) > 0.01 * rate.value:
        raise RowError("bits_per_second is not that of its bytes and seconds")
    return rate


def _sent(one: Any, found: TextReading) -> PrintedNumber:
    """Return the rate of UDP before 3.11, which has one sum: what was sent, from which what was lost is taken here."""
    if not isinstance(one, dict):
        raise RowError("it has no sum of what was received")
    rate = _rate(one)
    packets = read_number(str(one.get("packets")), "packets").value
    lost = read_whole(str(one.get("lost_packets")), "lost_packets")
    if lost >= packets:
        raise RowError("it lost all it sent")
    found.note(ImportNoteKind.READ_AS, None, "sum", "what was sent, of which the share that was lost is taken off")
    return rate.times(1 - lost / packets)


TOTAL = re.compile(
    r"\[ *(?P<id>\d+|SUM)\](?:\[(?P<role>[TR]X-[CS])\])? +(?P<from>\d+\.\d+) *- *(?P<to>\d+\.\d+) +sec +"
    r"(?P<moved>[\d.]+) (?P<moved_unit>[KMGT]?)Bytes +(?P<rate>[\d.]+) (?P<unit>[KMGT]?(?:bits|Bytes))/sec\b"
    r"[^\[a-z]*(?:[\d.]+ ms[^\[a-z]*)?"
    r"(?P<side>sender|receiver) *"
)
MEANT_AS_TOTAL = re.compile(r".*\breceive")
BEGIN = re.compile(r"Connecting to host |Accepted connection from ")
TIME = re.compile(r"^Time: (?P<time>\w{3}, .{,30}GMT)", re.MULTILINE)
VERSION = re.compile(r"iperf (?P<version>3\.\S+)")
DETAIL = re.compile(r"Starting Test: protocol: (?P<protocol>\w+), (?P<streams>\d+) streams, (?P<size>\d+) byte blocks")

BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
DECIMAL = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(frozen=True)
class _Total:
    """What arrived in all: its line, rate and amount."""

    line: TextLine
    rate: PrintedNumber
    amount: _Amount


@dataclass
class _Test:
    """What the text says of one test."""

    begin: TextLine | None = None
    layer: Layer | None = None
    size: int | None = None
    is_reverse: bool = False
    is_omitting: bool = False
    """Whether it leaves out its first seconds, in which the two ends count other bytes."""
    received: dict[str, dict[str, _Total]] = field(default_factory=dict)
    """By direction and stream: what arrived."""
    sent: dict[str, dict[str, _Amount]] = field(default_factory=dict)
    """The same: what was sent, where that was told."""


def _read_text(lines: Sequence[TextLine], found: TextReading) -> list[str]:
    """Read all tests of a text and return the versions that it names."""
    versions, tests = [], [_Test()]
    for line in lines:
        test = tests[-1]
        if BEGIN.match(line.text):
            tests.append(_Test(begin=line))
        elif version := VERSION.fullmatch(line.text):
            versions.append(version["version"])
        elif detail := DETAIL.match(line.text):
            test.layer, test.size = LAYERS.get(detail["protocol"]), read_whole(detail["size"], "the size")
            test.is_omitting = re.search(r"omitting [1-9]", line.text) is not None
        elif IS_TEXT.match(line.text):
            is_udp, is_tcp = "Datagrams" in line.text, "Retr" in line.text
            test.layer = Layer.UDP if is_udp else Layer.TCP if is_tcp else test.layer
        elif line.text.startswith("Reverse mode"):
            test.is_reverse = True
        elif line.text.endswith("(omitted)"):
            test.is_omitting = True
        else:
            _take_total(line, test, found)
    for test in tests:
        _finish(test, found)
    return versions


def _take_total(line: TextLine, test: _Test, found: TextReading) -> None:
    total = TOTAL.fullmatch(line.text)
    if total is None:
        if MEANT_AS_TOTAL.match(line.text):
            found.note(ImportNoteKind.DAMAGED, line, why="it is no total of the receiver's")
        elif line.text and not line.text.startswith(("[", "- -", "iperf Done", "Server listening", "---")):
            found.stray(line)
        return
    with found.row(line):
        _keep_total(line, total, test)


def _keep_total(line: TextLine, total: re.Match[str], test: _Test) -> None:
    role = total["role"] or ""
    try:
        amount = _Amount.read(total["moved"], total["moved_unit"])
    except BelowLastDigitError:
        if total["side"] == "sender":  # a server knows nothing of it
            return
        raise
    if total["side"] == "sender":
        test.sent.setdefault(role, {})[total["id"]] = amount
    else:
        test.received.setdefault(role, {})[total["id"]] = _Total(line, _total_rate(total), amount)


def _total_rate(total: re.Match[str]) -> PrintedNumber:
    """Return a total's rate in bit/s, which its amount and its time must give."""
    unit = total["unit"]
    scale = DECIMAL[unit.removesuffix("bits")] if unit.endswith("bits") else 8.0 * BINARY[unit.removesuffix("Bytes")]
    rate = read_number(total["rate"], "the rate").times(scale)
    moved = read_number(total["moved"], "the amount").times(8.0 * BINARY[total["moved_unit"]])
    seconds = float(total["to"]) - float(total["from"])
    if seconds <= 0:
        raise RowError("it took no time")
    slack = rate.step + moved.step / seconds + 0.01 / seconds * rate.value
    if abs(moved.value / seconds - rate.value) > slack:
        raise RowError("its rate is not that of its amount and its time")
    return rate


def _finish(test: _Test, found: TextReading) -> None:
    """Make a cell of a test's totals: of all streams, and of both directions where there are two."""
    if not test.received:
        if test.begin is not None:
            found.note(ImportNoteKind.CUT, test.begin, f"{test.begin.text}: no total of the receiver's follows")
        return
    rates = []
    for role, of_streams in test.received.items():
        name = "SUM" if "SUM" in of_streams or len(of_streams) > 1 else next(iter(of_streams))
        if name not in of_streams:
            line = next(iter(of_streams.values())).line
            found.note(ImportNoteKind.DAMAGED, line, why="the line of the sum of its streams is missing")
            return
        sent, whole = test.sent.get(role, {}).get(name), of_streams[name]
        with found.row(whole.line):
            if sent is not None and not test.is_omitting:
                _check_arrived(sent, whole.amount, is_tcp=test.layer is Layer.TCP)
            rates.append(whole.rate)
    if len(rates) < len(test.received):
        return
    streams = max(1, *(len(of_streams.keys() - {"SUM"}) for of_streams in test.received.values()))
    found.cells.append(
        ImportedCell(
            pattern=Pattern.BISTREAM if len(rates) > 1 else Pattern.STREAM,
            message_bytes=test.size,
            values=(sum(one.value for one in rates),),
            printed_step=sum(one.step for one in rates),
            layer=test.layer,
            ranks=2,
            parameters=_parameters(str(streams), is_reverse=test.is_reverse),
        )
    )
