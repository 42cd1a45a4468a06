"""`fabricbench check`: the gate for CI. Exit codes: 0 passed, 1 a regression, 5 inconclusive."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.gate import GateReport, GateVerdict, check_regressions, name_on
from fabricbench.analysis.measured import name_of_cell
from fabricbench.campaign.failure import LaunchesFailed
from fabricbench.campaign.preparing import budget_seconds
from fabricbench.campaign.run import resume_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.cli.arguments import refuse_without
from fabricbench.cli.baselines import BaselineOption, GoodRunsOption, LastGoodOption, baselines_of
from fabricbench.cli.check_junit import junit_document
from fabricbench.cli.check_text import conclude, render
from fabricbench.cli.losses import losses_said
from fabricbench.cli.output import OutputFormat as TableFormat
from fabricbench.cli.output import check_output, say, share_option, write_output
from fabricbench.cli.progress import RunProgress, interruptible
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.model import Pattern
from fabricbench.printable import printable
from fabricbench.quantity import count
from fabricbench.record.last_good import GateResult, keep_gate_result
from fabricbench.record.manifest import MOST_BLOCKS
from fabricbench.record.setup import variant
from fabricbench.record.store import Run

FEWEST_ADDED = 2
"""Blocks that one more look is worth: each look costs a part of the error that is allowed."""


class CheckFormat(StrEnum):
    """How `check` writes."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    JUNIT = "junit"


NewRunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUNDIR_NEW ...", help="The run to judge, or several that count as one side.")
]
OtherMachinesOption = Annotated[
    bool,
    typer.Option("--other-machines", help="Nodes, processors or kernels are meant to be other: that is judged."),
]
UntilDecidedOption = Annotated[
    bool, typer.Option("--until-decided", help="Measure more blocks into the new run until the gate can say.")
]
BudgetOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="With --until-decided: the time for that, 30min say.")
]


app = typer.Typer()


@app.command()
def check(
    context: typer.Context,
    run: NewRunsArgument,
    baseline: BaselineOption = None,
    last_good: LastGoodOption = None,
    good_runs: GoodRunsOption = 1,
    max_regression: Annotated[str, typer.Option(help="Largest slowdown that is allowed: 5% or 0.05.")] = "5%",
    confidence: Annotated[str, typer.Option(help="Confidence of intervals and of the gate: 0.95 or 95%.")] = "0.95",
    other_machines: OtherMachinesOption = False,
    until_decided: UntilDecidedOption = False,
    budget: BudgetOption = None,
    form: Annotated[CheckFormat, typer.Option("--format", help="How to write it.")] = CheckFormat.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
) -> None:
    """Gate: exit with 1 if a test became slower by more than allowed, with 5 if the data cannot say, else with 0.

    A test passes when its interval excludes a slowdown beyond the allowed one, and regresses when the interval lies
    wholly beyond it (corrected for the number of tests). Fabrics and tests that the new run lacks, and other machines than
    the baseline's, leave it open. Told as well: what the gate could decide with these data, and what it cannot exclude.

    Example: `fabricbench check --baseline runs/old runs/new --max-regression 5%`

    Several runs a side, so that sessions that differ by themselves are no regression:
    `fabricbench check --baseline runs/a1 --baseline runs/a2 --baseline runs/a3 runs/b1 runs/b2 runs/b3`

    For CI: `fabricbench check --baseline runs/old runs/new --format junit -o check.xml`

    Night after night, against the last three that lost nothing: `fabricbench check runs/new --last-good runs --good-runs 3`

    Measuring on: `fabricbench check --baseline runs/old runs/new --until-decided --budget 30min`
    """
    check_output(output)
    if last_good is None:
        refuse_without(context, "--last-good", "good_runs")
    allowed, level = share_option(max_regression, "--max-regression"), share_option(confidence, "--confidence")
    baselines = baselines_of(baseline or (), last_good, good_runs, run)
    old = [Run.open(path) for path in baselines]

    def look() -> GateReport:
        with losses_said():
            return check_regressions(
                old,
                [Run.open(path) for path in run],
                maximum=allowed,
                confidence=level,
                expects_other_machines=other_machines,
            )

    if until_decided:
        _check_one_baseline(baselines)
        report = _decide(look, run, budget)
    elif budget is not None:
        raise UsageError("--budget is the time for measuring on", hint="add --until-decided, or leave --budget out")
    else:
        report = look()
    is_junit = form is CheckFormat.JUNIT
    if last_good is not None:
        _keep(report, run[0], baselines)
    write_output(junit_document(report) if is_junit else render(report, TableFormat(form.value)) + "\n", output)
    conclude(report)


