"""What it takes to start one launch of the measurer, beyond what its MPI takes to start nothing.

    python -m benchmarks.starting [--testbed lab:fast-ethernet] [--nodes 4] [--rounds 15] [--build FOLDER]... [--write PAGE]

In turn, A B A B: `mpiexec true` by itself, with the same starter, placement and settings as a launch; the same under the guard;
a launch with one short cell, all of it as a run does it, from the plan's file to the stored record. A launch is shown in its parts:
what Python does before and after, MPI_Init, the cell. What is measured is no part of starting: what a launch takes beyond `mpiexec
true` is shown with its cell and less it. What hangs (docs/starting.md) is started again, and told. `--build` names the folder of
programs built with another MPI, once for each; the package's own are always among them. With --write the table replaces the one
between the markers of a page.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from benchmarks.page import show

from fabricbench.campaign.attempt import Attempts
from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment, Ranks
from fabricbench.campaign.venue import find_venue
from fabricbench.launch import guard
from fabricbench.launch.launcher import Launcher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.watch import run_watched
from fabricbench.model import Layer, Pattern
from fabricbench.native import FOLDER_VARIABLE
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.integrity import CELLS
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.launch import LaunchSummary
from fabricbench.testbed.model import Testbed

CELL_SECONDS = 0.01
LIMIT_SECONDS = 60.0
HUNG_SECONDS, MOST_TRIES = 10.0, 3
TARGET_SECONDS = 0.5
KINDS = {"ping-pong": (Layer.TCP, Pattern.PINGPONG), "allreduce": (Layer.MPI, Pattern.ALLREDUCE)}
"""A cell of sockets, and one whose calls begin by the ranks' clocks, which are synchronised before it and after all."""

CELL = "of which the cell"
BARE, GUARDED = "`mpiexec true`", "the same under the guard"
Spans = dict[str, list[float]]


def plan_of(testbed: Testbed, layer: Layer, pattern: Pattern, rounds: int) -> RunPlan:
    """Return a plan of launches of one short cell over all nodes; a pair is the first and the last of them."""
    ranks: Ranks = (0, len(testbed.nodes) - 1) if PATTERNS[pattern].family is Family.PAIR else "all"
    experiment = Experiment(
        layers=(layer,), pattern=pattern, message_bytes=(8,), ranks=ranks, maximum_seconds=CELL_SECONDS
    )
    campaign = Campaign(name="starting", experiments=(experiment,), blocks=max(2, rounds))
    return plan_run(campaign, testbed, seed=1)


def without_guard(tokens: Sequence[str]) -> list[str]:
    """Return the tokens of a launch less the guard's: what somebody would type."""
    end = tokens.index(guard.__file__)
    begin = end - 3  # python -I -S
    return [*tokens[:begin], *tokens[end + 1 :]]


