"""Warnings about the data themselves: left out, missing, failed, lost, few, drifting, off the others, depending on each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.change import is_change
from fabricbench.analysis.equal_work import differences
from fabricbench.analysis.findings import Caution, Severity
from fabricbench.analysis.gaps import gaps_between, wide
from fabricbench.analysis.lost_launches import unequal_starts as find_unequal_starts
from fabricbench.analysis.material import Material, Tally, name_of, note_shares, warn
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import MOST_NAMED, named, percent
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.quantity import count, enumeration, format_bytes, format_duration, with_ranges, without_numbers
from fabricbench.record.account import account_of
from fabricbench.record.import_notes import DATATYPE, note_words, tool_differences
from fabricbench.record.manifest import lost_by
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.setup import lost_words
from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.dependence import BlockTrend, trend
from fabricbench.statistics.order import median_interval
from fabricbench.statistics.skew import has_two_modes

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
CLOCK_SHARE = 0.01
"""Reading the clock may take this share of a sample before it is told."""
EFFECTIVE_SHARE = 0.2
"""Where fewer samples than this share count as independent, the reader is told."""
OUTLYING = 5.0
OUTLYING_LOG = 0.05
"""A launch is named as off the others from so many robust standard deviations, and from so much in the logarithm."""


def invalid_launches(material: Material) -> Iterator[Caution]:
    """Tell which launches were left out, and why."""
    for side in material.sides:
        for launch in side.invalid:
            why = "; ".join(launch.summary.facts.invalid_because) or "its path proof failed"
            yield warn(Severity.INVALID, f"launch {launch.launch_id}", f"left out of everything here: {why}")


def foreign_launches(material: Material) -> Iterator[Caution]:
    """Tell which numbers are no measurement of ours, and what is known of them."""
    for side in material.sides:
        for origin in (Origin.IMPORTED, Origin.SIMULATED, Origin.PREDICTED):
            launches = [launch for launch in side.launches if launch.origin is origin]
            if not launches:
                continue
            told = dict.fromkeys(fact for launch in launches for fact in launch.summary.facts.conditions.values())
            text = f"{origin.value}, not measured by fabricbench"
            if told:
                text += f": {'; '.join(told)}"
            if origin is Origin.IMPORTED:
                text += ". Nobody knows whether the order was random, and which launches were measured side by side"
            yield warn(Severity.WARNING, side.name, text)


def import_notes(material: Material) -> Iterator[Caution]:
    """Tell what of imported texts was left out, repaired or is in doubt."""
    for side in material.sides:
        notes = note_words(note for launch in side.launches for note in launch.summary.facts.import_notes)
        for text in notes[:MOST_NAMED]:
            yield warn(Severity.WARNING, side.name, text)
        if len(notes) > MOST_NAMED:
            more = count(len(notes) - MOST_NAMED, "more such note")
            yield warn(Severity.WARNING, side.name, f"{more} in import_notes of its launches' launch.json")


def unlike_tools(material: Material) -> Iterator[Caution]:
    """Tell in what the programs differ that measured imported sides."""
    imported = {
        side.name: side for side in material.sides if any(one.origin is Origin.IMPORTED for one in side.launches)
    }
    versions = {
        name: {one.summary.header.probe_version for one in side.launches if one.summary.header is not None}
        for name, side in imported.items()
    }
    datatypes: dict[str, dict[str, set[str]]] = {name: {} for name in imported}
    for name, side in imported.items():
        for key, cell in side.cells.items():
            of_test = datatypes[name].setdefault(key.pattern.value, set())
            of_test.add(str(cell.facts.parameters.get(DATATYPE, "")))
    for text in tool_differences(versions, datatypes):
        yield warn(Severity.WARNING, enumeration(list(imported)), text)


def unproven_launches(material: Material) -> Iterator[Caution]:
    """Tell which launches count though nobody counted their traffic."""
    for side in material.sides:
        names = [launch.launch_id for launch in side.launches if launch.proof is Proof.UNKNOWN]
        if names:
            text = (
                f"{count(len(names), 'launch')} of unproven path ({named(names)}): no counter shows that their traffic took "
                f"{side.fabric.name}"
            )
            yield warn(Severity.WARNING, side.name, text)


def unequal_work(material: Material) -> Iterator[Caution]:
    """Tell of workloads that were not the same on all fabrics: another program, or another result where it must be one.

    Of sides of the same runs: what differs between one before and one after is told as the change.
    """
    for one in differences(material.sides):
        is_one_alike = any(len(names) > 1 for names in one.sides.values()) and not _overlap(one.sides.values())
        end = "only fabrics where it is the same are compared" if is_one_alike else "nothing of it is compared"
        text = f"its {one}: more differs than the network, so {end}"
        yield warn(Severity.WARNING, one.name, text)


def _overlap(sides: Iterable[frozenset[str]]) -> bool:
    """Whether some side is in more than one of these sets."""
    names = [name for one in sides for name in one]
    return len(names) > len(set(names))


def missing_launches(material: Material) -> Iterator[Caution]:
    """Tell which planned launches have no data, and which have some that is damaged or that ended before it was whole."""
    for run in dict.fromkeys(id(side.run) for side in material.sides):
        of_run = next(side.run for side in material.sides if id(side.run) == run)
        names = [launch.launch_id for launch in of_run.missing]
        if names:
            text = (
                f"{count(len(names), 'planned launch')} without data ({named(names)}); `fabricbench resume "
                f"{quote(str(of_run.path))}` measures them; a verdict before that is an interim look, for which its level does not "
                "allow"
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


def unequal_starts(material: Material) -> Iterator[Caution]:
    """Tell where the starts of one fabric came to nothing more often than those of another do by chance."""
    runs = {run.path: run for side in material.sides for run in side.runs}.values()
    for one in (
        ()
        if is_change(material.pairings)
        else find_unequal_starts([account_of(run) for run in runs], material.confidence)
    ):
        counts = " and ".join(
            f"{part.lost} of {count(part.starts, 'start')} on {part.fabric}" for part in (one.worse, one.better)
        )
        text = f"{counts} gave nothing that counts: more than chance makes (p {one.p_value:.2g}), a finding by itself"
        yield warn(Severity.WARNING, one.subject or "network tests", text)


def failed_nodes(material: Material) -> Iterator[Caution]:
    """Tell which nodes a run went on without, since when, and what that changed."""
    for run in {run.path: run for side in material.sides for run in side.runs}.values():
        manifest = run.manifest
        for loss in manifest.losses:
            nodes, when = list(loss.reasons), datetime.fromtimestamp(loss.unix_ns / 1e9, UTC)
            why = "; ".join(dict.fromkeys(loss.reasons.values()))
            planned = {launch.block for launch in manifest.planned}
            blocks = len(planned)
            without = [lost_by(manifest.losses, block) for block in sorted(planned)]
            sets = [f"`{lost_words(one)}`" for one in dict.fromkeys(without) if set(nodes) & set(one)]
            text = (
                f"failed on {when:%Y-%m-%d %H:%M} UTC ({why}): {len(loss.kept)} of {count(blocks, 'block')} were whole before and "
                f"have {'them' if len(nodes) > 1 else 'it'}, the others not; a test whose ranks are on other nodes since is "
                f"another one, called {enumeration(sets)}, and is compared with itself alone; what stands first is of the nodes "
                "that have the most blocks"
            )
            yield warn(Severity.WARNING, enumeration(nodes), "; ".join((text, *loss.left_out)))


def unusual_ends(material: Material) -> Iterator[Caution]:
    """Tell which launches count though their program died, by what and where, and of which nobody saw the end."""
    for side in material.sides:
        ends: dict[str, list[str]] = {}
        for launch in side.launches:
            if launch.summary.outcome in (LaunchOutcome.DIED_AFTER_RECORD, LaunchOutcome.UNKNOWN):
                ends.setdefault(launch.summary.end_in_words, []).append(launch.launch_id)
        for words, names in ends.items():
            text = f"{named(names)}: {words}; what was measured is used, stderr.log beside it may tell more"
            yield warn(Severity.WARNING, side.name, text)


def dead_switches(material: Material) -> Iterator[Caution]:
    """Tell during which launches the emulated switch of the fabric died."""
    for side in material.sides:
        names = [
            launch.launch_id for launch in side.launches if launch.summary.facts.has_dead_switch(side.fabric.network)
        ]
        if names:
            text = f"the emulated switch was dead at the end of {named(names)}: do not trust what they measured"
            yield warn(Severity.INVALID, side.name, text)


def wide_gaps(material: Material) -> Iterator[Caution]:
    """Tell where the halves of a pair were measured too far apart in time for pairing to cancel a drift."""
    for pairing in material.pairings:
        if not pairing.is_paired:
            continue
        gaps = gaps_between(pairing.a, pairing.b)
        found = wide(gaps)
        if not found:
            continue
        has_kernels = any(gap.subject for gap in gaps)
        of_all = f"{len(found)} of {count(len(gaps), 'pair' if has_kernels else 'block')}"
        where = named([gap.launch_ids[0] for gap in found] if has_kernels else [f"b{gap.block:02d}" for gap in found])
        longest = max(gap.seconds for gap in found)
        text = (
            f"the halves of {of_all} ({where}) were measured {'up to ' if len(found) > 1 else ''}"
            f"{format_duration(longest)} apart: too far for a pair, they are left out of ratios"
        )
        yield warn(Severity.WARNING, f"{pairing.b.name} / {pairing.a.name}", text)


def failed_cells(material: Material) -> Iterator[Caution]:
    """Tell which cells could not be measured, once for each cause: reasons that differ in numbers and ranks are one."""
    for side in material.sides:
        by_cause: dict[str, list[tuple[str, str]]] = {}
        for one in side.failed:
            what = WHEREABOUTS.sub("", one.reason)
            by_cause.setdefault(without_numbers(what), []).append((one.name, what))
        for told in by_cause.values():
            cells = list(dict.fromkeys(cell for cell, _ in told))
            which = f"{len(cells)} tests ({named(cells)})" if len(cells) > MOST_NAMED else named(cells)
            text = f"{which} could not be measured: {with_ranges([what for _, what in told])}"
            yield warn(Severity.WARNING, side.name, text)


def losses(material: Material) -> Iterator[Caution]:
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


def few_launches(material: Material) -> Iterator[Caution]:
    """Tell where too few launches give an interval of the median."""
    for side in material.sides:
        launches = len(side.blocks)
        if median_interval(np.arange(launches, dtype=np.float64), material.confidence).low is None:
            text = (
                f"{count(launches, 'valid launch')}: too few for an interval of the median at "
                f"{percent(material.confidence)} confidence"
            )
            yield warn(Severity.WARNING, side.name, text)


def drifts(material: Material) -> Iterator[Caution]:
    """A layer that gets slower or faster from block to block: medians carry it, ratios what the fabrics do not share of it."""
    found: list[tuple[str, BlockTrend]] = []
    for side in material.sides:
        for layer in Layer:
            rows = [_centred(cell) for cell in side.cells.values() if cell.key.layer is layer]
            one = trend(_column_means(rows)) if rows else None
            if one is not None:
                found.append((f"{side.name}, {layer.value}", one))
    carried = "medians over launches carry it, and ratios within a block unless the other fabric drifts alike"
    yield from _drift_warnings(found, material, carried, of=" in time")


def ratio_drifts(material: Material) -> Iterator[Caution]:
    """A ratio that changes from block to block: the fabrics did not drift alike."""
    found: list[tuple[str, BlockTrend]] = []
    for pairing in material.pairings:
        for layer in Layer:
            keys = [key for key in pairing.keys if key.layer is layer and key.metric is Metric.ROUND_TRIP_TIME]
            one = (
                trend(_column_means([pairing.log_ratios(key) for key in keys])) if keys and pairing.is_paired else None
            )
            if one is not None:
                found.append((f"{pairing.b.name} / {pairing.a.name}, {layer.value} round trip", one))
    yield from _drift_warnings(
        found, material, "the two fabrics did not drift alike, so the ratio depends on when it was measured"
    )


def _drift_warnings(
    found: Sequence[tuple[str, BlockTrend]], material: Material, meaning: str, of: str = ""
) -> Iterator[Caution]:
    if not found:
        return
    adjusted = benjamini_hochberg(np.array([one.p_value for _, one in found]))
    for (name, one), p_value in zip(found, adjusted, strict=True):
        if p_value < 1.0 - material.confidence and abs(one.change) > np.log1p(material.margin):
            text = (
                f"a drift of {100 * np.expm1(one.change):+.1f} %{of} from the first block to the last (p "
                f"{p_value:.2g}): {meaning}"
            )
            yield warn(Severity.WARNING, name, text)


def _centred(cell: CellMeasured) -> Floats:
    """Return how much slower each launch was than the cell's median launch, in logs: rates turn their sign."""
    log = cell.log_values
    if np.isnan(log).all():
        return log
    centred = log - np.nanmedian(log)
    return centred if cell.key.metric.is_lower_better else -centred


