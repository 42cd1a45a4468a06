"""Options that several commands take: what is to be run where, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli import completion
from fabricbench.errors import UsageError
from fabricbench.quantity import RateUnit, rates_in

CampaignArgument = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN",
        autocompletion=completion.campaigns,
        help="quick, standard, full, patterns, collectives, congestion, map, oneway, explain, switch, rdma, npb, "
        "applications, or a TOML file: docs/campaigns.md",
    ),
]
RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUNDIR", autocompletion=completion.run_directories, help="A run directory, finished or not."
    ),
]
RunOrNewArgument = Annotated[
    Path, typer.Argument(metavar="RUNDIR", help="A stored run; with --testbed, where to store a new one.")
]
TestbedOption = Annotated[
    str,
    typer.Option(
        "--testbed",
        metavar="WHERE",
        autocompletion=completion.testbeds,
        help="A testbed file, lab:FABRIC,FABRIC (a lab is built for the run), lab:NAME (a running lab), or local.",
    ),
]
NodesOption = Annotated[
    int | None, typer.Option("--nodes", min=2, help="Nodes of the lab that is built; 4 if not given.")
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="Use this time, 5min say: as many blocks as fit, of tests as long as tells most.",
    ),
]
BlocksOption = Annotated[
    int | None, typer.Option("--blocks", help="Instead of the campaign's number of blocks; a budget leaves it alone.")
]
NoiseOption = Annotated[
    Path | None,
    typer.Option(
        "--noise-from",
        metavar="RUNDIR",
        autocompletion=completion.run_directories,
        help="Plan with the noise of this run, instead of the quiet lab's (in a lab) or loopback's.",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Orders everything that is random. Drawn and recorded if not given.")
]
NoPreflightOption = Annotated[
    bool, typer.Option("--no-preflight", help="Measure without looking at the testbed first.")
]
ReportOption = Annotated[
    bool, typer.Option("--report", help="Write the dossier at the end, as `report` does: RUNDIR/dossier.html.")
]


WithoutFailedNodesOption = Annotated[
    bool,
    typer.Option(
        "--without-failed-nodes", help="Where nodes do not answer any more, measure what is left on the others."
    ),
]


def _write_rates_in(context: typer.Context, unit: RateUnit) -> RateUnit:
    """Write throughputs in a unit until the command ends."""
    context.with_resource(rates_in(unit))
    return unit


UnitsOption = Annotated[
    RateUnit,
    typer.Option(
        "--units", callback=_write_rates_in, help="What throughputs are written in, or the next smaller unit."
    ),
]

MarginOption = Annotated[
    str | None,
    typer.Option(help="Smallest relative difference that matters: 2% or 0.02 (default: the campaign's)."),
]

ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


def refuse_without(context: typer.Context, needed: str, *parameters: str) -> None:
    """Raise UsageError where a parameter was typed that means nothing without an option that was not: it would be dropped."""
    for name in parameters:
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is of no use without {needed}", hint=f"add {needed}, or leave {option} out")
