"""What the stages of round trips come to: on each fabric over its launches, and between two fabrics over their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import CellKey, Interval
from fabricbench.analysis.findings.stages import (
    TOLERANCE,
    Direction,
    Parts,
    Stage,
    StagedCell,
    StageDifference,
    StageOnFabric,
    TrafficDifference,
)
from fabricbench.analysis.measured import Side, in_order
from fabricbench.analysis.stages import StagesOfCell, both_ways, in_turn, traffic_of
from fabricbench.analysis.summary import over_launches

Floats = NDArray[np.float64]
TIER = "user"
"""By what right the boundaries are seen: any user's."""


def _over(side: Side, cell: StagesOfCell, value: Mapping[int, float]) -> Floats:
    """Return a value of each launch of a side, NaN where a launch has none."""
    return np.array(
        [value.get(index, np.nan) if index in cell.launches else np.nan for index in range(len(side.blocks))]
    )


def stage_rows(side: Side, cell: StagesOfCell, confidence: float) -> Iterator[StageOnFabric]:
    """Yield each stage of a test on a fabric, on each way and both together."""
    rows: dict[tuple[Parts, Direction], tuple[dict[int, float], dict[int, float], dict[int, float]]] = {}
    for index, launch in cell.launches.items():
        whole = float(np.median(launch.round_trip))
        both = {(parts, Direction.BOTH): values for parts, values in both_ways(launch).items()}
        for name, values in {**launch.values, **both}.items():
            median, lower, share = rows.setdefault(name, ({}, {}, {}))
            median[index], lower[index] = float(np.median(values)), float(np.quantile(values, 0.25))
            share[index] = median[index] / whole
    order = list(Stage)
    for (parts, way), (median, lower, share) in rows.items():
        of_median, of_lower = (over_launches(_over(side, cell, one), confidence) for one in (median, lower))
        if of_median is None or of_lower is None:
            continue
        yield StageOnFabric(
            fabric=side.name,
            key=cell.key,
            place=order.index(parts[0]),
            parts=parts,
            way=way,
            median=of_median,
            lower=of_lower,
            share=float(np.median(list(share.values()))),
        )


def staged_cell(side: Side, cell: StagesOfCell, confidence: float) -> StagedCell:
    """Return what is known of the messages of a test on a fabric."""
    launches = cell.launches.values()
    rest = (Stage.REST,), Direction.BACK
    within = [np.abs(one.values[rest]) <= TOLERANCE * one.round_trip for one in launches]
    missing: dict[str, int] = {}
    for name, number in (item for one in launches for item in one.missing.items()):
        missing[name] = missing.get(name, 0) + number
    stamped, plain = side.stamped[cell.key].launch_values, side.cells.get(cell.key)
    between = over_launches(
        _over(side, cell, {index: float(np.median(one.between)) for index, one in cell.launches.items()}), confidence
    )
    whole = over_launches(stamped, confidence)
    assert between is not None  # noqa: S101 - a cell without a launch was not read
    assert whole is not None  # noqa: S101
    return StagedCell(
        fabric=side.name,
        key=cell.key,
        tier=TIER,
        launches=len(cell.launches),
        messages=sum(one.messages for one in launches),
        complete=sum(one.complete for one in launches),
        missing=missing,
        within=float(np.mean(np.concatenate(within))),
        refused={boundary: tuple(sorted(reasons)) for boundary, reasons in sorted(cell.refused.items())},
        has_switch=all(one.has_switch for one in launches),
        stamped=whole,
        plain=None if plain is None else over_launches(plain.launch_values, confidence),
        cost=None if plain is None else over_launches(stamped - plain.launch_values, confidence),
        between=between,
    )


Medians = Mapping[tuple[Parts, bool], Mapping[int, float]]
"""Of each launch by its block: of each stage both ways, of all between the hosts (True), and of the whole without parts."""


def _grown(of_a: Medians, of_b: Medians, confidence: float) -> Iterator[tuple[Parts, bool, Interval]]:
    """Yield how much longer each stage is in B than in A over the blocks that both have."""
    for parts, is_between in of_a:
        in_a, in_b = of_a[parts, is_between], of_b.get((parts, is_between), {})
        found = over_launches(
            np.array([in_b[block] - in_a[block] for block in sorted(set(in_a) & set(in_b))]), confidence
        )
        if found is not None:
            yield parts, is_between, found


