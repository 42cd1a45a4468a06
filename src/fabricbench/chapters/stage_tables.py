"""The tables of the chapter on stages, and the rows of findings that they are made of."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import CellKey, Findings, Interval
from fabricbench.analysis.findings.stages import (
    TOLERANCE,
    Direction,
    Parts,
    StageCause,
    StagedCell,
    StageDifference,
    StageOnFabric,
    Traffic,
    TrafficDifference,
)
from fabricbench.chapters.chapter import NamedTables, Rows
from fabricbench.report.cause_words import TRIP, stage_words
from fabricbench.report.words import (
    NOTHING,
    WithInterval,
    cell_words,
    interval_parts,
    interval_words,
    share_words,
    value_words,
)
from fabricbench.table import Table, table

STAGES, CELLS, DIFFERENCES = "stages", "stage-cells", "stage-differences"


TRAFFICS, CAUSES = "stage-traffics", "stage-causes"
NAMES = (STAGES, CELLS, DIFFERENCES, TRAFFICS, CAUSES)


STAGE_ROWS = Rows(STAGES, StageOnFabric)


CELL_ROWS = Rows(CELLS, StagedCell)


DIFFERENCE_ROWS = Rows(DIFFERENCES, StageDifference)


TRAFFIC_ROWS = Rows(TRAFFICS, TrafficDifference)


CAUSE_ROWS = Rows(CAUSES, StageCause)


def time_words(one: Interval) -> WithInterval:
    """Return a time with its interval; what arithmetic gives, as an emulated wire, is the same in all launches."""
    if one.low is not None and one.low == one.high:
        return WithInterval(value_words(TRIP, one.value), "in all launches")
    return interval_parts(TRIP, one)


def tables(findings: Findings) -> NamedTables:
    """Return the stages of each test beside each other for its fabrics, those of each traffic, and what stamping takes."""
    keys = dict.fromkeys(row.key for row in STAGE_ROWS.of(findings))
    stages = [(f"{cell_words(key)}, there and back together", stage_table(findings, key)) for key in keys]
    traffics = dict.fromkeys((row.fabric, row.key) for row in TRAFFIC_ROWS.of(findings))
    compared = [
        (f"{cell_words(key)} on {fabric} in each traffic", traffic_table(findings, fabric, key))
        for fabric, key in traffics
    ]
    return [*compared, *stages, ("What stamping takes, and how many messages are complete", cost_table(findings))]


def traffic_table(findings: Findings, fabric: str, plain: CellKey) -> Table:
    """A row for each stage of the same messages on a fabric: its time in each traffic, the lone ones first."""
    others = [row for row in TRAFFIC_ROWS.of(findings) if (row.fabric, row.key) == (fabric, plain)]
    order = list(Traffic)
    traffics = {plain: Traffic.IN_TURN} | {row.other: row.traffic for row in others}
    keys = sorted(traffics, key=lambda key: order.index(traffics[key]))
    names = [traffics[key].value for key in keys]
    rows = [
        row
        for row in STAGE_ROWS.of(findings)
        if row.way is Direction.BOTH and row.fabric == fabric and row.key in traffics
    ]
    found = []
    for parts in dict.fromkeys(row.parts for row in sorted(rows, key=lambda row: row.place)):
        of_keys = (next((one for one in rows if one.key == key and one.parts == parts), None) for key in keys)
        found.append([stage_words(parts), *(NOTHING if one is None else time_words(one.median) for one in of_keys)])
    cells = {row.key: row for row in CELL_ROWS.of(findings) if row.fabric == fabric}
    whole = ["round trip", *(time_words(cells[key].stamped) for key in keys)]
    is_alone = [names.count(name) == 1 for name in names]
    columns = [
        "Stage",
        *(name if alone else cell_words(key) for key, name, alone in zip(keys, names, is_alone, strict=True)),
    ]
    return table(columns, [*found, whole], range(1, len(columns)))


def stage_table(findings: Findings, key: CellKey) -> Table:
    """A row for each stage of a test: its time and share on each fabric, and the difference of each to the first."""
    rows = [row for row in STAGE_ROWS.of(findings) if row.key == key and row.way is Direction.BOTH]
    differences = [row for row in DIFFERENCE_ROWS.of(findings) if row.key == key]
    fabrics = [one.name for one in findings.fabrics if any(row.fabric == one.name for row in rows)]
    cells = {row.fabric: row for row in CELL_ROWS.of(findings) if row.key == key}
    compared = [name for name in fabrics[1:] if any(_is_of(row, fabrics[0], name) for row in differences)]
    columns = ["Stage", *(f"{name}{part}" for name in fabrics for part in ("", ", share"))]
    columns += [f"{name} − {fabrics[0]}" for name in compared]
    found = []
    for parts in dict.fromkeys(row.parts for row in sorted(rows, key=lambda row: row.place)):
        texts = [stage_words(parts)]
        for name in fabrics:
            row = next((one for one in rows if one.fabric == name and one.parts == parts), None)
            texts += [NOTHING, NOTHING] if row is None else [time_words(row.median), share_words(row.share)]
        for name in compared:
            texts.append(_difference_words(differences, fabrics[0], name, parts))
        found.append(texts)
    whole = [
        "round trip",
        *(text for name in fabrics for text in (time_words(cells[name].stamped), share_words(1.0))),
    ]
    whole += [_difference_words(differences, fabrics[0], name, ()) for name in compared]
    return table(columns, [*found, whole], range(1, len(columns)), spare=[f"{name}, share" for name in fabrics])


def _is_of(row: StageDifference, a: str, b: str) -> bool:
    return (row.fabric_a, row.fabric_b) == (a, b)


def _difference_words(rows: Sequence[StageDifference], a: str, b: str, parts: Parts) -> str:
    found = next((one for one in rows if _is_of(one, a, b) and one.parts == parts and not one.is_between), None)
    return NOTHING if found is None else time_words(found.difference)


def cost_table(findings: Findings) -> Table:
    """A row for each test and fabric: the round trip with and without stamps, and what is known of its messages."""
    rows = [
        (
            cell_words(row.key),
            row.fabric,
            interval_words(TRIP, row.plain),
            interval_words(TRIP, row.stamped),
            interval_words(TRIP, row.cost),
            f"{row.messages:,}",
            f"{100 * row.complete / row.messages:.2f} %",
            f"{100 * row.within:.2f} %",
        )
        for row in CELL_ROWS.of(findings)
    ]
    columns = (
        "Test",
        "Fabric",
        "Without stamps",
        "With",
        "Difference",
        "Messages",
        "Complete",
        f"Within {100 * TOLERANCE:g} %",
    )
    return table(columns, rows, range(2, len(columns)), spare=("Messages", "Without stamps"))
