"""Warnings about the data themselves: left out, missing, failed, lost, few."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.caution.material import MOST_NAMED, Material, name_of, named, warn
from fabricbench.analysis.findings import Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.gaps import find_gaps, wide
from fabricbench.analysis.wording import enumeration, percent
from fabricbench.model import Pattern
from fabricbench.quantity import count, format_duration, with_ranges, without_numbers
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.provenance import Proof
from fabricbench.statistics.order import median_interval

Floats = NDArray[np.float64]

LOSS_SHARE = 0.01
"""A stream over an unreliable layer that loses more than this is a warning, less is a note."""

WHEREABOUTS = re.compile(r"^rank \d+ on \S+: ")
"""Which rank found that a cell cannot be measured: mostly any of them could have."""

NOT_COUNTED = {
    LaunchOutcome.CUT_SHORT: "their records are not whole",
    LaunchOutcome.FAILED: "their programs, or the testbed under them, failed while they measured",
}
"""Why a launch that left data is left out."""


def invalid_launches(material: Material) -> Iterator[Warning]:
    """Tell which launches were left out, and why."""
    for side in material.sides:
        for launch in side.invalid:
            why = "; ".join(launch.summary.facts.invalid_because) or "its path proof failed"
            yield warn(Severity.INVALID, f"launch {launch.launch_id}", f"left out of everything here: {why}")


def unproven_launches(material: Material) -> Iterator[Warning]:
    """Tell which launches count though nobody counted their traffic."""
    for side in material.sides:
        names = [launch.launch_id for launch in side.launches if launch.proof is Proof.UNKNOWN]
        if names:
            text = (
                f"{count(len(names), 'launch')} of unproven path ({named(names)}): no counter shows that their traffic took "
                f"{side.fabric.name}"
            )
            yield warn(Severity.WARNING, side.name, text)


def unequal_work(material: Material) -> Iterator[Warning]:
    """Tell of workloads that were not the same on all fabrics: another program, or another result where it must be one."""
    facts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for side in material.sides:
        for launch in side.launches:
            part = launch.summary.workload
            for what, fact in part.fixed.items() if part is not None else ():
                facts.setdefault((part.name if part is not None else "", what), {}).setdefault(fact, set()).add(
                    side.name
                )
    for (name, what), found in facts.items():
        if len(found) > 1:
            told = "; ".join(f"{fact} on {enumeration(sorted(sides))}" for fact, sides in found.items())
            yield warn(
                Severity.WARNING,
                name,
                f"its {what} is not the same in all launches ({told}): more differs than the network",
            )


def missing_launches(material: Material) -> Iterator[Warning]:
    """Tell which planned launches have no data, and which have some that is damaged or that ended before it was whole."""
    for run in dict.fromkeys(id(side.run) for side in material.sides):
        of_run = next(side.run for side in material.sides if id(side.run) == run)
        names = [launch.launch_id for launch in of_run.missing]
        if names:
            text = (
                f"{count(len(names), 'planned launch')} without data ({named(names)}); `fabricbench resume "
                f"{quote(str(of_run.path))}` measures them; until then a verdict is a look that is not paid for"
            )
            yield warn(Severity.WARNING, "incomplete run", text)
        if of_run.altered_manifest is not None:
            yield warn(Severity.WARNING, "manifest.json", of_run.altered_manifest)
        for launch in of_run.damaged:
            yield warn(Severity.WARNING, f"launch {launch.launch_id}", f"left out of everything here: {launch.reason}")
        for outcome, why in NOT_COUNTED.items():
            names = [launch.launch_id for launch in of_run.unfinished if launch.summary.outcome is outcome]
            if names:
                yield warn(
                    Severity.WARNING,
                    "unfinished launches",
                    f"{named(names)}: {why}; they are left out of everything here",
                )


def unusual_ends(material: Material) -> Iterator[Warning]:
    """Tell which launches count though their program died, by what and where, and of which nobody saw the end."""
    for side in material.sides:
        ends: dict[str, list[str]] = {}
        for launch in side.launches:
            if launch.summary.outcome in (LaunchOutcome.DIED_AFTER_RECORD, LaunchOutcome.UNKNOWN):
                ends.setdefault(launch.summary.end_in_words, []).append(launch.launch_id)
        for words, names in ends.items():
            text = f"{named(names)}: {words}; what was measured is used, stderr.log beside it may tell more"
            yield warn(Severity.WARNING, side.name, text)


def dead_switches(material: Material) -> Iterator[Warning]:
    """Tell during which launches the emulated switch of the fabric died."""
    for side in material.sides:
        names = [launch.launch_id for launch in side.launches if launch.summary.facts.has_dead_switch(side.fabric.name)]
        if names:
            text = f"the emulated switch was dead at the end of {named(names)}: do not trust what they measured"
            yield warn(Severity.INVALID, side.name, text)


def wide_gaps(material: Material) -> Iterator[Warning]:
    """Tell where the halves of a pair were measured too far apart in time, so that pairing cancels no drift."""
    for pairing in material.pairings:
        if not pairing.is_paired:
            continue
        gaps = find_gaps((*pairing.a.launches, *pairing.b.launches))
        found = wide(gaps)
        if not found:
            continue
        has_kernels = any(gap.subject for gap in gaps)
        of_all = f"{len(found)} of {count(len(gaps), 'pair' if has_kernels else 'block')}"
        where = named([gap.launch_ids[0] for gap in found] if has_kernels else [f"b{gap.block:02d}" for gap in found])
        longest = max(gap.seconds for gap in found)
        text = (
            f"the halves of {of_all} ({where}) were measured {'up to ' if len(found) > 1 else ''}"
            f"{format_duration(longest)} apart: what drifted between is in their ratio"
        )
        yield warn(Severity.WARNING, f"{pairing.b.name} / {pairing.a.name}", text)


def failed_cells(material: Material) -> Iterator[Warning]:
    """Tell which cells could not be measured, once for each cause: reasons that differ in numbers and ranks are one."""
    for side in material.sides:
        by_cause: dict[str, list[tuple[str, str]]] = {}
        for cell, reason, _ in side.failed:
            what = WHEREABOUTS.sub("", reason)
            by_cause.setdefault(without_numbers(what), []).append((cell, what))
        for told in by_cause.values():
            cells = list(dict.fromkeys(cell for cell, _ in told))
            which = f"{len(cells)} tests ({named(cells)})" if len(cells) > MOST_NAMED else named(cells)
            text = f"{which} could not be measured: {with_ranges([what for _, what in told])}"
            yield warn(Severity.WARNING, side.name, text)


def losses(material: Material) -> Iterator[Warning]:
    """Tell of messages that were lost, and of payloads that arrived changed."""
    for side in material.sides:
        for pattern in Pattern:
            shares = {
                name_of(cell): cell.counts["lost"] / max(cell.counts["sent"], 1)
                for cell in side.cells.values()
                if cell.counts["lost"] > 0 and cell.key.pattern is pattern
            }
            if shares:
                worst = max(shares, key=lambda name: shares[name])
                severity = Severity.WARNING if shares[worst] >= LOSS_SHARE else Severity.NOTE
                text = (
                    f"messages were lost in {count(len(shares), f'{pattern.value} test')}, most in {worst}: "
                    f"{percent(shares[worst])}"
                )
                yield warn(severity, side.name, text)
        bad = [name_of(cell) for cell in side.cells.values() if cell.counts["corrupted"] > 0]
        if bad:
            yield warn(
                Severity.INVALID,
                side.name,
                f"payloads arrived changed in {named(bad)}: do not trust this fabric's numbers",
            )


def few_launches(material: Material) -> Iterator[Warning]:
    """Tell where too few launches give an interval of the median."""
    for side in material.sides:
        launches = len(side.blocks)
        if median_interval(np.arange(launches, dtype=np.float64), material.confidence).low is None:
            text = (
                f"{count(launches, 'valid launch')}: too few for an interval of the median at "
                f"{percent(material.confidence)} confidence"
            )
            yield warn(Severity.WARNING, side.name, text)
