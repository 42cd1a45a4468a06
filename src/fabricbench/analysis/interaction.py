"""Whether what a condition does depends on the network: the ratio of two ratios, block by block, with interval and verdict.

On each of two networks a condition has an effect, the ratio of its value to that of the first condition. The interaction is the
ratio of the two effects. All four launches are of one block, so what a block has in common cancels; blocks in which one of the four
is missing tell nothing. On logarithms it is a difference of differences, and is tested as a comparison of two fabrics is: one
Student's t, p-values corrected over all interactions of the report, the same margin. Source: a two-factor experiment in randomised
complete blocks, Montgomery, "Design and Analysis of Experiments", chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.comparing import joined_ratios, number, slow_modes
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Interaction, InteractionVerdict, Interval
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import Side, fitted_to, ratio_rounding
from fabricbench.analysis.pairing import Pairing
from fabricbench.model import Layer
from fabricbench.statistics.decision import (
    DECISIONS,
    FEWEST_PAIRS,
    Decision,
    corrected,
    decision_codes,
    larger,
    p_values_of,
)
from fabricbench.statistics.ratios import Fitted, Ratios, Rounding, ratios_of_sessions, ratios_over_sessions

Floats = NDArray[np.float64]


VERDICTS = {
    Decision.HIGHER: InteractionVerdict.MORE,
    Decision.HIGHER_AHEAD: InteractionVerdict.PERHAPS_MORE,
    Decision.LOWER: InteractionVerdict.LESS,
    Decision.LOWER_AHEAD: InteractionVerdict.PERHAPS_LESS,
    Decision.EQUIVALENT: InteractionVerdict.SAME,
    Decision.UNDECIDED: InteractionVerdict.OPEN,
}


@dataclass(frozen=True)
class _Rows:
    """The log effects on both networks of each block or run, and the session of each block."""

    of_a: Floats
    of_b: Floats
    sessions: Sequence[int] = ()


@dataclass(frozen=True)
class _Square:
    """Four sides, two conditions of each of two networks (or levels of two factors), as the pairing of each network's."""

    a: Pairing
    b: Pairing
    key: CellKey
    networks: tuple[str, str]
    conditions: tuple[str, str]

    @property
    def is_by_block(self) -> bool:
        """Whether all four sides were measured in the same blocks."""
        return self.a.is_paired and self.b.is_paired and self.a.a.is_beside(self.b.a) and len(self.a.a.runs) == 1

    def rows(self) -> _Rows:
        """Return the log effects on both networks of the blocks that have all four, more being better."""
        sign = -1.0 if self.key.metric.is_lower_better else 1.0
        if not self.is_by_block:
            return _Rows(*self._rows_of_runs(sign))
        of_a, of_b = (
            dict(zip(pairing.shared_blocks, sign * pairing.log_ratios(self.key), strict=True))
            for pairing in (self.a, self.b)
        )
        shared = [block for block in sorted(set(of_a) & set(of_b)) if not np.isnan(of_a[block] + of_b[block])]
        sessions = dict(zip(self.a.shared_blocks, self.a.sessions_of(self.key), strict=True))
        effects_a, effects_b = (np.array([of_network[block] for block in shared]) for of_network in (of_a, of_b))
        return _Rows(effects_a, effects_b, [sessions[block] for block in shared])

    def _rows_of_runs(self, sign: float) -> tuple[Floats, Floats]:
        """Return the log effects of the n-th run of each side, or the n-th launch: what one run holds of both networks cancels."""
        values = [of_side for one in (self.a, self.b) for of_side in one.unit_values(self.key)]
        width = min(one.size for one in values)
        rows = np.stack([one[:width] for one in values])
        first_a, then_a, first_b, then_b = rows[:, ~np.isnan(rows).any(axis=0)]
        return sign * (then_a - first_a), sign * (then_b - first_b)

    def fitted(self) -> Fitted:
        """Return what was fitted to the difference of both effects."""
        sides = ((self.a.a, 1.0), (self.a.b, -1.0), (self.b.a, -1.0), (self.b.b, 1.0))
        return fitted_to(*((side.cells[self.key], weight) for side, weight in sides))

    def roundings(self) -> tuple[Rounding, Rounding]:
        """Return what the steps of values make of the effect on each network."""
        of_a, of_b = (ratio_rounding(one.a.cells[self.key], one.b.cells[self.key]) for one in (self.a, self.b))
        return of_a, of_b

    def doubt(self, launches: int) -> str:
        """Return why four sides bear no verdict: too few blocks, launches in two groups, or too many that gave nothing."""
        few = few_blocks(launches) if self.is_by_block else []
        modes = groups_of((self.a, self.b), self.key)
        thin = [name for one in (self.a, self.b) for name in survivors((one.a, one.b), (self.key,))[0]]
        sides = (self.a.a, self.a.b, self.b.a, self.b.b)
        other = unequal_work(sides, (self.key,))
        return "; ".join(
            [*few, *modes, *other, *(f"too many launches on {name} gave nothing" for name in dict.fromkeys(thin))]
        )


