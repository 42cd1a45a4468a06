"""Warnings about where it was measured: the control, the layers, the wire, emulation, slow pairs, clocks, two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fabricbench.analysis.change import is_change
from fabricbench.analysis.configurations import hidden_differences
from fabricbench.analysis.findings import Caution, CellKey, Doubt, LadderStep, Replication, Severity
from fabricbench.analysis.findings.plot import RUN
from fabricbench.analysis.instrument import (
    RECEIVED,
    TAIL_ONLY,
    LateSwitch,
    counted_by_switch,
    doubt_of,
    impossible,
    impossible_launches,
    lateness_of,
    times,
)
from fabricbench.analysis.machines import NODE_SETS
from fabricbench.analysis.material import Material, Tally, name_of, note_shares, warn
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import faster, how_much, named, percent, what
from fabricbench.model import Layer
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, enumeration, format_seconds
from fabricbench.record.lines import RankInfo
from fabricbench.record.provenance import Origin
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES
from fabricbench.testbed.differences import differences_in

MISSED_SHARE = 0.2
"""Of the samples: a cell that loses more to late starts was measured while the ranks were held up."""
START_TOLERANCE_SHARE = 0.1
"""Of the time: what later starts add is no longer small beside it."""
CLOCK_SHARE = 0.05
"""Of the time: clocks that are known less well may be part of it. The measurer refuses those that shifted by as much."""

THROTTLED_SHARE = 0.001
"""Of a launch's time: a quota withheld the processors for long enough to be in the tail of a test of a second."""

MOST_DIFFERENCES = 5
"""Between nodes, as one warning tells them; the inventory has all."""

CONFIGURATIONS = "configurations"


def memory_control(material: Material) -> Iterator[Caution]:
    """Memory does not depend on the fabric: a difference there means that the machine itself changed."""
    alike = {(one.a.name, one.b.name) for one in material.pairings if one.is_one_machine}
    memory = [one for one in material.cells if one.layer is Layer.MEMORY and (one.fabric_a, one.fabric_b) in alike]
    differing = [one for one in memory if faster(one) is not None]
    if differing:
        worst = max(differing, key=lambda one: abs(np.log(one.ratio)))
        text = (
            f"memory, which no fabric changes, differs in {count(len(differing), 'test')} ({what(worst)}: "
            f"{how_much(worst)} on {faster(worst)}): "
            "the machine changed between the launches, so differences of this size between fabrics mean nothing"
        )
        yield warn(Severity.WARNING, "memory control", text)


def throttled(material: Material) -> Iterator[Caution]:
    """Launches from which a quota withheld processors; beyond a share of their time they are invalid, and told as such."""
    for side in material.sides:
        shares = [launch.summary.facts.throttled_share or 0.0 for launch in side.launches]
        hurt = [share for share in shares if share > THROTTLED_SHARE]
        if hurt:
            text = (
                f"a quota (of a container, say) withheld processors in {len(hurt)} of {count(len(shares), 'launch')}, for up to "
                f"{percent(max(hurt))} of its time: every rank stood still then, which is in the tails and may be in the medians"
            )
            yield warn(Severity.WARNING, side.name, text)


def ladder_order(material: Material) -> Iterator[Caution]:
    """A layer that seems faster than the one it stands on."""
    by_fabric: dict[str, LadderStep] = {}
    for step in material.ladder:
        below = by_fabric.get(step.fabric)
        added = step.added_round_trip
        if below is not None and added is not None and added.high is not None and added.high < 0:
            text = (
                f"the {step.layer.value} round trip is shorter than {below.layer.value}'s below it, by "
                f"{format_seconds(-added.value * 1e-9)}: "
                "they do not wait or batch alike, so the difference is not what the layer costs"
            )
            yield warn(Severity.WARNING, step.fabric, text)
        if step.round_trip is not None:
            by_fabric[step.fabric] = step


