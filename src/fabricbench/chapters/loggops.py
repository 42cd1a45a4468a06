"""LogGOPS parameters of each layer of a fabric, how well they predict sizes that were left out, and what company costs messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, Findings, Interval
from fabricbench.analysis.findings.loggops import CurveFit, LogGops, Penalty
from fabricbench.analysis.loggops import curve_fits, fits_of, parameters, penalties
from fabricbench.analysis.material import Material
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, Rows
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    WithInterval,
    factor_words,
    in_report_order,
    interval_parts,
    interval_words,
    layer_words,
    probe_words,
    share_words,
    size_words,
    value_words,
    wire_remark,
)
from fabricbench.table import Table, table

NAME, FITS, PENALTIES = "loggops", "curve-fits", "penalties"
METHOD = """
LogGOPS (Culler 1993; Alexandrov 1995; Hoefler, Lichei, Rehm 2007): curves over message size as lines in pieces, each a start-up
and a time for each byte, fitted launch by launch on the relative scale, none below 0; pieces end at jumps that stay and where
the Bayesian criterion wants. L + 2o is the start-up of half a round trip, G what each byte of a large streamed message takes; g and
o of a streamed message are no more than the time from one of the smallest to the next. Shown are medians over launches with
their {level} intervals. Misfits are those of every other size, left out and predicted from the rest.
"""
TIME, RATE = Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT


ROWS = Rows(NAME, LogGops)
FIT_ROWS = Rows(FITS, CurveFit)
PENALTY_ROWS = Rows(PENALTIES, Penalty)


def find(material: Material) -> Found:
    """Return the parameters of each layer with a curve of ping-pongs, every fitted curve, and what messages take in company."""
    fits = fits_of(material.sides, material.curves, material.confidence)
    return {
        NAME: tuple(row for one in fits for row in parameters(one, material.confidence)),
        FITS: tuple(row for one in fits for row in curve_fits(one)),
        PENALTIES: tuple(row for side in material.sides for row in penalties(side, material.confidence)),
    }


def tables(findings: Findings) -> NamedTables:
    """Return the parameters, and the penalties of company."""
    return [("Parameters of messages", _parameter_table(findings)), ("In company", _penalty_table(findings))]


def _parameter_table(findings: Findings) -> Table:
    found = sorted(ROWS.of(findings), key=lambda one: in_report_order(one.key))
    rates = line_rates(findings)
    rows = [
        (
            _layer(one.key),
            one.fabric,
            _at_most(one.latency_and_overheads),
            _gap(one),
            NOTHING if one.overhead_most is None else value_words(TIME, one.overhead_most),
            _rate(one.per_byte, rates.get(one.fabric)),
            _rate(one.per_byte_lone, rates.get(one.fabric)),
            ", ".join(f"{size_words(each.first_bytes)} to {size_words(each.last_bytes)}" for each in one.switches)
            or NOTHING,
            share_words(one.typical_misfit),
            share_words(one.worst_misfit),
        )
        for one in found
    ]
    columns = (
        "Layer",
        "Fabric",
        "L + 2o",
        "g at most",
        "o at most",
        "1/G, streamed",
        "1/G, lone",
        "Switches",
        "Misfit, typical",
        "Misfit, worst",
    )
    spare = ("Misfit, typical", "o at most", "Switches", "Misfit, worst", "1/G, lone")
    made = table(columns, rows, range(2, 10), spare=spare, result="L + 2o")
    is_told = [any(row[index] != NOTHING for row in made.rows) for index in range(len(columns))]
    is_told[1] = len(findings.fabrics) > 1
    return made.only([index for index, is_kept in enumerate(is_told) if is_kept])


def _layer(key: CellKey) -> str:
    """Return `tcp, blocking, door=xdp`."""
    return ", ".join((layer_words(key.layer, key.receive), *key.variant_words))


def _gap(one: LogGops) -> str:
    """Return `3.4 µs (3.2 to 3.5 µs), 64 B`."""
    return NOTHING if one.gap is None else f"{interval_words(TIME, one.gap)}, {size_words(one.gap_bytes)}"


def _at_most(one: Interval | None) -> str:
    """Return a time with its interval; of one that may be 0 what it is at most."""
    if one is None:
        return NOTHING
    return f"at most {value_words(TIME, one.high)}" if one.low == 0.0 and one.high else interval_words(TIME, one)


def line_rates(findings: Findings) -> dict[str, float | None]:
    """Return the line rate of each fabric, bit/s; None where it is not known."""
    return {one.name: one.line_rate_bit_s for one in findings.fabrics}


def _rate(per_byte: Interval | None, line_rate_bit_s: float | None) -> str:
    """Return what a time for each byte carries, of one that may be 0 at least; a fit that no wire could be is told as such."""
    if per_byte is None or (not per_byte.value and not per_byte.high):
        return NOTHING
    if per_byte.low == 0.0 and per_byte.high:
        return f"at least {value_words(RATE, 8e9 / per_byte.high)}"
    low, high = (None if not end else 8e9 / end for end in (per_byte.high, per_byte.low))
    rate_bit_s = 8e9 / per_byte.value
    is_beyond_wire = line_rate_bit_s is not None and rate_bit_s > line_rate_bit_s
    parts = interval_parts(RATE, Interval(value=rate_bit_s, low=low, high=high))
    remark = wire_remark(is_impossible=False, is_beyond_wire=is_beyond_wire)
    return WithInterval(f"{parts.value}, {remark}", parts.interval) if remark else parts


def _penalty_table(findings: Findings) -> Table:
    """A row for each pattern of a fabric: its smallest message and its largest; files have all."""
    groups: dict[tuple[str, CellKey], list[Penalty]] = {}
    for one in sorted(PENALTY_ROWS.of(findings), key=lambda one: in_report_order(one.key)):
        groups.setdefault((one.fabric, one.key.curve), []).append(one)
    rows = [
        (
            probe_words(group[0].key),
            fabric,
            PATTERN_WORDS[group[0].alone],
            f"{size_words(group[0].key.message_bytes)} to {size_words(group[-1].key.message_bytes)}",
            factor_words(group[0].factor),
            factor_words(group[-1].factor),
            f"{group[0].launches}",
        )
        for (fabric, _), group in groups.items()
    ]
    columns = ("In company", "Fabric", "Alone", "Messages", "Times as long, smallest", "Largest", "Launches")
    made = table(columns, rows, (3, 4, 5, 6), spare=("Launches",), result="Largest")
    return made.without(1) if len(findings.fabrics) == 1 else made


def lines(findings: Findings) -> Sequence[str]:
    """Return of each fabric what a message takes in the layer nearest to users, and how well that predicts."""
    top: dict[str, LogGops] = {}
    for one in ROWS.of(findings):
        known = top.get(one.fabric)
        if known is None or _height(one) > _height(known):
            top[one.fabric] = one
    rates = line_rates(findings)
    return [_line(one, rates.get(one.fabric)) for one in top.values()]


def _height(one: LogGops) -> int:
    return list(Layer).index(one.key.layer)


def _line(one: LogGops, line_rate_bit_s: float | None) -> str:
    each = _rate(one.per_byte_lone, line_rate_bit_s)
    carried = "" if each == NOTHING else f", and its bytes {each}"
    held = ""
    if one.typical_misfit is not None:
        typical, worst = share_words(one.typical_misfit), share_words(one.worst_misfit)
        held = f"; sizes that were left out are predicted within {worst} ({typical} in the median)"
    return f"{one.fabric}, {_layer(one.key)}: a lone message takes {_at_most(one.latency_and_overheads)} one way{carried}{held}."


def records(findings: Findings) -> Records:
    """Return the rows of all three; a row for each piece of a curve."""
    return {
        NAME: [
            one.model_dump(mode="json", exclude={"switches"})
            | {
                "switches_above_bytes": [each.first_bytes for each in one.switches],
                "switches_up_to_bytes": [each.last_bytes for each in one.switches],
            }
            for one in ROWS.of(findings)
        ],
        FITS: [
            one.model_dump(mode="json", exclude={"pieces"}) | piece.model_dump(mode="json")
            for one in FIT_ROWS.of(findings)
            for piece in one.pieces
        ],
        PENALTIES: PENALTY_ROWS.of(findings),
    }


UNITS: Mapping[str, str] = {
    "start_up": "ns",
    "per_byte": "ns/B",
    "per_byte_lone": "ns/B",
    "latency_and_overheads": "ns",
    "latency_lower": "ns",
    "gap": "ns",
    "overhead_most": "ns",
    "typical_misfit": "relative",
    "worst_misfit": "relative",
    "factor": "relative",
}


def as_json(findings: Findings) -> bytes:
    """Return the parameters as a file of their own, for simulators and predictions: with units, intervals and provenance.

    UsageError where there is none.
    """
    if not findings.chapters.get(NAME):
        raise UsageError(
            "these findings hold no LogGOPS parameters",
            hint="measure ping-pongs of four sizes or more, and streams of the same layers, in three launches or more",
        )
    told = {
        "format": "fabricbench-loggops",
        "version": 1,
        "campaign": findings.campaign,
        "testbed": findings.testbed,
        "started": findings.started,
        "runs": list(findings.run_directories),
        "data_sha256": list(findings.headline.data_sha256),
        "measured_again_by": list(findings.headline.reproduce),
        "confidence": findings.confidence,
        "units": dict(UNITS),
        "fabrics": [
            {
                "name": fabric.name,
                "numbers": "measured" if fabric.mark is None else fabric.mark.value,
                "path": fabric.proof.value,
                "line_rate_bit_s": fabric.line_rate_bit_s,
                "parameters": _of(ROWS.of(findings), fabric.name),
                "curves": _of(FIT_ROWS.of(findings), fabric.name),
                "penalties": _of(PENALTY_ROWS.of(findings), fabric.name),
            }
            for fabric in findings.fabrics
        ],
    }
    return (json.dumps(told, indent=1) + "\n").encode()


def _of(rows: Iterable[LogGops | CurveFit | Penalty], fabric: str) -> list[Mapping[str, Any]]:
    return [row.model_dump(mode="json") for row in rows if row.fabric == fabric]


CHAPTER = Chapter(
    name=NAME,
    title="What messages are made of: LogGOPS",
    needs="ping-pongs of four sizes or more",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    records=records,
    on_page=OnPage(entry="LogGOPS", is_open=False),
)
