"""Stamps of messages whose stages are known, on hosts whose clocks differ by hours, and the frames of a switch beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.record.crossings import Crossings
from fabricbench.record.lines import BusiestProcess, Stages

ORDER = (
    "library",
    "handshake",
    "queue",
    "driver",
    "wire",
    "switch",
    "emulator",
    "waking",
    "waiting",
    "return",
    "delivery",
)
BEGIN_NS = 1_793_400_000_000_000_000
HOURS_NS = 5 * 3_600_000_000_000


@dataclass(frozen=True)
class Stamped:
    """What each stage of a message takes, ns, on the way there and on the way back, and how long the peer keeps it.

    `apart_ns`: how far the other host's clock is ahead. `refused` is what hosts do not show. `unseen` messages lack a boundary.
    `pauses_ns` are between two round trips, at random from the first to the second. Arrivals are at multiples of `grid_ns` alone.
    Of the messages there `held` (a share) wait for an acknowledgement that comes after 42 ms, and `waits` for a processor for 1 ms,
    which `busiest` uses.

    `of_library`: a library sends and receives them, which tells when it calls the kernel, and nobody sees them in the queue; one
    with a handshake asks the peer by a frame of its own before. `spins`: receivers never sleep.
    """

    there: Mapping[str, float]
    back: Mapping[str, float]
    application: float = 300.0
    rest: float = 50.0
    apart_ns: int = HOURS_NS
    refused: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    pauses_ns: tuple[float, float] = (1_000.0, 1_000.0)
    grid_ns: int = 1
    held: float = 0.0
    waits: float = 0.0
    busiest: BusiestProcess | None = None
    of_library: bool = False
    spins: bool = False


def stamps(one: Stamped, cell: int, messages: int, random: np.random.Generator) -> tuple[list[Stages], Crossings]:
    """Return the lines of both ranks, and the rows of a switch that reads the first host's clock.

    The second host's clock is ahead by `apart_ns`; the rows of the way there are told only where it is not.
    """
    leads: dict[str, list[int | None]] = {}
    follows: dict[str, list[int | None]] = {}
    frames, now = [], 0
    scattered = {
        way: {
            stage: np.rint(length * np.exp(0.02 * random.standard_normal(messages)))
            for stage, length in lengths.items()
        }
        for way, lengths in (("there", one.there), ("back", one.back))
    }
    pauses = np.rint(random.uniform(*one.pauses_ns, messages)).astype(np.int64)
    is_held, is_waiting = (random.random(messages) < share for share in (one.held, one.waits))
    scattered["there"]["library"] = scattered["there"]["library"] + 42e6 * is_held
    scattered["there"]["waiting"] = scattered["there"]["waiting"] + 1e6 * is_waiting
    for k in range(messages):
        begin = now
        there, arrived = _way(scattered["there"], k, begin, one)
        back, received = _way(scattered["back"], k, arrived + round(one.application), one)
        if is_held[k]:
            there["acknowledged"] = there["scheduled"] - 8_000
        frames += [*there["frames"], *back["frames"]]
        _add(leads, k + 7, sent=there, received=back, round_trip=received - begin + round(one.rest))
        _add(follows, k + 7, sent=back, received=there, round_trip=0)
        now = received + int(pauses[k])
    for boundary, number in one.unseen.items():
        for k in range(number):
            leads[f"{boundary}_ns"][k] = None
    lines = [
        Stages(
            cell=cell,
            rank=rank,
            leads=rank == 0,
            refused=dict(one.refused),
            busiest=one.busiest,
            base_unix_ns=base,
            **_without(columns, one),
        )
        for rank, base, columns in ((0, BEGIN_NS, leads), (1, BEGIN_NS + one.apart_ns, follows))
    ]
    return lines, np.array(frames, dtype=np.int64) + np.array([BEGIN_NS, 0, BEGIN_NS, BEGIN_NS])


def _way(lengths: Mapping[str, NDArray[np.float64]], k: int, begin: int, one: Stamped) -> tuple[dict[str, Any], int]:
    ends, now = {}, begin
    for stage in ORDER:
        now += int(lengths.get(stage, np.zeros(k + 1))[k])
        if stage == "switch":
            now += -(now + int(lengths["emulator"][k])) % one.grid_ns
        ends[stage] = now
    waited = ends["waiting"] - ends["waking"]
    asks = ends["handshake"] > ends["library"]
    question = [ends["library"] + 1, 500, ends["library"] + 600, ends["library"] + 600]
    stamped: dict[str, Any] = {
        "before": begin,
        "asked": ends["library"] if one.of_library and asks else None,
        "called": ends["handshake"] if one.of_library else None,
        "scheduled": None if one.of_library else ends["handshake"],
        "departed": None if one.of_library else ends["queue"],
        "arrived": ends["emulator"],
        "resumed": None if one.spins else ends["waiting"],
        "waited": 0 if one.spins else waited,
        "drained": ends["return"] if one.of_library else None,
        "received": now,
        "frames": [
            *([question] if asks else []),
            [ends["driver"], ends["wire"] - ends["driver"], ends["switch"], ends["switch"]],
        ],
    }
    return stamped, now


def _add(
    columns: dict[str, list[int | None]],
    number: int,
    *,
    sent: Mapping[str, object],
    received: Mapping[str, object],
    round_trip: int,
) -> None:
    row = {
        "number": number,
        **{f"{name}_ns": sent[name] for name in ("before", "asked", "called", "scheduled", "departed")},
        "acknowledged_ns": sent.get("acknowledged"),
        **{f"{name}_ns": received[name] for name in ("arrived", "resumed", "waited", "drained", "received")},
        "round_trip_ns": round_trip,
    }
    for name, value in row.items():
        columns.setdefault(name, []).append(value)  # type: ignore[arg-type]


def _without(columns: Mapping[str, list[int | None]], one: Stamped) -> dict[str, list[int | None]]:
    """Return the columns without what the hosts refuse."""
    hidden = {f"{boundary}_ns" for boundary in one.refused}
    empty = {name: [0 if name == "waited_ns" else None] * len(values) for name, values in columns.items()}
    return {name: empty[name] if name in hidden else values for name, values in columns.items()}
