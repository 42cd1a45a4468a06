"""Conditions: the grid of networks and conditions, whether a condition does the same on every network, and what hosts were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import CellKey, Comparison, Findings, Interaction, InteractionVerdict, Interval
from fabricbench.analysis.interaction import interactions_of, networks_of
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import Side
from fabricbench.analysis.summary import over_launches
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, Records, rows_of
from fabricbench.model import Model
from fabricbench.quantity import count
from fabricbench.report.words import (
    NOTHING,
    advantage,
    factor_words,
    group_words,
    in_report_order,
    interval_words,
    size_words,
    verdict_words,
)
from fabricbench.table import Table, table

GRID, INTERACTIONS, SETTINGS = "conditions", "condition-interactions", "condition-settings"
METHOD = """
A condition is compared with the first one of the same network by block, as two fabrics are: the verdicts are those of all
comparisons, corrected with them. Whether a condition does the same on two networks is asked of the ratio of its two effects, block
by block (a two-factor experiment in randomised complete blocks, Montgomery, Design and Analysis of Experiments): {level}
interval by Student's t on logarithms, uncorrected; verdicts corrected over all interactions of this report (Benjamini and
Hochberg), with the margin of {margin}.
"""


class GridCell(Model):
    """A cell of a network in a condition: the median over launches, and how many times better it is than the first condition."""

    network: str
    condition: str
    fabric: str
    first: str
    key: CellKey
    median: Interval | None
    gain: Interval | None = None
    comparison: Comparison | None = None


class SettingRead(Model):
    """What a side sets of hosts, and the values that nodes had, before and after its launches.

    `strayed` counts the launches after which a node had another value than before.
    """

    fabric: str
    setting: str
    wished: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    launches: int
    strayed: int


def find(material: Material) -> Found:
    """Return the grid, the interactions, and what was set."""
    networks = networks_of(material.sides)
    of_networks = [side for sides in networks.values() for side in sides]
    return {
        GRID: tuple(cell for sides in networks.values() for cell in _grid(material, sides)),
        INTERACTIONS: interactions_of(
            of_networks,
            material.pairings,
            margin=material.margin,
            confidence=material.confidence,
            level=material.level,
        ),
        SETTINGS: tuple(row for side in material.sides for row in _settings(side)),
    }


def _grid(material: Material, sides: Sequence[Side]) -> Iterator[GridCell]:
    first = sides[0]
    compared = {_names(one): one for one in material.cells if one.fabric_a == first.name}
    for side in sides:
        for key, cell in side.cells.items():
            found = compared.get((side.name, key.layer, key.pattern, key.receive, key.variant, key.message_bytes))
            gain = None if found is None else advantage(found)
            yield GridCell(
                network=side.fabric.network,
                condition=side.fabric.condition,
                fabric=side.name,
                first=first.fabric.condition,
                key=key,
                median=over_launches(cell.launch_values, material.confidence),
                gain=None if gain is None else Interval(value=gain.value, low=gain.low, high=gain.high),
                comparison=found,
            )


def _names(one: Comparison) -> tuple[object, ...]:
    return one.fabric_b, one.layer, one.pattern, one.receive, one.variant, one.message_bytes


def _settings(side: Side) -> Iterator[SettingRead]:
    launches = [*side.launches, *side.invalid]
    held = [one for launch in launches for one in launch.summary.facts.settings]
    for setting in dict.fromkeys(one.setting for one in held):
        mine = [one for one in held if one.setting == setting]
        yield SettingRead(
            fabric=side.name,
            setting=setting,
            wished=mine[0].wished,
            before=tuple(dict.fromkeys(value for one in mine for value in one.before)),
            after=tuple(dict.fromkeys(value for one in mine for value in one.after)),
            launches=len(mine),
            strayed=sum(one.before != one.after for one in mine),
        )


def tables(findings: Findings) -> NamedTables:
    """Return the grid, the interactions, and the settings as nodes read them."""
    return [
        ("", grid_table(findings)),
        ("Does a condition do the same on every network?", interaction_table(findings)),
        ("Settings of hosts, as nodes read them", settings_table(findings)),
    ]


def grid_table(findings: Findings) -> Table:
    """A row for each cell of each network in each condition."""
    cells = rows_of(findings, GRID, GridCell)
    order = list(dict.fromkeys(one.network for one in cells))
    rows = [
        (
            group_words(one.key),
            size_words(one.key.message_bytes),
            one.network,
            one.condition,
            interval_words(one.key.metric, one.median),
            NOTHING if one.condition == one.first else factor_words(one.gain),
            NOTHING if one.comparison is None else verdict_words(one.comparison, findings.margin),
        )
        for one in sorted(cells, key=lambda one: (in_report_order(one.key), order.index(one.network)))
    ]
    columns = (
        "Test",
        "Message",
        "Network",
        "Condition",
        "Median",
        "Times better than the first (unadjusted interval)",
        "Verdict",
    )
    return table(columns, rows, (1, 4, 5), spare=("Verdict", "Message"))


def interaction_table(findings: Findings) -> Table:
    """A row for each condition, cell and pair of networks."""
    rows = [
        (
            group_words(one.key),
            size_words(one.key.message_bytes),
            f"{one.condition} over {one.first}",
            f"{one.network_a}: {factor_words(one.effect_a)}",
            f"{one.network_b}: {factor_words(one.effect_b)}",
            factor_words(one.ratio),
            outcome(one, findings.margin),
        )
        for one in sorted(
            rows_of(findings, INTERACTIONS, Interaction),
            key=lambda one: (in_report_order(one.key), one.network_a, one.network_b, one.condition),
        )
    ]
    columns = (
        "Test",
        "Message",
        "Condition",
        "Effect on one network",
        "Effect on the other",
        "Ratio of the effects (unadjusted interval)",
        "Verdict",
    )
    return table(columns, rows, (1, 5), spare=("Verdict", "Message"))


def outcome(one: Interaction, margin: float) -> str:
    """Return what is shown of an interaction, and no more."""
    more = f"does more for {one.network_b} than for {one.network_a}"
    less = f"does more for {one.network_a} than for {one.network_b}"
    by = f"{100.0 * margin:g} %"
    words = {
        InteractionVerdict.MORE: f"{more}, by over {by}",
        InteractionVerdict.PERHAPS_MORE: f"{more}, perhaps by less than {by}",
        InteractionVerdict.LESS: f"{less}, by over {by}",
        InteractionVerdict.PERHAPS_LESS: f"{less}, perhaps by less than {by}",
        InteractionVerdict.SAME: f"the same on both within {by}",
        InteractionVerdict.OPEN: "not shown to differ, nor to be the same",
    }
    return words[one.verdict] + (f"; {one.doubt}" if one.doubt else "")


def settings_table(findings: Findings) -> Table:
    """A row for each setting of each side."""
    rows = [
        (
            one.fabric,
            one.setting,
            one.wished or "as it was",
            ", ".join(value or "no answer" for value in one.before),
            ", ".join(value or "no answer" for value in one.after),
            str(one.launches),
        )
        for one in rows_of(findings, SETTINGS, SettingRead)
    ]
    return table(("Side", "Setting", "Asked for", "Before launches", "After launches", "Launches"), rows, (5,))


def lines(findings: Findings) -> Sequence[str]:
    """Return what the grid is of, what the interactions come to, and what did not hold."""
    cells = rows_of(findings, GRID, GridCell)
    found = rows_of(findings, INTERACTIONS, Interaction)
    told = [_grid_line(cells)] if cells else []
    if found:
        beyond = sum(one.verdict in (InteractionVerdict.MORE, InteractionVerdict.LESS) for one in found)
        same = sum(one.verdict is InteractionVerdict.SAME for one in found)
        still_open = sum(one.verdict is InteractionVerdict.OPEN for one in found)
        told.append(
            f"Of {count(len(found), 'interaction')}, {beyond} are shown beyond the margin, "
            f"{len(found) - beyond - same - still_open} perhaps within it, {same} are shown to be none within it, "
            f"{still_open} are open."
        )
    return told + [
        f"{one.setting} did not hold on {one.fabric} in {one.strayed} of {count(one.launches, 'launch')}, which are left out."
        for one in rows_of(findings, SETTINGS, SettingRead)
        if one.strayed
    ]


def _grid_line(cells: Sequence[GridCell]) -> str:
    conditions: dict[str, list[str]] = {}
    for one in cells:
        names = conditions.setdefault(one.network, [])
        if one.condition not in names:
            names.append(one.condition)
    parts = [f"{network} in {', '.join(names)}" for network, names in conditions.items()]
    return f"Measured in turn, block by block: {'; '.join(parts)}. Each is compared with the first of its network."


def records(findings: Findings) -> Records:
    """Return the rows for CSV files."""
    return {name: findings.chapters.get(name, ()) for name in (GRID, INTERACTIONS, SETTINGS)}


CHAPTER = Chapter(
    name=GRID,
    title="Conditions",
    needs="a campaign with two or more [[condition]]",
    find=find,
    method=METHOD,
    tables=tables,
    lines=lines,
    records=records,
)
