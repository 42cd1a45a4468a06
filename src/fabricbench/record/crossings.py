"""Which frames of an emulated switch carried which message of a cell whose stages are measured. Pure.

Only in a lab, where switch and nodes read one clock, and one message of the cell is under way at a time: what arrives at the
switch between the send of a message and its arrival at the other rank is that message's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

Crossings = NDArray[np.int64]
"""A row for each frame: its arrival at the switch, the time that its links take (its host's with those before it), when it was due
at the node, when it was there; ns, all but the second since 1970."""

ARRIVAL, WIRE, DUE, SENT = range(4)

UNKNOWN = np.iinfo(np.int64).min
"""Stands for a time that is not known, in columns that become nulls."""


@dataclass(frozen=True)
class Crossed:
    """What the switch tells of each of some messages, ns; UNKNOWN where it tells nothing.

    `first` and `last` are arrivals of the message's first and last frame, `wire` and `due` those of the last.
    """

    first: Times
    last: Times
    wire: Times
    due: Times


def crossed(sent: Times, arrived: Times, crossings: Crossings) -> Crossed:
    """Return how messages crossed the switch that were sent and had arrived at these times (UNKNOWN: neither)."""
    in_order = crossings[np.argsort(crossings[:, ARRIVAL], kind="stable")]
    arrivals = in_order[:, ARRIVAL]
    first = np.searchsorted(arrivals, sent, side="left")
    last = np.searchsorted(arrivals, arrived, side="right") - 1
    is_known = (sent != UNKNOWN) & (arrived != UNKNOWN) & (first <= last)

    def told(places: NDArray[np.intp], column: int) -> Times:
        found = np.full(len(sent), UNKNOWN, dtype=np.int64)
        found[is_known] = in_order[places[is_known], column]
        return found

    return Crossed(told(first, ARRIVAL), told(last, ARRIVAL), told(last, WIRE), told(last, DUE))
