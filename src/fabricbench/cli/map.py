"""`fabricbench map`: measure every pair of nodes, and name the slow nodes, pairs and directions, once confirmed.

It writes the verdict in sentences, then each matrix.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from fabricbench.analysis.findings import MapVerdict, NetworkMap, Slow
from fabricbench.analysis.network_map import CONFIRMATION, confirmation_of, network_maps
from fabricbench.campaign.noise import usual_noise
from fabricbench.campaign.pattern_presets import map_campaign
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preparing import Prepared
from fabricbench.campaign.venue import find_venue
from fabricbench.cli.arguments import NodesOption, RunOrNewArgument, SeedOption, refuse_without
from fabricbench.cli.losses import results_lost, say_losses
from fabricbench.cli.output import (
    OutputFormat,
    as_csv,
    as_json,
    check_output,
    output_width,
    prose,
    say,
    share_option,
    value_text,
    write_output,
)
from fabricbench.cli.run import measure
from fabricbench.errors import UsageError
from fabricbench.quantity import count, format_bytes
from fabricbench.record.account import account_of
from fabricbench.record.provenance import Marks, mark_words, origin_column
from fabricbench.record.store import Run
from fabricbench.table import Table, as_markdown, as_text, table

app = typer.Typer()


@app.command("map")
def map_(
    context: typer.Context,
    run: RunOrNewArgument,
    testbed: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Measure first: every pair of this testbed, as `run` names testbeds."),
    ] = None,
    nodes: NodesOption = None,
    seed: SeedOption = None,
    blocks: Annotated[int, typer.Option(min=2, help="With --testbed: launches on each fabric.")] = 3,
    layer: Annotated[str, typer.Option(help="With --testbed: the layer to measure on: tcp, rdma or mpi.")] = "tcp",
    margin: Annotated[str, typer.Option(help="The smallest slowness that matters: 5% or 0.05.")] = "5%",
    form: Annotated[OutputFormat, typer.Option("--format", help="How to write it.")] = OutputFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
) -> None:
    """Show latency and bandwidth of every pair of nodes, and name slow links, slow nodes and slow directions.

    With --testbed the pairs are measured first. Whoever looks slow is measured a second time before it is accused.

    Examples: `fabricbench map runs/map --testbed lab:fast-ethernet`, `fabricbench map runs/today`
    """
    check_output(output)
    share = share_option(margin, "--margin")
    second = run / CONFIRMATION
    if testbed is not None:
        _measure(testbed, nodes, layer, blocks, seed, run)
        if any(one.needs_second_run for one in network_maps(Run.open(run), margin=share)):
            say("somebody looks slow: the pairs are measured again before anybody is accused")
            _measure(testbed, nodes, layer, blocks, seed, second)
    else:
        refuse_without(context, "--testbed", "nodes", "layer", "blocks", "seed")
    opened = Run.open(run)
    maps = network_maps(opened, margin=share, confirmation=confirmation_of(opened))
    account = account_of(opened)
    if maps:
        width = output_width(output, UNBOUNDED)
        write_output(render(maps, form, opened.marks, margin=share, width=width) + "\n", output)
    elif testbed is None or not account.has_lost_results:
        raise UsageError(
            f"no matrix was measured in {run}",
            hint="the campaign `map` measures one, and so does `fabricbench map RUNDIR --testbed WHERE` in a new run",
        )
    if testbed is not None and account.has_lost_results:
        raise results_lost(account, run)
    say_losses((account,), (str(run),))


def _measure(testbed: str, nodes: int | None, layer: str, blocks: int, seed: int | None, directory: Path) -> None:
    venue = find_venue(testbed, nodes)
    campaign = map_campaign(layer, blocks, venue.testbed().seats)
    plan = plan_run(campaign, venue.testbed(), seed=secrets.randbits(32) if seed is None else seed)
    measure(Prepared(campaign, venue, plan, usual_noise(venue.testbed().launcher)), directory)


PAIR_COLUMNS = ("fabric", "layer", "pattern", "message_bytes", "source", "destination", "value", "unit")


UNBOUNDED = 10_000
"""Columns of text that no terminal cuts: a matrix has one for each node."""
INDENT = GAP = 2
"""Of a table under its title, and between its columns."""


def render(
    maps: Sequence[NetworkMap], form: OutputFormat, marks: Marks, *, margin: float | None = None, width: int = UNBOUNDED
) -> str:
    """Return the maps in a format; JSON holds every field, CSV a row for each pair. `marks`: those of the run.

    `margin` is the smallest slowness that matters, where it is known. Text is no wider than `width`: a matrix that is wider is in
    parts, a few columns each.
    """
    if form is OutputFormat.JSON:
        dumped = [one.model_dump(mode="json") | origin_column(one.fabric, marks) for one in maps]
        return as_json([{"verdict": one.verdict.value} | row for one, row in zip(maps, dumped, strict=True)])
    if form is OutputFormat.CSV:
        rows = [row | origin_column(str(row["fabric"]), marks) for row in _pairs(maps)]
        return as_csv(rows, [*PAIR_COLUMNS, *(["origin"] if marks else [])])
    writer: Callable[[Table], str] = as_markdown if form is OutputFormat.MARKDOWN else as_text
    lines = [*_verdict(maps, margin), *mark_words(marks)]
    matrices = [
        part for one in maps for part in (_parts(_table(one), width) if form is OutputFormat.TEXT else [_table(one)])
    ]
    return "\n\n".join([prose(lines, form, width), *map(writer, matrices)])


def _verdict(maps: Sequence[NetworkMap], margin: float | None) -> list[str]:
    lines = [f"{_subject(one)}: {_sentence(slow)}" for one in maps for slow in one.slow]
    lines += [f"{_subject(one)}: {one.unnamed_words}" for one in maps if one.unnamed_words]
    lines += dict.fromkeys(one.unjudged_words for one in maps if not one.is_judged)
    if not lines:
        cleared = " What looked so in the first run was not found again." if any(map(_is_cleared, maps)) else ""
        lines = [f"No node, pair or direction was found slow.{cleared}"]
        if not cleared:
            lines += [f"{_subject(one)}: {words}" for one in maps if (words := _within(one, margin))]
    lines += [f"{_subject(one)}: {one.nobody_words}" for one in maps if one.nobody_words]
    lines += [f"{_subject(one)}: {one.groups_words}." for one in maps if one.groups_words]
    return lines + [f"{_subject(one)}: {words}" for one in maps for words in one.failed_words]


def _within(one: NetworkMap, margin: float | None) -> str:
    """Return how far the slowest pair lies behind the one in the middle; nothing where hosts are in groups, which differ anyway."""
    is_time = one.metric.is_lower_better
    pairs = [
        (value, source, destination)
        for source, row in zip(one.hosts, one.matrix, strict=True)
        for destination, value in zip(one.hosts, row, strict=True)
        if value
    ]
    if one.groups or not pairs:
        return ""
    typical = median(value for value, _, _ in pairs)
    slowest = max if is_time else min
    value, source, destination = slowest(pairs, key=lambda pair: pair[0])
    behind = value / typical - 1.0 if is_time else 1.0 - value / typical
    pair = f"{source} {'with' if is_time else 'to'} {destination}"
    if margin is None:
        place = ""
    elif behind <= margin:
        place = f", within the margin of {margin * 100:g} %"
    else:
        place = ", which so few launches do not show"
    return f"the slowest pair, {pair}, is {behind * 100:.1f} % slower than the median one{place}"


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
        (host, *("" if value is None else value_text(value, one.metric, one.metric.unit) for value in row))
        for host, row in zip(one.hosts, one.matrix, strict=True)
    ]
    columns = ("from \\ to", *one.hosts)
    return table(
        columns, rows, range(1, len(columns)), title=f"{_subject(one)} (median of {count(one.launches, 'launch')})"
    )


def _parts(matrix: Table, width: int) -> list[Table]:
    """Return a matrix as several that are no wider than so many columns, each with the first column, or with one more at least."""
    lines = (matrix.columns, *matrix.rows)
    first, *widths = [max(len(line[column]) for line in lines) for column in range(len(matrix.columns))]
    parts: list[list[int]] = [[]]
    for column, wide in enumerate(widths, 1):
        taken = INDENT + first + sum(GAP + widths[index - 1] for index in parts[-1])
        if parts[-1] and taken + GAP + wide > width:
            parts.append([])
        parts[-1].append(column)
    if len(parts) == 1:
        return [matrix]
    return [
        replace(matrix.only([0, *part]), title=f"{matrix.title}, to {matrix.columns[part[0]]} and on") for part in parts
    ]


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
