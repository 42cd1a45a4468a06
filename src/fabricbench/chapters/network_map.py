"""The map of the network: the matrix of every pair of hosts, and who is slow in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import Findings, NetworkMap, slowness_words
from fabricbench.analysis.material import Material
from fabricbench.analysis.network_map import confirmation_of, network_maps
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Records, Rows
from fabricbench.report.drawing.figure import Figure, KeyEntry, Panel, origin_note, sentences, span_of_launches, tooltip
from fabricbench.report.drawing.heat import LEAST_REACH, NEUTRAL, ROW_HEIGHT, heat_spec, widest
from fabricbench.report.drawing.large_matrix import MOST_LISTED, PALE, large_panel, matrix_csv, slowest_pairs
from fabricbench.report.palette import COLOURS
from fabricbench.report.words import NOTHING, PATTERN_WORDS, size_words, value_parts, value_words, with_bounds
from fabricbench.table import Table, table

MAPS = Rows("maps", NetworkMap)

METHOD = """
A map models the logarithms of all pairs' medians by a level and few causes (nodes, directions, pairs), found by
orthogonal matching pursuit and the extended Bayesian information criterion (Chen and Chen, 2008); each cause has to be
slower than the margin by a corrected t test, and to be found again by a second measurement before it is more than a
suspect.
"""
NOT_AGAIN = "suspected: one run, not measured again"
UNNAMED = "cannot be named yet: no cause explains it"
MOST_UNEXPLAINED = 10
"""Rows of pairs without a cause in a table: the worst; every pair is in the matrix."""
SLOW_COLOUR, FAST_COLOUR = COLOURS[1], COLOURS[0]
MOST_CELLS = 128
"""Hosts up to which each pair of a matrix is a mark of its own that tells its number, and a row of a table."""
NAMES_INSIDE = 10
"""Hosts up to which the cells of a matrix have room for their numbers."""
AT_ONCE = {"rounds": ", disjoint pairs at once", "shifts": ", all ranks at once"}
"""By schedule, what was under way beside a pair; the second is that of mpiGraph, whose matrices are imported."""
OF_A_MAP = ("fabric", "layer", "pattern", "schedule", "message_bytes")
"""What names a map in every row that is of it."""


def find(material: Material) -> Found:
    """Return the matrices of each side under its name; of several runs a side, those of the first that has any."""
    of_runs: dict[int, tuple[NetworkMap, ...]] = {}
    found: list[NetworkMap] = []
    for side in material.sides:
        for run in side.runs:
            if id(run) not in of_runs:
                of_runs[id(run)] = network_maps(run, confirmation=confirmation_of(run))
            mine = [one for one in of_runs[id(run)] if one.fabric == side.fabric.name]
            found += [one.model_copy(update={"fabric": side.name}) for one in mine]
            if mine:
                break
    return {MAPS.name: tuple(found)}


def tables(findings: Findings) -> NamedTables:
    """Return the tables of the chapter with their titles, a matrix each at the end."""
    return [*_page_tables(findings), *((map_words(one), matrix_table(one)) for one in MAPS.of(findings))]


def _page_tables(findings: Findings) -> NamedTables:
    return [("Who is slow", slow_table(MAPS.of(findings))), ("Groups of nodes", groups_table(MAPS.of(findings)))]


def lines(findings: Findings) -> Sequence[str]:
    """Return what the matrices come to, in a sentence."""
    return (map_verdict(MAPS.of(findings)),) if MAPS.of(findings) else ()


def map_words(one: NetworkMap) -> str:
    """Return what a matrix is of: `myrinet, tcp pairs, 64 B`."""
    at_once = AT_ONCE.get(one.schedule, "")
    return f"{one.fabric}, {one.layer.value} {PATTERN_WORDS[one.pattern]}, {size_words(one.message_bytes)}{at_once}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def slow_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each cause of slow pairs and each pair without one: who, by how much, and whether a second run confirmed it."""
    named = [
        (
            map_words(one),
            slow.words,
            with_bounds(_percent(slow.slower), slow.slower_low, slow.slower_high, _percent),
            "confirmed by a second run" if slow.is_confirmed else NOT_AGAIN,
        )
        for one in maps
        for slow in one.slow
    ]
    unnamed = [
        (
            map_words(one),
            f"{one.pair_words(pair)}: {value_words(one.metric, pair.value)}",
            by_words(pair.slower),
            UNNAMED,
        )
        for one in maps
        for pair in one.unexplained[:MOST_UNEXPLAINED]
    ]
    apart = [(map_words(one), one.apart_words, NOTHING, UNNAMED) for one in maps if one.apart]
    return table(("Matrix", "Finding", "Slower by", "Grade"), [*named, *apart, *unnamed], (2,), spare=("Matrix",))


