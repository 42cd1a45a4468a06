"""Warnings as a reader meets them: the gravest first, and what several subjects share said once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricbench.analysis.findings import Caution, Severity
from fabricbench.report.words import counted, spoken


@dataclass(frozen=True)
class WarningGroup:
    """One text, and all that it is about."""

    severity: Severity
    subjects: tuple[str, ...]
    text: str

    @property
    def subject(self) -> str:
        """The subjects in words; what they share after their first colon is said once."""
        heads, _, tails = zip(*(subject.partition(": ") for subject in self.subjects), strict=True)
        if len(set(tails)) == 1 and tails[0]:
            return f"{spoken(heads)}: {tails[0]}"
        if len(set(heads)) == 1 and all(tails):
            return f"{heads[0]}: {spoken(tails)}"
        return spoken(self.subjects)


def grouped(warnings: Sequence[Caution]) -> list[WarningGroup]:
    """Return the warnings by severity, the gravest first, equal texts together in the order of their first mention."""
    subjects: dict[tuple[Severity, str], dict[str, None]] = {}
    for warning in sorted(warnings, key=lambda warning: list(Severity).index(warning.severity)):
        subjects.setdefault((warning.severity, warning.text), {})[warning.subject] = None
    return [WarningGroup(severity, tuple(named), text) for (severity, text), named in subjects.items()]


def count_words(groups: Sequence[WarningGroup]) -> str:
    """Return `1 invalid, 2 warnings, 3 notes`."""
    numbers = {severity: sum(group.severity is severity for group in groups) for severity in Severity}
    plurals = {Severity.INVALID: "invalid", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
    return ", ".join(
        counted(number, severity.value, plurals[severity]) for severity, number in numbers.items() if number
    )
