"""What measurements of all pairs, and of some again, show together: which are slow in all of them, and whom to look at again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from fabricbench.analysis.findings import NetworkMap
from fabricbench.model import Model

Pair = tuple[str, str]

ABOUT = 0.8
"""A pair below this share of what it should carry is told."""

UPPER = 0.75
"""The quantile of the pairs' rates that stands for a fabric: a quarter of the pairs in order shows that it carries this."""

ONE_STREAM_BIT_S = 10e9
"""What one stream fills on any processor of the last ten years; beyond, the processor may be what limits a healthy link."""

LEAST_LOOKS, MOST_LOOKS = 3, 6
"""Pairs in rounds or alone, what looked slow alone, and what still did once more: a stall of one machine is no cable. More while
chance alone would leave some pair slow in all of them, as where many share processors and the first look accuses nearly all."""

CHANCE = 0.05
"""So many pairs at most may be expected to have been slow in every look by chance before any is named."""


class PairReference(Model):
    """What pairs are held against. `level_bit_s` is what the fabric carries, `is_short` that this is far below the expected."""

    bit_s: float
    level_bit_s: float
    is_short: bool
    is_expected: bool


def reference_of(stream: NetworkMap, expected: float | None) -> PairReference:
    """Return what the pairs of a matrix are held against: the expected rate where the fabric carries about that, else its level."""
    rates = np.array([value for row in stream.matrix for value in row if value is not None], dtype=np.float64)
    # Of few pairs the best one: half of two pairs may be wrong.
    level = float(np.max(rates) if not stream.is_judged else np.quantile(rates, UPPER))
    if expected is not None and level < ABOUT * expected <= float(np.max(rates)) and expected <= ONE_STREAM_BIT_S:
        level = float(np.max(rates))  # some carry all of it: the others are slow, and the line rate is right
    is_short = expected is not None and level < ABOUT * expected
    is_expected = expected is not None and not is_short
    return PairReference(
        bit_s=expected if expected is not None and is_expected else level,
        level_bit_s=level,
        is_short=is_short,
        is_expected=is_expected,
    )


def pairs_below(stream: NetworkMap, reference: PairReference) -> dict[Pair, float]:
    """Return the directions that carry far less than the reference, which nodes among four or more are held against by the map."""
    if stream.is_judged and not reference.is_expected:
        return {}
    return {
        (stream.hosts[one], stream.hosts[other]): value
        for one, row in enumerate(stream.matrix)
        for other, value in enumerate(row)
        if value is not None and value < ABOUT * reference.bit_s
    }


def slow_in_all(looks: Sequence[NetworkMap], expected: float | None) -> dict[Pair, float]:
    """Return the directions that are slow in every look that measured them, with their rates in the first.

    A look at some of the nodes is held against what the last one at all of them carried.
    """
    reference = reference_of(looks[0], expected)
    below = pairs_below(looks[0], reference)
    for one in looks[1:]:
        if set(one.hosts) == set(looks[0].hosts):
            reference = reference_of(one, expected)
        also = pairs_below(one, reference)
        below = {pair: value for pair, value in below.items() if pair in also or not set(pair) <= set(one.hosts)}
    return below


def best_rates(looks: Sequence[NetworkMap]) -> dict[Pair, float]:
    """Return the rate of each direction, of what was measured again the best: what held it up once is no cable."""
    found: dict[Pair, float] = {}
    for look in looks:
        for one, row in zip(look.hosts, look.matrix, strict=True):
            for other, value in zip(look.hosts, row, strict=True):
                if value is not None:
                    found[one, other] = max(value, found.get((one, other), 0.0))
    return found


def cause_of(below: Iterable[Pair], hosts: Sequence[str]) -> tuple[str, str] | None:
    """Return the node in whose pairs, all of them and no others, the slow ones lie, and what it does; None where there is none.

    Of two nodes none can be named.
    """
    slow = set(below)
    if len(hosts) < 3:
        return None
    for one in hosts:
        sends = {(one, other) for other in hosts if other != one}
        receives = {(other, one) for other in hosts if other != one}
        for pairs, what in (
            (sends | receives, "is slow with all others"),
            (sends, "sends slowly to all others"),
            (receives, "receives slowly from all others"),
        ):
            if slow == pairs:
                return one, what
    return None


def slow_nodes(below: Iterable[Pair], hosts: Sequence[str]) -> list[str]:
    """Return the nodes that are slow in all of their pairs where that explains every slow pair; none where others carry nothing."""
    slow = set(below)
    found = [one for one in hosts if all({(one, other), (other, one)} <= slow for other in hosts if other != one)]
    is_all = all(one in found or other in found for one, other in slow)
    return found if is_all and len(found) <= len(hosts) - 2 else []


def hosts_to_look_at_again(looks: Sequence[NetworkMap], expected: float | None) -> tuple[str, ...]:
    """Return whom to look at again: all hosts where the first look shows more than slow pairs, else the ends of what stays slow."""
    first = looks[0]
    if len(looks) >= MOST_LOOKS or (len(looks) >= LEAST_LOOKS and _slow_by_chance(looks, expected) < CHANCE):
        return ()
    below = slow_in_all(looks, expected)
    is_of_hosts = cause_of(below, first.hosts) is not None or bool(slow_nodes(below, first.hosts))
    if len(looks) == 1 and (first.needs_second_run or is_of_hosts or reference_of(first, expected).is_short):
        return first.hosts
    if is_of_hosts:
        return ()
    return tuple(host for host in first.hosts if any(host in pair for pair in below))


def _slow_by_chance(looks: Sequence[NetworkMap], expected: float | None) -> float:
    """Return how many directions would be slow in every look if each look picked as many as it found at random.

    A look at some of the nodes has picked them: it counts as the most careful look at all of them.
    """
    counts = [
        (len(pairs_below(one, reference_of(one, expected))), len(one.hosts) * (len(one.hosts) - 1)) for one in looks
    ]
    shares = [found / of for (found, of), one in zip(counts, looks, strict=True) if one.hosts == looks[0].hosts]
    return counts[0][1] * math.prod(shares) * min(shares) ** (len(looks) - len(shares))
