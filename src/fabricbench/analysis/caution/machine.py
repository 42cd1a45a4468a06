"""Warnings about where it was measured: the control, the order of the layers, emulation, two runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.caution.material import Material, name_of, named, warn
from fabricbench.analysis.findings import LadderStep, Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.summary import wire_shares
from fabricbench.analysis.wording import count, enumeration, faster, how_much, percent, what
from fabricbench.model import Layer, Metric
from fabricbench.quantity import format_seconds

Floats = NDArray[np.float64]

POSSIBLE_EXCESS = 0.03
"""A rate may exceed the possible one by this much: the last bytes in the buffers of a short stream."""

LATE_SHARE = 0.1
"""Lateness of the emulated switch (p99) that weakens numbers, as a share of the smallest round trip."""


def memory_control(material: Material) -> Iterator[Warning]:
    """Memory does not depend on the fabric: a difference there means that the machine itself changed."""
    differing = [one for one in material.cells if one.layer is Layer.MEMORY and faster(one) is not None]
    if differing:
        worst = max(differing, key=lambda one: abs(np.log(one.ratio)))
        text = (
            f"memory, which no fabric changes, differs in {count(len(differing), 'cell')} ({what(worst)}: "
            f"{how_much(worst)} on {faster(worst)}): "
            "the machine changed between the launches, so differences of this size between fabrics mean nothing"
        )
        yield warn(Severity.WARNING, "memory control", text)


def ladder_order(material: Material) -> Iterator[Warning]:
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


def emulated(material: Material) -> Iterator[Warning]:
    """Numbers from a lab, and how late its switches were."""
    names = [side.name for side in material.sides if side.fabric.is_emulated]
    if names:
        text = (
            "emulated on one machine: they show how the software and the asked-for links behave, not what the "
            "real hardware does"
        )
        yield warn(Severity.NOTE, enumeration(names), text)
    for side in material.sides:
        yield from _switch(side)


def _switch(side: Side) -> Iterator[Warning]:
    late = [found for launch in side.launches for found in _lateness(launch.summary.facts.switches_after)]
    trips = [cell.pooled[cell.pooled.size // 2] for cell in side.cells.values() if _is_network_trip(cell)]
    if late and trips:
        worst = max(late)
        is_grave = worst > LATE_SHARE * min(trips)
        text = (
            f"the emulated switch released frames up to {format_seconds(worst * 1e-9)} late (p99 of the worst launch)"
        )
        if is_grave:
            text += (
                f", over {percent(LATE_SHARE)} of the smallest round trip: the machine is too busy to emulate it well"
            )
        yield warn(Severity.WARNING if is_grave else Severity.NOTE, side.name, text)


def _is_network_trip(cell: CellMeasured) -> bool:
    return cell.key.layer is not Layer.MEMORY and cell.key.metric is Metric.ROUND_TRIP_TIME


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


def beyond_the_wire(material: Material) -> Iterator[Warning]:
    """Tell of throughputs that the wire cannot carry: something was not measured as it seems."""
    for side in material.sides:
        shares = {
            name_of(cell): share
            for cell in side.cells.values()
            if (share := wire_shares(side, cell, float(np.nanmedian(cell.launch_values)))[1]) is not None
            and share > 1.0 + POSSIBLE_EXCESS
        }
        if shares:
            text = (
                f"{named(list(shares))}: up to {percent(max(shares.values()))} of the payload that the wire can carry. "
                "Too little was sent to fill the buffers on the way, or the link is not what the testbed says: do not "
                "use these"
            )
            yield warn(Severity.WARNING, side.name, text)


def unpaired_runs(material: Material) -> Iterator[Warning]:
    """Two runs: what else changed between them?"""
    if any(not pairing.is_paired for pairing in material.pairings):
        before, after = material.pairings[0].a.run.manifest, material.pairings[0].b.run.manifest
        text = "two runs are compared, not launches of one block: whatever else changed between them is in the ratio"
        yield warn(Severity.WARNING, "before and after", text)
        changed = [
            f"{host}: {what_} was {facts[what_]}, is {after.inventory[host][what_]}"
            for host, facts in before.inventory.items()
            for what_ in facts
            if host in after.inventory
            and what_ in after.inventory[host]
            and after.inventory[host][what_] != facts[what_]
        ]
        changed += [
            f"{name} {old} became {after.versions[name]}"
            for name, old in before.versions.items()
            if after.versions.get(name, old) != old
        ]
        if changed:
            yield warn(Severity.NOTE, "what changed", named(changed))


def random_order(material: Material) -> Iterator[Warning]:
    """The seed behind the order of launches."""
    for run in {id(side.run): side.run for side in material.sides}.values():
        text = f"the fabrics' order within each block is random, from seed {run.manifest.seed}"
        yield warn(Severity.NOTE, f"run {run.path.name}", text)
