"""`fabricbench plan`: what a run would start, exactly, and how long it would take; starts nothing.

And what the planned campaign will find, in words: a small table here, one line for `run`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from fabricbench.campaign.condition import commands_of
from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.power import GateNeed, Power, gate_need, power_of
from fabricbench.campaign.preparing import Prepared, prepare
from fabricbench.campaign.start import PROBE, start_of
from fabricbench.campaign.venue import Conditioned
from fabricbench.cli.arguments import (
    BlocksOption,
    BudgetOption,
    CampaignArgument,
    NodesOption,
    NoiseOption,
    SeedOption,
    TestbedOption,
)
from fabricbench.cli.output import check_output, share_option, text_width, write_output
from fabricbench.launch.launcher import Command
from fabricbench.launch.mpi import programs_of, starter_of
from fabricbench.model import Layer
from fabricbench.native import native_file
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, format_bytes, format_duration, format_seconds
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.setup import setup_of, words_of
from fabricbench.table import as_text, table
from fabricbench.testbed.allocation import other_groups
from fabricbench.testbed.model import LauncherKind
from fabricbench.testbed.preflight_result import folded

RUNDIR = Path("RUNDIR")
"""Stands for the run directory, which `plan` does not ask for."""


class PlanFormat(StrEnum):
    """How `plan` writes."""

    TEXT = "text"
    JSON = "json"


app = typer.Typer()


@app.command()
def plan(
    context: typer.Context,
    campaign: CampaignArgument,
    testbed: TestbedOption,
    nodes: NodesOption = None,
    budget: BudgetOption = None,
    blocks: BlocksOption = None,
    seed: SeedOption = None,
    noise_from: NoiseOption = None,
    gate: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Also the blocks that `check --max-regression` of this needs: 5% say."),
    ] = None,
    format_: Annotated[PlanFormat, typer.Option("--format")] = PlanFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List every launch with the order of its tests.")
    ] = False,
    submit: Annotated[
        bool, typer.Option("--submit", help="Print the batch script that `run --submit` would send to Slurm.")
    ] = False,
) -> None:
    """Print what `run` would start with the same arguments: order, commands, tests, how long it takes, what it will find.

    Example: `fabricbench plan quick --testbed lab:fast-ethernet,myrinet --budget 5min`
    """
    check_output(output)
    allowed = None if gate is None else share_option(gate, "--gate")
    if submit:
        from fabricbench.cli import submitting  # noqa: PLC0415 - a plan that is no job starts faster without it

        expected = submitting.prepare_for_job(campaign, testbed, budget, blocks, seed, noise_from)
        command = submitting.command_inside(
            context, RUNDIR, (*submitting.OURS, "gate", "format_", "verbose", "force"), "run"
        )
        write_output(submitting.script_shown(expected, command, None, RUNDIR), output)
        return
    prepared = prepare(campaign, testbed, nodes, budget, blocks, seed, noise_from)
    commands = _commands(prepared)
    if format_ is PlanFormat.JSON:
        text = json.dumps(_data(prepared, commands, allowed), indent=1) + "\n"
    else:
        text = "\n".join(_lines(prepared, commands, allowed, is_verbose=verbose)) + "\n"
    write_output(text, output)


def _commands(prepared: Prepared) -> dict[str, Command]:
    """The command of each launch by its name; in a lab that is not built yet, as `fabricbench lab exec` would do it."""
    launcher = prepared.venue.sketch()
    plan = prepared.plan
    commands = {}
    for launch in plan.launches:
        directory = RUNDIR / "launches" / launch.launch_id
        fabric = plan.fabric(launch.fabric)
        program = start_of(launch, plan).program(directory, launcher.meeting_address(fabric))
        commands[launch.launch_id] = launcher.command(fabric, program, directory, plan.ranks_of(launch))
    return commands


def _binaries(prepared: Prepared) -> dict[str, str]:
    """The MPI of each fabric with the measurer that was built with it; empty where the testbed names no MPI."""
    plan = prepared.plan
    if not plan.mpis:
        return {}
    starter = starter_of(prepared.venue.testbed())
    measurers = {one.name: native_file(PROBE, programs_of(plan.mpi_of(one.name))) for one in plan.fabrics}
    return {one.name: f"{starter.of(one).mpi}, {measurers[one.name]}" for one in plan.fabrics}


def _finds(prepared: Prepared, allowed: float | None) -> tuple[Power, GateNeed | None]:
    """What the campaign will find, and what a gate that allows so much would need."""
    plan, noise = prepared.plan, prepared.noise
    return power_of(plan, noise, prepared.campaign.margin), None if allowed is None else gate_need(plan, noise, allowed)


def _data(prepared: Prepared, commands: dict[str, Command], allowed: float | None) -> dict[str, Any]:
    plan = prepared.plan
    finds, gate = _finds(prepared, allowed)
    return {
        "campaign": prepared.campaign.model_dump(mode="json"),
        "testbed": prepared.venue.testbed().model_dump(mode="json"),
        "seed": plan.seed,
        "blocks": plan.blocks,
        "ranks": plan.ranks,
        "estimated_seconds": plan.estimated_seconds,
        "patient_seconds": plan.patient_seconds,
        "notes": list(plan.notes),
        "finds": finds.model_dump(mode="json"),
        "gate": None if gate is None else gate.model_dump(mode="json"),
        "mpis": _binaries(prepared),
        "settings": _settings(prepared),
        "cells": [cell.model_dump(mode="json") for cell in plan.cells],
        "launches": [
            {
                **launch.model_dump(mode="json"),
                "command": list(commands[launch.launch_id].tokens),
                "environment": dict(commands[launch.launch_id].environment),
            }
            for launch in plan.launches
        ],
    }


def _lines(
    prepared: Prepared, commands: dict[str, Command], allowed: float | None, *, is_verbose: bool
) -> Iterator[str]:
    plan, testbed = prepared.plan, prepared.venue.testbed()
    fabrics = ", ".join(fabric.name for fabric in plan.fabrics)
    noun = "fabric" if len(plan.fabrics) == 1 else "fabrics"
    yield f"campaign {plan.campaign} on {testbed.name}: {count(len(testbed.nodes), 'node')}, {noun} {fabrics}"
    if any(len(nodes) < len(testbed.nodes) for nodes in testbed.node_sets):
        for nodes, names in testbed.node_sets.items():
            yield f"  {', '.join(names)} on {folded(nodes)}"
    yield (
        f"{count(plan.blocks, 'block')}, {count(len(plan.launches), 'launch')} of {_ranks(plan)}, "
        f"{count(len(plan.cells), 'test')}, "
        f"about {format_duration(plan.estimated_seconds)}, seed {plan.seed}"
    )
    notes = (_time_note(plan), other_groups() if testbed.is_allocated else "", *plan.notes)
    for note in filter(None, notes):
        yield from wrap(f"note: {note}", text_width(), subsequent_indent="  ", break_on_hyphens=False)
    finds, gate = _finds(prepared, allowed)
    yield from power_lines(finds)
    if gate is not None:
        yield from gate_lines(gate, finds)
    yield ""
    yield from _launch_lines(plan, is_verbose=is_verbose)
    yield ""
    if binaries := _binaries(prepared):
        yield "MPI of each fabric, and what is built with it:"
        yield from (f"  {fabric}: {binary}" for fabric, binary in binaries.items())
        yield ""
    kinds = "fabric and workload" if any(launch.workload for launch in plan.launches) else "fabric"
    yield f"commands, one for each {kinds} (LAUNCH stands for the launch's name; --format json has them all):"
    for launch in (one for one in plan.launches if one.block == 0):
        what = f"{launch.fabric} {launch.workload.name}" if launch.workload else launch.fabric
        yield f"  {what}: {str(commands[launch.launch_id]).replace(launch.launch_id, 'LAUNCH')}"
    yield from _settings_lines(prepared)
    yield ""
    yield "tests, by number:"
    yield from _cell_lines(plan.cells)


def _settings(prepared: Prepared) -> dict[str, list[str]]:
    """Return the commands that set each side's settings of hosts; empty where no condition sets any."""
    venue = prepared.venue
    if not isinstance(venue, Conditioned):
        return {}
    place = venue.of.testbed()
    # Who logs in as root elsewhere is asked for no sudo there; in a lab everybody is root.
    is_root = place.launcher is LauncherKind.LAB or os.geteuid() == 0
    return dict(commands_of(place, venue.conditions, with_sudo=not is_root))


