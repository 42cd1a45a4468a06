"""Whom does the map accuse where nodes are behind different switches? Simulated matrices of networks whose truth is known.

    python -m benchmarks.map_groups [--maps 300] [--seed 9] [--write docs/map-proof.md]

Each network is mapped as `fabricbench map` does it: three launches, and three more where somebody looks slow or pairs stay
unexplained. Pairs differ for good by 2 % and from launch to launch by 2 % (standard deviations), pairs across switches are slower
by 20 %. Times add up, as those of round trips do: a slow node behind a long way is slower still. Rates are those of the slowest
link.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks.page import show
from numpy.typing import NDArray

from fabricbench.statistics.candidates import Culprit, Touch
from fabricbench.statistics.judgement import Judgement, Matrix, judge

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LAUNCHES = 3
MARGIN = 0.05
CROSSING = 0.2
"""Pairs across switches take this much longer, or have so much less of the rate."""


@dataclass(frozen=True)
class Network:
    """Nodes behind each switch, how much slower the first `slow` of them are, noise of logarithms.

    Slower by 0.2: 1.25 times the time, 0.8 times the rate.
    """

    switches: tuple[int, ...]
    slower: float = 0.0
    slow: int = 1
    is_rate: bool = False
    lasting: float = 0.02
    passing: float = 0.02

    @property
    def words(self) -> str:
        """Return `7+1, rates, node 0 slower by 20 %`."""
        quantity = "rates" if self.is_rate else "times"
        who = "a node of the first" if self.slow == 1 else f"{self.slow} nodes"
        slow = f", {who} slower by {self.slower:.0%}".replace("%", " %") if self.slower else ""
        return f"{'+'.join(map(str, self.switches))}, {quantity}{slow}"

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the members of each switch, as `judge` is to tell them; none where there is one, or where one is alone."""
        ends = np.cumsum((0, *self.switches))
        found = tuple(tuple(range(low, high)) for low, high in pairwise(ends.tolist()))
        return found if len(found) > 1 and not self.lone else ()

    @property
    def lone(self) -> set[int]:
        """Return the members that are alone behind a switch."""
        ends = np.cumsum(self.switches)
        return {int(end) - 1 for end, count in zip(ends, self.switches, strict=True) if count == 1}

    def pairs(self) -> tuple[Integers, Integers]:
        """Return the ends of what is measured: both directions of a rate, each pair once of a time."""
        count = sum(self.switches)
        wanted = ~np.eye(count, dtype=bool) if self.is_rate else np.triu(np.ones((count, count), dtype=bool), 1)
        source, destination = np.nonzero(wanted)
        return source.astype(np.int64), destination.astype(np.int64)

    def levels(self, random: np.random.Generator) -> Floats:
        """Return the logarithm of goodness of each pair, as it is for good."""
        source, destination = self.pairs()
        switch = np.repeat(np.arange(len(self.switches)), self.switches)
        crossing = np.where(switch[source] != switch[destination], np.log1p(-CROSSING), 0.0)
        ends = ((source < self.slow).astype(float), (destination < self.slow).astype(float))
        own = np.log1p(-self.slower) * (np.maximum(*ends) if self.is_rate else np.add(*ends))
        truth = np.minimum(crossing, own) if self.is_rate else crossing + own
        return np.asarray(truth + random.normal(0, self.lasting, source.size))


def map_once(network: Network, random: np.random.Generator) -> Judgement:
    """Map a network as `fabricbench map` does: a second time where anything is found."""
    source, destination = network.pairs()
    lasting = network.levels(random)

    def measured() -> Matrix:
        return Matrix(lasting + random.normal(0, network.passing, (LAUNCHES, lasting.size)), source, destination)

    first = measured()
    found = judge(first, margin=MARGIN)
    is_more_needed = found.culprits or found.outliers or found.is_unclear
    return judge(first, measured(), margin=MARGIN) if is_more_needed else found


def accused(found: Judgement) -> set[int]:
    """Return the members that are named, alone or in a pair."""
    return {member for one in found.culprits for member in (one.candidate.first, one.candidate.second) if member >= 0}


