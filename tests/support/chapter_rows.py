"""Findings with other rows of some chapters."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import Findings
from fabricbench.model import Model


def with_rows(findings: Findings, **rows: Sequence[Model]) -> Findings:
    """Return findings in which chapters found these rows, by their names; those of no rows found nothing."""
    chapters = {name: tuple(found) for name, found in {**findings.chapters, **rows}.items() if found}
    return findings.model_copy(update={"chapters": chapters})
