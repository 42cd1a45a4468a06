"""What `fabricbench check --format junit` writes: a suite for each fabric, a case for each test that was judged.

A regression is a failure. What the data cannot say is skipped, with the reason: CI shows it, and the exit code stays 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.analysis.gate import GateCell, GateReport, GateVerdict
from fabricbench.analysis.wording import percent
from fabricbench.cli.check_text import words_of_test
from fabricbench.cli.output import bounded_text, value_text
from fabricbench.exchange.junit import Case, Suite, TestOutcome, document
from fabricbench.record.provenance import MARKS, Proof

GATE = "gate"
"""The suite of what no test stands for: what was lost, other machines, tests that are not the same on both sides."""


def junit_document(report: GateReport) -> str:
    """Return the gate's report as a JUnit document."""
    fabrics = dict.fromkeys(cell.fabric for cell in report.cells)
    suites = [
        Suite(name, [_case(cell, report) for cell in report.cells if cell.fabric == name], _properties(report, name))
        for name in fabrics
    ]
    whole = list(_of_the_whole(report))
    return document([*suites, *([Suite(GATE, whole)] if whole else [])]).decode()


def _properties(report: GateReport, fabric: str) -> dict[str, str]:
    """Return what the numbers of a fabric are, and what they were judged by."""
    origins = [mark.value for mark in MARKS if fabric in report.marks.get(mark, ())]
    told = {"allowed": percent(report.maximum_regression), "confidence": f"{report.confidence:g}"}
    told |= {"origin": ", ".join(origins)} if origins else {}
    return told | ({"path": Proof.UNKNOWN.doubt} if fabric in report.unproven else {})


def _case(cell: GateCell, report: GateReport) -> Case:
    key, allowed = cell.key, percent(report.maximum_regression)
    low, high = (None if bound is None else f"{bound:.3f}" for bound in (cell.slowdown_low, cell.slowdown_high))
    found = f"slowdown {bounded_text(f'{cell.slowdown:.3f}', low, high)}, allowed {1.0 + report.maximum_regression:.3f}"
    old, new = (value_text(one, key.metric, cell.unit) for one in (cell.old, cell.new))
    outcome, kind = None, ""
    if cell.verdict is GateVerdict.REGRESSED and not cell.is_control:
        outcome, kind = TestOutcome.FAILURE, "slower"
    elif cell.verdict is not GateVerdict.PASSED:
        outcome, kind = TestOutcome.SKIPPED, "control" if cell.is_control else "not enough data"
    why = [found, *(text for text in (cell.gave_nothing, cell.unequal_work) if text)]
    if cell.is_control and outcome is not None:
        why.append(f"the control, which fails no gate: {cell.verdict}")
    elif outcome is TestOutcome.SKIPPED:
        why.append(f"whether it is slower by more than {allowed} cannot be said")
    return Case(
        classname=f"fabricbench.{cell.fabric}.{key.layer}.{key.pattern}",
        name=words_of_test(key),
        outcome=outcome,
        kind=kind,
        message="; ".join(why),
        text=f"{old} before, {new} after; {found}",
    )


def _of_the_whole(report: GateReport) -> Iterator[Case]:
    kinds = {
        "lost": report.lost,
        "other machines than the baseline's": report.other_machines,
        "not in all runs": report.unmatched,
        "another test than in the baseline": report.redefined,
        "not judged, as the baseline lacks it": report.unjudged,
    }
    for kind, found in kinds.items():
        for what in found:
            yield Case(
                "fabricbench.gate", f"{kind}: {what}", outcome=TestOutcome.SKIPPED, kind=kind, message=f"{kind}: {what}"
            )
