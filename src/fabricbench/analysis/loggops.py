"""LogGOPS of each layer of a side, from its ping-pongs and streams, and what messages take longer in company.

LogP (Culler et al., PPoPP 1993) with a gap for each byte (Alexandrov et al., SPAA 1995), and sizes at which the protocol changes;
how parameters are told from curves over size: Hoefler, Lichei, Rehm, "Low-overhead LogGP parameter assessment for modern
interconnection networks" (IPDPS 2007). A ping-pong shows L + 2o and no part of it alone, so that is what is told. The time from one
of the smallest streamed messages to the next bounds their g and their o, as a processor that sends or receives one spends o on it;
what a line says of a message of no bytes does not, for streams are bound by messages or by bytes rather than by the sum of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.curves import CurveWithAnomalies, MeasuredCurve, log_time, measured_curves
from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.loggops import CurveFit, CurvePiece, FitOf, LogGops, Penalty, ProtocolSwitch
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import geometric_mean, interval, over_launches
from fabricbench.model import Metric, Pattern
from fabricbench.statistics.curves import CurveBreak
from fabricbench.statistics.segments import Pieces, pieces_of

Floats = NDArray[np.float64]

FEWEST_SIZES = 4
"""Of a curve: a line through three has one left to judge it by."""

OF = {
    Pattern.PINGPONG: FitOf.LONE,
    Pattern.STREAM: FitOf.STREAMED,
    Pattern.PINGPING: FitOf.TURN,
    Pattern.SENDRECV: FitOf.TURN,
    Pattern.EXCHANGE: FitOf.TURN,
}
"""The patterns whose curves are fitted, and what of them."""

COMPANY = {
    Pattern.PINGPING: Pattern.PINGPONG,
    Pattern.SENDRECV: Pattern.PINGPONG,
    Pattern.EXCHANGE: Pattern.PINGPONG,
    Pattern.BISTREAM: Pattern.STREAM,
    Pattern.INCAST: Pattern.STREAM,
    Pattern.BISECTION: Pattern.STREAM,
}
"""Patterns in which a message has company, and the one in which it is alone."""


@dataclass(frozen=True)
class Fits:
    """The curves of sides in pieces, by their keys."""

    side: Side
    curves: Mapping[CellKey, tuple[MeasuredCurve, Pieces, tuple[int, ...]]]
    """With the indices of the first sizes after jumps."""


def fits_of(sides: Sequence[Side], curves: Sequence[CurveWithAnomalies], confidence: float) -> list[Fits]:
    """Return the curves of every side in pieces, which end where time jumps up for good (`statistics.curves`)."""
    found: list[Fits] = []
    for side in sides:
        mine: dict[CellKey, tuple[MeasuredCurve, Pieces, tuple[int, ...]]] = {}
        for curve, anomalies in curves:
            if curve.side is not side or curve.key.pattern not in OF or len(curve.cells) < FEWEST_SIZES:
                continue
            jumps = tuple(one.last for one in anomalies if one.kind is CurveBreak.JUMP)
            halved = np.log(2.0) if curve.key.pattern is Pattern.PINGPONG else 0.0
            pieces = pieces_of(curve.sizes, curve.log_times - halved, confidence, jumps)
            if pieces is not None:
                mine[curve.key] = curve, pieces, jumps
        found.append(Fits(side, mine))
    return found


def curve_fits(fits: Fits) -> Iterator[CurveFit]:
    """Yield each curve of a side as findings hold it."""
    for key, (curve, pieces, _) in fits.curves.items():
        sizes = [int(size) for size in curve.sizes]
        yield CurveFit(
            fabric=fits.side.name,
            key=key,
            of=OF[key.pattern],
            launches=_whole_launches(curve),
            sizes=len(sizes),
            pieces=tuple(
                CurvePiece(
                    first_bytes=sizes[piece.first],
                    last_bytes=sizes[piece.last],
                    start_up=interval(piece.start_up),
                    per_byte=interval(piece.per_byte),
                )
                for piece in pieces.pieces
            ),
            typical_misfit=pieces.typical_misfit,
            worst_misfit=pieces.worst_misfit,
            left_out=pieces.left_out,
        )


def _whole_launches(curve: MeasuredCurve) -> int:
    return int(np.count_nonzero(~np.isnan(curve.log_times).any(axis=0)))


def parameters(fits: Fits, confidence: float) -> Iterator[LogGops]:
    """Yield the parameters of each layer of a side that has a curve of ping-pongs."""
    for key, (curve, pieces, jumps) in fits.curves.items():
        if key.pattern is not Pattern.PINGPONG:
            continue
        stream = fits.curves.get(key.model_copy(update={"pattern": Pattern.STREAM, "metric": Metric.THROUGHPUT}))
        one_way = interval(pieces.pieces[0].start_up)
        lower = pieces_of(curve.sizes, curve.log_lower - np.log(2.0), confidence, jumps)
        gap = None if stream is None else over_launches(np.exp(stream[0].log_times[0]), confidence)
        sizes = [int(size) for size in curve.sizes]
        yield LogGops(
            fabric=fits.side.name,
            key=key,
            launches=_whole_launches(curve),
            latency_and_overheads=one_way,
            latency_lower=None if lower is None else interval(lower.pieces[0].start_up),
            overhead_most=None if gap is None else gap.high,
            gap=gap,
            gap_bytes=None if stream is None else int(stream[0].sizes[0]),
            per_byte=None if stream is None else _told(interval(stream[1].pieces[-1].per_byte)),
            per_byte_lone=interval(pieces.pieces[-1].per_byte),
            switches=tuple(ProtocolSwitch(first_bytes=sizes[one - 1], last_bytes=sizes[one]) for one in jumps),
            typical_misfit=pieces.typical_misfit,
            worst_misfit=pieces.worst_misfit,
        )


def _told(one: Interval) -> Interval | None:
    """Return an interval that tells something: None of one whose value is 0, with nothing that bounds it from above."""
    return None if one.value == 0.0 and not one.high else one


def penalties(side: Side, confidence: float) -> Iterator[Penalty]:
    """Yield how many times as long messages take in company as alone, of each size that was measured both ways."""
    cells = {cell.key: cell for curve in measured_curves(side, {*COMPANY, *COMPANY.values()}) for cell in curve.cells}
    for key, cell in cells.items():
        alone = COMPANY.get(key.pattern)
        beside = None if alone is None else _alone(cells, key, alone)
        if alone is None or beside is None:
            continue
        ranks = len(cell.facts.ranks)
        factor = geometric_mean(log_time(cell) - log_time(beside) + np.log(_share(key.pattern, ranks)), confidence)
        if factor is not None:
            launches = int(np.count_nonzero(~np.isnan(cell.launch_values + beside.launch_values)))
            yield Penalty(fabric=side.name, key=key, ranks=ranks, alone=alone, factor=factor, launches=launches)


def _alone(cells: Mapping[CellKey, CellMeasured], key: CellKey, pattern: Pattern) -> CellMeasured | None:
    """Return the cell of messages alone that is otherwise as another one: of two ranks, which go without saying."""
    of_one = key.model_copy(update={"pattern": pattern, "metric": OF_METRIC[pattern], "ranks": None, "members": ()})
    return cells.get(of_one)


OF_METRIC = {Pattern.PINGPONG: Metric.ROUND_TRIP_TIME, Pattern.STREAM: Metric.THROUGHPUT}


def _share(pattern: Pattern, ranks: int) -> float:
    """Return what makes the times of both comparable.

    A turn is set against half a round trip; what all streams of a bisection carry together against as many alone, of both ways
    against two. An incast is bound by the one receiver: it is set against one stream as it is.
    """
    return {Pattern.BISTREAM: 2.0, Pattern.BISECTION: ranks // 2, Pattern.INCAST: 1.0}.get(pattern, 2.0)
