"""Who takes part in a cell: which ranks, on which hosts. Pure.

Ranks are placed one on each host of a fabric in the testbed's order, and around again where there are more: rank i on host i modulo
the hosts.
A testbed's `ranks_per_node` is what a node seats at most; workloads fill their nodes with so many.
The members of a pattern are on different hosts, else what they exchange would not cross the fabric; only where all ranks share
this machine (`local`) are they all on one. A congestor has ranks of its own, on hosts that the cell leaves idle first, beside its
members else, and never rank 0, which directs the launch.
"""

from __future__ import annotations

from fabricbench.campaign.specification import ALL, IN_PAIRS, Congestor, Experiment, why_not_ranks
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import enumeration
from fabricbench.testbed.model import LauncherKind, Testbed

RANKS_ON_THIS_MACHINE = 4
"""What takes the place of the hosts where all ranks run on this machine: enough for every pattern to be itself."""


class UnfitRanksError(ValueError):
    """The testbed cannot seat the ranks; the text says why and what is possible."""


class SeatPlan:
    """The places of a testbed, and who sits where."""

    def __init__(self, testbed: Testbed) -> None:
        self._is_one_machine = testbed.launcher is LauncherKind.LOCAL
        self._hosts = [node.name for node in testbed.nodes_of(testbed.fabrics[0])]
        self._most = testbed.layout.ranks_per_node
        on_this_machine = self._most or RANKS_ON_THIS_MACHINE
        self.number = min(RANKS_ON_THIS_MACHINE, on_this_machine) if self._is_one_machine else len(self._hosts)
        fewest = [one.name for one in testbed.fabrics if len(testbed.joined_by(one)) == self.number]
        nodes = f"it has {_count(self.number, 'node')}"
        if len(testbed.node_sets) > 1:
            no_more = f"{enumeration(fewest)} {'joins' if len(fewest) == 1 else 'join'} no more"
            nodes = f"every fabric is measured over {_count(self.number, 'node')}, as {no_more}"
        self.words = f"this machine seats {self.number}" if self._is_one_machine else nodes
        self.of_workload = on_this_machine if self._is_one_machine else len(self._hosts) * (self._most or 1)
        """How many ranks of a workload there are places for."""
        self.of_workload_in_words = (
            f"this machine seats {self.of_workload}"
            if self._is_one_machine
            else f"{self._most or 'one'} on a node, and {self.words}"
        )

    def members(self, experiment: Experiment, layer: Layer) -> tuple[int, ...]:
        """Return the ranks of a cell, the leading one first; UnfitRanksError where the testbed has too few."""
        if layer is Layer.MEMORY:
            return (0,)
        facts = PATTERNS[experiment.pattern]
        asked = experiment.ranks
        if asked is None and facts.most_ranks is not None:
            asked = facts.most_ranks
        if isinstance(asked, tuple):
            self._check_apart(experiment.pattern, asked)
            return asked
        number = asked if isinstance(asked, int) else self._all(experiment.pattern)
        self._check_number(experiment.pattern, number)
        return tuple(range(number))

    def congestors(self, congestor: Congestor, members: tuple[int, ...]) -> tuple[int, ...]:
        """Return the ranks of a congestor beside a cell's `members`.

        The first one, where an incast goes, shares the host of the cell's second member; the others come from the hosts behind it.
        With four hosts and a ping-pong of ranks 0 and 1 that is rank 5 on host 1, from ranks 2 and 3.
        """
        asked = congestor.ranks
        if isinstance(asked, tuple):
            both = sorted({*asked} & {*members})
            if both:
                raise UnfitRanksError(f"rank {both[0]} takes part in the test that is to be congested")
            self._check_apart(congestor.pattern, asked)
            return self._seated(asked)
        hosts = self._others_first(members)
        free = tuple(self._free_rank(host, members, is_beside=place == 0) for place, host in enumerate(hosts))
        most = PATTERNS[congestor.pattern].most_ranks or len(free)
        number = asked if isinstance(asked, int) else min(len(free), most)
        if asked == ALL and congestor.pattern in IN_PAIRS:
            number -= number % 2
        why = why_not_ranks(congestor.pattern, number) or (None if number <= len(free) else "they are too few")
        if why is not None:
            raise UnfitRanksError(
                f"{_count(len(free), 'host')} {'is' if len(free) == 1 else 'are'} left for the congestor ({self.words}): {why}"
            )
        return self._seated(free[:number])

    def _seated(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """Return ranks for all of which the testbed has places."""
        on_each = -(-(max(ranks) + 1) // (1 if self._is_one_machine else len(self._hosts)))
        if self._most is not None and on_each > self._most:
            raise UnfitRanksError(
                f"it takes {on_each} ranks on a node, and the testbed has ranks_per_node = {self._most}"
            )
        return ranks

    def _all(self, pattern: Pattern) -> int:
        most = PATTERNS[pattern].most_ranks
        number = self.number if most is None else min(most, self.number)
        return number - number % 2 if pattern in IN_PAIRS else number

    def _check_number(self, pattern: Pattern, number: int) -> None:
        if number > self.number:
            raise UnfitRanksError(
                f"{pattern} was asked for with {number} ranks, each on a node of its own, and {self.words}"
            )
        why = why_not_ranks(pattern, number)
        if why is not None:
            raise UnfitRanksError(f"{why}, and {self.words}")

    def _check_apart(self, pattern: Pattern, ranks: tuple[int, ...]) -> None:
        if self._is_one_machine:
            return
        seated: dict[int, int] = {}
        for rank in ranks:
            host = rank % len(self._hosts)
            if host in seated:
                raise UnfitRanksError(
                    f"ranks {seated[host]} and {rank} of {pattern} are both on {self._hosts[host]}, and what they exchange "
                    f"would not cross the fabric ({self.words})"
                )
            seated[host] = rank

    def _others_first(self, members: tuple[int, ...]) -> list[int]:
        """Return the hosts of a congestor in its order: that of the second member, then all but the first member's."""
        first, second = members[0] % self.number, members[min(1, len(members) - 1)] % self.number
        return [second, *(host for host in range(self.number) if host not in (first, second))]

    def _free_rank(self, host: int, members: tuple[int, ...], *, is_beside: bool) -> int:
        """Return the first rank on a host that is free; `is_beside`: one of the second row even if the first is free."""
        rank = host + (self.number if is_beside else 0)
        while rank in members or rank == 0:
            rank += self.number
        return rank


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
