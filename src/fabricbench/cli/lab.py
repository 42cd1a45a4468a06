"""`fabricbench lab`: start, look at, enter and end virtual testbeds."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fabricbench.cli import completion
from fabricbench.cli.output import say
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import PRESETS, EmulatedFabric, Lab, LabStatus, crowding, drop_stale_labs, parse_each, running_labs
from fabricbench.lab.agent import cpu_list
from fabricbench.lab.fabric import KEYS
from fabricbench.lab.topology import GUESTS_NOTE, Rdma
from fabricbench.printable import PrintableConsole, printable
from fabricbench.quantity import count, format_bit_s, format_bytes, format_seconds

app = typer.Typer(
    name="lab",
    help="Virtual testbeds on this machine: nodes in namespaces, joined by emulated switches.",
    epilog="Example: `fabricbench lab up demo --fabric fast-ethernet --fabric myrinet`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class LabFormat(StrEnum):
    """How data is written to stdout."""

    TEXT = "text"
    JSON = "json"


WIDEST_TABLE = 120
"""Columns that the tables need for their figures and sources to be read."""

FormatOption = Annotated[LabFormat, typer.Option("--format", help="How to write it.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.labs, help="The lab's name.")]


@app.command(
    epilog="Example: `fabricbench lab up demo --nodes 4 --fabric fast-ethernet --fabric myrinet:delay=5us,mtu=9000`"
)
def up(
    name: NameArgument,
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 4,
    fabric: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=completion.fabrics,
            help="A preset, perhaps with overrides: `PRESET[:KEY=VALUE,...]`. Give it once for each fabric.",
        ),
    ] = None,
    rdma: Annotated[
        bool, typer.Option("--rdma", help="Give the nodes RDMA devices: soft RoCE over each fabric.")
    ] = False,
    rdma_kernel: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The User-Mode Linux kernel of the nodes' guests; without it FABRICBENCH_UML names it."
        ),
    ] = None,
    own_processors: Annotated[
        bool | None,
        typer.Option(
            "--own-processors/--shared-processors",
            help="Whether each node has processors of its own; without either: where there are enough.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Start a lab and leave it running."""
    _say_dropped()
    fabrics = parse_each(fabric or [])
    if not fabrics:
        raise UsageError("no fabric is asked for", hint=f"add --fabric with one of {', '.join(PRESETS)}")
    if rdma_kernel is not None and not rdma:
        raise UsageError("--rdma-kernel is for labs with RDMA", hint="add --rdma")
    lab = Lab.up(name, nodes, fabrics, owned=False, rdma=rdma, rdma_kernel=rdma_kernel, own_cpus=own_processors)
    names = ", ".join(planned.fabric.name for planned in lab.topology.fabrics)
    _say(f"lab {name} is up: {count(nodes, 'node')}, emulated fabrics {names}")
    if lab.topology.rdma is Rdma.GUESTS:
        _say(GUESTS_NOTE)
    for crowded in crowding():
        _say(crowded)
    _say(
        f"enter a node with `fabricbench lab exec {name} n0 -- COMMAND`, end the lab with `fabricbench lab down {name}`"
    )


@app.command(epilog="Example: `fabricbench lab status demo --format json`")
def status(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=completion.labs, help="The lab's name; without it, every lab."),
    ] = None,
    form: FormatOption = LabFormat.TEXT,
) -> None:
    """Show nodes, addresses, and what each switch has counted."""
    _say_dropped()
    found = [Lab.open(each).status() for each in ([name] if name else running_labs())]
    if form is LabFormat.JSON:
        documents = [one.model_dump(mode="json") for one in found]
        typer.echo(json.dumps(documents[0] if name else documents, indent=2))
        return
    if not found:
        _say("no lab is running")
    for one in found:
        _print_status(one)


@app.command(
    name="exec",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: `fabricbench lab exec demo n0 -- iperf3 -s`",
)
def exec_(
    name: NameArgument,
    node: Annotated[str, typer.Argument(help="The node: n0, n1, ...")],
    command: Annotated[list[str], typer.Argument(help="The command and its arguments.")],
) -> None:
    """Run any command inside a node; its exit code is this one's."""
    lab = Lab.open(name)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current directory does not exist any more", hint="change to another one") from None
    tokens = lab.command_in(node, command, working_directory=here, environment={})
    try:
        # The command takes this process's place: terminal, signals and exit code are its own.
        os.execvp(tokens[0], tokens)  # noqa: S606
    except OSError as error:
        raise EnvironmentLacks(f"cannot start {tokens[0]}: {error}") from None


@app.command(epilog="Example: `fabricbench lab down demo`")
def down(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", autocompletion=completion.labs, help="The lab's name.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="End every lab of this user.")] = False,
) -> None:
    """End a lab and wait until all of it is gone."""
    if bool(name) == every:
        raise UsageError("say which lab to end", hint="give its NAME, or --all")
    _say_dropped()
    names = running_labs() if name is None else [name]
    if not names:
        _say("no lab is running")
    for each in names:
        Lab.open(each).down()
        _say(f"lab {each} is gone")


