"""Ranks fabrics by verdicts on pairs.

From verdicts on pairs to a ranking, without claiming more than the pairs do: "not separated" is not transitive, A may be told from
C while B can be told from neither. A list of places, each fabric in one, would have to part B from A or from C, which no test did,
or put A beside C, which a test parted. So tiers may overlap, as in the compact letter display of multiple comparisons (Piepho, J.
Comput. Graph. Stat. 13 (2004)): every two fabrics that no test separated share a tier, and no tier holds two that were separated.
Where "not separated" happens to be transitive, that is the usual list.

The place of a single fabric is then a range: one worse than all that beat it, one better than all that it beats. If the pairwise
verdicts are family-wise, all the ranges hold together with the same confidence (Mogstad, Romano, Shaikh and Wilhelm, "Inference
for ranks", Review of Economic Studies 91 (2024)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations


def ranks(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> tuple[tuple[str, ...], ...]:
    """Return the tiers from the best on. `names` are ordered by point estimate, the best first.

    `better[a, b]` says that a is better than b by a test over the whole family; pairs that are not there are not separated. A
    fabric stands in every tier whose others it was not told apart from, in the order of `names`.
    """
    place = {name: index for index, name in enumerate(names)}
    tiers: list[tuple[str, ...]] = [tuple(names)] if names else []
    for one, other in combinations(names, 2):
        if _is_separated(one, other, better):
            halves = [
                tuple(name for name in tier if name != left) for tier in tiers for left in _left_out(tier, one, other)
            ]
            tiers = _absorbed(halves)
    return tuple(sorted(tiers, key=lambda tier: [place[name] for name in tier]))


def places(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> dict[str, tuple[int, int]]:
    """Return the best and the worst place, counted from 1, that the tests leave each fabric."""
    return {
        name: (
            1 + sum(better.get((other, name), False) for other in names),
            len(names) - sum(better.get((name, other), False) for other in names),
        )
        for name in names
    }


def _is_separated(one: str, other: str, better: Mapping[tuple[str, str], bool]) -> bool:
    return better.get((one, other), False) or better.get((other, one), False)


def _left_out(tier: tuple[str, ...], one: str, other: str) -> tuple[str | None, ...]:
    """Return whom the copies of a tier go without: a tier that holds both splits into one without each."""
    return (other, one) if one in tier and other in tier else (None,)


def _absorbed(tiers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Drop every tier that another one holds whole."""
    distinct = list(dict.fromkeys(tiers))
    return [one for one in distinct if not any(set(one) < set(other) for other in distinct)]
