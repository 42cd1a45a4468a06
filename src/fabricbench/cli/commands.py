"""The commands: which there are, and a group that imports the module of one when it is asked for.

So a module of a command imports what it needs at its top, and only that command takes the time.
"""

from __future__ import annotations

import importlib
import keyword
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "run": "Measure a campaign on every fabric of a testbed, in blocks of balanced orders. Ctrl-C keeps what "
    "was measured.",
    "plan": "Print what `run` would start with the same arguments: order, commands, tests, how long it takes, "
    "what it will find.",
    "resume": "Go on with a run, by the same plan and seed: what is finished stays, what was cut short is kept "
    "aside and run again.",
    "import": "Bring results of other programs into a run directory, for `report`, `compare` and `show`.",
    "compare": "Compare the fabrics of a run, or one fabric's runs before and after: ratio, interval, corrected "
    "p-value, verdict.",
    "report": "Write the dossier of a run, of runs before and after, or of configurations: one HTML file that "
    "opens anywhere, offline.",
    "figure": "Draw any tests of any runs on one pair of axes; its numbers go beside it (`x-data.csv`).",
    "check": "Gate: exit with 1 if a test became slower by more than allowed, with 5 if the data cannot say, else "
    "with 0.",
    "selfcheck": "Compare a fabric with itself: exit with 1 if it differs from itself or its launches depend on each "
    "other, 5 if data lack.",
    "show": "Show every sample of a run, or the summary of its tests.",
    "export": "Write a launch's value of each test as other programs read it, with its unit, fabric, test, launch "
    "and origin.",
    "verify": "Say whether a run is whole and unaltered: every file that results are made of is held against its hash.",
    "runs": "List the runs in a folder (the present one) and below it, newest first, with how much of each is there.",
    "trend": "Show the tests of a folder's runs in order of time, and where they changed, by how much and with "
    "what else.",
    "map": "Show latency and bandwidth of every pair of nodes, and name slow links, slow nodes and slow directions.",
    "explain": "Show the stages of round trips: how long each message is in library and socket, in the queue, on the "
    "wire, waking up.",
    "list": "List the layers, patterns, operations and kinds of workload that can be measured, or tell one of "
    "them in detail.",
    "lab": "Virtual testbeds on this machine: nodes in namespaces, joined by emulated switches.",
    "testbed": "Testbed files: write the first one, prove one; restore what runs have set.",
    "doctor": "Take the inventory of this host and say which settings hurt measurements, and what to do.",
    "build": "Build the native programs with another MPI, once for each: fabrics whose [[mpi]] that is are "
    "measured with them.",
    "version": "Print the version, and the build of each native program: what nodes must have alike.",
}
"""Each command with what the overview says of it, which is how its own help begins, in the order of that: a line each."""


class LazyGroup(TyperGroup):
    """Lists `COMMANDS`, and imports the one that is to be run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that is asked for, and import it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else command(name), rest


def command(name: str) -> Any:
    """Import `fabricbench.cli.NAME`, or `NAME_` where that is a word of Python, and return the command that is its `app`."""
    module = importlib.import_module(f"fabricbench.cli.{name}{'_' * keyword.iskeyword(name)}")
    alone = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    alone.add_typer(module.app)
    return typer.main.get_group(alone).commands[name]