def _column_means(rows: Sequence[Floats]) -> Floats:
    table = np.stack(rows)
    present = ~np.isnan(table)
    counts = present.sum(axis=0)
    return np.where(counts > 0, np.where(present, table, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)


def outlying_launches(material: Material) -> Iterator[Caution]:
    """A launch that something else disturbed throughout: named, never dropped."""
    for side in material.sides:
        rows = [_centred(cell) for cell in side.cells.values() if cell.key.layer is not Layer.MEMORY]
        if not rows or len(side.blocks) < 5:
            continue
        level = _column_means(rows)
        known = level[~np.isnan(level)]
        centre = np.median(known)
        spread = 1.4826 * np.median(np.abs(known - centre))
        for block, value in zip(side.blocks, level - centre, strict=True):
            if abs(value) > max(OUTLYING * spread, OUTLYING_LOG):
                text = (
                    f"its tests are {100 * np.expm1(value):+.0f} % in time off the other launches, on average; it "
                    "is kept"
                )
                named_launches = side.launches_of(block)
                whole = f"launch {named_launches[0]}" if len(named_launches) == 1 else f"{side.name}, block {block}"
                yield warn(Severity.WARNING, whole, text)


def clock_cost(material: Material) -> Iterator[Caution]:
    """Cells whose samples are so short that reading the clock is part of them."""

    def shares(side: Side) -> dict[str, float]:
        return {name_of(cell): cell.overhead_share for cell in side.cells.values() if cell.overhead_share > CLOCK_SHARE}

    def words(found: Tally) -> str:
        which = named(list(found.shares))
        return f"reading the clock takes more than {percent(CLOCK_SHARE)} of a sample in {which} (up to {found.most})"

    return note_shares(material, shares, words)


def dependent_samples(material: Material) -> Iterator[Caution]:
    """Samples that tell less than their number promises."""

    def shares(side: Side) -> dict[str, float]:
        cells = side.cells.values()
        return {name_of(cell): cell.effective_share for cell in cells if cell.effective_share < EFFECTIVE_SHARE}

    def words(found: Tally) -> str:
        return (
            f"samples of one launch depend on each other in {found.tests}: as few as {found.least} of them count "
            "as independent. Intervals and verdicts rest on launches, so they are not affected"
        )

    return note_shares(material, shares, words)


def two_modes(material: Material) -> Iterator[Caution]:
    """Cells whose samples gather about two values."""
    for side in material.sides:
        names = [
            name_of(side.cells[one.key])
            for one in material.distributions
            if one.fabric == side.name and has_two_modes(np.array(one.counts[1:-1]))
        ]
        if names:
            yield warn(
                Severity.NOTE,
                side.name,
                f"samples look two-peaked in {named(names)}: the median hides one of the peaks",
            )


def padded_messages(material: Material) -> Iterator[Caution]:
    """Cells whose messages are smaller than what a datagram carries of its own."""
    for side in material.sides:
        padded = {name_of(cell): size for cell in side.cells.values() if (size := cell.greatest("datagram_bytes"))}
        if padded:
            yield warn(
                Severity.NOTE,
                side.name,
                f"datagrams of {format_bytes(int(max(padded.values())))} carry the messages of {named(list(padded))}: token and "
                "number take so much. In Ethernet they fill the smallest frame, as the message alone would",
            )
