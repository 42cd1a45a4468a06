"""NetPIPE 3's `np.out`: three columns without a header, message size, 2^20 bit/s, seconds of half a round trip.

Both are of the best of its trials (https://netpipe.cs.ksu.edu). The layer is not told: NPtcp and NPmpi write alike.
"""

from __future__ import annotations

import re

from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.model import Pattern

NAME = "netpipe"
TITLE = "NetPIPE 3"

ROW = re.compile(r"^ *(\d+) +(\d+\.\d+) +(\d+\.\d+) *$")


def is_it(text: str) -> bool:
    """Tell by three columns whose rate is that of the size and the time beside it."""
    rows = [ROW.match(line) for line in text.splitlines()]
    return bool(rows) and all(row and _fits(int(row[1]), float(row[2]), float(row[3])) for row in rows)


def _fits(size: int, megabit_s: float, seconds: float) -> bool:
    return abs(megabit_s * seconds * 2**20 - 8 * size) < 0.01 * 8 * size


def read(text: str) -> Imported:
    """Return a round trip for each size; ValueError names the line that is none."""
    cells = []
    for line in text.splitlines():
        row = ROW.match(line)
        if row is None:
            raise ValueError(f"{line!r} has not three columns: bytes, Mbit/s, seconds")
        values = (2e9 * float(row[3]),)
        cells.append(ImportedCell(Pattern.PINGPONG, message_bytes=int(row[1]), values=values, ranks=2))
    return Imported(program="NetPIPE", version="3", statistic="the best of its trials", cells=tuple(cells))
