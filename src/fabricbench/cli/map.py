"""`fabricbench map`: measure every pair of nodes, and name the slow nodes, pairs and directions, once confirmed.

It writes the verdict in sentences, then each matrix.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricbench.cli.arguments import NodesOption, SeedOption
from fabricbench.cli.output import Format, as_csv, as_json, say, share_option, value_text, write_output
from fabricbench.quantity import format_bytes
from fabricbench.record.provenance import mark_words, origin_column
from fabricbench.table import Table, as_markdown, as_text, table

if TYPE_CHECKING:
    from fabricbench.analysis.findings import NetworkMap, Slow
    from fabricbench.record.provenance import Marks


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("map")
    def map_(
        run: Annotated[
            Path, typer.Argument(metavar="RUNDIR", help="A stored run; with --testbed, where to store a new one.")
        ],
        testbed: Annotated[
            str | None,
            typer.Option(metavar="WHERE", help="Measure first: every pair of this testbed, as `run` names testbeds."),
        ] = None,
        nodes: NodesOption = None,
        seed: SeedOption = None,
        blocks: Annotated[int, typer.Option(min=2, help="With --testbed: launches on each fabric.")] = 3,
        layer: Annotated[str, typer.Option(help="With --testbed: the layer to measure on: tcp, rdma or mpi.")] = "tcp",
        margin: Annotated[str, typer.Option(help="The smallest slowness that matters: 5% or 0.05.")] = "5%",
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Show latency and bandwidth of every pair of nodes, and name slow links, slow nodes and slow directions.

        With --testbed the pairs are measured first. Whoever looks slow is measured a second time before it is accused.

        Examples: `fabricbench map runs/map --testbed lab:fast-ethernet`, `fabricbench map runs/today`
        """
        from fabricbench.analysis.network_map import CONFIRMATION, confirmation_of, network_maps  # noqa: PLC0415 - keeps the start fast
        from fabricbench.record.store import Run  # noqa: PLC0415

        share = share_option(margin, "--margin")
        second = run / CONFIRMATION
        if testbed is not None:
            _measure(testbed, nodes, layer, blocks, seed, run)
            if any(one.needs_second_run for one in network_maps(Run.open(run), margin=share)):
                say("somebody looks slow: the pairs are measured again before anybody is accused")
                _measure(testbed, nodes, layer, blocks, seed, second)
        opened = Run.open(run)
        maps = network_maps(opened, margin=share, confirmation=confirmation_of(opened))
        write_output(render(maps, form, opened.marks) + "\n", output)


def _measure(testbed: str, nodes: int | None, layer: str, blocks: int, seed: int | None, directory: Path) -> None:
    from fabricbench.campaign.noise import usual_noise  # noqa: PLC0415
    from fabricbench.campaign.pattern_presets import map_campaign  # noqa: PLC0415
    from fabricbench.campaign.plan import plan_run  # noqa: PLC0415
    from fabricbench.campaign.preparing import Prepared  # noqa: PLC0415
    from fabricbench.campaign.venue import find_venue  # noqa: PLC0415
    from fabricbench.cli.run import measure  # noqa: PLC0415

    venue = find_venue(testbed, nodes)
    campaign = map_campaign(layer, blocks, len(venue.testbed().nodes))
    plan = plan_run(campaign, venue.testbed(), seed=secrets.randbits(32) if seed is None else seed)
    measure(Prepared(campaign, venue, plan, usual_noise(venue.testbed().launcher)), directory)


PAIR_COLUMNS = ("fabric", "layer", "pattern", "message_bytes", "source", "destination", "value", "unit")
NOTHING = "There is no matrix in this run: measure one with the campaign `map`, or give --testbed."


def render(maps: Sequence[NetworkMap], form: Format, marks: Marks) -> str:
    """Return the maps in a format; JSON holds every field, CSV a row for each pair. `marks`: those of the run."""
    if form is Format.JSON:
        dumped = [one.model_dump(mode="json") | origin_column(one.fabric, marks) for one in maps]
        return as_json([{"verdict": one.verdict.value} | row for one, row in zip(maps, dumped, strict=True)])
    if form is Format.CSV:
        rows = [row | origin_column(str(row["fabric"]), marks) for row in _pairs(maps)]
        return as_csv(rows, [*PAIR_COLUMNS, *(["origin"] if marks else [])])
    if not maps:
        return NOTHING
    writer: Callable[[Table], str] = as_markdown if form is Format.MARKDOWN else as_text
    return "\n\n".join(["\n".join([*_verdict(maps), *mark_words(marks)]), *(writer(_table(one)) for one in maps)])


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
    from fabricbench.analysis.findings import MapVerdict  # noqa: PLC0415 - keeps the start of the program fast

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
