"""What each of several crossed factors does by itself: the mean over the settings of all others, with interval and verdict.

Configurations are crossed where a factor's levels were measured with the same settings of the other factors (processor by network,
say). The main effect of a level is then the mean over these settings of its log ratio to the first level, each alike: what the
others do cancels (a factorial design, Montgomery, "Design and Analysis of Experiments", chapter 5). What is independent is a run
where sides have several, else a block where both levels are of one run, else a launch of one run a side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabricbench.analysis.comparing import joined_ratios, number, rounding_over
from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Interaction, InteractionVerdict, MainEffect, Replication
from fabricbench.analysis.findings.plot import FABRIC
from fabricbench.analysis.interaction import (
    VERDICTS,
    Places,
    few_blocks,
    groups_of,
    interactions_of,
    interval_at,
)
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import Side, fitted_to
from fabricbench.analysis.pairing import Floats, Pairing
from fabricbench.model import Layer
from fabricbench.statistics.decision import DECISIONS, corrected, decision_codes, larger, p_values_of
from fabricbench.statistics.ratios import (
    FEWEST_SESSIONS,
    Fitted,
    Ratios,
    Rounding,
    paired_ratios,
    unpaired_ratios,
    wider,
)

FEWEST_SETTINGS = 2
"""Of the other factors: a level that was measured with one alone is not crossed."""

OfSides = Mapping[tuple[str, str], Pairing]


@dataclass(frozen=True)
class Asked:
    """The configurations, every two of them, and what verdicts are made by: they may err by 1 - `level`."""

    sides: Sequence[Side]
    pairings: Sequence[Pairing]
    margin: float
    confidence: float
    level: float


@dataclass(frozen=True)
class Contrast:
    """Two levels of a factor, and the pairing of both with each setting of the others; `is_turned` where B is the first level."""

    factor: str
    first: str
    level: str
    pairings: Mapping[str, tuple[Pairing, bool]]

    @cached_property
    def keys(self) -> list[CellKey]:
        """The cells that all of it has."""
        (first, _), *others = self.pairings.values()
        return [
            key
            for key in first.keys
            if key.layer is not Layer.MEMORY and all(key in pairing.keys for pairing, _ in others)
        ]

    @property
    def is_paired(self) -> bool:
        """Whether both levels were measured in the same blocks, with each setting."""
        return all(pairing.is_paired for pairing, _ in self.pairings.values())

    @property
    def replication(self) -> Replication:
        """What is independent."""
        if any(len(side.runs) > 1 for pairing, _ in self.pairings.values() for side in (pairing.a, pairing.b)):
            return Replication.RUNS
        return Replication.BLOCKS if self.is_paired else Replication.LAUNCHES

    def ratios(self, key: CellKey, confidence: float) -> Ratios:
        """Return how many times better the level is than the first, on average over the settings."""
        sign = -1.0 if key.metric.is_lower_better else 1.0
        sides: list[tuple[Floats, Floats]] = []
        for pairing, is_turned in self.pairings.values():
            of_a, of_b = pairing.unit_values(key)
            if pairing.is_paired:
                is_pair = ~(np.isnan(of_a) | np.isnan(of_b))
                of_a, of_b = of_a[is_pair], of_b[is_pair]
            else:
                of_a, of_b = of_a[~np.isnan(of_a)], of_b[~np.isnan(of_b)]
            sides.append((of_b, of_a) if is_turned else (of_a, of_b))
        first, level = (_mean_by_place([sign * both[index] for both in sides]) for index in (0, 1))
        rounding = Rounding.joined([self._rounding(key)])
        if self.is_paired:
            return paired_ratios(
                (level - first)[np.newaxis, :], confidence, rounding=rounding, fitted=self._fitted(key)
            )
        is_alike = self.replication is Replication.RUNS
        return unpaired_ratios(first, level, confidence, rounding=rounding, is_alike=is_alike)

    def ratios_of_sessions(self, key: CellKey, confidence: float) -> Ratios:
        """Return the ratio estimated from session means, one value per session; NaN unless blocks span several sessions."""
        sign = -1.0 if key.metric.is_lower_better else 1.0
        means = [np.array([np.nan])]
        if self.replication is Replication.BLOCKS and all(one.has_sessions for one, _ in self.pairings.values()):
            found = (
                (-sign if is_turned else sign) * one.session_means(key, one.log_ratios(key))
                for one, is_turned in self.pairings.values()
            )
            means = [of_setting[~np.isnan(of_setting)] for of_setting in found]
        rounding = Rounding(0.0, self._rounding(key).bound)
        return paired_ratios(
            _mean_by_place(means)[np.newaxis, :], confidence, rounding=rounding, fewest=FEWEST_SESSIONS
        )

    def _fitted(self, key: CellKey) -> Fitted:
        share = 1.0 / len(self.pairings)
        weights = [
            (side.cells[key], share if (side is pairing.b) is not is_turned else -share)
            for pairing, is_turned in self.pairings.values()
            for side in (pairing.a, pairing.b)
        ]
        return fitted_to(*weights)

    def _rounding(self, key: CellKey) -> Rounding:
        found = [rounding_over(pairing, (key,)) for pairing, _ in self.pairings.values()]
        least = min(float(one.deviation) for one in found) / np.sqrt(len(found))
        return Rounding(least, float(np.mean([one.bound for one in found])))

    def doubt(self, key: CellKey, launches: int) -> str:
        """Return why there is no verdict: too few blocks, launches in groups, another work, or too many that gave nothing."""
        sides = [side for pairing, _ in self.pairings.values() for side in (pairing.a, pairing.b)]
        thin = dict.fromkeys(
            name for pairing, _ in self.pairings.values() for name in survivors((pairing.a, pairing.b), (key,))[0]
        )
        few = few_blocks(launches) if self.replication is Replication.BLOCKS else []
        modes = groups_of((pairing for pairing, _ in self.pairings.values()), key)
        return "; ".join(
            [
                *few,
                *modes,
                *unequal_work(sides, (key,)),
                *(f"too many launches on {name} gave nothing" for name in thin),
            ]
        )


def _mean_by_place(rows: Sequence[Floats]) -> Floats:
    """Return the mean of the n-th values; which of independent ones are put together does not matter."""
    width = min(row.size for row in rows)
    return np.asarray(np.mean([row[:width] for row in rows], axis=0), dtype=np.float64)


def contrasts_of(sides: Sequence[Side], pairings: Sequence[Pairing]) -> list[Contrast]:
    """Return every level of every crossed factor against the first one."""
    by_names = {(one.a.name, one.b.name): one for one in pairings}
    factors = list(sides[0].factors) if sides else []
    return [found for factor in factors if len(factors) > 1 for found in _of_factor(factor, sides, by_names)]


def _of_factor(factor: str, sides: Sequence[Side], pairings: OfSides) -> Iterator[Contrast]:
    levels: dict[str, dict[str, Side]] = {}
    for side in sides:
        others = ", ".join(value for name, value in side.factors.items() if name != factor)
        levels.setdefault(side.factors[factor], {})[others] = side
    first, *rest = levels
    for level in rest:
        both = {
            setting: (levels[first][setting], levels[level][setting])
            for setting in levels[first]
            if setting in levels[level]
        }
        found = {
            setting: (pairings[names], False) if names in pairings else (pairings[names[::-1]], True)
            for setting, (one, other) in both.items()
            for names in [(one.name, other.name)]
        }
        if len(found) >= FEWEST_SETTINGS:
            yield Contrast(factor, first, level, found)


def main_effects_of(asked: Asked) -> tuple[MainEffect, ...]:
    """Return the main effect of every level of every crossed factor, by cell.

    Intervals are at `asked.confidence`, uncorrected; verdicts are corrected over all that are returned.
    """
    subjects = [(contrast, key) for contrast in contrasts_of(asked.sides, asked.pairings) for key in contrast.keys]
    if not subjects:
        return ()
    ratios = joined_ratios([contrast.ratios(key, asked.confidence) for contrast, key in subjects])
    of_sessions = joined_ratios([contrast.ratios_of_sessions(key, asked.confidence) for contrast, key in subjects])
    adjusted = corrected(larger(p_values_of(ratios, asked.margin), p_values_of(of_sessions, asked.margin)))
    ratios = wider(ratios, of_sessions)
    codes = decision_codes(ratios, adjusted, asked.margin, asked.level)
    found = []
    for index, (contrast, key) in enumerate(subjects):
        doubt = contrast.doubt(key, int(ratios.launches[index]))
        found.append(
            MainEffect(
                key=key,
                factor=contrast.factor,
                first=contrast.first,
                level=contrast.level,
                among=tuple(contrast.pairings),
                effect=interval_at(ratios, index),
                p_adjusted=number(float(adjusted.zero[index])),
                verdict=InteractionVerdict.OPEN if doubt else VERDICTS[DECISIONS[codes[index]]],
                doubt=doubt,
                replication=contrast.replication,
                launches=int(ratios.launches[index]),
            )
        )
    return tuple(found)


def factor_interactions_of(asked: Asked) -> tuple[Interaction, ...]:
    """Return whether one of two crossed factors does the same at every level of the other; nothing of three factors or more."""
    sides, pairings = asked.sides, asked.pairings
    if not contrasts_of(sides, pairings) or len(sides[0].factors) != 2:
        return ()
    rows = FABRIC if FABRIC in sides[0].factors else next(iter(sides[0].factors))
    places: dict[str, dict[str, Side]] = {}
    for side in sides:
        (other,) = (value for name, value in side.factors.items() if name != rows)
        places.setdefault(side.factors[rows], {})[other] = side
    complete: Places = places
    return interactions_of(complete, pairings, margin=asked.margin, confidence=asked.confidence, level=asked.level)
