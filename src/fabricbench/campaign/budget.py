"""Fitting a campaign into a time budget: shorter cells first, then fewer blocks. Pure.

Blocks are the replication that verdicts rest on, so they are the last to go, and never silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fabricbench.campaign.cells import PlannedCell
from fabricbench.campaign.estimate import launch_seconds
from fabricbench.campaign.specification import FEWEST_BLOCKS
from fabricbench.errors import UsageError
from fabricbench.quantity import format_duration, format_seconds

ENOUGH_BLOCKS = 6
"""With fewer pairs than six a sign or rank test cannot reach 5 % on both sides (2 / 2^6 = 3 %)."""

SHORTEST_CELL_SECONDS = 0.05
"""Below this a cell of a slow fabric has too few samples for a median."""


@dataclass(frozen=True)
class Scaling:
    """What became of the campaign: the blocks that are left, the factor on each cell's time, and the reasons in words."""

    blocks: int
    factor: float
    notes: tuple[str, ...] = ()

    def shorten(self, cell: PlannedCell) -> PlannedCell:
        """Return the cell with its time bound scaled, and its minimum time no longer than that."""
        return _shorten(cell, self.factor)


def unscaled(blocks: int) -> Scaling:
    """Return the scaling that changes nothing."""
    return Scaling(blocks, 1.0)


def fit_budget(
    cells: Sequence[PlannedCell],
    fabrics: Sequence[str],
    blocks: int,
    budget_seconds: float,
    *,
    fixed_seconds: float = 0.0,
) -> Scaling:
    """Return how to fit the cells into the budget; UsageError where not even the least fits. A larger budget changes nothing.

    `fixed_seconds` is what a block takes beside its cells and cannot be shortened: its kernels.
    """

    def block_seconds(factor: float) -> float:
        shortened = [_shorten(cell, factor) for cell in cells]
        carried = [[cell.probe for cell in shortened if fabric in cell.fabrics] for fabric in fabrics]
        return fixed_seconds + sum(launch_seconds(probes) for probes in carried if probes)

    if blocks * block_seconds(1.0) <= budget_seconds:
        return unscaled(blocks)
    shortest = block_seconds(0.0)
    fitting = int(budget_seconds // shortest)
    if fitting < FEWEST_BLOCKS:
        what = f"{len(cells)} cells{' and the kernels' if fixed_seconds else ''}" if cells else "the kernels"
        raise UsageError(
            f"a budget of {format_duration(budget_seconds)} is too small: {FEWEST_BLOCKS} blocks of {what} "
            f"take at least {format_duration(FEWEST_BLOCKS * shortest)}",
            hint=f"raise --budget, or measure fewer layers or sizes{', or smaller kernels' if fixed_seconds else ''}",
        )
    kept = min(blocks, fitting)
    factor = _factor(block_seconds, budget_seconds / kept)
    return Scaling(kept, factor, tuple(_notes(blocks, kept, factor, budget_seconds)))


def _shorten(cell: PlannedCell, factor: float) -> PlannedCell:
    bound = cell.probe.stopping.maximum_seconds
    seconds = max(bound * factor, min(bound, SHORTEST_CELL_SECONDS))
    # A minimum beyond the maximum would make the plan say what cannot be.
    least = min(cell.probe.stopping.minimum_seconds, seconds)
    stopping = cell.probe.stopping.model_copy(update={"maximum_seconds": seconds, "minimum_seconds": least})
    return cell.model_copy(update={"probe": cell.probe.model_copy(update={"stopping": stopping})})


def _factor(block_seconds: Callable[[float], float], target_seconds: float) -> float:
    """Find the largest factor whose block fits the target: the time grows with the factor, so halving finds it."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if block_seconds(middle) <= target_seconds:
            low = middle
        else:
            high = middle
    return low


def _notes(asked: int, kept: int, factor: float, budget_seconds: float) -> list[str]:
    budget = format_duration(budget_seconds)
    notes = []
    if round(factor, 3) < 1:
        least = format_seconds(SHORTEST_CELL_SECONDS)
        notes.append(f"each cell is given {factor:.0%} of its time (at least {least}) to fit {budget}")
    if kept < asked:
        notes.append(f"{kept} blocks instead of {asked} to fit {budget}")
    if kept < min(asked, ENOUGH_BLOCKS):
        notes.append(f"fewer than {ENOUGH_BLOCKS} blocks: no verdict but `not enough data` is to be expected")
    return notes