def emulated(material: Material) -> Iterator[Caution]:
    """Numbers from a lab, and how late its switches were."""
    names = [side.name for side in material.sides if side.fabric.is_emulated]
    if names:
        text = (
            "emulated on one machine: they show how the software and the asked-for links behave, not what the "
            "real hardware does"
        )
        yield warn(Severity.NOTE, enumeration(names), text)
    for scale in sorted({side.fabric.scale for side in material.sides} - {1}):
        names = [side.name for side in material.sides if side.fabric.scale == scale]
        text = f"scaled 1:{scale}: rates are {scale} times lower, and delays {scale} times longer, than of what it is named after"
        yield warn(Severity.WARNING, enumeration(names), text)
    for side in material.sides:
        yield from _switch(side, _compared(material, side))
        yield from _emulators_own_failures(side)


def _compared(material: Material, side: Side) -> set[CellKey]:
    """Return the cells that are set against another side's; where nothing is compared, all."""
    if not material.pairings:
        return set(side.cells)
    return {key for pairing in material.pairings if side is pairing.a or side is pairing.b for key in pairing.keys}


def _switch(side: Side, compared: set[CellKey]) -> Iterator[Caution]:
    """Tell of the cells during which the switch was late, and of no other."""
    doubts = {key: doubt for key, cell in side.cells.items() if (doubt := doubt_of(side, cell)) is not None}
    if doubts:
        worst_first = sorted(doubts, key=lambda key: -doubts[key].factor)
        worst = max(late.worst_ns for key in doubts if (late := lateness_of(side, key)) is not None)
        is_grave = any(doubt.is_grave for key, doubt in doubts.items() if key in compared)
        over_it = sum(key.layer is not Layer.MEMORY for key in side.cells)
        text = (
            f"the machine was too busy to emulate the fabric well during {count(len(doubts), 'test')} of "
            f"{over_it}: the switch released frames up to {format_seconds(worst * 1e-9)} late (p99 of the worst launch)"
        )
        told = [_times(side.cells[key], doubts[key]) for key in worst_first if doubts[key].held_share is None]
        held = [_share(side.cells[key], share) for key in worst_first if (share := doubts[key].held_share) is not None]
        text += f", {named(told)}" if told else ""
        text += f"; it held some frame for up to {named(held)}" if held else ""
        if tails := sum(doubt.is_tail_only for doubt in doubts.values()):
            text += f"; {'' if tails == len(doubts) else f'during {tails} of these '}{TAIL_ONLY}"
        yield warn(Severity.WARNING if is_grave else Severity.NOTE, side.name, text)
    elif not any(cell.lateness for cell in side.cells.values()):
        yield from _switch_over_its_life(side)


def _times(cell: CellMeasured, doubt: LateSwitch) -> str:
    """Return `67 times the tcp round trip of 64 B`."""
    name = name_of(cell)
    noun = f"the {name}" if cell.key.metric.is_time else f"the time in which {name} was measured"
    return "".join(map(str, times(doubt.factor, noun)))


def _share(cell: CellMeasured, share: float) -> str:
    """Return `4.9 % of the time of IS.W on 4 ranks`."""
    return f"{percent(share)} of the time of {cell.key.workload}"


def _switch_over_its_life(side: Side) -> Iterator[Caution]:
    statuses = [launch.summary.facts.switches_after for launch in side.launches]
    late = [found for status in statuses for found in _lateness(status.get(side.fabric.network, status))]
    if late:
        text = (
            f"the emulated switch released frames up to {format_seconds(max(late) * 1e-9)} late (p99 since its start, "
            "whatever was measured; not told per test by this run's version)"
        )
        yield warn(Severity.NOTE, side.name, text)


def _lateness(status: Any) -> Iterator[float]:
    """Find p99 lateness in a switch status or in statuses by fabric: launch.json keeps them as they came."""
    if not isinstance(status, dict):
        return
    lateness = status.get("lateness_ns")
    if isinstance(lateness, dict) and isinstance(lateness.get("p99"), int | float) and lateness.get("count", 1):
        yield float(lateness["p99"])
    else:
        for inner in status.values():
            yield from _lateness(inner)