def _settings_lines(prepared: Prepared) -> Iterator[str]:
    settings = _settings(prepared)
    if not settings:
        return
    nodes = folded(node.name for node in prepared.venue.testbed().nodes)
    yield ""
    yield f"settings of {nodes} for each side, written before a launch where they differ; what a side does not set is as it was:"
    for side, lines in settings.items():
        yield from (f"  {side}: {line}" for line in lines)
    if any("DEV" in line.split() for lines in settings.values() for line in lines):
        yield "  DEV stands for the node's interface in the fabric's subnet"
    yield "  all are read back before and after each launch, and restored at the end (docs/conditions.md)"


def _time_note(plan: RunPlan) -> str:
    """Say what the time rests on, and what may exceed it."""
    patient = (
        f", and operations whose ranks seldom begin together by up to {format_duration(plan.patient_seconds)} in all"
        if plan.patient_seconds
        else ""
    )
    return f"about is without other load: what else takes the processors makes it longer{patient}"


def _ranks(plan: RunPlan) -> str:
    """`4 ranks`, or `1 to 4 ranks` where workloads take fewer."""
    numbers = {plan.ranks_of(launch) for launch in plan.launches}
    return count(min(numbers), "rank") if len(numbers) == 1 else f"{min(numbers)} to {max(numbers)} ranks"