@app.command(name="list", epilog="Example: `fabricbench lab list --format json`")
def list_(form: FormatOption = LabFormat.TEXT) -> None:
    """List the running labs of this user."""
    _say_dropped()
    names = running_labs()
    if form is LabFormat.JSON:
        typer.echo(json.dumps(names))
        return
    if not names:
        _say("no lab is running")
    for name in names:
        typer.echo(printable(name))


@app.command(epilog="Example: `fabricbench lab presets --format json`")
def presets(form: FormatOption = LabFormat.TEXT) -> None:
    """Show the fabrics that can be asked for, each figure with its source."""
    if form is LabFormat.JSON:
        typer.echo(json.dumps([preset.model_dump(mode="json") for preset in PRESETS.values()], indent=2))
        return
    console = _console()
    for preset in PRESETS.values():
        table = Table(title=f"{preset.name}: {preset.words}", title_justify="left", box=None, title_style="bold")
        for heading in ("key", "figure", "source"):
            table.add_column(heading)
        keys = {field: key for key, field in KEYS.items()}
        for field in preset.figures:
            table.add_row(keys[field], _figure(preset, field), preset.sources[field])
        console.print(table, "")
    _say(f"override any with PRESET:KEY=VALUE,...; the keys are {', '.join(KEYS)}")


def _figure(fabric: EmulatedFabric, field: str) -> str:
    value = getattr(fabric, field)
    if field.endswith("_bit_s"):
        return format_bit_s(value, 5)
    if field.endswith("_s"):
        return format_seconds(value, 2) if value else "0"
    if field == "columns":
        return "most square" if value is None else str(value)
    if field == "cell":
        return "none" if value is None else f"{value.payload_bytes}/{value.cell_bytes}"
    return format_bytes(value) if field.endswith("_bytes") and value >= 0 else str(value)


def _print_status(lab: LabStatus) -> None:
    console = _console()
    owner = f", dies with process {lab.owner_pid}" if lab.is_owned else ""
    console.print(f"[bold]{lab.name}[/bold]: up since {lab.started_at}, as {lab.mode}{owner}, keeper {lab.keeper_pid}")
    nodes = Table(box=None)
    for heading in ("node", "control", *(f"{fabric.name} ({fabric.interface})" for fabric in lab.fabrics)):
        nodes.add_column(heading)
    if lab.rdma is Rdma.GUESTS:
        nodes.add_column("guest")
    for node in lab.nodes:
        nodes.add_row(
            node.name + ("" if node.state == "up" else f" ({node.state})"),
            str(node.control_address),
            *(str(address) for address in node.addresses.values()),
            *([f"process {node.guest_pid}" if node.guest_pid else "ended"] if lab.rdma is Rdma.GUESTS else []),
        )
    switches = Table(box=None)
    for heading in ("switch", "state", "frames in", "out", "dropped", "lost", "late by (median, p99)"):
        switches.add_column(heading)
    for fabric in lab.fabrics:
        ports, late = fabric.switch.ports, fabric.switch.lateness_ns
        switches.add_row(
            fabric.name,
            fabric.switch.state,
            str(sum(port.received_frames for port in ports)),
            str(sum(port.sent_frames for port in ports)),
            str(sum(port.dropped_frames for port in ports)),
            str(sum(port.ring_lost_frames + port.unsent_frames for port in ports)),
            f"{format_seconds(late.p50 * 1e-9)}, {format_seconds(late.p99 * 1e-9)}" if late and late.count else "-",
        )
    console.print(nodes, _processor_words(lab), "", switches, "", highlight=False)
    for fabric in lab.fabrics:
        asked = fabric.asked
        rate, delay = (
            format_bit_s(asked.line_rate_bit_s, 5),
            format_seconds(asked.delay_s, 2) if asked.delay_s else "no delay",
        )
        words = f"{rate}, {asked.switching_words}, {delay} a link, MTU {asked.mtu}{asked.link_words}"
        console.print("; ".join(filter(None, (f"{fabric.name} is emulated: {words}", asked.scale_words))))


def _processor_words(lab: LabStatus) -> str:
    """Return which processors programs on the nodes have: each its own, or all of them the same ones."""
    if all(node.cpus for node in lab.nodes):
        return "each node has its own: " + ", ".join(f"{node.name} on {cpu_list(node.cpus)}" for node in lab.nodes)
    return f"all nodes share {count(len(lab.node_cpus), 'processor')}: {cpu_list(lab.node_cpus)}"


def _console() -> PrintableConsole:
    """Return the console for tables: a reader who is no terminal, or a narrow one, gets whole lines and not a word on each."""
    console = PrintableConsole()
    return PrintableConsole(width=max(console.width, WIDEST_TABLE))


def _say_dropped() -> None:
    for name in drop_stale_labs():
        _say(f"dropped what a killed process left of lab {name}")


def _say(text: str) -> None:
    say(text)