OWN_FAILURES = {
    "unsent_frames": "could not be sent",
    "ring_lost_frames": "found no room in its receive ring",
    "out_of_order_frames": "entered its model after one with a later time, so that their delays are not the fabric's",
}
"""What the ports of an emulated switch count and no real switch would do, in words that follow `12 frames`."""

ORDER = "out_of_order_frames"
FEW_OUT_OF_ORDER = 1e-4
"""Where nothing was lost, and fewer of all frames than this were delayed wrongly, that is worth a note and no warning."""


def _emulators_own_failures(side: Side) -> Iterator[Caution]:
    """Tell of frames that the emulator lost or delayed wrongly by itself, which the emulated fabric would not have."""
    fields = (*OWN_FAILURES, RECEIVED)
    counted = [counted_by_switch(launch, side.fabric.network, fields) for launch in side.launches]
    total = sum(counted, Counter[str]())
    received = total.pop(RECEIVED, 0)
    if not total:
        return
    told = enumeration(
        [f"{count(total[field], 'frame')} {words}" for field, words in OWN_FAILURES.items() if total[field]]
    )
    launches = f"{count(sum(any(one[field] for field in OWN_FAILURES) for one in counted), 'launch')} of {len(counted)}"
    of_all = f", of {received:,} in all" if received else ""
    is_order_of_few = set(total) == {ORDER} and total[ORDER] < FEW_OUT_OF_ORDER * received
    slow = (
        "The machine was too slow for the load at those moments; a tail measured then may not be the fabric's"
        if is_order_of_few
        else "The machine was too slow for the load; losses and tails measured then are not the fabric's"
    )
    text = f"the emulated switch failed by itself in {launches}: {told}{of_all}. {slow}"
    yield warn(Severity.NOTE if is_order_of_few else Severity.WARNING, side.name, text)


def beyond_the_wire(material: Material) -> Iterator[Caution]:
    """Tell of values that the wire does not allow: something was not measured as it seems."""
    for side in material.sides:
        reasons = {cell.key: reason for cell in side.cells.values() if (reason := impossible(side, cell)) is not None}
        rates = [key for key in reasons if not key.metric.is_time]
        times_ = [key for key in reasons if key.metric.is_time]
        if rates:
            text = (
                f"{_reasons(side, rates, reasons)}. Too little was sent to fill the buffers on the way, or the link is not "
                "what the testbed says: do not use these"
            )
            yield warn(Severity.WARNING, side.name, text)
        if times_:
            text = (
                f"{_reasons(side, times_, reasons)}. The messages went another way, or the link is not what the testbed says: "
                "do not use these"
            )
            yield warn(Severity.WARNING, side.name, text)
        yield from _launches_beyond_the_wire(side, reasons)


def _launches_beyond_the_wire(side: Side, told: Mapping[CellKey, Doubt]) -> Iterator[Caution]:
    """Name the launches whose own value the wire does not allow, of tests whose level it does."""
    found: dict[str, list[str]] = {}
    for key, cell in side.cells.items():
        for launch, why in impossible_launches(side, cell).items() if key not in told else ():
            found.setdefault(launch, []).append(f"{name_of(cell)} is {why.doubt}")
    for launch, what_ in found.items():
        yield warn(Severity.WARNING, f"launch {launch}", f"{named(what_)}, which cannot be; it is kept")


def _reasons(side: Side, keys: Sequence[CellKey], reasons: Mapping[CellKey, Doubt]) -> str:
    return named([f"{name_of(side.cells[key])} is {reasons[key]}" for key in keys])


def unpaired_runs(material: Material) -> Iterator[Caution]:
    """One run a side: sessions differ from each other by more than their launches tell."""
    subject = "before and after" if is_change(material.pairings) else CONFIGURATIONS
    if any(pairing.replication is Replication.LAUNCHES for pairing in material.pairings):
        text = (
            "one run a side: whatever else differed between the two sessions is in the ratio and cannot be told from a "
            "change; compare three runs a side or more, or both settings within one run"
        )
        yield warn(Severity.WARNING, subject, text)
    if any(
        pairing.are_runs and min(len(pairing.a.runs), len(pairing.b.runs)) < MINIMUM_LAUNCHES
        for pairing in material.pairings
    ):
        text = (
            f"fewer than {MINIMUM_LAUNCHES} runs on a side tell hardly anything of how its runs differ: they are taken to "
            f"differ as those of the other side do, if that has {MINIMUM_LAUNCHES}"
        )
        yield warn(Severity.WARNING, subject, text)


