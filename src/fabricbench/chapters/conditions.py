"""Conditions: the grid of networks and conditions, whether a condition does the same on every network, and what hosts were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import (
    CellKey,
    Comparison,
    Findings,
    Interaction,
    InteractionVerdict,
    Interval,
    Verdict,
)
from fabricbench.analysis.interaction import interactions_of, networks_of, places_of
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import Side
from fabricbench.analysis.summary import over_launches
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, Records, Rows
from fabricbench.model import Layer, Model
from fabricbench.quantity import count, enumeration
from fabricbench.report.drawing.axes import (
    HAS_INTERVAL,
    TIMES_LABELS,
    colour_channel,
    ratio_domain,
    ratio_ticks,
    shape_channel,
)
from fabricbench.report.drawing.figure import (
    UNDECIDED,
    Figure,
    Panel,
    Spec,
    mark,
    origin_note,
    ratio_note,
    sentences,
    tooltip,
)
from fabricbench.report.words import (
    NOTHING,
    PATTERN_WORDS,
    advantage,
    factor_words,
    group_words,
    in_report_order,
    interval_words,
    size_words,
)
from fabricbench.table import Table, table

ROW_HEIGHT = 15
LABEL_EXTENT = 130
"""Pixels for the names of tests, the same in every panel, so that points can be compared across."""

COLUMNS = (
    "Test",
    "Message",
    "Condition",
    "Networks",
    "Effect on the first",
    "On the second",
    "Ratio of these",
    "Verdict",
)
"""Of the table of interactions."""

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
    silent: int = 0
    """In how many launches a node did not answer on one side, and none read another value."""


GRID_ROWS = Rows(GRID, GridCell)
INTERACTION_ROWS = Rows(INTERACTIONS, Interaction)
SETTING_ROWS = Rows(SETTINGS, SettingRead)


def find(material: Material) -> Found:
    """Return the grid, the interactions, and what was set."""
    networks = networks_of(material.sides)
    return {
        GRID: tuple(cell for sides in networks.values() for cell in _grid(material, sides)),
        INTERACTIONS: interactions_of(
            places_of(networks),
            material.pairings,
            margin=material.margin,
            confidence=material.confidence,
            level=material.level,
        ),
        SETTINGS: tuple(row for side in material.sides for row in _settings(side)),
    }


def _grid(material: Material, sides: Sequence[Side]) -> Iterator[GridCell]:
    first = sides[0]
    compared = {(one.fabric_b, one.key): one for one in material.cells if one.fabric_a == first.name}
    for side in sides:
        for key, cell in side.cells.items():
            found = compared.get((side.name, key))
            gain = None if found is None else advantage(found)
            yield GridCell(
                network=side.fabric.network,
                condition=side.fabric.condition,
                fabric=side.name,
                first=first.fabric.condition,
                key=key,
                median=over_launches(cell.launch_values, material.confidence, cell.rounding),
                gain=None if gain is None else Interval(value=gain.value, low=gain.low, high=gain.high),
                comparison=found,
            )


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
            strayed=sum(_strayed(one.before, one.after) for one in mine),
            silent=sum(one.before != one.after and not _strayed(one.before, one.after) for one in mine),
        )


def _strayed(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Tell whether a node had another value afterwards; one that did not answer (an empty value) tells nothing."""
    if "" not in before and "" not in after:
        return before != after
    told = before.keys() - {""}
    return bool(told) and bool(after.keys() - {""} - told)


def tables(findings: Findings) -> NamedTables:
    """Return the grid, the interactions, and the settings as nodes read them."""
    return [
        ("", grid_table(findings)),
        ("Does a condition do the same on every network?", interaction_table(findings)),
        ("Settings of hosts, as nodes read them", settings_table(findings)),
    ]


def grid_table(findings: Findings) -> Table:
    """A row for each cell of each network in each condition."""
    cells = GRID_ROWS.of(findings)
    order = list(dict.fromkeys(one.network for one in cells))
    rows = [
        (
            group_words(one.key),
            size_words(one.key.message_bytes),
            one.network,
            one.condition,
            interval_words(one.key.metric, one.median),
            NOTHING if one.condition == one.first else factor_words(one.gain),
            NOTHING if one.comparison is None else against_first(one.comparison.verdict, findings.margin),
        )
        for one in sorted(cells, key=lambda one: (in_report_order(one.key), order.index(one.network)))
    ]
    columns = (
        "Test",
        "Message",
        "Network",
        "Condition",
        "Median",
        "Times better than the first",
        "Verdict",
    )
    return table(columns, rows, (1, 4, 5))


