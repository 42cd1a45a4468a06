"""netperf 2, its classic outputs: TCP_RR and UDP_RR as round trips, TCP_STREAM, TCP_MAERTS and UDP_STREAM as throughput.

One transaction is one round trip, so its mean time is the inverse of the rate. Streams are in 10^6 bit/s; of UDP what the
receiver's line tells (https://hewlettpackard.github.io/netperf). Its omni outputs (`-o`, `-k`) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import PrintedNumber, RowError, TextLine, TextReading, lines_of, read_number, read_whole
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "netperf"
TITLE = "netperf"

HEAD = re.compile(
    r"(?:MIGRATED )?(?P<layer>TCP|UDP|SCTP) (?P<test>[A-Z/ ]+?) (?:TEST|Test) from .*?(?:: (?P<options>.*))?"
)
BEGIN = re.compile(r"\bT(?:EST|est) from ")
BURST = re.compile(r"first burst (?P<number>\d+)")
TITLES = {"REQUEST/RESPONSE": "RR", "STREAM": "STREAM", "MAERTS": "MAERTS"}
ROW = re.compile(r" *\d+(?: +[\d.,\w+-]+)* *")
UNIT = re.compile(r"10\^(?P<power>\d)bits|per sec")

RR_FIELDS, STREAM_FIELDS, UDP_FIELDS, UDP_RECEIVED_FIELDS = 6, 5, 6, 4


def is_it(text: str) -> bool:
    """Tell by the line that a test begins with."""
    lines = text.split("\n") if " from " in text else []
    return any(HEAD.fullmatch(line) for line in lines if len(line) < 500 and BEGIN.search(line))


def read(text: str) -> Imported:
    """Return the result of each test."""
    found = TextReading()
    lines = lines_of(text)
    begins = [place for place, line in enumerate(lines) if BEGIN.search(line.text)]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        _read_test(lines[begin:end], found)
    return Imported(
        program="netperf",
        version="2, classic output",
        statistic="the mean: the inverse of its transactions a second; of streams what arrived over the whole time",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _read_test(lines: Sequence[TextLine], found: TextReading) -> None:
    head = HEAD.fullmatch(lines[0].text)
    title = "" if head is None else TITLES.get(head["test"], "")
    if head is None or not title or head["layer"] == "SCTP":
        found.unknown_test(lines[0], lines[0].text.partition(" TEST")[0])
        return
    burst = BURST.search(head["options"] or "")
    if title == "RR" and burst is not None and burst["number"] != "0":
        found.unknown_test(lines[0], f"{head['layer']}_RR with a burst")
        return
    rows = []
    for line in lines[1:]:
        if ROW.fullmatch(line.text):
            rows.append((line, line.text.split()))
        elif re.match(r"[\[(]|\S+:", line.text) and "Socket" not in line.text:
            found.stray(line)
    if not rows:
        found.note(ImportNoteKind.CUT, lines[0], f"{lines[0].text[:60]}: no result follows")
        return
    units = {one["power"] for line in lines if (one := UNIT.search(line.text)) is not None and one["power"]}
    with found.row(rows[0][0]):
        layer = Layer(head["layer"].lower())
        if {".", ","} <= {letter for _, fields in rows[:2] for one in fields for letter in one}:
            raise RowError("it has decimal points and decimal commas, and a locale has one of them")
        found.cells.append(_round_trip(rows, layer) if title == "RR" else _stream(title, rows, layer, units))


Rows = Sequence[tuple[TextLine, list[str]]]


def _round_trip(rows: Rows, layer: Layer) -> ImportedCell:
    line, fields = rows[0]
    if len(fields) != RR_FIELDS or not line.has_end:
        raise RowError(f"it has {len(fields)} fields, and a result has {RR_FIELDS}")
    sent, answered = read_whole(fields[2], "the request's size"), read_whole(fields[3], "the response's size")
    read_number(fields[4], "the time", 2)
    rate = read_number(fields[5], "the rate", 2)
    unlike: CellParameters = (("response_bytes", answered),) if answered != sent else ()
    value = 1e9 / rate.value
    return ImportedCell(Pattern.PINGPONG, sent, (value,), value * rate.step / rate.value, layer, 2, unlike)


def _stream(title: str, rows: Rows, layer: Layer, units: set[str]) -> ImportedCell:
    if units != {"6"}:
        raise RowError("the names of its columns do not say 10^6bits/sec")
    line, fields = rows[0]
    needed = UDP_FIELDS if layer is Layer.UDP else STREAM_FIELDS
    if len(fields) != needed or not line.has_end:
        raise RowError(f"it has {len(fields)} fields, and a result has {needed}")
    size = read_whole(fields[1 if layer is Layer.UDP else 2], "the message size")
    if layer is Layer.UDP:
        if len(rows) < 2 or len(rows[1][1]) != UDP_RECEIVED_FIELDS or not rows[1][0].has_end:
            raise RowError("the line of what was received does not follow it")
        fields = rows[1][1]
    rate: PrintedNumber = read_number(fields[-1], "the throughput", 2).times(1e6)
    reverse: CellParameters = (("direction", "reverse"),) if title == "MAERTS" else ()
    return ImportedCell(Pattern.STREAM, size, (rate.value,), rate.step, layer, 2, reverse)
