"""Fitting a campaign into a time budget: cells as long as tells most, and as many blocks as then fit. Pure.

Launches are the replication that verdicts rest on, so time goes into blocks: a cell is measured for no longer than makes the
variance of the mean over launches smallest (`statistics.planning`), and what that leaves of the budget is blocks, fewer than the
campaign asks for or more. Whoever names a number of blocks keeps it; then only cells are shortened. Nothing is done silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from fabricbench.campaign.cells import PlannedCell
from fabricbench.campaign.estimate import (
    START_SECONDS,
    WINDOW_SECONDS,
    launch_seconds,
    line_rate_bit_s,
    overhead_seconds,
    round_seconds,
)
from fabricbench.campaign.noise import NoiseProfile
from fabricbench.campaign.specification import FEWEST_BLOCKS
from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, format_duration, format_seconds
from fabricbench.testbed.model import Fabric

ENOUGH_BLOCKS = 6
"""With fewer pairs than six a sign or rank test cannot reach 5 % on both sides (2 / 2^6 = 3 %): a verdict is left to the means."""

MOST_FILLED_BLOCKS = 100
"""A budget is not filled beyond this: after a hundred launches, what differs from day to day matters more than one launch more
(Kalibera and Jones 2013: repeat at the highest level that varies). `--blocks` takes any number."""

SHORTEST_CELL_SECONDS = 0.05
"""Below this a round trip of 0.1 ms and more has too few samples for a median that more launches would not have to make up for."""

LEAST_WINDOWS = 5
"""Of 20 ms that a rate is measured in: all their bytes over all their time, so that what one window took from the next cancels."""

NOTEWORTHY = 0.99
"""A cell that would be shortened by less than this keeps its time: nobody wants to read of it."""

LEAST_ROUND_TRIPS = 5
"""That a cell has time for, however slow the fabric."""

TOLERANCE = 1.1
"""A run takes at most so many times its budget, else it ends with the last block that fits."""


class BudgetSpentError(Exception):
    """A run has no time for another block: it has `blocks`, and `seconds` have gone into them."""

    def __init__(self, blocks: int, seconds: float) -> None:
        super().__init__(blocks, seconds)
        self.blocks, self.seconds = blocks, seconds


@dataclass(frozen=True)
class Scaling:
    """What became of the campaign: the blocks, the seconds of each cell by its number where they changed, the reasons in words."""

    blocks: int
    seconds: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def scale(self, cell: PlannedCell) -> PlannedCell:
        """Return the cell with its time bound."""
        return _lasting(cell, self.seconds.get(cell.probe.id, cell.probe.stopping.maximum_seconds))


def unscaled(blocks: int) -> Scaling:
    """Return the scaling that changes nothing."""
    return Scaling(blocks)


def fit_budget(
    cells: Sequence[PlannedCell],
    fabrics: Sequence[Fabric],
    blocks: int,
    budget_seconds: float,
    noise: NoiseProfile,
    *,
    is_blocks_fixed: bool = False,
    fixed_seconds: float = 0.0,
    pause_seconds: float = 0.0,
) -> Scaling:
    """Return how to fit the cells into the budget; UsageError where not even the least fits.

    `blocks` is what the campaign asks for, or, with `is_blocks_fixed`, the user: then it stays. `fixed_seconds` is what a block
    takes beside its cells and cannot be shortened: its workloads; `pause_seconds` what passes before each launch.
    """
    own = {cell.probe.id: cell.probe.stopping.maximum_seconds for cell in cells}
    least = {cell.probe.id: min(own[cell.probe.id], _least_seconds(cell, fabrics)) for cell in cells}
    best = {cell.probe.id: _best_seconds(cell, noise, least[cell.probe.id], len(cells)) for cell in cells}

    def block_seconds(seconds: Mapping[int, float]) -> float:
        lasting = [_lasting(cell, seconds[cell.probe.id]) for cell in cells]
        carried = [(fabric, [one.probe for one in lasting if fabric.name in one.fabrics]) for fabric in fabrics]
        return fixed_seconds + sum(
            pause_seconds + launch_seconds(probes, fabric) for fabric, probes in carried if probes
        )

    wanted = own if is_blocks_fixed else best
    shortest = block_seconds(least)
    fitting = int(budget_seconds // shortest)
    if fitting < (blocks if is_blocks_fixed else FEWEST_BLOCKS):
        _refuse(budget_seconds, blocks if is_blocks_fixed else FEWEST_BLOCKS, shortest, len(cells), fixed_seconds)
    if is_blocks_fixed:
        kept = blocks
    else:
        # Cells below their best length tell less for the time, so blocks go first; but with less than six little is told.
        kept = max(int(budget_seconds // block_seconds(wanted)), min(fitting, blocks, ENOUGH_BLOCKS))
        kept = min(kept, max(blocks, MOST_FILLED_BLOCKS))

    def shortened(factor: float) -> dict[int, float]:
        return {number: max(seconds * factor, least[number]) for number, seconds in wanted.items()}

    factor = _factor(lambda factor: block_seconds(shortened(factor)), budget_seconds / kept)
    given = shortened(factor)
    changed = {number: seconds for number, seconds in given.items() if seconds < NOTEWORTHY * own[number]}
    why = "" if is_blocks_fixed else f": more launches tell more than longer tests (noise: {noise.name})"
    return Scaling(kept, changed, tuple(_notes(blocks, kept, own, changed, format_duration(budget_seconds), why)))


def _refuse(budget_seconds: float, blocks: int, shortest: float, cells: int, fixed_seconds: float) -> NoReturn:
    what = f"{count(cells, 'test')}{' and the workloads' if fixed_seconds else ''}" if cells else "the workloads"
    raise UsageError(
        f"a budget of {format_duration(budget_seconds)} is too small: {count(blocks, 'block')} of {what} "
        f"{'takes' if blocks == 1 else 'take'} at least {format_duration(blocks * shortest)}",
        hint=f"raise --budget, or measure fewer {'blocks, ' if blocks > FEWEST_BLOCKS else ''}layers or sizes"
        f"{', or smaller workloads' if fixed_seconds else ''}",
    )


def _least_seconds(cell: PlannedCell, fabrics: Sequence[Fabric]) -> float:
    """Return what a cell needs at least for a value: some windows of a rate, some round trips on its slowest fabric."""
    probe = cell.probe
    if not PATTERNS[probe.pattern].metric.is_time:
        windows = LEAST_WINDOWS * WINDOW_SECONDS
        if probe.layer is not Layer.RDMA or PATTERNS[probe.pattern].family is not Family.FLOOD:
            return windows
        return max(windows, *[round_seconds(probe, fabric) for fabric in fabrics if fabric.name in cell.fabrics])
    slowest = min(line_rate_bit_s(fabric) for fabric in fabrics if fabric.name in cell.fabrics)
    return max(SHORTEST_CELL_SECONDS, LEAST_ROUND_TRIPS * 2 * 8 * probe.message_bytes / slowest)


def _best_seconds(cell: PlannedCell, noise: NoiseProfile, least: float, cells: int) -> float:
    """Return the length that tells most for the budget: at most the campaign's, and just that where no noise is known."""
    from fabricbench.statistics.planning import best_cell_seconds  # noqa: PLC0415 - SciPy is slow to import

    own, known = cell.probe.stopping.maximum_seconds, noise.components(cell.probe)
    if known is None:
        return own
    overhead = overhead_seconds(cell.probe) + START_SECONDS / cells
    return best_cell_seconds(known, overhead, least_seconds=least, most_seconds=own)


