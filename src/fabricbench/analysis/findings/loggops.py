"""What a model of messages is made of: LogGOPS parameters of each layer, the curves behind them, what messages in company take."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model, Pattern


class FitOf(StrEnum):
    """What a fitted time is the time of."""

    LONE = "half a round trip"
    STREAMED = "from one streamed message to the next"
    TURN = "a turn of exchanging"


class CurvePiece(Model):
    """Sizes between which a message takes a start-up and a time for each byte, in ns; what may be 0 has an interval from 0 on."""

    first_bytes: int
    last_bytes: int
    start_up: Interval
    per_byte: Interval


class CurveFit(Model):
    """A curve over message size as lines in pieces. `key` is the curve's: its size is 0.

    Every other size was left out and predicted from the rest: `typical_misfit` (median) and `worst_misfit` say how far that was off
    (0.05: 5 %), of so many `left_out`; None of fewer than five sizes.
    """

    fabric: str
    key: CellKey
    of: FitOf
    launches: int
    sizes: int
    pieces: tuple[CurvePiece, ...]
    typical_misfit: float | None
    worst_misfit: float | None
    left_out: int


class ProtocolSwitch(Model):
    """Two measured sizes between which time jumps up and stays up (S of LogGOPS)."""

    first_bytes: int
    last_bytes: int


class LogGops(Model):
    """The parameters of one layer of a fabric, times in ns, of each byte in ns/B. `key` is that of its curve of ping-pongs.

    `latency_and_overheads` is L + 2o, what the smallest messages take one way; the two cannot be told apart; `latency_lower` is
    the same by the lower quartile of each launch's messages, which what else runs on the hosts adds less to. `per_byte_lone` is
    what each byte of a large lone message adds, `per_byte` (G) of a streamed one. `gap` is the time from one streamed message
    of `gap_bytes`, the smallest, to the next: g is no more. `overhead_most` is its upper end: so is o of such a message, as a
    processor spends it on each; a lone one may wake a sleeping receiver beside. None: not measured, or data do not tell.
    """

    fabric: str
    key: CellKey
    launches: int
    latency_and_overheads: Interval
    latency_lower: Interval | None = None
    overhead_most: float | None
    gap: Interval | None
    gap_bytes: int | None
    per_byte: Interval | None
    per_byte_lone: Interval
    switches: tuple[ProtocolSwitch, ...]
    typical_misfit: float | None
    worst_misfit: float | None


class Penalty(Model):
    """How many times as long messages take in company as alone, at one size: `key` beside the pattern `alone`, within launches."""

    fabric: str
    key: CellKey
    ranks: int
    alone: Pattern
    factor: Interval
    launches: int
