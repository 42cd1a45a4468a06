"""A starter that the testbed writes itself, as tokens with placeholders: `starter = ["aprun", "-n", "{ranks}", "{program}"]`.

`{program}` is the program with its variables before it, `{arguments}` are the testbed's `mpi_arguments`. Where one is a token by
itself, it becomes as many tokens as it has; within a longer one (`"cd /tmp && {program}"`) a line that a shell takes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from fabricbench.configuration import did_you_mean
from fabricbench.errors import UsageError
from fabricbench.launch.starting import WORKING_DIRECTORY, Given, Job

PROGRAM, ARGUMENTS = "program", "arguments"
NUMBERS = ("ranks", "nodes", "ranks_per_node", "threads_per_rank")
PLACES = (PROGRAM, ARGUMENTS, *NUMBERS, "hosts", "binding", "directory")

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Template:
    """The starter of one testbed. UsageError where its tokens cannot start a program."""

    NAME = "template"
    REACHES_NODES = False

    def __init__(self, template: Sequence[str]) -> None:
        self._template = tuple(template)
        self.PROGRAMS: tuple[str, ...] = self._template[:1]
        used = [place for token in self._template for place in PLACEHOLDER.findall(token)]
        if strange := next((place for place in used if place not in PLACES), None):
            raise UsageError(
                f"testbed.starter: {{{strange}}} is no placeholder{did_you_mean(strange, list(PLACES))}",
                hint=f"there are {', '.join(f'{{{place}}}' for place in PLACES)}",
            )
        if PROGRAM not in used:
            raise UsageError(
                "testbed.starter: its tokens start no program: {program} is missing",
                hint='write it where the program goes: starter = ["aprun", "-n", "{ranks}", "{program}"]',
            )
        self._has_arguments = ARGUMENTS in used

    def is_it(self, _version_text: str) -> bool:
        """Return True: it is whatever the testbed says."""
        return True

    def parse(self, arguments: Sequence[str]) -> Given:
        """Return the arguments as they are: which of them set variables, nobody knows."""
        return Given({}, tuple(arguments))

    def tokens(self, program: str, job: Job) -> list[str]:
        """Return the tokens that start the job; UsageError where there is no place for its arguments."""
        if job.arguments and not self._has_arguments:
            raise UsageError(
                "the testbed has mpi_arguments, and its starter has no place for them",
                hint="write {arguments} into `starter`, or the arguments themselves",
            )
        whole = {PROGRAM: job.program_in_environment, ARGUMENTS: job.arguments}
        placement = job.placement
        texts = {
            "ranks": str(placement.ranks),
            "nodes": str(max(1, len(placement.hosts))),
            "ranks_per_node": str(placement.ranks_on_each_host),
            "threads_per_rank": str(placement.layout.threads_per_rank or 1),
            "hosts": ",".join(placement.hosts),
            "binding": str(placement.layout.binding),
            "directory": WORKING_DIRECTORY if placement.hosts else ".",
            **{name: shlex.join(tokens) for name, tokens in whole.items()},
        }
        written = [program]
        for token in self._template[1:]:
            alone = PLACEHOLDER.fullmatch(token)
            if alone is not None and alone[1] in whole:
                written += whole[alone[1]]
            else:
                written.append(PLACEHOLDER.sub(lambda place: texts[place[1]], token))
        return written
