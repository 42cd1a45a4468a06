"""`fabricbench check`: the gate for CI. Exit codes: 0 passed, 1 a regression, 5 inconclusive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricbench.analysis.gate import GateCell, GateReport, GateVerdict, check_regressions
from fabricbench.analysis.wording import count, percent
from fabricbench.cli.tables import (
    Format,
    Table,
    as_csv,
    as_json,
    as_markdown,
    as_text,
    bounded_text,
    deliver,
    share_option,
    value_text,
)
from fabricbench.errors import GateFailed, Inconclusive
from fabricbench.quantity import format_bytes
from fabricbench.record.store import Run

COLUMNS = ("fabric", "what", "old", "new", "slowdown", "verdict")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def check(
        run: Annotated[Path, typer.Argument(metavar="RUNDIR_NEW", help="The run to judge.")],
        baseline: Annotated[Path, typer.Option(metavar="RUNDIR_OLD", help="The run that it must not be worse than.")],
        max_regression: Annotated[str, typer.Option(help="Largest slowdown that is allowed: 5% or 0.05.")] = "5%",
        confidence: Annotated[str, typer.Option(help="Confidence of intervals and of the gate: 0.95 or 95%.")] = "0.95",
        form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
        output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of stdout.")] = None,
    ) -> None:
        """Gate: exit with 1 if a cell became slower by more than allowed, with 5 if the data cannot say, else with 0.

        A cell passes when its interval excludes a slowdown beyond the allowed one, and regresses when the interval lies
        wholly beyond it (corrected for the number of cells).

        Example: `fabricbench check --baseline runs/old runs/new --max-regression 5%`
        """
        report = check_regressions(
            Run.open(baseline),
            Run.open(run),
            maximum=share_option(max_regression, "--max-regression"),
            confidence=share_option(confidence, "--confidence"),
        )
        deliver(render(report, form), output)
        _conclude(report)


def render(report: GateReport, form: Format) -> str:
    """Return the report: all cells for programs, those that did not pass for people."""
    if form is Format.JSON:
        return as_json(report.model_dump(mode="json"))
    if form is Format.CSV:
        rows = [
            {**one.key.model_dump(mode="json"), **one.model_dump(mode="json", exclude={"key"})} for one in report.cells
        ]
        return as_csv(rows, list(rows[0]) if rows else [])
    passed = sum(one.verdict is GateVerdict.PASSED for one in report.cells)
    title = (
        f"{report.verdict.value}: {passed} of {count(len(report.cells), 'cell')} within "
        f"{percent(report.maximum_regression)}"
    )
    told = [one for one in report.cells if one.verdict is not GateVerdict.PASSED]
    told.sort(key=lambda one: (one.verdict is not GateVerdict.REGRESSED, -one.slowdown))
    table = Table(title, COLUMNS, [_row(one) for one in told])
    text = (as_markdown if form is Format.MARKDOWN else as_text)(table) if told else title
    missing = [f"not in the new run: {name}" for name in report.unmatched]
    return "\n".join([text, *missing])


def _row(one: GateCell) -> tuple[str, ...]:
    key = one.key
    words = (
        key.layer.value,
        key.variant,
        key.metric.value.replace("_", " "),
        key.receive.value,
        format_bytes(key.message_bytes),
    )
    bounds = (None if bound is None else f"{bound:.3f}" for bound in (one.slowdown_low, one.slowdown_high))
    return (
        one.fabric,
        " ".join(word for word in words if word),
        value_text(one.old, key.metric),
        value_text(one.new, key.metric),
        bounded_text(f"{one.slowdown:.3f}", *bounds),
        one.verdict.value + (" (control)" if one.is_control else ""),
    )


def _conclude(report: GateReport) -> None:
    of = {
        verdict: [one for one in report.cells if one.verdict is verdict and not one.is_control]
        for verdict in GateVerdict
    }
    allowed = percent(report.maximum_regression)
    if report.verdict is GateVerdict.REGRESSED:
        control = any(one.is_control and one.verdict is GateVerdict.REGRESSED for one in report.cells)
        hint = "memory, the control, became slower too: the machine changed, measure again" if control else None
        raise GateFailed(f"{count(len(of[GateVerdict.REGRESSED]), 'cell')} slower by more than {allowed}", hint=hint)
    if report.verdict is GateVerdict.INCONCLUSIVE:
        open_cells = len(of[GateVerdict.INCONCLUSIVE]) + len(report.unmatched)
        raise Inconclusive(
            (
                f"{count(open_cells, 'cell')} could be slower by more than {allowed} or not: the intervals are "
                "too wide, or data are missing"
            ),
            hint="measure more blocks in both runs, or allow more",
        )