def groups_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each group of hosts of each matrix, and what crossing from one group to another costs."""
    rows = [
        (map_words(one), ", ".join(group), by_words(one.crossing, is_signed=True))
        for one in maps
        for group in one.groups
        if one.crossing is not None
    ]
    return table(("Matrix", "Group of nodes", "Pairs across groups, against within"), rows, spare=("Matrix",))


def by_words(slower: float, *, is_signed: bool = False) -> str:
    """Return by how much something is slower: `20 %` or `4.6 times`, and `20 % slower` or `20 % faster` where signed."""
    words = slowness_words(abs(slower))
    return f"{words} {'slower' if slower >= 0 else 'faster'}" if is_signed else words


def map_verdict(maps: Sequence[NetworkMap]) -> str:
    """Return what the matrices come to, in a sentence."""
    causes = [slow for one in maps for slow in one.slow]
    if not any(one.is_judged for one in maps):
        return maps[0].unjudged_words if maps else ""
    unnamed = [f"{map_words(one)}: {one.unnamed_words}" for one in maps if one.unnamed_words]
    groups = [f"{map_words(one)}: {one.groups_words}." for one in maps if one.groups_words]
    if not causes:
        nobody = [f"{map_words(one)}: {one.nobody_words}" for one in maps if one.nobody_words]
        return " ".join([*(unnamed or ["No node, pair or direction was found slow."]), *nobody, *groups])
    return " ".join([_grade_words({slow.is_confirmed for slow in causes}), *unnamed, *groups])


def _grade_words(grades: set[bool]) -> str:
    if grades == {True}:
        return "Named here is what a second run of the same pairs found again."
    again = "fabricbench map measures the pairs again before it accuses anybody."
    return f"Suspects only: {again}" if grades == {False} else f"Some are confirmed, others suspects only: {again}"


def matrix_table(one: NetworkMap) -> Table:
    """The matrix: a row for each host that sends, a column for each that receives."""
    rows = [
        (host, *(value_words(one.metric, value) for value in row))
        for host, row in zip(one.hosts, one.matrix, strict=True)
    ]
    return table(("from \\ to", *one.hosts), rows, range(1, len(one.hosts) + 1))


def pairs_table(maps: Sequence[NetworkMap]) -> Table:
    """A row for each pair and direction of every matrix; of a large one for the slowest alone."""
    rows = [
        (map_words(one), source, destination, value_words(one.metric, value))
        for one in maps
        for source, destination, value in (slowest_pairs(one) if is_large(one) else _pairs_of(one))
    ]
    return table(("Matrix", "From", "To", "Median over launches"), rows, (3,))


def is_large(one: NetworkMap) -> bool:
    """Whether a matrix is drawn as an image: its cells would be more than a browser holds."""
    return len(one.hosts) > MOST_CELLS


def _pairs_of(one: NetworkMap) -> Iterator[tuple[str, str, float]]:
    """Yield each pair and direction that has a value."""
    for source, row in zip(one.hosts, one.matrix, strict=True):
        for destination, value in zip(one.hosts, row, strict=True):
            if value is not None:
                yield source, destination, value


def _records(findings: Findings) -> Records:
    maps = [(one, {name: getattr(one, name) for name in OF_A_MAP}) for one in MAPS.of(findings)]
    return {
        "pairs": [
            {**of, "metric": one.metric, "source": source, "destination": destination, "value": value}
            for one, of in maps
            for source, row in zip(one.hosts, one.matrix, strict=True)
            for destination, value in zip(one.hosts, row, strict=True)
            if value is not None
        ],
        "slow": [{**of, **slow.model_dump(mode="json")} for one, of in maps for slow in one.slow],
        "unexplained": [{**of, **pair.model_dump(mode="json")} for one, of in maps for pair in one.unexplained],
    }


def matrix(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the matrix of every pair, a panel for each fabric and cell; whoever is slow is framed."""
    del is_interactive  # the page needs no other figure than paper
    if not MAPS.of(findings):
        return None
    colours = (FAST_COLOUR, SLOW_COLOUR)
    panels = tuple(
        large_panel(one, map_words(one), findings.margin, colours)
        if is_large(one)
        else _matrix_panel(one, findings.margin)
        for one in MAPS.of(findings)
    )
    n = span_of_launches(one.launches for one in MAPS.of(findings))
    caption = sentences(
        "From the host on the left to the one below, medians over launches. Full orange, and a frame, has what belongs to a node, "
        "pair or direction found slow (dashed: suspected); what merely lies beside the middle by more than the margin is pale.",
        "Dotted frames: slower than the others explain, and nobody could be named."
        if any(one.unexplained for one in MAPS.of(findings))
        else "",
        f"Of more than {MOST_CELLS} hosts the matrix is an image, and the table has the {MOST_LISTED:,} slowest pairs."
        if any(map(is_large, MAPS.of(findings)))
        else "",
        f"n = {n}.",
        map_verdict(MAPS.of(findings)),
        origin_note(findings),
    )
    key = (
        KeyEntry("faster than the matrix's middle", FAST_COLOUR),
        KeyEntry(f"within the margin of {findings.margin * 100:g} % of it", NEUTRAL),
        KeyEntry("slower", SLOW_COLOUR),
    )
    rests_on = f"Medians of n = {n}."
    large = [one for one in MAPS.of(findings) if is_large(one)]
    return Figure(
        "matrix",
        "Every pair of hosts",
        caption,
        panels,
        pairs_table(MAPS.of(findings)),
        key=key,
        rests_on=rests_on,
        files=tuple((f"matrix-{number}.csv", matrix_csv(one)) for number, one in enumerate(large, 1)),
    )