def _cell_lines(cells: Sequence[PlanProbe]) -> Iterator[str]:
    widest = max(len(cell.pattern) for cell in cells)
    for cell in cells:
        bound = "about" if PATTERNS[cell.pattern].family is Family.WORKLOAD else "at most"
        line = (
            f"  {cell.id:3}  {cell.layer:6} {cell.pattern:{widest}} {format_bytes(cell.message_bytes):>8}  {cell.receive:8} "
            f"{bound} {format_seconds(cell.stopping.maximum_seconds)}  {', '.join(words_of(cell.pattern, setup_of(cell)))}"
        )
        yield line.rstrip()


def _launch_lines(plan: RunPlan, *, is_verbose: bool) -> Iterator[str]:
    """Yield the order of launches: a line for each of the first blocks, or for every launch, with the order of its tests."""
    if is_verbose:
        yield "launches, in this order:"
        yield from map(_launch_line, plan.launches)
        return
    blocks: dict[int, list[LaunchPlan]] = {}
    for launch in plan.launches:
        blocks.setdefault(launch.block, []).append(launch)
    yield "launches, in this order (--verbose lists all, with the order of their tests):"
    for launches in list(blocks.values())[:BLOCKS_SHOWN]:
        seconds = sum(launch.estimated_seconds + launch.pause_seconds for launch in launches)
        line = f"{', '.join(launch.launch_id for launch in launches)}, about {format_duration(seconds)}"
        yield from _wrapped(line)
    if len(blocks) > BLOCKS_SHOWN:
        yield f"  and {count(len(blocks) - BLOCKS_SHOWN, 'more block')} of the same, each in an order of its own"


BLOCKS_SHOWN = 2
"""Of many that differ in nothing but their order."""


def _launch_line(launch: LaunchPlan) -> str:
    order = " ".join(str(cell) for cell in launch.cells)
    return f"  {launch.launch_id:24} about {format_duration(launch.estimated_seconds):>10}  tests {order}"


MET = (Layer.TCP, Layer.RDMA, Layer.MPI)
"""Layers that users meet, which the one line of `run` is about."""

UNKNOWN = "floods, what a congestor disturbs, matrices, kernels, layers that were not measured"

NEVER = "no"
"""For a difference that so few blocks cannot find, however useful it were."""

NOTHING_USEFUL = "not even an elevenfold difference"
"""Beyond `power.USEFUL` none is told."""


