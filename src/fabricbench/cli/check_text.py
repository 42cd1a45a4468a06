"""What `fabricbench check` writes, and the error that its verdict is for a shell."""

from __future__ import annotations

from fabricbench.analysis.findings import BASIC_PATTERNS
from fabricbench.analysis.gate import GateCell, GateReport, GateVerdict
from fabricbench.analysis.wording import count, percent
from fabricbench.cli.tables import Format, Table, as_csv, as_json, as_markdown, as_text, bounded_text, value_text
from fabricbench.errors import GateFailed, Inconclusive
from fabricbench.quantity import format_bytes

COLUMNS = ("fabric", "what", "old", "new", "slowdown", "verdict")


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
        "" if key.pattern in BASIC_PATTERNS else key.pattern.value,
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


def conclude(report: GateReport) -> None:
    """Raise what the verdict is for a shell: GateFailed, Inconclusive, or nothing."""
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
