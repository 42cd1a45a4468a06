"""`fabricbench testbed`: write a first testbed file from what hosts have, prove one, and restore what conditions set."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.campaign.discovering import AskedHosts, look_at_hosts, wanted_lab
from fabricbench.cli import completion, restore
from fabricbench.cli.doctor import UNBOUNDED, PreflightFormat
from fabricbench.cli.output import check_output, output_width, say, write_output
from fabricbench.cli.progress import RunProgress
from fabricbench.cli.testbed_check import check_testbed, conclude, find_place, measured_rates, render
from fabricbench.errors import UsageError
from fabricbench.quantity import count
from fabricbench.testbed.allocation import allocated_nodes
from fabricbench.testbed.discovery import with_measured
from fabricbench.testbed.first_file import first_file, read_back
from fabricbench.testbed.model import LauncherKind
from fabricbench.testbed.reading import expand_nodes

app = typer.Typer(
    name="testbed",
    help="Testbed files: write the first one, prove one; restore what runs have set.",
    epilog="Example: `fabricbench testbed init --hosts 'node[001-004]' -o rack-7.toml`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


app.add_typer(restore.app)


@app.command(
    epilog="Examples: `fabricbench testbed init --hosts 'node[001-004]' -o rack-7.toml`, "
    "in a batch job `fabricbench testbed init --slurm -o job.toml`"
)
def init(
    hosts: Annotated[
        list[str] | None,
        typer.Option(metavar="HOSTS", help="A node set, `node[001-004]` say, or several: give it again for each."),
    ] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="The nodes of the Slurm job that this runs in.")] = False,
    lab: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=completion.labs, help="The nodes of a running lab.")
    ] = None,
    launcher: Annotated[
        str | None, typer.Option(help="How hosts are reached: ssh, or slurm (srun in a job). ssh if not given.")
    ] = None,
    reach: Annotated[
        str | None,
        typer.Option(metavar="TOKENS", help="Instead of ssh: `kubectl exec {node} -- {program}` (docs/starting.md)."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What reports call the testbed.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the line rates that no driver tells (virtual interfaces).")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new file, instead of stdout.")
    ] = None,
) -> None:
    """Look at hosts and write a first testbed file: the networks they share, with rate, MTU, RDMA and the MPI that is there.

    Each host is asked by the doctor of the fabricbench that is installed there. What was found and left out stands in comments.
    The file is never overwritten. Exit code 3 names the hosts that do not answer.
    """
    wanted = _wanted(hosts or [], lab, launcher, reach, name, is_slurm=slurm)
    _check_new(output)
    with RunProgress() as progress:
        found, origin = look_at_hosts(wanted, ("fabricbench", *sys.argv[1:]), progress.show)
    text = first_file(found, origin)
    testbed = read_back(text)
    if measure:
        found = with_measured(found, measured_rates(testbed))
        text = first_file(found, origin)
        read_back(text)
    _check_new(output)
    write_output(text, output)
    if output is not None:
        named = ", ".join(network.name for network in found.networks)
        say(f"{output} names {count(len(found.nodes), 'host')} and the networks {named}")
        say(f"read it, correct it, then prove it: fabricbench testbed check {shlex.quote(str(output))}")


@app.command(
    epilog="Examples: `fabricbench testbed check rack-7.toml`, `fabricbench testbed check lab:demo --format json`"
)
def check(
    testbed: Annotated[
        str,
        typer.Argument(
            metavar="WHERE", autocompletion=completion.testbeds, help="A testbed file, or lab:NAME of a running lab."
        ),
    ],
    form: Annotated[PreflightFormat, typer.Option("--format", help="How to write it.")] = PreflightFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUNDIR", help="Keep what was measured: a run directory a fabric."),
    ] = None,
) -> None:
    """Prove a testbed: every node is reached, has the same versions and sane clocks, and every fabric carries what its file says.

    Every pair of nodes is measured on every fabric, with messages of its full MTU, over TCP and over MPI, whose traffic must go
    there and nowhere else. Who looks slow is measured again before it is named. What is wrong with a node leaves it out of what is
    measured on that fabric; the others are proven all the same. Exit code 0, or 3 with the list of what is wrong and what to do.
    """
    found = check_testbed(find_place(testbed), output)
    write_output(render(found, form, output_width(None, UNBOUNDED)) + "\n", None)
    conclude(found)


def _check_new(output: Path | None) -> None:
    check_output(output)
    if output is not None and str(output) != "-" and output.exists() and not output.is_char_device():
        raise UsageError(
            f"{output} is there already, and somebody may have corrected it", hint="remove it, or write another file"
        )


def _wanted(
    hosts: list[str], lab: str | None, launcher: str | None, reach: str | None, name: str | None, *, is_slurm: bool
) -> AskedHosts:
    """Return which hosts the options ask for, and how they are reached; UsageError where they contradict each other."""
    if [bool(hosts), is_slurm, lab is not None].count(True) != 1:
        raise UsageError(
            "which hosts? One of --hosts, --slurm and --lab is needed",
            hint="--hosts 'node[001-004]' over ssh, --slurm within a job, --lab NAME for a lab that runs",
        )
    if lab is not None:
        return wanted_lab(lab, name)
    if launcher not in (None, LauncherKind.SSH, LauncherKind.SLURM) or (is_slurm and launcher == LauncherKind.SSH):
        raise UsageError(f"--launcher {launcher} does not fit", hint="write ssh or slurm; --slurm is always slurm")
    try:
        names = tuple(dict.fromkeys(node for one in hosts for node in expand_nodes(one)))
        tokens = tuple(shlex.split(reach or ""))
    except ValueError as error:
        raise UsageError(f"--hosts or --reach: {error}", hint="write --hosts 'node[001-004]'") from None
    names = names or allocated_nodes()
    return AskedHosts(
        hosts=names,
        launcher=LauncherKind.SLURM if is_slurm else LauncherKind(launcher or LauncherKind.SSH),
        name=name or f"cluster-of-{len(names)}",
        reach=tokens,
        is_allocated=is_slurm,
    )