def several_sessions(material: Material) -> Iterator[Caution]:
    """Blocks of several days: each day is one value of what days differ by."""
    sessions = max((len(set(one.sessions.values())) for one in material.pairings if one.has_sessions), default=0)
    if sessions > 1 and not any(len(pairing.a.runs) > 1 for pairing in material.pairings):
        text = (
            f"the blocks are of {sessions} sessions: verdicts and intervals hold what sessions differ by, of which each is one "
            "value, so that few show large differences alone; blocks of more days show smaller ones"
        )
        yield warn(Severity.NOTE, "sessions", text)


def unnamed_differences(material: Material) -> Iterator[Caution]:
    """Tell what configurations differ in besides what they are called by, or that nothing is known that they differ in.

    And so of the fabrics of a run that are on nodes of their own.
    """
    sides = [side for side in material.sides if side.traits]
    if sides and all(RUN in side.factors for side in sides):
        text = "nothing is known that these runs differ in, so they are called by their folders"
        yield warn(Severity.NOTE, CONFIGURATIONS, text)
    if hidden := list(hidden_differences(sides)):
        subject, severity = (CONFIGURATIONS, Severity.NOTE) if sides[0].factors else (NODE_SETS, Severity.WARNING)
        text = f"they differ as well in {'; '.join(hidden)}: whatever that does is in the ratios between them"
        yield warn(severity, subject, text)


def unlike_nodes(material: Material) -> Iterator[Caution]:
    """Tell in what the nodes of a run differ: one that is slower by itself is in every launch that it takes part in."""
    for run in {id(side.run): side.run for side in material.sides}.values():
        found = differences_in(run.manifest.testbed, run.manifest.inventory)
        if not found:
            continue
        told = "; ".join(f"{one.words()}" for one in found[:MOST_DIFFERENCES])
        more = f"; and {len(found) - MOST_DIFFERENCES} more, see the inventory" if len(found) > MOST_DIFFERENCES else ""
        text = f"its nodes are not alike in {count(len(found), 'fact')}: {told}{more}"
        yield warn(Severity.WARNING, f"run {run.path.name}", text)


def random_order(material: Material) -> Iterator[Caution]:
    """The seed behind the order of launches."""
    ours = [side for side in material.sides if any(launch.origin is not Origin.IMPORTED for launch in side.launches)]
    for run in {id(side.run): side.run for side in ours}.values():
        text = f"the fabrics' order within each block was drawn, from seed {run.manifest.seed}"
        yield warn(Severity.NOTE, f"run {run.path.name}", text)


def slow_pairs(material: Material) -> Iterator[Caution]:
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


def failed_pairs(material: Material) -> Iterator[Caution]:
    """Tell which pairs of a map could not be measured, and why: their places are empty, or rest on fewer launches."""
    for one in material.maps:
        for words in one.failed_words:
            yield warn(Severity.WARNING, one.fabric, f"map of {one.layer.value} {one.pattern.value}: {words}")


def missed_starts(material: Material) -> Iterator[Caution]:
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


def loose_starts(material: Material) -> Iterator[Caution]:
    """Tell where ranks began so late that it is part of the time, and whether they shared their processors."""

    def words(found: Tally) -> str:
        return (
            f"in {found.tests} {_who_began(found.side)} up to {found.most} of the time after the agreed start (most in "
            f"{found.worst}), which is in it: see back to back"
        )

    return note_shares(material, lambda side: _shares(side, "start_tolerance_ns", START_TOLERANCE_SHARE), words)


def uncertain_clocks(material: Material) -> Iterator[Caution]:
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
