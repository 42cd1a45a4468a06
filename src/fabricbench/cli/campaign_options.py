"""What `run`, `plan` and `resume` have in common: the options that say what is to be run where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli import completion

CampaignArgument = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN",
        autocompletion=completion.campaigns,
        help="quick, standard, full, patterns, collectives, congestion, map, oneway, npb, or a TOML file (docs/campaigns.md).",
    ),
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
