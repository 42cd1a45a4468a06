"""ping of iputils: a message at a time, a pause between two; the mean of its whole round trips.

The size is that of the payload, without the header of ICMP (https://github.com/iputils/iputils).
"""

from __future__ import annotations

import re

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.rows import TextReading, lines_of, read_number
from fabricbench.model import Layer, Pattern

NAME = "ping"
TITLE = "ping"

HEAD = re.compile(r"PING \S+ \(\S+\) (?P<size>\d+)\(\d+\) bytes of data\.")
RESULT = re.compile(r"rtt min/avg/max/mdev = [\d.]+/(?P<mean>[^/]+)/[\d.]+/[\d.]+ ms")


def is_it(text: str) -> bool:
    """Tell by the line that it begins with."""
    return any(map(HEAD.match, text.split("\n")))


def read(text: str) -> Imported:
    """Return a round trip for each start of it; one that ended without a result is left out."""
    found, size = TextReading(), None
    for line in lines_of(text):
        head, result = HEAD.match(line.text), RESULT.match(line.text)
        if head is not None:
            size = int(head["size"])
        elif result is not None and size is not None:
            with found.row(line):  # what is no number is noted, with its line
                mean = read_number(result["mean"], "the mean").times(1e6)
                found.cells.append(ImportedCell(Pattern.PACED, size, (mean.value,), mean.step, Layer.IP, ranks=2))
            size = None
    return Imported("ping", "of iputils", "the mean of its round trips", tuple(found.cells), notes=tuple(found.notes))