def _lasting(cell: PlannedCell, seconds: float) -> PlannedCell:
    # A minimum beyond the maximum would make the plan say what cannot be.
    least = min(cell.probe.stopping.minimum_seconds, seconds)
    stopping = cell.probe.stopping.model_copy(update={"maximum_seconds": seconds, "minimum_seconds": least})
    return cell.model_copy(update={"probe": cell.probe.model_copy(update={"stopping": stopping})})


def _factor(block_seconds: Callable[[float], float], target_seconds: float) -> float:
    """Find the largest factor up to 1 whose block fits the target: the time grows with the factor, so halving finds it."""
    if block_seconds(1.0) <= target_seconds:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        if block_seconds(middle) <= target_seconds:
            low = middle
        else:
            high = middle
    return low


def _notes(
    asked: int,
    kept: int,
    own: Mapping[int, float],
    changed: Mapping[int, float],
    budget: str,
    why: str,
) -> list[str]:
    notes = []
    if changed:
        low, high = (format_seconds(each(changed.values())) for each in (min, max))
        was = format_seconds(max(own[number] for number in changed))
        how_many = "each test" if len(changed) == len(own) else f"{len(changed)} of {len(own)} tests"
        length = low if low == high else f"{low} to {high}"
        verb = "is" if len(changed) == len(own) else "are"
        notes.append(f"{how_many} {verb} measured for {length} instead of up to {was} to fit {budget}{why}")
    if kept != asked:
        notes.append(f"{count(kept, 'block')} instead of {asked} to {'fit' if kept < asked else 'use'} {budget}")
    if kept == MOST_FILLED_BLOCKS > asked:
        notes.append(f"no more than {kept} blocks fill a budget: runs of other days tell more than a longer one")
    return notes
