"""sockperf 3: ping-pong as its summary, or every message where it logged them; throughput. The layer is that of its sockets.

A latency is half a round trip, its mean over messages; with --full-rtt it is the whole one. A full log has whole round trips, which
are samples. Throughput is what was sent, an Mbps 2^20 bits. The size of a message is in a full log alone
(https://github.com/Mellanox/sockperf).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest

from fabricbench.exchange.imported import CellParameters, Imported, ImportedCell
from fabricbench.exchange.rows import (
    BelowLastDigitError,
    PrintedNumber,
    RowError,
    TextLine,
    TextReading,
    check_between,
    lines_of,
    read_number,
    read_whole,
)
from fabricbench.model import Layer, Pattern
from fabricbench.quantity import decimal_product, last_digit
from fabricbench.record.import_notes import ImportNoteKind

NAME = "sockperf"
TITLE = "sockperf"

HEAD = re.compile(r"sockperf: == version #(?P<version>[\w.-]+?)(?:\.git\w*|-no\.git)? ==")
SOCKET = re.compile(r"\[ *\d+\] IP = .*# (?P<layer>TCP|UDP)")
MEAN = re.compile(r"sockperf: ====> avg-(?P<what>latency|lat|rtt)= *(?P<mean>[^ ]+)(?: \(.*)?")
SUMMARY = re.compile(r"sockperf: Summary: (?P<what>Latency|Round trip) is (?P<mean>\S+) usec")
THROUGHPUT = re.compile(r"sockperf: Summary: BandWidth is (?P<bytes>\S+) MBps \((?P<bits>\S+) Mbps\)")
OBSERVED = re.compile(r"sockperf: ---> <(?P<which>MIN|MAX)> observation = *(?P<time>\S+)")
PARAMETERS = re.compile(r"test was performed using the following parameters: (?P<options>.*)")
SIZE_OPTION = re.compile(r"--msg-size[= ](?P<size>\d+)")
RATE_OPTION = re.compile(r"--(?:mps|reply-every)[= ]")
OF_LOG = re.compile(r"packet, txTime\(sec\), rxTime\(sec\), (?:latency|rtt)\(usec\)")
LOGGED = re.compile(r"\d+, (?P<sent>\d+\.\d+), (?P<received>\d+\.\d+), +\S+")
UNDER_LOAD = re.compile(r"sockperf: .*(?:under-load|playback)", re.IGNORECASE)

MOST_SAMPLES = 10_000_000
WHOLE = ("rtt", "Round trip")


@dataclass
class _Test:
    """One start of it. `means` are the mean and its summary, each with its line and whether it is of whole round trips."""

    layer: Layer | None = None
    size: int | None = None
    is_paced: bool = False
    means: list[tuple[TextLine, str, bool]] = field(default_factory=list)
    rates: list[tuple[TextLine, str, str]] = field(default_factory=list)
    log: list[tuple[TextLine, str]] | None = None
    least: list[str] = field(default_factory=list)
    most: list[str] = field(default_factory=list)


def is_it(text: str) -> bool:
    """Tell by its version, or by the head of its full log."""
    if "sockperf" not in text and "txTime(sec)" not in text:
        return False
    return any(HEAD.match(one.text) or OF_LOG.match(one.text) for one in lines_of(text[:200_000]))


def read(text: str) -> Imported:
    """Return the results of each start of it."""
    found, versions, tests = TextReading(), [], [_Test()]
    for line in lines_of(text):
        head = HEAD.match(line.text)
        if head is not None:
            versions.append(head["version"].rstrip("."))
            if tests[-1] != _Test() and (tests[-1].means or tests[-1].rates):
                tests.append(_Test())
        if observed := OBSERVED.fullmatch(line.text):
            (tests[-1].least if observed["which"] == "MIN" else tests[-1].most).append(observed["time"])
        else:
            _take(line, tests[-1], found)
    for test in tests:
        _finish(test, found)
    return Imported(
        program="sockperf",
        version=", ".join(dict.fromkeys(versions)) or "of unknown version",
        statistic="ping-pong: the mean of its messages, twice the half round trip it prints; throughput: what was sent",
        cells=tuple(found.cells),
        notes=tuple(found.notes),
    )


def _take(line: TextLine, test: _Test, found: TextReading) -> None:
    if socket := SOCKET.match(line.text):
        test.layer = Layer(socket["layer"].lower())
    elif (mean := MEAN.fullmatch(line.text) or SUMMARY.fullmatch(line.text)) is not None:
        test.means.append((line, mean["mean"], mean["what"] in WHOLE))
    elif rate := THROUGHPUT.fullmatch(line.text):
        test.rates.append((line, rate["bytes"], rate["bits"]))
    elif options := PARAMETERS.search(line.text):
        size = SIZE_OPTION.search(options["options"])
        test.size = None if size is None else read_whole(size["size"], "the size")
        test.is_paced = test.is_paced or RATE_OPTION.search(options["options"]) is not None
    elif OF_LOG.match(line.text):
        test.log = []
    elif test.log is not None and (logged := LOGGED.fullmatch(line.text)) is not None:
        test.log.append((line, f"{logged['sent']} {logged['received']}"))
    elif UNDER_LOAD.match(line.text):
        test.is_paced = True
    elif line.text.startswith("sockperf: ====>") or "Summary:" in line.text:
        found.note(ImportNoteKind.DAMAGED, line, why="it is no result as sockperf prints one")
    elif line.text and not line.text.startswith(("sockperf", "[", "-----", "#")):
        found.stray(line)


def _finish(test: _Test, found: TextReading) -> None:
    """Make the cells of a test: of a log its samples, else its mean."""
    for line, mebibytes, mebibits in test.rates:
        with found.row(line):
            rate = read_number(mebibits, "the bandwidth")
            if (
                abs(read_number(mebibytes, "the bandwidth").value * 8 - rate.value)
                > 8 * last_digit(mebibytes) + rate.step
            ):
                raise RowError("its MBps and its Mbps are not the same")
            moved = rate.times(2.0**20)
            _add(test, Pattern.STREAM, (moved.value,), moved.step, (("statistic", "sent"),), found)
    if test.is_paced and test.means:
        found.unknown_test(test.means[0][0], "under-load")
    elif test.log:
        with found.row(test.log[0][0]):
            step = decimal_product(last_digit(test.log[0][1].split()[0]), 1e9)
            _add(test, Pattern.PINGPONG, tuple(map(_round_trip_ns, test.log[:MOST_SAMPLES])), step, (), found)
    elif test.means:
        line, _, is_whole = test.means[0]
        with found.row(line):
            first, *again = (read_number(text, "the mean", DECIMALS) for _, text, _ in test.means)
            if any(one.value != first.value for one in again):
                raise RowError("its mean and its summary are not the same: several servers, or damage")
            for least, most in zip_longest(test.least, test.most):
                check_between(first, _observed(least), _observed(most))
            mean = first.times(1e3 if is_whole else 2e3)
            _add(test, Pattern.PINGPONG, (mean.value,), mean.step, (("statistic", "mean"),), found)


DECIMALS = 3


def _observed(text: str | None) -> PrintedNumber | None:
    """Return the smallest or largest observation, where it was printed and is more than its last digit can tell."""
    try:
        return None if text is None else read_number(text, "an observation", DECIMALS)
    except BelowLastDigitError:
        return None


def _round_trip_ns(logged: tuple[TextLine, str]) -> float:
    _, text = logged
    (sent, received) = (int(one.replace(".", "")) * 10 ** (9 - len(one.partition(".")[2])) for one in text.split())
    if received <= sent:
        raise RowError("a message came back before it was sent")
    return float(received - sent)


def _add(
    test: _Test,
    pattern: Pattern,
    values: tuple[float, ...],
    step: float,
    parameters: CellParameters,
    found: TextReading,
) -> None:
    found.cells.append(ImportedCell(pattern, test.size, values, step, layer=test.layer, ranks=2, parameters=parameters))