def stage_effect(
    a: tuple[Side, StagesOfCell], b: tuple[Side, StagesOfCell], parts: Parts, confidence: float
) -> Interval | None:
    """Return how much longer a stage of one test is in B than in A, over the blocks that both have; None where neither has it.

    Of each launch it is the mean over messages: what few of them suffer, the median would not show.
    """
    in_a, in_b = (_means(side, cell, parts) for side, cell in (a, b))
    return over_launches(np.array([in_b[block] - in_a[block] for block in sorted(set(in_a) & set(in_b))]), confidence)


def _means(side: Side, cell: StagesOfCell, parts: Parts) -> dict[int, float]:
    """Return the mean of a stage over the whole round trip, by block."""
    both = {index: both_ways(launch).get(parts) for index, launch in cell.launches.items()}
    return {side.blocks[index]: float(np.mean(values)) for index, values in both.items() if values is not None}


def stage_of_excess(
    side: Side,
    stages: Mapping[CellKey, StagesOfCell],
    keys: Sequence[CellKey],
    around: tuple[CellKey, CellKey],
    confidence: float,
) -> tuple[Parts, Interval] | None:
    """Return the stage in which some sizes take longer than the line between those on either side says, and by how much, ns.

    It is the one that grew most, both ways together, in the mean of the sizes; None where a size was not stamped, where no growth
    is shown, or where it is less than half of what all stages grew by.
    """
    cells = [stages.get(key) for key in (*keys, *around)]
    if any(cell is None for cell in cells):
        return None
    *inside, below, above = [_both_ways_of(side, cell) for cell in cells if cell is not None]
    low, high = (one.message_bytes for one in around)
    grew: dict[Parts, Floats] = {}
    for parts in set(below).intersection(above, *inside):
        lines = [
            below[parts] + (key.message_bytes - low) / (high - low) * (above[parts] - below[parts]) for key in keys
        ]
        grew[parts] = np.mean([one[parts] - line for one, line in zip(inside, lines, strict=True)], axis=0)
    found = {parts: over_launches(values, confidence) for parts, values in grew.items()}
    told = {parts: one for parts, one in found.items() if one is not None and one.low is not None and one.low > 0.0}
    if not told:
        return None
    most = max(told, key=lambda parts: told[parts].value)
    all_of_them = sum(max(one.value, 0.0) for one in found.values() if one is not None)
    return (most, told[most]) if told[most].value >= all_of_them / 2.0 else None


def _both_ways_of(side: Side, cell: StagesOfCell) -> dict[Parts, Floats]:
    """Return the median of each stage over the whole round trip, by launch of the side."""
    found: dict[Parts, Floats] = {}
    for index, launch in cell.launches.items():
        for parts, values in both_ways(launch).items():
            found.setdefault(parts, np.full(len(side.blocks), np.nan))[index] = float(np.median(values))
    return found


Read = tuple[Side, Mapping[CellKey, StagesOfCell]]
"""A side, and the stages of its tests."""


def stage_differences(a: Read, b: Read, confidence: float) -> Iterator[StageDifference]:
    """Yield what differs between two fabrics that were measured in the same blocks: stages that both have, and the whole."""
    (side_a, cells_a), (side_b, cells_b) = a, b
    for key in sorted(set(cells_a) & set(cells_b), key=in_order):
        for parts, is_between, found in _grown(
            _medians(side_a, cells_a[key]), _medians(side_b, cells_b[key]), confidence
        ):
            yield StageDifference(
                fabric_a=side_a.name,
                fabric_b=side_b.name,
                key=key,
                parts=parts,
                is_between=is_between,
                difference=found,
            )


def traffic_differences(read: Read, confidence: float) -> Iterator[TrafficDifference]:
    """Yield how much longer each stage takes in another traffic than in turn, where both were measured in the same launches."""
    side, cells = read
    for key in sorted(cells, key=in_order):
        plain = in_turn(key)
        if key == plain or plain not in cells:
            continue
        for parts, is_between, found in _grown(_medians(side, cells[plain]), _medians(side, cells[key]), confidence):
            if not is_between:
                yield TrafficDifference(
                    fabric=side.name, key=plain, traffic=traffic_of(key), other=key, parts=parts, difference=found
                )


def _medians(side: Side, cell: StagesOfCell) -> Medians:
    found: dict[tuple[Parts, bool], dict[int, float]] = {}
    for index, launch in cell.launches.items():
        stages = {(parts, False): values for parts, values in both_ways(launch).items()}
        for what, values in {**stages, ((), True): launch.between, ((), False): launch.round_trip}.items():
            found.setdefault(what, {})[side.blocks[index]] = float(np.median(values))
    return found
