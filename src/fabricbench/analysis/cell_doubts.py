"""What speaks against a cell's numbers, whatever they are compared with: values that cannot be, and what nobody knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabricbench.analysis.findings import (
    Comparison,
    Origin,
    Proof,
)
from fabricbench.analysis.findings.doubts import Doubt, escaped, together, whole
from fabricbench.analysis.instrument import Excess, doubt_of, impossible, impossible_launches, tolerated
from fabricbench.analysis.lost_launches import doubt_of_losses
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.wording import named
from fabricbench.model import Layer


def judge(side: Side, cell: CellMeasured, is_tail: bool, level: float | None = None) -> tuple[Doubt, ...]:
    """Return what speaks against a cell's numbers: values that cannot be, payloads that changed, a late switch, lost launches.

    `level` is what is shown of the cell, where that is not the mean of all its launches.
    """
    found = []
    beyond = impossible(side, cell, None if is_tail else level)
    if beyond is not None:
        found.append(beyond)
    elif not is_tail:
        within = None if level is None else tolerated(side, cell, level)
        if within is not None:
            found.append(within)
        beyond_it = impossible_launches(side, cell)
        if beyond_it:
            found.append(_of_launches(beyond_it))
    if cell.counts["corrupted"]:
        payloads = "payload" if cell.counts["corrupted"] == 1 else "payloads"
        found.append(Doubt.of(whole(cell.counts["corrupted"]), f" {payloads} arrived changed", is_void=True))
    late = doubt_of(side, cell)
    if late is not None and (is_tail or not late.is_tail_only):
        found.append(late.doubt.model_copy(update={"delay_share": late.delay_share}))
    lost = doubt_of_losses(side, cell)
    if lost is not None:
        found.append(lost)
    return (*found, *unknowns_of(side, cell))


def unknowns_of(side: Side, cell: CellMeasured) -> Iterator[Doubt]:
    """Yield what nobody knows of a cell's launches and no number can bound: whether they took their fabric, and in which order."""
    if cell.key.layer is Layer.MEMORY:
        return
    mine = [launch for launch in side.launches if launch.subject == cell.subject]
    unproven = sum(launch.proof is Proof.UNKNOWN and launch.origin is not Origin.IMPORTED for launch in mine)
    if unproven:
        launches = "launch" if unproven == 1 else "launches"
        words = "no counter shows that the traffic of ", whole(unproven), f" {launches} took {side.fabric.name}"
        yield Doubt.of(*words, is_unknown=True)
    if any(launch.origin is Origin.IMPORTED for launch in mine) and len(side.runs) == 1:
        yield Doubt.of(
            "it was imported: nobody knows in which order the launches were, nor on how many days (each day imported as a run of "
            "its own, and three runs a side compared, would tell)",
            is_unknown=True,
        )


def _of_launches(beyond_it: Mapping[str, Excess]) -> Doubt:
    """Return what single launches show that cannot be, by their names; of several the range of what most of them show.

    What made one of them too good may be in all of that fabric, in part: by the largest excess each of them may be off.
    """
    first, *others = (one.doubt for one in beyond_it.values())
    names = named(list(beyond_it))
    excess = max(one.share for one in beyond_it.values())
    if not others:
        kind = f"{escaped(f'launch {names} shows')} {first.kind}"
        return Doubt(kind=kind, numbers=first.numbers, excess_share=excess)
    alike = [first, *(one for one in others if one.group == first.group)]
    return Doubt.of(f"launches {names} show {together(alike)}", excess_share=excess)


def cautioned(cells: Sequence[Comparison], sides: Sequence[Side]) -> list[Comparison]:
    """Return the comparisons, each with a note where a level that it shows is better than its wire allows."""
    by_name = {side.name: side for side in sides}

    def caution(name: str, one: Comparison, level: float | None) -> Doubt | None:
        side = by_name[name]
        cell = side.cells[one.key]
        found = impossible(side, cell, level) or (None if level is None else tolerated(side, cell, level))
        return None if found is None else found.model_copy(update={"subject": name})

    def noted(one: Comparison) -> Comparison:
        found = (caution(one.fabric_a, one, one.value_a), caution(one.fabric_b, one, one.value_b))
        notes = tuple(note for note in found if note is not None)
        return one.model_copy(update={"notes": (*one.notes, *notes)}) if notes else one

    return [noted(one) for one in cells]
