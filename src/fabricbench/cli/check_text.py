"""What `fabricbench check` writes, and the error that its verdict is for a shell."""

from __future__ import annotations

from math import log1p

from fabricbench.analysis.findings import BASIC_PATTERNS, CellKey, Replication
from fabricbench.analysis.gate import GateCell, GateReport, GateVerdict
from fabricbench.analysis.wording import percent
from fabricbench.cli.output import OutputFormat, as_json, bounded_text, prose, value_text
from fabricbench.errors import GateFailed, Inconclusive
from fabricbench.quantity import count, format_bytes
from fabricbench.record.provenance import mark_words, origin_column, unproven_words
from fabricbench.report.comma_separated import flat
from fabricbench.report.first_screen import LOST
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES
from fabricbench.table import as_markdown, as_text, rows_csv, table

COLUMNS = ("fabric", "what", "old", "new", "slowdown, interval unadjusted", "verdict")


def render(report: GateReport, form: OutputFormat) -> str:
    """Return the report: all cells for programs, those that did not pass for people."""
    if form is OutputFormat.JSON:
        told_too = {"decides": decides(report), "limits": limits(report)}
        return as_json(report.model_dump(mode="json") | told_too)
    if form is OutputFormat.CSV:
        rows = [
            flat(one.key.model_dump(mode="json") | one.model_dump(mode="json", exclude={"key"}))
            | origin_column(one.fabric, report.marks)
            for one in report.cells
        ]
        return rows_csv(rows).rstrip("\n")
    passed = sum(one.verdict is GateVerdict.PASSED for one in report.cells)
    title = (
        f"{report.verdict.value}: {passed} of {count(len(report.cells), 'test')} within "
        f"{percent(report.maximum_regression)}"
    )
    told = [one for one in report.cells if one.verdict is not GateVerdict.PASSED]
    told.sort(key=lambda one: (one.verdict is not GateVerdict.REGRESSED, -one.slowdown))
    shown = table(COLUMNS, [_row(one) for one in told], title=title)
    text = (as_markdown if form is OutputFormat.MARKDOWN else as_text)(shown) if told else title
    missing = [f"{LOST}: {what}" for what in report.lost]
    missing += [f"other machines than the baseline's: {what}" for what in report.other_machines]
    missing += [f"not in all runs: {name}" for name in report.unmatched]
    missing += [f"another test than in the baseline: {what}" for what in report.redefined]
    missing += [f"not judged, as the baseline lacks it: {what}" for what in report.unjudged]
    changed = [f"changed between the two: {what}" for what in report.changed]
    said = [*mark_words(report.marks), *unproven_words(report.unproven), *decides(report), *limits(report)]
    if form is OutputFormat.MARKDOWN:
        return f"{text}\n\n{prose([*missing, *changed, *said], form)}"
    return "\n".join([text, *missing, *changed, "", *said])


def decides(report: GateReport) -> list[str]:
    """Return what the gate can decide with the noise that it saw, a sentence each."""
    power, runs = report.power, report.replication is Replication.RUNS
    have = f"{report.old_count} and {count(report.new_count, 'run' if runs else 'launch')}"
    if power is None:
        is_none = not report.cells and (report.unmatched or report.redefined)
        why = "no test is the same in both" if is_none else "three on each side are the least"
        if any(cell.slowdown_low is not None for cell in report.cells):
            return [f"how small a change it finds is not known, with {have}: {why}"]
        return [f"can decide: nothing, with {have}: {why}"]
    catches = (
        f"can decide: with {have} it catches a test that became {_slower(power.caught_typical)} slower with 80 % (the "
        f"noisiest, {power.noisiest}: {_slower(power.caught_worst)})"
    )
    passes = (
        f"and passes with 80 % {_passing(power.passed_typical)} (the noisiest: {_passing(power.passed_worst)}); a test that "
        f"did not change passes with {_chance(power.unchanged_typical)} (the noisiest: {_chance(power.unchanged_worst)})"
    )
    lines = [catches, passes]
    if report.verdict is GateVerdict.REGRESSED:  # decided
        return lines
    noun, had = ("run" if runs else "block"), min(report.old_count, report.new_count)
    coarse = [one for one in report.cells if (one.rounding_bound or 0.0) >= log1p(report.maximum_regression)]
    if power.needed is None and coarse:
        lines.append(
            f"no number of {noun}s would decide: {words_of_test(coarse[0].key)} is told in steps that are coarser than "
            f"{percent(report.maximum_regression)}"
        )
    elif power.needed is None:
        lines.append(
            f"would need more than 1,000 {noun}s to decide: the noise is far above {percent(report.maximum_regression)}"
        )
    elif power.needed > had:
        lines.append(
            f"would need about {count(power.needed, noun)} a side to decide: so many pass a system that did not change with 80 %"
        )
    return lines