@contextmanager
def timed(spans: Spans, what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    spans.setdefault(what, []).append(time.perf_counter() - begin)


def start_nothing(launcher: Launcher, plan: RunPlan, spans: Spans, *, is_guarded: bool) -> None:
    """Start `true` on every rank; again where the starter hangs."""
    fabric = plan.fabrics[0]
    for _ in range(MOST_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            command = launcher.command(fabric, ["true"], Path(folder), plan.ranks)
            tokens = list(command.tokens) if is_guarded else without_guard(command.tokens)
            begin = time.perf_counter()
            try:
                subprocess.run(
                    tokens,
                    cwd=folder,
                    env={**os.environ, **command.environment},
                    stdin=subprocess.DEVNULL,
                    check=True,
                    capture_output=True,
                    timeout=HUNG_SECONDS,
                )
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{BARE} hung for {HUNG_SECONDS:.0f} s\n")
                continue
            spans.setdefault(GUARDED if is_guarded else BARE, []).append(time.perf_counter() - begin)
            return
    raise RuntimeError(f"{BARE} hung {MOST_TRIES} times")


def start_launch(attempts: Attempts, journal: Journal, launch: LaunchPlan, spans: Spans) -> LaunchSummary:
    """Do a launch as `Execution` does, and time its parts."""
    with timed(spans, "a launch"):
        with timed(spans, "before: plan, folder, journal"):
            attempt = attempts.prepare(launch)
            journal.append(JournalEvent.STARTED, launch.launch_id, attempt=1, command=list(attempt.command.tokens))
        with timed(spans, "from start to end of the program"):
            outcome = run_watched(attempt.command, limit_seconds=LIMIT_SECONDS)
        with timed(spans, "after: record, proof, Parquet, journal"):
            stored = attempts.store(attempt, outcome)
            if stored is None or stored.summary.header is None:  # a cell may fail where ranks share processors
                raise RuntimeError(f"a launch ended with {outcome.exit_code}: {outcome.stderr_tail}")
            journal.append(
                JournalEvent.FINISHED, launch.launch_id, sha256=journal.hashes(attempt.directory / "launch.json")
            )
    return stored.summary


def of_record(directory: Path, summary: LaunchSummary, spans: Spans) -> None:
    """Add what the record tells: MPI_Init of the slowest rank, and the cell."""
    assert summary.header is not None
    told = [rank.start_up_ns or 0 for rank in summary.header.ranks]
    spans.setdefault("of which MPI_Init, the slowest rank", []).append(max(told) / 1e9)
    (cell,) = pl.read_parquet(directory / CELLS).to_dicts()
    spans.setdefault(CELL, []).append((cell["end_unix_ns"] - cell["begin_unix_ns"]) / 1e9)


def measure(where: str, nodes: int | None, rounds: int) -> dict[str, Spans]:
    """Return the seconds of each part by kind of cell."""
    venue = find_venue(where, nodes)
    found: dict[str, Spans] = {}
    with venue.open() as launcher, tempfile.TemporaryDirectory() as folder:
        for kind, (layer, pattern) in KINDS.items():
            plan = plan_of(venue.testbed(), layer, pattern, rounds)
            directory = RunDirectory(Path(folder) / pattern)
            directory.create()
            attempts, journal = Attempts(directory, plan, launcher), Journal(directory.path)
            spans: Spans = {}
            first = Spans()
            start_nothing(launcher, plan, first, is_guarded=True)  # reads programs from the disk
            start_launch(attempts, journal, plan.launches[-1], first)
            for launch in plan.launches[:rounds]:
                start_nothing(launcher, plan, spans, is_guarded=False)
                summary = start_launch(attempts, journal, launch, spans)
                of_record(directory.launch(launch.launch_id), summary, spans)
                start_nothing(launcher, plan, spans, is_guarded=True)
            found[kind] = spans
    return found


def table(found: Mapping[str, Spans]) -> list[str]:
    """Return the medians as Markdown, with the least and the greatest of each."""
    lines = ["| cell | what | median | least to greatest |", "| --- | --- | ---: | ---: |"]
    for kind, spans in found.items():
        for what, seconds in spans.items():
            lines.append(f"| {kind} | {what} | {statistics.median(seconds) * 1e3:.0f} ms | {_range(seconds)} |")
        beyond = [launch - bare for launch, bare in zip(spans["a launch"], spans[BARE], strict=True)]
        lines.append(
            f"| {kind} | a launch beyond {BARE} | {statistics.median(beyond) * 1e3:.0f} ms | {_range(beyond)} |"
        )
        less = [each - cell for each, cell in zip(beyond, spans[CELL], strict=True)]
        lines.append(
            f"| {kind} | **the same less its cell** | **{statistics.median(less) * 1e3:.0f} ms** | {_range(less)} |"
        )
    return lines


def _range(seconds: Sequence[float]) -> str:
    return f"{min(seconds) * 1e3:.0f} to {max(seconds) * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description="what a launch costs beyond its MPI's start")
    parser.add_argument("--testbed", default="lab:fast-ethernet")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", type=Path, action="append", default=[])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    nodes = given.nodes if given.testbed.startswith("lab:") else None
    if given.one:
        starter = find_starter()
        print(f"**{starter.library.NAME} {starter.library_version}**, started by {starter.starter.NAME}:\n")
        print("\n".join(table(measure(given.testbed, nodes, given.rounds))))
        return
    where = f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    what = (
        f"{given.testbed}, {given.nodes} nodes, {given.rounds} of each in turn, a cell of {CELL_SECONDS * 1e3:.0f} ms"
    )
    lines = [f"{where}; {what}."]
    own = [sys.executable, "-m", "benchmarks.starting", "--one"]
    own += ["--testbed", given.testbed, "--nodes", str(given.nodes), "--rounds", str(given.rounds)]
    for build in (None, *given.build):
        variables = {} if build is None else {FOLDER_VARIABLE: str(build.resolve())}
        done = subprocess.run(own, env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE, text=True)
        lines += ["", *done.stdout.rstrip().splitlines()]
    show(lines, "starting-cost", given.write)


if __name__ == "__main__":
    main()
