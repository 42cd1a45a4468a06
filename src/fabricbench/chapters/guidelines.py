"""Collectives that take longer than other calls that do the same: broken self-consistent guidelines, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fabricbench.analysis.findings import CellKey, Findings, Interval
from fabricbench.analysis.guidelines import Check, checks_of
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.material import Material
from fabricbench.analysis.summary import geometric_mean, over_launches
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, Rows
from fabricbench.model import Metric, Model, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.report.words import PATTERN_WORDS, counted, factor_words, interval_words, size_words, value_words
from fabricbench.table import table

NAME = "guidelines"
METHOD = """
Self-consistent guidelines (Traeff, Gropp, Thakur, IEEE TPDS, 2010): a collective should take no longer than other calls,
measured in the same launches, that leave every rank with what it needs: allgather no longer than gather and broadcast, a
message no longer than a larger one, nor than its parts one after the other. Where sizes do not meet, the next larger one
that was measured stands in. Named are those that take more than {margin} longer, by Student's t over launches, corrected
after Holm over all guidelines of the run: where none is broken, one is named in at most {error} of runs.
"""
MOST_ROWS = 12
"""Of a table: those that cost most. Files have all."""
MOST_LINES = 3
TIME = Metric.OPERATION_TIME


class Replacement(Model):
    """Calls of an operation in place of another: `times` of them, one after the other."""

    pattern: Pattern
    message_bytes: int
    times: int


class BrokenGuideline(Model):
    """An operation that takes longer than the calls of its `replacement` together, all in ns.

    `time`, `replaced` and `gain`, the difference within launches, are medians over launches; `factor` is the geometric mean of how
    many times as long the operation takes. `p_value` is corrected over all `checked` guidelines of the run.
    """

    fabric: str
    key: CellKey
    ranks: int
    replacement: tuple[Replacement, ...]
    launches: int
    time: Interval
    replaced: Interval
    gain: Interval
    factor: Interval
    p_value: float
    checked: int


ROWS = Rows(NAME, BrokenGuideline)


def find(material: Material) -> Found:
    """Return the broken guidelines, the one that costs most first."""
    usable = {
        side.name: frozenset(key for key, cell in side.cells.items() if impossible(side, cell) is None)
        for side in material.sides
    }
    checks = checks_of(material.sides, material.margin, usable)
    rows = [_row(one, len(checks), material.confidence) for one in checks if one.p_value < 1.0 - material.level]
    return {NAME: tuple(sorted(rows, key=lambda one: -one.gain.value))}


def _row(check: Check, checked: int, confidence: float) -> BrokenGuideline:
    operation, replaced = check.operation_ns, check.replacement_ns
    is_there = ~np.isnan(operation + replaced)
    time, other, gain = (
        over_launches(values[is_there], confidence) for values in (operation, replaced, operation - replaced)
    )
    factor = geometric_mean(np.log(operation / replaced), confidence, check.rounding)
    # What is checked has launches.
    assert time is not None  # noqa: S101
    assert other is not None  # noqa: S101
    assert gain is not None  # noqa: S101
    assert factor is not None  # noqa: S101
    return BrokenGuideline(
        fabric=check.side.name,
        key=check.operation.key,
        ranks=len(check.operation.facts.ranks),
        replacement=tuple(
            Replacement(pattern=calls.cell.key.pattern, message_bytes=calls.cell.key.message_bytes, times=calls.times)
            for calls in check.replacement
        ),
        launches=check.launches,
        time=time,
        replaced=other,
        gain=gain,
        factor=factor,
        p_value=check.p_value,
        checked=checked,
    )


def tables(findings: Findings) -> NamedTables:
    """Return the one table: a row for each broken guideline, those that cost most."""
    found = ROWS.of(findings)
    rows = [
        (
            _operation(one),
            one.fabric,
            interval_words(TIME, one.time),
            " + ".join(map(_call, one.replacement)),
            interval_words(TIME, one.replaced),
            interval_words(TIME, one.gain),
            factor_words(one.factor),
            f"{one.launches}",
        )
        for one in found[:MOST_ROWS]
    ]
    columns = ("Operation", "Fabric", "Time", "In its place", "Time of these", "To gain", "Times as long", "Launches")
    title = "" if len(found) <= MOST_ROWS else f"the {MOST_ROWS} that cost most of {len(found)}"
    made = table(columns, rows, (2, 4, 5, 6, 7), spare=("Launches", "Times as long"), result="To gain")
    return [(title, made.without(1) if len({one.fabric for one in found}) == 1 else made)]


def _operation(one: BrokenGuideline) -> str:
    """Return `allgather of 1 KiB (4 ranks)`."""
    size = f" of {size_words(one.key.message_bytes)}" if PATTERNS[one.key.pattern].has_size else ""
    setup = f" ({', '.join(one.key.variant_words)})" if one.key.variant_words else ""
    return f"{PATTERN_WORDS[one.key.pattern]}{size}{setup}"


def _call(call: Replacement) -> str:
    """Return `broadcast of 16 KiB`, `4 x bcast of 1 KiB`."""
    times = f"{call.times} × " if call.times > 1 else ""
    return f"{times}{PATTERN_WORDS[call.pattern]} of {size_words(call.message_bytes)}"


def lines(findings: Findings) -> Sequence[str]:
    """Return what is to gain at most by another call, an operation and its replacement at a time, and of how many checks."""
    found = ROWS.of(findings)
    groups: dict[tuple[str, Pattern, tuple[Pattern, ...], tuple[str, ...]], list[BrokenGuideline]] = {}
    for one in found:
        instead = tuple(call.pattern for call in one.replacement)
        groups.setdefault((one.fabric, one.key.pattern, instead, one.key.variant_words), []).append(one)
    told = [_line(group) for group in list(groups.values())[:MOST_LINES]]
    if found:
        are = "is" if len(found) == 1 else "are"
        told.append(f"Of {counted(found[0].checked, 'guideline')} that could be checked {len(found)} {are} broken.")
    return told


def _line(group: Sequence[BrokenGuideline]) -> str:
    one, *others = group
    calls = " and ".join(map(_call, one.replacement))
    together = " together" if len(one.replacement) > 1 else ""
    more = f"; so at {counted(len(others), 'other size')}" if others else ""
    return (
        f"{one.fabric}: {_operation(one)} takes {value_words(TIME, one.time.value)}, {calls}{together} "
        f"{value_words(TIME, one.replaced.value)}: {interval_words(TIME, one.gain)} to gain{more}."
    )


def records(findings: Findings) -> Records:
    """Return the broken guidelines; the calls of a replacement as lists."""
    return {
        NAME: [
            one.model_dump(mode="json", exclude={"replacement"})
            | {
                "replacement": [call.pattern.value for call in one.replacement],
                "replacement_bytes": [call.message_bytes for call in one.replacement],
                "replacement_times": [call.times for call in one.replacement],
            }
            for one in ROWS.of(findings)
        ]
    }


CHAPTER = Chapter(
    name=NAME,
    title="Collectives that other calls would outrun",
    needs="collectives, some of which take longer than others that do the same",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    records=records,
    on_page=OnPage(entry="Guidelines of collectives"),
)
