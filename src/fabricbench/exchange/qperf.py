"""qperf 0.4: latencies and bandwidths of sockets and verbs. A latency is half a round trip, of RDMA read the whole operation.

A MB is 10^6 bytes. The layer is in the name of the test; the size of a message only in a verbose output
(https://github.com/linux-rdma/qperf).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import PrintedNumber, RowError, TextLine, TextReading, lines_of, read_number, read_whole
from fabricbench.model import Layer, Pattern
from fabricbench.record.import_notes import ImportNoteKind

NAME = "qperf"
TITLE = "qperf"

TEST = re.compile(r"(?P<name>[a-z]\w*_(?:lat|bw|bi_bw|mr|rate)):")
VALUE = re.compile(r" +(?P<name>\w+) += +(?P<number>[\d.,]+|\S+) +(?P<unit>[\w/]+)(?: \((?P<plain>[\d,]+)\))?")
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "sec": 1e9}
BIT_S = {"bytes/sec": 8.0, "KB/sec": 8e3, "MB/sec": 8e6, "GB/sec": 8e9, "Kb/sec": 1e3, "Mb/sec": 1e6, "Gb/sec": 1e9}
BYTES = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6}

HALF, WHOLE = 2.0, 1.0
TESTS: Mapping[str, tuple[Layer, Pattern, float, CellParameters]] = {
    "tcp_lat": (Layer.TCP, Pattern.PINGPONG, HALF, ()),
    "udp_lat": (Layer.UDP, Pattern.PINGPONG, HALF, ()),
    "tcp_bw": (Layer.TCP, Pattern.STREAM, WHOLE, ()),
    "udp_bw": (Layer.UDP, Pattern.STREAM, WHOLE, ()),
    "rc_lat": (Layer.RDMA, Pattern.PINGPONG, HALF, ()),
    "uc_lat": (Layer.RDMA, Pattern.PINGPONG, HALF, (("connection", "UC"),)),
    "ud_lat": (Layer.RDMA, Pattern.PINGPONG, HALF, (("connection", "UD"),)),
    "rc_bw": (Layer.RDMA, Pattern.STREAM, WHOLE, ()),
    "uc_bw": (Layer.RDMA, Pattern.STREAM, WHOLE, (("connection", "UC"),)),
    "rc_bi_bw": (Layer.RDMA, Pattern.BISTREAM, WHOLE, ()),
    "rc_rdma_read_lat": (Layer.RDMA, Pattern.PINGPONG, WHOLE, (("door", "read"),)),
    "rc_rdma_read_bw": (Layer.RDMA, Pattern.STREAM, WHOLE, (("door", "read"),)),
    "rc_rdma_write_lat": (Layer.RDMA, Pattern.PINGPONG, HALF, (("door", "write"),)),
    "rc_rdma_write_bw": (Layer.RDMA, Pattern.STREAM, WHOLE, (("door", "write-plain"),)),
    "rc_rdma_write_poll_lat": (Layer.RDMA, Pattern.PINGPONG, HALF, (("door", "write-poll"),)),
}
RECEIVED = "recv_bw"


@dataclass
class _Test:
    """What stands below the name of a test: values by their names, each with its line."""

    begin: TextLine
    name: str
    values: dict[str, tuple[TextLine, re.Match[str]]] = field(default_factory=dict)


def is_it(text: str) -> bool:
    """Tell by the name of a test and a value below it."""
    if re.search(r"^[a-z]\w*_(?:lat|bw|mr|rate):\s*$", text, re.MULTILINE) is None:
        return False
    lines = lines_of(text)
    return any(TEST.fullmatch(one.text) for one in lines) and any(VALUE.fullmatch(one.text) for one in lines)


def read(text: str) -> Imported:
    """Return the result of each test."""
    found, test, tests = TextReading(), None, []
    for line in lines_of(text):
        if title := TEST.fullmatch(line.text):
            test = _Test(line, title["name"])
            tests.append(test)
        elif (value := VALUE.fullmatch(line.text)) is not None and test is not None:
            test.values.setdefault(value["name"], (line, value))
        elif re.match(r" +\w+ +=", line.text) or line.text.endswith(":"):
            found.note(ImportNoteKind.DAMAGED, line, why="it is neither a test nor a value of one")
            test = None
        else:
            found.stray(line)
    for one in tests:
        if one.name not in TESTS:
            found.unknown_test(one.begin, one.name)
            continue
        with found.row(one.begin):
            found.cells.append(_cell(one))
    return Imported(
        program="qperf",
        version="of unknown version",
        statistic="the mean; of a latency twice the half round trip it prints (of RDMA read as it is)",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _cell(test: _Test) -> ImportedCell:
    layer, pattern, factor, parameters = TESTS[test.name]
    is_time = pattern is Pattern.PINGPONG
    name = next((one for one in (("latency",) if is_time else (RECEIVED, "bw")) if one in test.values), None)
    if name is None:
        raise RowError(f"it has no {'latency' if is_time else 'bandwidth'}")
    line, value = test.values[name]
    scale = (NS if is_time else BIT_S).get(value["unit"])
    if scale is None or not line.has_end:
        raise RowError(f"line {line.number}: {line.text.strip()!r} is no {name} whose unit is known and whole")
    result = _grouped(value["number"], name).times(factor * scale)
    size = test.values.get("msg_size")
    return ImportedCell(
        pattern, None if size is None else _size(size[1]), (result.value,), result.step, layer, 2, parameters
    )


def _grouped(text: str, what: str) -> PrintedNumber:
    """Return a number whose commas are between thousands, as qperf prints them."""
    if "," in text and re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) is None:
        raise RowError(f"{what} is {text!r}, which is no number")
    return read_number(text.replace(",", ""), what)


def _size(found: re.Match[str]) -> int:
    if found["plain"] is not None:
        return read_whole(found["plain"].replace(",", ""), "msg_size")
    if found["unit"] not in BYTES:
        raise RowError(f"msg_size is in {found['unit']}, which is no unit of it")
    return round(_grouped(found["number"], "msg_size").value * BYTES[found["unit"]])
