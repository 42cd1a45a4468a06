"""In a sentence, who gains most by a faster network and who least, no more than what was told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fabricbench.quantity import enumeration
from fabricbench.report.words import times_words


@dataclass(frozen=True)
class Gain:
    """How many times better something is on the faster of two fabrics.

    `leader`: the fabric that is faster by more than the margin, None where none is shown to be. `is_settled`: this one and all
    before it gain more than all after it.
    """

    name: str
    ratio: float
    leader: str | None
    is_settled: bool


def order_line(gains: Sequence[Gain], faster: str, slower: str) -> str:
    """Return the sentence, of gains in their order, the largest first; those whose order is not settled stand together.

    Empty of a single one, and where the first does not gain.
    """
    if len(gains) < 2 or gains[0].leader != faster:
        return ""
    tiers = [[gains[0]]]
    for before, one in pairwise(gains):
        if before.is_settled:
            tiers.append([one])
        else:
            tiers[-1].append(one)
    most, *others = tiers
    shown, lost = ([one for one in most if one.leader == name] for name in (faster, slower))
    unshown = [one for one in most if one.leader is None]
    verb = "gains" if len(shown) == 1 else "gain"
    close = "" if len(most) == 1 else " (their order is not settled)"
    told = [f"{_named(shown)} {verb}{' most' if others else ''} by {faster} over {slower}{close}"]
    if unshown:
        told.append(f"of {_named(unshown)} no gain that matters is shown")
    if lost:
        told.append(f"{_named(lost)} {'is' if len(lost) == 1 else 'are'} faster with {slower}")
    if others:
        told.append(f"{_named(others[-1])} the least{'' if len(others[-1]) == 1 else ', not told apart'}")
    return f"{'; '.join(told)}."


def _named(gains: Sequence[Gain]) -> str:
    return enumeration([f"{one.name} ({times_words(one.ratio)} times)" for one in gains])
