"""Warnings about the network itself: who is slow in its matrices, and calls that began too late."""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.analysis.caution.material import Material, name_of, warn
from fabricbench.analysis.findings import Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.wording import percent
from fabricbench.quantity import count

MISSED_SHARE = 0.2
"""Of the samples: a cell that loses more to late starts was measured while the ranks were held up."""


def slow_pairs(material: Material) -> Iterator[Warning]:
    """Tell who is slow, that a suspect is only that until a second run confirms it, and what differs without a cause."""
    told = set()
    for one in material.maps:
        for slow in one.slow:
            if (one.fabric, slow.words) in told:
                continue
            told.add((one.fabric, slow.words))
            by_how_much = f"{slow.words} ({one.layer.value} {one.pattern.value}: {percent(slow.slower)} slower)"
            if slow.is_confirmed:
                yield warn(Severity.WARNING, one.fabric, f"{by_how_much}, confirmed by a second run")
            else:
                text = f"{by_how_much}: suspected by one run, not measured again; `fabricbench map` does both"
                yield warn(Severity.NOTE, one.fabric, text)
        if one.is_judged and one.unnamed_words:
            severity = Severity.WARNING if one.is_measured_again else Severity.NOTE
            yield warn(severity, one.fabric, f"map of {one.layer.value} {one.pattern.value}: {one.unnamed_words}")


def failed_pairs(material: Material) -> Iterator[Warning]:
    """Tell which pairs of a map could not be measured, and why: their places are empty, or rest on fewer launches."""
    for one in material.maps:
        for words in one.failed_words:
            yield warn(Severity.WARNING, one.fabric, f"map of {one.layer.value} {one.pattern.value}: {words}")


def missed_starts(material: Material) -> Iterator[Warning]:
    """Tell where many calls had a rank that was late for the agreed start."""
    for side in material.sides:
        shares = {
            name_of(cell): cell.counts["missed"] / (cell.counts["missed"] + cell.pooled.size)
            for cell in side.cells.values()
            if cell.counts["missed"]
        }
        many = {name: share for name, share in shares.items() if share > MISSED_SHARE}
        if many:
            worst = max(many, key=lambda name: many[name])
            text = (
                f"in {count(len(many), 'test')} some rank was often late for the agreed start, most in {worst}: "
                f"{percent(many[worst])} of the samples, which do not count"
            )
            yield warn(Severity.NOTE, side.name, text)
