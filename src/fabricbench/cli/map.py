"""`fabricbench map`: measure every pair of nodes, and name the slow nodes, pairs and directions, once confirmed."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.campaign_options import NodesOption, SeedOption
from fabricbench.cli.output import say, write_output
from fabricbench.cli.tables import Format, share_option


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
        layer: Annotated[str, typer.Option(help="With --testbed: the layer to measure on, tcp or mpi.")] = "tcp",
        margin: Annotated[str, typer.Option(help="The smallest slowness that matters: 5% or 0.05.")] = "5%",
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Show latency and bandwidth of every pair of nodes, and name slow links, slow nodes and slow directions.

        With --testbed the pairs are measured first. Whoever looks slow is measured a second time before it is accused.

        Examples: `fabricbench map runs/map --testbed lab:fast-ethernet`, `fabricbench map runs/today`
        """
        from fabricbench.analysis.network_map import CONFIRMATION, confirmation_of, network_maps  # noqa: PLC0415 - keeps the start fast
        from fabricbench.cli.map_text import render  # noqa: PLC0415
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
        write_output(render(maps, form) + "\n", output)


def _measure(testbed: str, nodes: int | None, layer: str, blocks: int, seed: int | None, directory: Path) -> None:
    from fabricbench.campaign.mapping import map_campaign  # noqa: PLC0415
    from fabricbench.campaign.noise import usual_noise  # noqa: PLC0415
    from fabricbench.campaign.plan import plan_run  # noqa: PLC0415
    from fabricbench.campaign.preparing import Prepared  # noqa: PLC0415
    from fabricbench.campaign.venue import find_venue  # noqa: PLC0415
    from fabricbench.cli.run import measure  # noqa: PLC0415

    venue = find_venue(testbed, nodes)
    campaign = map_campaign(layer, blocks, len(venue.testbed().nodes))
    plan = plan_run(campaign, venue.testbed(), seed=secrets.randbits(32) if seed is None else seed)
    measure(Prepared(campaign, venue, plan, usual_noise(venue.testbed().launcher)), directory)
