"""Launches over nodes that ssh reaches, the starter by itself (srun), or the testbed's `reach`; one rank a node and around again.

Nodes need not see the run directory: `launch/staging.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fabricbench.launch.machines import MachinesApart
from fabricbench.launch.mpi import MpiStarter
from fabricbench.launch.starter.template import check_reach, reached
from fabricbench.testbed.model import Testbed

CONNECT_SECONDS = 10
"""A machine that is off answers nothing at all; one that is on accepts within a second or so."""

SSH = "ssh"
SSH_FAILED = 255
"""The exit code of ssh's own failures; all others are the command's."""


class SshLauncher(MachinesApart):
    """One rank on each node, and around again; every node has its processors for itself, so MPI may spin."""

    def __init__(self, starter: MpiStarter, testbed: Testbed) -> None:
        super().__init__(starter, testbed)
        if testbed.reach is not None:
            check_reach(testbed.reach)

    def in_node(self, node: str, tokens: Sequence[str]) -> list[str]:
        """Return the tokens behind the testbed's `reach`, or the starter, if it reaches nodes, else behind ssh.

        ssh's shell needs them quoted once.
        """
        if self._testbed.reach is not None:
            return reached(self._testbed.reach, node, tokens)
        if self._starter.reaches_nodes:
            return self._starter.on_node(node, tokens)
        options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}")
        return [SSH, *options, "--", node, shlex.join(tokens)]


def advice_on(node: str, stderr: str) -> str:
    """Return what to do about a node that ssh does not reach, from what ssh said."""
    for words, action in _ADVICE:
        if words in stderr:
            return action.format(node=shlex.quote(node))
    return _USUAL_ADVICE.format(node=shlex.quote(node))


_USUAL_ADVICE = "make `ssh {node} true` work from here without a question"
_ADVICE = (
    ("Could not resolve hostname", "correct `nodes` in the testbed, or name {node} in ~/.ssh/config or /etc/hosts"),
    ("Host key verification failed", "run `ssh {node} true` once and accept its key, or add it to ~/.ssh/known_hosts"),
    ("Permission denied", "let a key in without a question: `ssh-copy-id {node}`"),
    ("Connection refused", "start sshd on {node}, or name its port in ~/.ssh/config"),
    ("timed out", "start {node} or its network, and check that no firewall keeps ssh out"),
    ("No route to host", "start {node} or its network"),
)
"""What ssh says, and what helps."""
