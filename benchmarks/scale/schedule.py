"""The schedules of native/pattern/channels.cpp and native/core/channel.hpp, simulated up to any number of ranks and checked.

Written from the same formulas a second time and apart from the measurer, so that a slip in either shows: `pairs` in rounds must let
every two ranks meet exactly once, and agreements must reach all over a tree of known depth. Pure; numpy only for the
large sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Schedule:
    """What a simulation of `pairs` in rounds found."""

    ranks: int
    rounds: int
    most_at_once: int
    rests: int
    """Ranks that rest, over all rounds."""


def check_rounds(ranks: int) -> Schedule:
    """Go through all rounds of the circle method; AssertionError where two ranks do not meet exactly once."""
    moving = ranks - 1 + ranks % 2
    fixed = moving
    everyone = np.arange(ranks)
    met = np.zeros((ranks, ranks), dtype=bool)
    most, rests = 0, 0
    for turn in range(moving):
        partner = (2 * turn + moving - everyone) % moving
        partner[partner == everyone] = fixed
        if fixed < ranks:
            partner[fixed] = turn
        playing = everyone[partner < ranks]
        partners = partner[playing]
        assert not np.any(partners == playing), f"a rank meets itself in round {turn} of {ranks} ranks"
        assert np.array_equal(partner[partners], playing), f"partners disagree in round {turn} of {ranks} ranks"
        assert not np.any(met[playing, partners]), f"a pair meets twice in round {turn} of {ranks} ranks"
        met[playing, partners] = True
        most, rests = max(most, playing.size // 2), rests + ranks - playing.size
    assert int(met.sum()) == ranks * (ranks - 1), f"some pair of {ranks} ranks never meets"
    return Schedule(ranks, moving, most, rests)


@dataclass(frozen=True)
class Tree:
    """What a simulation of an agreement found: a message up each edge of the tree and one down."""

    ranks: int
    depth: int
    messages: int
    most_messages_of_a_rank: int
    most_texts_of_a_rank: int
    hops: float
    """How long it takes if a message takes 1 and a rank sends one after the other at no cost: twice the depth."""


def check_tree(ranks: int) -> Tree:
    """Send a text up the binary tree and the result down again, message by message; AssertionError where somebody misses it."""
    messages = np.zeros(ranks, dtype=int)
    texts = np.ones(ranks, dtype=int)
    up = np.zeros(ranks)
    for member in range(ranks - 1, 0, -1):  # children have higher numbers
        parent = (member - 1) // 2
        up[parent] = max(up[parent], up[member] + 1)
        messages[[member, parent]] += 1
        texts[parent] += 1
    down = np.full(ranks, np.inf)
    down[0] = up[0]
    for member in range(1, ranks):
        down[member] = down[(member - 1) // 2] + 1
        messages[[member, (member - 1) // 2]] += 1
    assert np.all(np.isfinite(down)), f"some of {ranks} ranks never hears the result"
    depth = int(up[0])
    assert depth == ranks.bit_length() - 1, f"the tree of {ranks} ranks is {depth} deep"
    return Tree(ranks, depth, int(messages.sum()) // 2, int(messages.max()), int(texts.max()), float(down.max()))


def clock_rounds(ranks: int) -> tuple[int, int]:
    """Simulate the hierarchical synchronisation: its rounds, and how many learners the busiest rank teaches."""
    stride = 1
    while stride < ranks:
        stride *= 2
    knows = np.zeros(ranks, dtype=bool)
    knows[0] = True
    taught = np.zeros(ranks, dtype=int)
    rounds = 0
    stride //= 2
    while stride > 0:
        teachers = np.arange(0, ranks, 2 * stride)
        teachers = teachers[teachers + stride < ranks]
        assert np.all(knows[teachers]), f"somebody teaches what it does not know, with {ranks} ranks"
        knows[teachers + stride] = True
        taught[teachers] += 1
        rounds, stride = rounds + 1, stride // 2
    assert np.all(knows), f"some of {ranks} ranks never learns the time"
    return rounds, int(taught.max())