def _keep(report: GateReport, run: Path, baselines: Sequence[Path]) -> None:
    """Keep with a run what came of it, so that one that did not pass is nobody's baseline."""
    result = GateResult(
        is_regressed=report.verdict is GateVerdict.REGRESSED,
        is_inconclusive=report.verdict is GateVerdict.INCONCLUSIVE,
        baselines=tuple(printable(str(path)) for path in baselines),
        unix_ns=time.time_ns(),
    )
    try:
        keep_gate_result(run, result)
    except (EnvironmentLacks, UsageError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        say(f"what came of it is not kept, and {run} may be a later run's baseline: {why}")


def _check_one_baseline(baselines: Sequence[Path]) -> None:
    """Refuse blocks where runs are what is repeated: they make none of them more."""
    if len(baselines) > 1:
        raise UsageError(
            f"--until-decided adds blocks to one run: against {len(baselines)} baselines a run is one value, and no block decides",
            hint="give one baseline, or measure more new runs and leave --until-decided out",
        )


def _decide(look: Callable[[], GateReport], runs: list[Path], budget: str | None) -> GateReport:
    """Measure blocks into the new run and look again, until the gate is decided or the next blocks do not fit into the budget.

    The run's manifest counts the looks, and each tests at its share of the error.
    """
    if len(runs) != 1:
        raise UsageError(
            f"--until-decided measures into one run, and {len(runs)} were given",
            hint="give one new run; what differs between sessions shows in more runs, not in more blocks",
        )
    if budget is None:
        raise UsageError("--until-decided needs to know when to give up", hint="add --budget 30min, say")
    path, until = runs[0], time.monotonic() + budget_seconds(budget)
    while True:
        report, stored = look(), Run.open(path)
        is_open = any(one.verdict is GateVerdict.INCONCLUSIVE and not one.is_control for one in report.cells)
        if report.verdict is not GateVerdict.INCONCLUSIVE:
            return report
        if not is_open and (report.redefined or planned_names(path).isdisjoint(report.unmatched)):
            return report  # more blocks make no test the one that it was, and bring none that is not planned
        if report.other_machines:
            return report  # nor do they bring the baseline's machines back
        have = measured_blocks(stored)
        more = blocks_to_add(report, have, seconds_a_block(stored), until - time.monotonic())
        if more == 0:
            return report
        say(f"{count(have, 'block')} {'does' if have == 1 else 'do'} not decide: {more} more are measured into {path}")
        planned = len({launch.block for launch in stored.manifest.planned})
        preflight = stored.manifest.preflight is None or not stored.manifest.preflight.is_skipped
        try:
            with RunProgress() as progress, interruptible(path, progress.show) as notify:
                resume_run(path, notify=notify, blocks=planned + more, preflight=preflight)
        except LaunchesFailed as error:  # the gate says what the others show
            say(error.message)
            return look()
        if measured_blocks(Run.open(path)) <= have:
            return look()  # what was measured gave nothing valid: more of it would not either


def planned_names(path: Path) -> set[str]:
    """Return what the launches of a run are to measure, by the names that the gate has for it."""
    plan = RunDirectory(path).read_plan().plan
    names = set()
    for launch in plan.launches:
        figure = launch.workload.figure if launch.workload is not None else None
        for probe in (plan.cells[cell] for cell in launch.cells):
            is_by_time = probe.pattern is Pattern.WORKLOAD and figure is not None and figure.better == "lower"
            name = name_of_cell(probe.layer, probe.pattern, probe.message_bytes, variant(probe))
            names.add(name_on(launch.fabric, name, figure.name if figure is not None and is_by_time else None))
    return names


def measured_blocks(run: Run) -> int:
    """Return how many blocks of a run have a valid launch."""
    return len({launch.block for launch in run.launches if launch.is_valid})


def seconds_a_block(run: Run) -> float:
    """Return how long a block of a run took to measure, on average; starting the launches is not in it."""
    times = [(launch.summary.header, launch.summary.footer) for launch in run.launches]
    measured_ns = sum(end.finished_unix_ns - begin.started_unix_ns for begin, end in times if begin and end)
    return measured_ns * 1e-9 / max(measured_blocks(run), 1)


def blocks_to_add(report: GateReport, have: int, block_seconds: float, seconds_left: float) -> int:
    """Return how many blocks to add before the next look: up to the number that should decide, as many as fit; 0 ends it.

    Where no number of the new run's blocks is enough, the run grows by half: a regression may still show.
    """
    needed = report.power.needed_of_new if report.power is not None else None
    wanted = needed - have if needed is not None else have // 2
    fit = int(seconds_left / block_seconds) if block_seconds > 0 else 0
    added = min(max(wanted, FEWEST_ADDED), fit, MOST_BLOCKS - have)
    return added if added >= FEWEST_ADDED else 0