def is_fault_told(network: Network, found: Judgement) -> bool:
    """Whether a slow node is named as slow with all others, or with all of its group; or several told as standing apart."""
    named = {one.candidate.first for one in found.culprits if one.candidate.touch in {Touch.MEMBER, Touch.NEAR}}
    slow = set(range(network.slow))
    return bool(named & slow) or (network.slow > 1 and set(found.apart) == slow)


@dataclass(frozen=True)
class Row:
    """How many maps of a network there were, and how many said what."""

    network: Network
    maps: int
    found: int
    lone: int
    accusing: int
    unexplained: int
    grouped: int

    @property
    def words(self) -> str:
        """Return the row of the table."""
        network = self.network
        shown = (
            self.maps,
            self.accusing,
            self.found if network.slower else "",
            self.lone if network.lone else "",
            self.unexplained,
            "" if network.lone or network.slow > 1 else self.grouped,
        )
        return f"| {network.words} | " + " | ".join(map(str, shown)) + " |"


def simulate(network: Network, maps: int, seed: int) -> Row:
    """Map a network so many times, each with pairs and launches of its own.

    A map accuses where it names none but members that are neither slow nor alone behind a switch, or says that one stands apart
    behind the only switch.
    """
    random = np.random.default_rng(seed)
    seen = [map_once(network, random) for _ in range(maps)]
    innocent = set(range(sum(network.switches))) - network.lone - set(range(network.slow if network.slower else 0))
    return Row(
        network,
        maps,
        found=sum(is_fault_told(network, one) for one in seen),
        lone=sum(bool(accused(one) & network.lone) for one in seen),
        accusing=sum(_accuses(network, one, innocent) for one in seen),
        unexplained=sum(bool(one.outliers or one.is_unclear) for one in seen),
        grouped=sum(not one.is_unclear and one.groups == network.groups for one in seen),
    )


def _accuses(network: Network, found: Judgement, innocent: set[int]) -> bool:
    """Whether a cause names none but the innocent; behind one switch none of them stands apart either."""
    stands_apart = len(network.switches) == 1 and bool(set(found.apart) & innocent)
    return stands_apart or any(_is_of(culprit, innocent) for culprit in found.culprits)


def _is_of(culprit: Culprit, innocent: set[int]) -> bool:
    """Whether a cause names none but the innocent."""
    named = {member for member in (culprit.candidate.first, culprit.candidate.second) if member >= 0}
    return named <= innocent


HEALTHY = ((4,), (8,), (16,), (7, 1), (7, 7, 1), (6, 2), (14, 2), (28, 4), (4, 4), (12, 4), (4, 4, 4, 4))
WITH_A_SLOW_NODE = ((8,), (6, 2), (6, 6), (14, 2), (28, 4))
SLOWER = (0.1, 0.2)
MANY_SLOW = (
    (4, 2, 0.25),
    (6, 2, 0.1),
    (6, 3, 0.1),
    (8, 2, 0.25),
    (8, 4, 0.1),
    (12, 4, 0.1),
    (16, 5, 0.1),
    (16, 8, 0.1),
)
NETWORKS = (
    *(Network(switches, is_rate=is_rate) for switches in HEALTHY for is_rate in (False, True)),
    *(
        Network(switches, slower, is_rate=is_rate)
        for switches in WITH_A_SLOW_NODE
        for slower in SLOWER
        for is_rate in (False, True)
    ),
    *(
        Network((nodes,), slower, slow, is_rate=is_rate)
        for nodes, slow, slower in MANY_SLOW
        for is_rate in (False, True)
    ),
)
FEWER = 4
"""Times fewer maps of what is found nearly always, and of networks of more than LARGE nodes: the whole takes a few minutes."""
LARGE = 20
COLUMNS = (
    "nodes behind each switch",
    "maps",
    "accuse a healthy node",
    "name a slow node, or all as apart",
    "name the lone node, as slow or apart",
    "leave something unnamed",
    "tell the groups right",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- |" + " ---: |" * (len(COLUMNS) - 1)]
    for network in NETWORKS:
        maps = options.maps // FEWER if network.slower or sum(network.switches) > LARGE else options.maps
        lines.append(simulate(network, maps, options.seed).words)
        print(lines[-1], file=sys.stderr, flush=True)
    show(lines, "map-groups", options.write)


if __name__ == "__main__":
    main()
