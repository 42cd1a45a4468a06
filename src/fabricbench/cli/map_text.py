"""What `fabricbench map` writes: the verdict in sentences, then each matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricbench.analysis.findings import MapVerdict, NetworkMap, Slow
from fabricbench.cli.tables import Format, as_csv, as_json, value_text
from fabricbench.quantity import format_bytes
from fabricbench.table import Table, as_markdown, as_text, table

NOTHING = "There is no matrix in this run: measure one with the campaign `map`, or give --testbed."


def render(maps: Sequence[NetworkMap], form: Format) -> str:
    """Return the maps in a format; JSON holds every field, CSV a row for each pair."""
    if form is Format.JSON:
        return as_json([{"verdict": one.verdict.value} | one.model_dump(mode="json") for one in maps])
    if form is Format.CSV:
        return as_csv(
            _pairs(maps), ["fabric", "layer", "pattern", "message_bytes", "source", "destination", "value", "unit"]
        )
    if not maps:
        return NOTHING
    writer: Callable[[Table], str] = as_markdown if form is Format.MARKDOWN else as_text
    return "\n\n".join(["\n".join(_verdict(maps)), *(writer(_table(one)) for one in maps)])


def _verdict(maps: Sequence[NetworkMap]) -> list[str]:
    lines = [f"{_subject(one)}: {_sentence(slow)}" for one in maps for slow in one.slow]
    lines += [f"{_subject(one)}: {one.unnamed_words}" for one in maps if one.unnamed_words]
    if not all(one.is_judged for one in maps):
        lines.append("Fewer than four hosts: causes cannot be told apart, so nobody is judged.")
    if not lines:
        cleared = " What looked so in the first run was not found again." if any(map(_is_cleared, maps)) else ""
        lines = [f"No node, pair or direction is slow.{cleared}"]
    lines += [f"{_subject(one)}: {one.groups_words}" for one in maps if one.groups_words]
    return lines + [f"{_subject(one)}: {words}" for one in maps for words in one.failed_words]


def _is_cleared(one: NetworkMap) -> bool:
    return one.is_measured_again and one.verdict is MapVerdict.NOBODY


def _sentence(slow: Slow) -> str:
    grade = "" if slow.is_confirmed else ", suspected only: one run, not measured again"
    return f"{slow.words}: {slow.slower:.0%} slower ({slow.slower_low:.0%} to {slow.slower_high:.0%}){grade}"


def _subject(one: NetworkMap) -> str:
    rounds = ", disjoint pairs at once" if one.schedule == "rounds" else ""
    return f"{one.fabric}, {one.layer} {one.pattern} of {format_bytes(one.message_bytes)}{rounds}"


def _table(one: NetworkMap) -> Table:
    rows = [
        (host, *("" if value is None else value_text(value, one.metric) for value in row))
        for host, row in zip(one.hosts, one.matrix, strict=True)
    ]
    return table(("from \\ to", *one.hosts), rows, title=f"{_subject(one)} (median of {one.launches} launches)")


def _pairs(maps: Sequence[NetworkMap]) -> list[dict[str, object]]:
    return [
        {
            "fabric": one.fabric,
            "layer": one.layer.value,
            "pattern": one.pattern.value,
            "message_bytes": one.message_bytes,
            "source": source,
            "destination": destination,
            "value": value,
            "unit": one.metric.unit,
        }
        for one in maps
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value is not None
    ]