def limits(report: GateReport) -> list[str]:
    """Return what the gate's error rate does not hold for, a sentence each."""
    unseen = []
    if report.verdict is GateVerdict.PASSED and report.unseen_share is not None:
        sentence = (
            f"limit: {count(report.met, 'new launch')} may have missed a slow mode of up to {_chance(report.unseen_share)} of all "
            f"launches; {EQUIVALENT_LAUNCHES} would have met one of one launch in ten"
        )
        unseen.append(sentence)
    if report.replication is Replication.RUNS:
        if min(report.old_count, report.new_count) > 1:
            return unseen
        single, other = ("old", "new") if report.old_count == 1 else ("new", "old")
        return [
            *unseen,
            f"limit: one {single} run, so how far another would differ from it is taken from the {other} runs",
        ]
    sentence = (
        "limit: one run a side, so what else differed between the two sessions counts as a change of the system; "
        "three runs a side or more (--baseline OLD1 --baseline OLD2 --baseline OLD3 NEW1 NEW2 NEW3) tell the two apart"
    )
    return [*unseen, sentence]


def _slower(ratio: float) -> str:
    return percent(ratio - 1.0)


def _passing(ratio: float) -> str:
    if ratio < 1.0:
        return f"only one that became {percent(1.0 - ratio)} faster"
    return f"one that became up to {percent(ratio - 1.0)} slower"


def _chance(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def words_of_test(key: CellKey) -> str:
    """Return a test in words: `mpi pingpong round trip time library 64 B`."""
    words = (
        key.layer.value,
        key.variant,
        "" if key.pattern in BASIC_PATTERNS else key.pattern.value,
        key.metric.value.replace("_", " "),
        key.receive.value,
        format_bytes(key.message_bytes),
    )
    return " ".join(word for word in words if word)


def _row(one: GateCell) -> tuple[str, ...]:
    bounds = (None if bound is None else f"{bound:.3f}" for bound in (one.slowdown_low, one.slowdown_high))
    return (
        one.fabric,
        words_of_test(one.key),
        value_text(one.old, one.key.metric, one.unit),
        value_text(one.new, one.key.metric, one.unit),
        bounded_text(f"{one.slowdown:.3f}", *bounds),
        "; ".join(
            filter(
                None, (one.verdict.value + (" (control)" if one.is_control else ""), one.gave_nothing, one.unequal_work)
            )
        ),
    )


def conclude(report: GateReport) -> None:
    """Raise what the verdict is for a shell: GateFailed, Inconclusive, or nothing."""
    of = {
        verdict: [one for one in report.cells if one.verdict is verdict and not one.is_control]
        for verdict in GateVerdict
    }
    passed, allowed = of[GateVerdict.PASSED], percent(report.maximum_regression)
    if report.verdict is GateVerdict.REGRESSED:
        control = any(one.is_control and one.verdict is GateVerdict.REGRESSED for one in report.cells)
        hint = "memory, the control, became slower too: the machine changed, measure again" if control else None
        raise GateFailed(f"{count(len(of[GateVerdict.REGRESSED]), 'test')} slower by more than {allowed}", hint=hint)
    if (
        report.verdict is GateVerdict.INCONCLUSIVE
        and report.other_machines
        and passed
        and not of[GateVerdict.INCONCLUSIVE]
    ):
        raise Inconclusive(
            f"every test passes, on other machines than the baseline's: {'; '.join(report.other_machines)}",
            hint="measure a baseline on these machines; where they are the change to be judged, add --other-machines",
        )
    if report.verdict is GateVerdict.INCONCLUSIVE and report.lost and not of[GateVerdict.INCONCLUSIVE]:
        raise Inconclusive(
            f"{'what is left passes' if passed else 'nothing is left to judge'}, and a part was lost: {'; '.join(report.lost)}",
            hint="mend why it was lost (`fabricbench show RUNDIR --format text` tells), and measure it again",
        )
    if report.verdict is GateVerdict.INCONCLUSIVE:
        if not of[GateVerdict.INCONCLUSIVE] and (report.unmatched or report.redefined):
            raise Inconclusive(
                f"{count(len(report.unmatched) + len(report.redefined), 'test')} cannot be compared: not in all runs, or another "
                "test than in the baseline",
                hint="measure a baseline of the tests as they are now; `fabricbench report --before OLD --after NEW` shows both",
            )
        open_cells = len(of[GateVerdict.INCONCLUSIVE]) + len(report.unmatched) + len(report.redefined)
        raise Inconclusive(
            (
                f"{count(open_cells, 'test')} could be slower by more than {allowed} or not: the intervals are "
                "too wide, or data are missing"
            ),
            hint=f"{_way_on(report)}, or allow more",
        )


def _way_on(report: GateReport) -> str:
    """Return what would decide the gate."""
    power = report.power
    if report.replication is Replication.RUNS:
        return "measure more runs on both sides" + (f", {power.needed} each" if power and power.needed else "")
    if power is not None and power.needed_of_new is not None:
        return f"measure more blocks: --until-decided --budget TIME does (about {power.needed_of_new} in the new run decide)"
    return "measure more blocks in both runs: the old one has too few for any number of new ones to decide"