def _heat(one: NetworkMap, value: float, middle: float, margin: float, *, is_found: bool) -> float:
    """Return the colour of a cell: none inside the margin, little where nobody was found slow, whatever scatter makes of it."""
    slower = math.log(value / middle) * (1.0 if one.metric.is_lower_better else -1.0)
    if abs(slower) <= math.log1p(margin):
        return 0.0
    reach = LEAST_REACH if is_found else LEAST_REACH / PALE
    most = 1.0 if is_found else PALE
    return max(-most, min(most, slower / reach))


def _matrix_panel(one: NetworkMap, margin: float) -> Panel:
    values = sorted(value for row in one.matrix for value in row if value is not None)
    middle = values[len(values) // 2]
    rows = [
        {
            "label": source,
            "column": destination,
            "heat": _heat(one, value, middle, margin, is_found=bool(_frame(one, source, destination))),
            "shown": value_parts(one.metric, value).number if len(one.hosts) <= NAMES_INSIDE else "",
            "from": source,
            "to": destination,
            "median": value_words(one.metric, value),
            "found": _found(one, source, destination),
            "framed": _frame(one, source, destination),
        }
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value is not None
    ]
    hint = tooltip("from", "to", "median", "found")
    unit = value_parts(one.metric, middle).unit
    spec = heat_spec(rows, list(one.hosts), list(one.hosts), (FAST_COLOUR, SLOW_COLOUR), hint, f"to (numbers: {unit})")
    tags = {"left": one.fabric, "right": one.fabric, "layer": one.layer.value}
    return Panel(
        map_words(one), spec, tags, height=max(ROW_HEIGHT * len(one.hosts), 90), widest=widest(one.hosts, one.hosts)
    )


def _found(one: NetworkMap, source: str, destination: str) -> str:
    causes = [slow.words for slow in one.slow if slow.touches(source, destination)]
    return "; ".join(causes) or ("cannot be named yet" if _is_unexplained(one, source, destination) else "–")


def _frame(one: NetworkMap, source: str, destination: str) -> str:
    """Return a cell's frame: `whole` if a second run confirmed its cause, `dashed` for a suspect, `dotted` without a cause."""
    grades = {slow.is_confirmed for slow in one.slow if slow.touches(source, destination)}
    if not grades:
        return "dotted" if _is_unexplained(one, source, destination) else ""
    return "whole" if True in grades else "dashed"


def _is_unexplained(one: NetworkMap, source: str, destination: str) -> bool:
    found = {(pair.source, pair.destination) for pair in one.unexplained}
    return (source, destination) in found or (one.metric.is_lower_better and (destination, source) in found)


CHAPTER = Chapter(
    name="map",
    title="The map of the network",
    needs="every pair of nodes: the campaign map has them, and `fabricbench map`",
    find=find,
    about=MAPS.name,
    method=METHOD,
    tables=tables,
    figures={"matrix": matrix},
    records=_records,
    on_page=OnPage(entry="Network map", lines=lines, tables=_page_tables),
)
