"""Warnings about the network itself: who is slow in its matrices, and calls that began too late."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fabricbench.analysis.caution.material import Material, Tally, name_of, note_shares, warn
from fabricbench.analysis.findings import Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.measured import Side
from fabricbench.analysis.wording import percent
from fabricbench.patterns import PATTERNS, Family
from fabricbench.quantity import count
from fabricbench.record.lines import RankInfo

MISSED_SHARE = 0.2
"""Of the samples: a cell that loses more to late starts was measured while the ranks were held up."""

LATE_SHARE = 0.1
"""Of the time: what later starts add is no longer small beside it."""

CLOCK_SHARE = 0.05
"""Of the time: clocks that are known less well may be part of it. The measurer refuses those that shifted by as much."""


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

    def shares(side: Side) -> dict[str, float]:
        missed = {
            name_of(cell): cell.counts["missed"] / (cell.counts["missed"] + cell.pooled.size)
            for cell in side.cells.values()
            if cell.counts["missed"]
        }
        return {name: share for name, share in missed.items() if share > MISSED_SHARE}

    def words(found: Tally) -> str:
        return (
            f"in {found.tests} some rank was often late for the agreed start, most in {found.worst}: "
            f"{found.most} of the samples, which do not count"
        )

    return note_shares(material, shares, words)


def loose_starts(material: Material) -> Iterator[Warning]:
    """Tell where ranks began so late that it is part of the time, and whether they shared their processors."""

    def words(found: Tally) -> str:
        return (
            f"in {found.tests} {_who_began(found.side)} up to {found.most} of the time after the agreed start (most in "
            f"{found.worst}), which is in it: see back to back"
        )

    return note_shares(material, lambda side: _shares(side, "start_tolerance_ns", LATE_SHARE), words)


def uncertain_clocks(material: Material) -> Iterator[Warning]:
    """Tell where the bound of the clocks is not small beside the time of an operation."""

    def words(found: Tally) -> str:
        return (
            f"in {found.tests} the clocks of the ranks are known to no better than {found.most} of the time (most in "
            f"{found.worst}): see the times after a barrier and back to back, which need no clocks that agree"
        )

    return note_shares(material, lambda side: _shares(side, "clock_error_ns", CLOCK_SHARE), words)


def _shares(side: Side, name: str, least: float) -> dict[str, float]:
    """Return the operations of which what was found is more than a share of the time, with the share."""
    shares = {}
    for cell in side.cells.values():
        found = cell.greatest(name)
        if PATTERNS[cell.key.pattern].family is Family.OPERATION and found is not None:
            shares[name_of(cell)] = found / max(float(np.nanmedian(cell.launch_values)), 1.0)
    return {cell: share for cell, share in shares.items() if share > least}


def _who_began(side: Side) -> str:
    """Return `ranks, 4 on 2 processors, began`, of the fullest node of a launch; the record may not tell of processors."""
    header = next((launch.summary.header for launch in side.launches if launch.summary.header is not None), None)
    nodes: dict[str, list[RankInfo]] = {}
    for rank in header.ranks if header is not None else ():
        nodes.setdefault("" if side.fabric.is_emulated else rank.host, []).append(rank)  # an emulator's are one machine
    found = [(len(ranks), len({cpu for rank in ranks for cpu in rank.cpus})) for ranks in nodes.values()]
    if not found or not all(processors for _, processors in found):
        return "ranks began, as where they share processors,"
    ranks, processors = max(found, key=lambda one: one[0] / one[1])
    how = f"{ranks} on {count(processors, 'processor')}"
    return f"ranks, {how}, began" if ranks > processors else "ranks, though each had a processor to itself, began"