def power_lines(power: Power) -> Iterator[str]:
    """Yield the table of what is found, and what it rests on; nothing where fabrics are not compared."""
    if not power.found:
        if power.left_out:
            yield f"what it will find cannot be said: nothing is known of the noise of its tests ({UNKNOWN})"
        return
    yield ""
    title = f"what {_finders(power)} with 80 %, a difference of at least (in brackets: if all tests differ):"
    rows = [
        (
            f"{found.kind} over {_listed(found.layers)}",
            _pair(found.faster, found.faster_among_all),
            _pair(found.ahead, found.ahead_among_all),
            _blocks(found.equivalent_blocks),
        )
        for found in power.found
    ]
    columns = ("", "called faster", "named ahead", f"equal within {_percent(power.margin)}")
    yield from as_text(table(columns, rows, title=title)).splitlines()
    if any(NEVER in row[1:3] for row in rows):
        yield from _wrapped(f"{NEVER}: {NOTHING_USEFUL} is found by so few blocks of this noise.")
    yield from _left_out(power.left_out)
    yield from _wrapped(
        f"{power.tests} comparisons are corrected together. Planned with the noise of {power.noise}: {power.source}."
    )


def gate_lines(gate: GateNeed, power: Power) -> Iterator[str]:
    """Yield how many blocks a gate needs, by kind of test and in all."""
    yield ""
    if not gate.by_kind:
        yield f"what a gate needs cannot be said: nothing is known of the noise of the tests ({UNKNOWN})"
        return
    rows = [(f"{kind} over {_listed(layers)}", _blocks(blocks)) for kind, layers, blocks in gate.by_kind]
    title = f"blocks that each run needs for a gate of {_percent(gate.allowed)} to pass an unchanged system with 80 %:"
    columns = ("", "blocks")
    rows.append(("all of them at once", _blocks(gate.all_cells)))
    yield from as_text(table(columns, rows, title=title)).splitlines()
    yield from _left_out(gate.left_out)
    yield from _wrapped(
        f"Planned with the noise of {power.noise}, and as if two runs differed by nothing but their launches."
    )


def _finders(power: Power) -> str:
    """Return `12 blocks find`, `1 block finds`."""
    return f"{count(power.blocks, 'block')} {'finds' if power.blocks == 1 else 'find'}"


def found_note(power: Power) -> list[str]:
    """Return what is found over the layers that users meet, in one line; nothing where fabrics are not compared."""
    ranges = []
    of_met = [one for one in power.found if set(one.layers) & set(MET)]
    if of_met and all(one.faster is None for one in of_met):
        least = "no difference that is useful to know, not even elevenfold"
        return [f"{_finders(power)} {least}; noise of {power.noise}, more by `plan`"]
    for layer in MET:
        found = sorted((one.faster, one.kind) for one in power.found if layer in one.layers and one.faster is not None)
        if found:
            (low, finest), (high, coarsest) = found[0], found[-1]
            is_range = _percent(low) != _percent(high)
            ends = f"{_percent(low)} ({finest}) to {_percent(high)} ({coarsest})" if is_range else _percent(low)
            ranges.append(f"over {layer} from {ends}")
    if not ranges:
        return []
    return [f"with 80 % a difference is called faster {', '.join(ranges)}; noise of {power.noise}, more by `plan`"]


def _left_out(cells: int) -> list[str]:
    if not cells:
        return []
    what, whose = ("1 test is", "its") if cells == 1 else (f"{cells} tests are", "their")
    return _wrapped(f"{what} not in the table: nothing is known of {whose} noise ({UNKNOWN}).")


def _wrapped(text: str) -> list[str]:
    return wrap(text, text_width(), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _listed(layers: Sequence[Layer]) -> str:
    return ", ".join(layers)


def _pair(alone: float | None, among_all: float | None) -> str:
    if alone is None:
        return NEVER
    return _percent(alone) if among_all is None else f"{_percent(alone)} ({_percent(among_all)})"


def _blocks(blocks: int | None) -> str:
    return "over 1000 blocks" if blocks is None else count(blocks, "block")


def _percent(share: float) -> str:
    """Return a share in percent with two digits: `7.3 %`, `19 %`."""
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == round(percent) else f"{percent:.1f} %"