def against_first(verdict: Verdict, margin: float) -> str:
    """Return a verdict on a condition (B) against the first of its network (A), without their names."""
    by = f"{100.0 * margin:g} %"
    words = {
        Verdict.B_FASTER: f"better, by over {by}",
        Verdict.B_AHEAD: f"better, perhaps by less than {by}",
        Verdict.A_FASTER: f"worse, by over {by}",
        Verdict.A_AHEAD: f"worse, perhaps by less than {by}",
        Verdict.EQUIVALENT: f"the same within {by}",
    }
    return words.get(verdict, "not shown either way")


def interaction_table(
    findings: Findings, found: Rows[Interaction] = INTERACTION_ROWS, columns: Sequence[str] = COLUMNS
) -> Table:
    """A row for each condition, cell and pair of networks; `found` is what they were found as."""
    rows = [
        (
            group_words(one.key),
            size_words(one.key.message_bytes),
            f"{one.condition} over {one.first}",
            f"{one.network_a}, {one.network_b}",
            factor_words(one.effect_a),
            factor_words(one.effect_b),
            factor_words(one.ratio),
            outcome(one, findings.margin),
        )
        for one in sorted(
            found.of(findings),
            key=lambda one: (in_report_order(one.key), one.network_a, one.network_b, one.condition),
        )
    ]
    return table(columns, rows, (1, 4, 5, 6))


def outcome(one: Interaction, margin: float) -> str:
    """Return what is shown of an interaction, and no more."""
    more, less = _does_more(one, for_b=True), _does_more(one, for_b=False)
    by = f"{100.0 * margin:g} %"
    words = {
        InteractionVerdict.MORE: f"{more}, by over {by}",
        InteractionVerdict.PERHAPS_MORE: f"{more}, perhaps by less than {by}",
        InteractionVerdict.LESS: f"{less}, by over {by}",
        InteractionVerdict.PERHAPS_LESS: f"{less}, perhaps by less than {by}",
        InteractionVerdict.SAME: f"the same on both within {by}",
        InteractionVerdict.OPEN: "not shown either way",
    }
    return words[one.verdict] + (f"; {one.doubt}" if one.doubt else "")


def _does_more(one: Interaction, *, for_b: bool) -> str:
    """Return for which network a condition does more; where it makes both worse, for which it costs less."""
    ends = [(one.network_a, one.effect_a.value), (one.network_b, one.effect_b.value)]
    (other, _), (mine, effect) = ends if for_b else ends[::-1]
    costs = effect < 1.0 and all(value < 1.0 for _, value in ends)
    return f"costs {mine} less than {other}" if costs else f"does more for {mine} than for {other}"


def settings_table(findings: Findings) -> Table:
    """A row for each setting that a side asked for, or that strayed."""
    rows = [
        (
            one.fabric,
            one.setting,
            one.wished or "as it was",
            ", ".join(value or "no answer" for value in one.before),
            ", ".join(value or "no answer" for value in one.after),
            str(one.launches),
        )
        for one in SETTING_ROWS.of(findings)
        if one.wished or one.strayed or one.silent
    ]
    return table(("Side", "Setting", "Asked for", "Before launches", "After launches", "Launches"), rows, (5,))


