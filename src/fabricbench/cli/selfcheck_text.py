"""What `fabricbench selfcheck` writes, and the error that its outcome is for a shell."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from fabricbench.analysis.measured import cell_name
from fabricbench.analysis.selfcheck import (
    CellAgainstItself,
    Dependence,
    PlainComparison,
    Selfcheck,
    SelfcheckResult,
)
from fabricbench.analysis.wording import percent
from fabricbench.cli.output import OutputFormat, as_csv, as_json, prose
from fabricbench.errors import GateFailed, Inconclusive
from fabricbench.quantity import count
from fabricbench.record.provenance import mark_words, origin_column, unproven_words
from fabricbench.table import Table, as_markdown, as_text, table

PLAIN_COLUMNS = ("fabric", "against", "launches", "tests", "that differ", "largest difference", "finds with 80 %")
DEPENDENCE_COLUMNS = ("launches of", "launches", "lag-1 autocorrelation", "p adj.", "drift, first to last", "p adj.")
METHOD_COLUMNS = (
    "fabric",
    "way",
    "launches",
    "tests",
    "trials",
    "with a wrong verdict",
    "wrong verdicts",
    "equivalent",
    "not enough data",
    "resolves",
)

NAMED_AT_MOST = 3
"""Cells that a failure names, the worst; all are in the JSON."""


def render(found: Selfcheck, form: OutputFormat) -> str:
    """Return the self-check in a format; CSV holds the check of the method, JSON everything."""
    if form is OutputFormat.JSON:
        extra = {"wrong_trials": found.wrong_trials, "outcome": outcome(found), "failures": failures(found)}
        return as_json(found.model_dump(mode="json") | extra)
    if form is OutputFormat.CSV:
        rows = [one.model_dump(mode="json") | origin_column(one.fabric, found.marks) for one in found.results]
        return as_csv(rows, [*SelfcheckResult.model_fields, *(["origin"] if found.marks else [])])
    write = as_markdown if form is OutputFormat.MARKDOWN else as_text
    head = [outcome(found), *(f"  {failure}" for failure in failures(found))]
    parts = [prose([*head, *mark_words(found.marks), *unproven_words(found.unproven)], form)]
    if found.plain:
        parts.append(write(_plain_table(found)))
    if found.dependence:
        parts.append(write(_dependence_table(found.dependence)))
    if found.results:
        parts.append(write(_method_table(found)))
    if found.skipped:
        parts.append(prose([f"not checked: {reason}" for reason in found.skipped], form))
    return "\n\n".join(parts)


def outcome(found: Selfcheck) -> str:
    """Return in a sentence what the check came to."""
    if not found.plain:
        return "not enough data: no fabric could be compared with itself"
    if not found.has_failed:
        return (
            "passed: no fabric differs from itself, and launches do not depend on each other, as far as these data tell"
        )
    return (
        "failed: verdicts on this testbed are not to be trusted yet (a healthy one fails in "
        f"{percent(1 - found.confidence)} of checks by chance: measure again, a second failure decides)"
    )


def failures(found: Selfcheck) -> list[str]:
    """Return what failed, and what it spoils, a sentence each."""
    return [_difference(one) for one in found.plain if one.named] + [
        text for one in found.dependence for text in _dependence(one)
    ]


def conclude(found: Selfcheck) -> None:
    """Raise what the outcome is for a shell: GateFailed, Inconclusive, or nothing."""
    if not found.plain:
        raise Inconclusive(
            f"nothing can be checked: {'; '.join(found.skipped) or 'no fabric has launches enough'}",
            hint="measure more blocks: 6 launches of a fabric are the least, or 3 blocks of a fabric that is listed twice",
        )
    if found.has_failed:
        raise GateFailed(
            f"{count(len(failures(found)), 'finding')} of bias or dependence where nothing differs",
            hint="see what changed on the machine meanwhile (`fabricbench doctor`), and measure again: a second failure decides",
        )


def _difference(one: PlainComparison) -> str:
    typical = median(abs(cell.ratio - 1.0) for cell in one.named)
    cells = _enumerated(one.named)
    how_many = f"{len(one.named)} of {count(one.cells, 'test')}, by {percent(typical)} in the median of these ({cells})"
    if one.way == "twins":
        return (
            f"{one.fabric} differs from {one.twin}, which is the same fabric, in {how_many}: verdicts between fabrics "
            "would be wrong by as much"
        )
    return (
        f"{one.fabric} differs between the first and the second half of its launches in {how_many}: verdicts between runs would be "
        "wrong; those within blocks hold as long as the ratio does not drift"
    )


def _enumerated(cells: Sequence[CellAgainstItself]) -> str:
    told = [f"{cell_name(one.key)} {_signed(one.ratio)}" for one in cells[:NAMED_AT_MOST]]
    return "; ".join([*told, *(["..."] if len(cells) > NAMED_AT_MOST else [])])


def _signed(ratio: float) -> str:
    return f"{100.0 * (ratio - 1.0):+.3g} % in time"


def _dependence(one: Dependence) -> list[str]:
    told = []
    of_ratio = one.other is not None
    what = f"the ratio of {one.other} to {one.fabric}" if of_ratio else one.fabric
    spoils = "verdicts within blocks" if of_ratio else "verdicts between runs and intervals of medians"
    if one.has_drift and one.drift is not None:
        told.append(f"{what} drifts by {_signed(one.drift)} from the first launch to the last: {spoils} would be wrong")
    if one.is_autocorrelated and one.autocorrelation is not None:
        unit = "block" if of_ratio else "launch"
        told.append(
            f"{what} resembles the {unit} before (lag-1 autocorrelation {one.autocorrelation:.2f}): {spoils} would claim too much"
        )
    return told


def _plain_table(found: Selfcheck) -> Table:
    rows = [
        (
            one.fabric,
            one.twin or "its second half",
            str(one.launches),
            str(one.cells),
            str(len(one.named)),
            f"{one.largest_ratio - 1.0:.1%}".replace("%", " %"),
            _finds(one.finds),
        )
        for one in found.plain
    ]
    return table(PLAIN_COLUMNS, rows, title="each fabric against itself, as it was measured")


def _finds(ratio: float) -> str:
    """Return a bias; more than a factor of ten is said so."""
    return f"{ratio - 1.0:.1%}".replace("%", " %") if ratio < 10.0 else "no bias below a factor of 10"


def _dependence_table(dependence: Sequence[Dependence]) -> Table:
    rows = [
        (
            one.fabric if one.other is None else f"{one.other} / {one.fabric}",
            str(one.launches),
            "" if one.autocorrelation is None else f"{one.autocorrelation:.2f}",
            "" if one.p_autocorrelation is None else f"{one.p_autocorrelation:.2g}",
            "" if one.drift is None else _signed(one.drift),
            "" if one.p_drift is None else f"{one.p_drift:.2g}",
        )
        for one in dependence
    ]
    return table(DEPENDENCE_COLUMNS, rows, title="do launches, or the ratios of blocks, depend on each other?")


def _method_table(found: Selfcheck) -> Table:
    title = (
        f"a check of the method, which hides any bias: wrong verdicts in {percent(found.wrong_trials)} of trials with launches "
        f"exchanged at random (at most {percent(1 - found.confidence)} expected)"
    )
    return table(METHOD_COLUMNS, [_row(one) for one in found.results], title=title)


def _row(one: SelfcheckResult) -> tuple[str, ...]:
    shares = (one.wrong_trials, one.wrong_verdicts, one.equivalent, one.not_enough_data)
    name = one.fabric if one.twin is None else f"{one.fabric}, {one.twin}"
    counts = (str(one.launches), str(one.cells), str(one.trials))
    return (name, one.way, *counts, *(percent(share) for share in shares), f"about {percent(one.typical_half_width)}")
