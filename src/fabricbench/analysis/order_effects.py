"""What the order of a run's launches did to their values: looked for in all tests of a launch together, and taken out of each.

The first launch of a block may find the machine cold, and one that follows a certain fabric its buffers full. Who was first, and
what was measured before, is known of each launch; what it does is in `statistics.order_effects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.measured import CellMeasured, CellOrder, Floats, Side
from fabricbench.analysis.wording import percent
from fabricbench.model import Layer
from fabricbench.record.store import StoredLaunch
from fabricbench.statistics.order_effects import OrderEffects, find_order_effects
from fabricbench.statistics.skew import pooled


def without_order_effects(sides: Sequence[Side]) -> tuple[list[Side], tuple[str, ...]]:
    """Return the sides, their comparisons free of what the order of launches did where that is shown, and what that is in words."""
    words: list[str] = []
    if len({id(side.run) for side in sides}) > 1 or len(sides) < len("ab"):
        return list(sides), ()
    cells = [dict(side.cells) for side in sides]
    for subject in dict.fromkeys(cell.subject for side in sides for cell in side.cells.values()):
        keys = [
            key
            for key, cell in sides[0].cells.items()
            if cell.subject == subject and key.layer is not Layer.MEMORY and all(key in side.cells for side in sides)
        ]
        order = _order(sides, subject)
        if not keys or order is None:
            continue
        blocks, candidates = order
        values = np.array([[_in_blocks(side, side.cells[key], blocks) for side in sides] for key in keys])
        slowness = values * np.array([1.0 if key.metric.is_lower_better else -1.0 for key in keys])[:, None, None]
        found = find_order_effects(
            np.stack([pooled(slowness[:, index])[0] for index in range(len(sides))]), values, candidates
        )
        if found is not None:
            words += _words(found, sides, subject)
            _take_out(found, sides, keys, blocks, cells)
    return [replace(side, cells=mine) for side, mine in zip(sides, cells, strict=True)], tuple(words)


def _in_blocks(side: Side, cell: CellMeasured, blocks: Sequence[int]) -> Floats:
    """Return the log values of a cell in these blocks, NaN where the side has none."""
    of_block = dict(zip(side.blocks, cell.log_values, strict=True))
    return np.array([of_block.get(block, np.nan) for block in blocks])


def _order(sides: Sequence[Side], subject: str) -> tuple[list[int], NDArray[np.float64]] | None:
    """Return the blocks, and of each side's launch in them whether it was the first, and whether it followed each of the sides.

    None where nobody knows the order.
    """
    launches = [one for side in sides for one in (*side.launches, *side.invalid)]
    if any(one.position is None for one in launches):
        return None
    in_time = sorted(launches, key=_place)
    before: dict[str, str] = {}
    for earlier, later in pairwise(in_time):
        before[later.launch_id] = earlier.fabric
    first: dict[int, str] = {}
    mine = [one for one in in_time if one.subject == subject]
    for one in mine:
        first.setdefault(one.block, one.launch_id)
    blocks = sorted(first)
    names = [side.fabric.name for side in sides]
    found = np.zeros((1 + len(sides), len(sides), len(blocks)))
    for one in mine:
        at = names.index(one.fabric), blocks.index(one.block)
        found[(0, *at)] = first[one.block] == one.launch_id
        if one.launch_id in before:
            found[(1 + names.index(before[one.launch_id]), *at)] = 1.0
    return blocks, found


def _place(launch: StoredLaunch) -> tuple[int, int]:
    return launch.block, launch.position or 0


def _take_out(
    found: OrderEffects,
    sides: Sequence[Side],
    keys: Sequence[CellKey],
    blocks: Sequence[int],
    cells: Sequence[dict[CellKey, CellMeasured]],
) -> None:
    """Note at the cells of each side what is to be left out of their values."""
    for index, side in enumerate(sides):
        columns = [blocks.index(block) if block in blocks else None for block in side.blocks]
        for row, key in enumerate(keys):
            removed = [0.0 if one is None else float(found.removed[row, index, one]) for one in columns]
            cells[index][key] = replace(side.cells[key], order=CellOrder(np.array(removed), found, index))


def _words(found: OrderEffects, sides: Sequence[Side], subject: str) -> list[str]:
    """Return what was found: `the first launch of a block is 9.8 % slower`."""
    told = []
    for effect, size in zip(found.chosen, found.pooled, strict=True):
        which = "the first launch of a block" if effect == 0 else f"a launch after one on {sides[effect - 1].name}"
        slower = float(np.expm1(abs(size)))
        of = f" of {subject}" if subject else ""
        told.append(f"{which}{of} is {percent(slower)} {'slower' if size > 0 else 'faster'}, on every fabric")
    return told