def condition_gains(findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return how many times better each condition is than the first one: a panel for each, networks beside each other."""
    shown = [one for one in GRID_ROWS.of(findings) if one.gain is not None]
    if not shown:
        return None
    groups: dict[tuple[Layer, str], list[GridCell]] = {}
    for one in sorted(shown, key=lambda one: in_report_order(one.key)):
        groups.setdefault((one.key.layer, one.condition), []).append(one)
    ends = [end for one in shown if one.gain for end in (one.gain.value, one.gain.low, one.gain.high) if end]
    domain = ratio_domain(ends, findings.margin)
    panels = tuple(
        _panel(findings, f"{layer.value}, {condition} over {group[0].first}", group, domain, is_interactive)
        for (layer, condition), group in groups.items()
    )
    launches = (one.comparison.launches for one in shown if one.comparison)
    rests_on = ratio_note(findings, launches, "blocks")
    caption = sentences(
        "Point: how many times better a condition is than the first one of the same network (right of 1: better), by the ratio of "
        f"geometric means over launches, paired by block. In each row from above: "
        f"{', '.join(dict.fromkeys(one.network for one in shown))}. Grey band: the margin.",
        rests_on,
        origin_note(findings),
    )
    title = "What a condition is worth on each network"
    return Figure("condition-gains", title, caption, panels, grid_table(findings), rests_on=rests_on)


def _panel(
    findings: Findings, title: str, group: Sequence[GridCell], domain: tuple[float, float], is_interactive: bool
) -> Panel:
    rows = [_row(findings, one) for one in group]
    labels = list(dict.fromkeys(row["label"] for row in rows))
    networks = list(dict.fromkeys(one.network for one in group))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {
            "values": ratio_ticks(*domain),
            "labelExpr": TIMES_LABELS,
            "title": "← worse\u2003|\u2003better →",
            "labelOverlap": "greedy",
        },
    }
    axis: Spec = {"grid": False, "labelLimit": 190, "minExtent": LABEL_EXTENT}
    y: Spec = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    place: Spec = {"y": y, "yOffset": {"field": "network", "type": "nominal", "sort": networks}}
    hint = tooltip("test", "network", "times better", "verdict")
    colour = {"color": colour_channel(findings, has_legend=not is_interactive)}
    shape = {"shape": shape_channel(findings, has_legend=not is_interactive)}
    margin = [{"value": 1 / (1 + findings.margin), "end": 1 + findings.margin}]
    layers = [
        mark("rect", {"x": x, "x2": {"field": "end"}}, rows=margin, color=UNDECIDED, opacity=0.22),
        mark("rule", {"x": x}, rows=[{"value": 1}], color=UNDECIDED),
        mark(
            "rule",
            {**place, **colour, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            rows=rows,
            keep=[HAS_INTERVAL],
            strokeWidth=2,
        ),
        mark(
            "point", {**place, **colour, **shape, "x": x, "tooltip": hint}, rows=rows, filled=True, size=40, opacity=1
        ),
    ]
    tags = {"layer": group[0].key.layer.value}
    return Panel(title, {"layer": layers}, tags, height=ROW_HEIGHT * len(labels) * len(networks) + 6)


def _row(findings: Findings, one: GridCell) -> dict[str, Any]:
    assert one.gain is not None  # noqa: S101 - others are not drawn
    size = size_words(one.key.message_bytes)
    return {
        "label": ", ".join((f"{PATTERN_WORDS[one.key.pattern]} {size}", *one.key.variant_words)),
        "fabric": one.fabric,
        "network": one.network,
        "value": one.gain.value,
        "low": one.gain.low,
        "high": one.gain.high,
        "test": f"{group_words(one.key)}, {size}",
        "times better": factor_words(one.gain),
        "verdict": "" if one.comparison is None else against_first(one.comparison.verdict, findings.margin),
    }


def lines(findings: Findings) -> Sequence[str]:
    """Return what the grid is of, what the interactions come to, and what did not hold."""
    cells = GRID_ROWS.of(findings)
    found = INTERACTION_ROWS.of(findings)
    told = [_grid_line(cells)] if cells else []
    if found:
        beyond = sum(one.verdict in (InteractionVerdict.MORE, InteractionVerdict.LESS) for one in found)
        same = sum(one.verdict is InteractionVerdict.SAME for one in found)
        still_open = sum(one.verdict is InteractionVerdict.OPEN for one in found)
        kinds = {
            "shown beyond the margin": beyond,
            "shown, perhaps within the margin": len(found) - beyond - same - still_open,
            "shown to be within the margin": same,
            "open": still_open,
        }
        how_many = enumeration([f"{number} {words}" for words, number in kinds.items() if number])
        told.append(f"Of {count(len(found), 'interaction')}: {how_many}.")
    return (
        told
        + [
            f"{one.setting} did not hold on {one.fabric} in {one.strayed} of {count(one.launches, 'launch')}, which are left out."
            for one in SETTING_ROWS.of(findings)
            if one.strayed
        ]
        + [
            f"A node did not tell {one.setting} on {one.fabric} in {one.silent} of "
            f"{count(one.launches, 'launch')}, which are left out."
            for one in SETTING_ROWS.of(findings)
            if one.silent
        ]
    )


def _grid_line(cells: Sequence[GridCell]) -> str:
    conditions: dict[str, list[str]] = {}
    for one in cells:
        names = conditions.setdefault(one.network, [])
        if one.condition not in names:
            names.append(one.condition)
    parts = [f"{network} in {', '.join(names)}" for network, names in conditions.items()]
    compared = "Each is compared with the first of its network; intervals are unadjusted."
    return f"Measured in turn, block by block: {'; '.join(parts)}. {compared}"


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
    figures={"condition-gains": condition_gains},
    records=records,
)
