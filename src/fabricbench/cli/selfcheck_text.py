"""What `fabricbench selfcheck` writes."""

from __future__ import annotations

from fabricbench.analysis.selfcheck import Selfcheck, SelfcheckResult
from fabricbench.analysis.wording import percent
from fabricbench.cli.tables import Format, Table, as_csv, as_json, as_markdown, as_text

COLUMNS = (
    "fabric",
    "way",
    "launches",
    "cells",
    "trials",
    "with a wrong verdict",
    "wrong verdicts",
    "equivalent",
    "not enough data",
    "resolves",
)


def render(found: Selfcheck, form: Format) -> str:
    """Return the self-check in a format."""
    if form is Format.JSON:
        return as_json({**found.model_dump(mode="json"), "wrong_trials": found.wrong_trials})
    if form is Format.CSV:
        return as_csv([one.model_dump(mode="json") for one in found.results], list(SelfcheckResult.model_fields))
    title = (
        f"wrong verdicts in {percent(found.wrong_trials)} of trials where nothing differs (at most "
        f"{percent(1 - found.confidence)} expected)"
    )
    table = Table(title, COLUMNS, [_row(one) for one in found.results])
    text = (as_markdown if form is Format.MARKDOWN else as_text)(table)
    return "\n".join([text, *(f"not checked: {reason}" for reason in found.skipped)])


def _row(one: SelfcheckResult) -> tuple[str, ...]:
    shares = (one.wrong_trials, one.wrong_verdicts, one.equivalent, one.not_enough_data)
    name = one.fabric if one.twin is None else f"{one.fabric}, {one.twin}"
    counts = (str(one.launches), str(one.cells), str(one.trials))
    return (name, one.way, *counts, *(percent(share) for share in shares), f"about {percent(one.typical_half_width)}")
