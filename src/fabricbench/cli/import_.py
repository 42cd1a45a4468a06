"""`fabricbench import`: what another benchmark printed, as a run that everything here reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.cli.output import say
from fabricbench.errors import UsageError
from fabricbench.exchange.import_options import ImportOptions
from fabricbench.exchange.storing import import_run
from fabricbench.model import Layer
from fabricbench.quantity import count

FORMATS = (
    "gpcnet, hpcc, hpcg, hpl, imb, iperf3, linktest, mpigraph, nccl, "
    "netperf, netpipe, npb, osu, perftest, qperf, reframe, sockperf"
)
"""The names of all importers, which are loaded where they are needed alone."""


app = typer.Typer()


@app.command(
    name="import",
    epilog="Example: `fabricbench import --fabric ib=ib1.txt,ib2.txt --fabric eth=eth1.txt,eth2.txt -o runs/osu`",
)
def import_(
    fabrics: Annotated[
        list[str],
        typer.Option(
            "--fabric",
            metavar="NAME=PATH[,PATH...]",
            help="A fabric and what was measured on it: each file, or folder of files, is one launch.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUNDIR", help="A new run directory.")],
    importer: Annotated[
        str | None,
        typer.Option("--from", metavar="PROGRAM", help=f"Which program wrote it: {FORMATS}. Default: found out."),
    ] = None,
    layer: Annotated[Layer | None, typer.Option(help="The layer, where the text does not tell it.")] = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="The ranks, where the text does not tell them.")] = None,
    message_bytes: Annotated[
        int | None, typer.Option(min=0, help="The size of a message, where the text does not tell it.")
    ] = None,
) -> None:
    """Bring results of other programs into a run directory, for `report`, `compare` and `show`.

    They stay marked as imported, are compared with results of the same program alone, and their path is unproven.
    """
    command = ("fabricbench", *sys.argv[1:])
    options = ImportOptions(importer, layer, ranks, message_bytes)
    manifest = import_run(output, _fabrics(fabrics), options, command=command, tell=_warn)
    blocks = len({launch.block for launch in manifest.planned})
    say(f"{count(len(manifest.planned), 'launch')} in {count(blocks, 'block')}; next: fabricbench report {output}")


def _warn(text: str) -> None:
    say(f"warning: {text}")


def _fabrics(given: list[str]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for one in given:
        name, equals, paths = one.partition("=")
        if not equals or not name or "" in paths.split(","):
            raise UsageError(
                f"--fabric {one!r} is no NAME=PATH[,PATH...]", hint="write --fabric ib=first.txt,second.txt"
            )
        found.setdefault(name, []).extend(Path(path) for path in paths.split(","))
    return found
