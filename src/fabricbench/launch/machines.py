"""What launchers share whose nodes are machines of their own.

One rank on each node, and around again; files for rank 0 where its node does not see ours; nodes that fail.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from fabricbench.interpreter import python
from fabricbench.launch.asking import AskingLimits, ask_all, ask_together
from fabricbench.launch.launcher import Command, RealMachines, meeting_address
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.staging import Staging
from fabricbench.launch.starter.template import check_fan_out, spread
from fabricbench.launch.starting import Placement
from fabricbench.launch.watch import guarded
from fabricbench.testbed.model import Fabric, Testbed

ANSWER_SECONDS = 6.0
"""A node that is well answers within a second; one that is off says nothing, and is asked twice."""

ALL_SECONDS, SECONDS_A_NODE = 20.0, 0.5

HERE = "here"
"""What a node answers that is asked whether it does."""

ASKINGS = 2
"""One question that is lost, or a connection that a busy node refuses, is no node that failed."""


class MachinesApart(RealMachines):
    """Launchers over a testbed's nodes: every node has its processors for itself, so MPI may wait as it likes."""

    def __init__(self, starter: MpiStarter, testbed: Testbed) -> None:
        self._starter = starter
        self._testbed = testbed
        if testbed.fan_out is not None:
            check_fan_out(testbed.fan_out)

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program over the nodes."""
        placement = self._placement(fabric, ranks)
        tokens = guarded(self._starter.tokens(placement, fabric, program))
        return Command(tokens, directory, cleared=self._starter.foreign(fabric, placement).names, is_here=False)

    def meeting_address(self, fabric: Fabric) -> str:
        """Return the first node's address on the fabric, where the testbed tells it, else its name."""
        return meeting_address(self._testbed.nodes_of(fabric)[0], fabric)

    def conditions(self, fabric: Fabric) -> Mapping[str, str]:
        """Return how ranks are started."""
        return self._starter.conditions(self._placement(fabric, 1), fabric)

    def _placement(self, fabric: Fabric, ranks: int) -> Placement:
        hosts = tuple(node.name for node in self._testbed.nodes_of(fabric)[:ranks])
        return Placement(ranks, hosts, self._testbed.layout)

    @abstractmethod
    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens that run something else on a node, its stdin and stdout being theirs."""

    def in_nodes(self, nodes: Sequence[str], module: str, *arguments: str) -> list[str] | None:
        """Return the tokens that run a module of ours on all these nodes, where one command can."""
        return self._on_all(nodes, python(module, *arguments))

    def _on_all(self, nodes: Sequence[str], tokens: Sequence[str]) -> list[str] | None:
        """Return the tokens of the testbed's `fan_out`, where it has one and there are several nodes."""
        fan_out = self._testbed.fan_out
        return None if fan_out is None or len(nodes) < 2 else spread(fan_out, nodes, tokens)

    @cached_property
    def _staging(self) -> Staging:
        return Staging({node.name for node in self._testbed.nodes}, self.in_node)

    def stage(self, directory: Path, fabric: Fabric) -> Path:
        """Return the directory as rank 0 sees it: itself where its node does, else a folder of the launch's own there."""
        return self._staging.stage(directory, self._testbed.nodes_of(fabric)[0].name)

    def collect(self, directory: Path) -> None:
        """Bring back what is in that folder."""
        self._staging.collect(directory)

    def silent_seconds(self, directory: Path, paths: Sequence[Path]) -> float | None:
        """Return how long nothing has grown in that folder."""
        return self._staging.silent_seconds(directory, paths)

    def failed_nodes(self) -> Mapping[str, str]:
        """Ask every node, and again those that do not answer; return these, each with the reason."""
        failed: dict[str, str] = {}
        nodes = [node.name for node in self._testbed.nodes]
        together = self._on_all(nodes, ["echo", HERE])
        if together is not None:
            answered = ask_together(together, nodes, ANSWER_SECONDS + SECONDS_A_NODE * len(nodes), HERE.__eq__)
            nodes = [node for node in nodes if node not in answered]
        for _ in range(ASKINGS):
            questions = {name: self.in_node(name, ["true"]) for name in nodes}
            limits = AskingLimits(each_s=ANSWER_SECONDS, all_s=ALL_SECONDS + SECONDS_A_NODE * len(nodes))
            answers = ask_all(questions, limits)
            failed = {
                name: answer.problem or answer.last_words for name, answer in answers.items() if answer.exit_code != 0
            }
            nodes = list(failed)
        return failed