def few_blocks(blocks: int) -> list[str]:
    """Return that so many blocks decide nothing, where they do not."""
    return [f"fewer than {FEWEST_PAIRS} blocks decide nothing"] if blocks < FEWEST_PAIRS else []


def groups_of(pairings: Iterable[Pairing], key: CellKey) -> list[str]:
    """Return of which fabrics the launches of a cell fall into two groups, one of them slow."""
    modes = (slow_modes(one).get(one.a.cells[key].subject) for one in pairings)
    texts = (
        f"the launches on {mode.fabric} fall into two groups, one about {100 * mode.slower:.0f} % slower"
        for mode in modes
        if mode is not None
    )
    return list(dict.fromkeys(texts))


def networks_of(sides: Sequence[Side]) -> dict[str, list[Side]]:
    """Return the networks that were measured in several conditions of one campaign, with the sides of each, in their order."""
    found: dict[str, list[Side]] = {}
    for side in sides:
        if side.fabric.condition and side.run is sides[0].run:
            found.setdefault(side.fabric.network, []).append(side)
    return {network: of_network for network, of_network in found.items() if len(of_network) > 1}


Places = Mapping[str, Mapping[str, Side]]
"""The sides by their networks and conditions, or by the values of two crossed factors."""


def places_of(networks: Mapping[str, Sequence[Side]]) -> Places:
    """Return the sides of networks by their conditions."""
    return {network: {side.fabric.condition: side for side in sides} for network, sides in networks.items()}


def interactions_of(
    places: Places, pairings: Sequence[Pairing], *, margin: float, confidence: float, level: float
) -> tuple[Interaction, ...]:
    """Return the interaction of every two networks and each of their common conditions with the first of these, by cell.

    Intervals are at `confidence`, uncorrected; verdicts are corrected over all that are returned, and may err by 1 - `level`.
    """
    squares = list(_squares(places, {(one.a.name, one.b.name): one for one in pairings}))
    rows = [square.rows() for square in squares]
    known = [(square, row) for square, row in zip(squares, rows, strict=True) if row.of_a.size]
    if not known:
        return ()
    ratios, of_sessions = (
        joined_ratios([found(square, row, confidence) for square, row in known]) for found in (_ratios, _of_sessions)
    )
    adjusted = corrected(larger(p_values_of(ratios, margin), p_values_of(of_sessions, margin)))
    codes = decision_codes(ratios, adjusted, margin, level)
    return tuple(
        _interaction(square, row, ratios, index, float(adjusted.zero[index]), DECISIONS[codes[index]], confidence)
        for index, (square, row) in enumerate(known)
    )


def _ratios(square: _Square, row: _Rows, confidence: float) -> Ratios:
    of_a, of_b = square.roundings()
    logs, rounding = row.of_b - row.of_a, Rounding.joined([of_a.against(of_b)])
    return ratios_over_sessions(logs, row.sessions, confidence, rounding=rounding, fitted=square.fitted())


def _of_sessions(square: _Square, row: _Rows, confidence: float) -> Ratios:
    of_a, of_b = square.roundings()
    return ratios_of_sessions(row.of_b - row.of_a, row.sessions, confidence, Rounding.joined([of_a.against(of_b)]))


def _squares(places: Places, pairings: dict[tuple[str, str], Pairing]) -> Iterator[_Square]:
    for one, other in combinations(places, 2):
        of_one, of_other = ({name: side.name for name, side in places[each].items()} for each in (one, other))
        first, *rest = [name for name in of_one if name in of_other] or [""]
        for condition in rest:
            a = pairings.get((of_one[first], of_one[condition]))
            b = pairings.get((of_other[first], of_other[condition]))
            if a is not None and b is not None:
                yield from (
                    _Square(a, b, key, (one, other), (first, condition))
                    for key in a.keys
                    if key in b.keys and key.layer is not Layer.MEMORY
                )


def _interaction(
    square: _Square,
    row: _Rows,
    ratios: Ratios,
    index: int,
    p_adjusted: float,
    decision: Decision,
    confidence: float,
) -> Interaction:
    effects = [
        interval_at(ratios_over_sessions(logs, row.sessions, confidence, rounding, pairing.fitted(square.key)), 0)
        for pairing, logs, rounding in zip((square.a, square.b), (row.of_a, row.of_b), square.roundings(), strict=True)
    ]
    doubt = square.doubt(int(ratios.launches[index]))
    return Interaction(
        key=square.key,
        network_a=square.networks[0],
        network_b=square.networks[1],
        first=square.conditions[0],
        condition=square.conditions[1],
        effect_a=effects[0],
        effect_b=effects[1],
        ratio=interval_at(ratios, index),
        p_adjusted=number(p_adjusted),
        verdict=InteractionVerdict.OPEN if doubt else VERDICTS[decision],
        doubt=doubt,
        blocks=int(ratios.launches[index]),
    )


def interval_at(ratios: Ratios, index: int) -> Interval:
    """Return an entry of ratios as an interval."""
    low, high = number(float(ratios.low[index])), number(float(ratios.high[index]))
    return Interval(value=float(ratios.ratio[index]), low=low, high=high)
