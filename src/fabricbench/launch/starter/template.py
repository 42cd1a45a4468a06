"""What a testbed writes itself, as tokens with placeholders: `starter`, `reach`, `fan_out`.

`["aprun", "-n", "{ranks}", "{program}"]` is a starter.

`{program}` is the program with its variables before it, `{arguments}` are the testbed's `mpi_arguments`. Where one is a token by
itself, it becomes as many tokens as it has; within a longer one (`"cd /tmp && {program}"`) a line that a shell takes. `{line}` is
the program as such a line, for what hands its arguments to a shell, as ssh does.

A starter that takes variables as options writes one such option, with `{name}` and `{value}`: `"--env={name}={value}"`, or
`"-x", "{name}={value}"`, or `"-genv", "{name}", "{value}"`. It is written again for each variable, and no variable stands before
the program then.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from fabricbench.configuration import did_you_mean
from fabricbench.errors import UsageError
from fabricbench.launch.starting import WORKING_DIRECTORY, Given, Job, node_list

PROGRAM, ARGUMENTS, LINE, NODE, NODES = "program", "arguments", "line", "node", "nodes"
VARIABLE = ("name", "value")
NUMBERS = ("ranks", NODES, "ranks_per_node", "threads_per_rank")
PLACES = (PROGRAM, LINE, ARGUMENTS, *VARIABLE, *NUMBERS, "hosts", "binding", "directory")
PLACES_OF_REACH = (NODE, PROGRAM, LINE)
PLACES_OF_FAN_OUT = (NODES, PROGRAM, LINE)

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Template:
    """The starter of one testbed. UsageError where its tokens cannot start a program."""

    NAME = "template"
    REACHES_NODES = False

    def __init__(self, template: Sequence[str]) -> None:
        self._template = tuple(template)
        self.PROGRAMS: tuple[str, ...] = self._template[:1]
        used = _checked("testbed.starter", self._template, PLACES, '["aprun", "-n", "{ranks}", "{program}"]')
        if {*VARIABLE} & {*used} and not {*VARIABLE} <= {*used}:
            lacking = next(place for place in VARIABLE if place not in used)
            raise UsageError(
                f"testbed.starter: its option for variables lacks {{{lacking}}}",
                hint='write both into it: "--env={name}={value}"',
            )
        self._has_arguments = ARGUMENTS in used
        self._sets_variables = VARIABLE[0] in used

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
        started = job.program if self._sets_variables else job.program_in_environment
        whole = {PROGRAM: started, ARGUMENTS: job.arguments}
        placement = job.placement
        texts = {
            "ranks": str(placement.ranks),
            "nodes": str(max(1, len(placement.hosts))),
            "ranks_per_node": str(placement.ranks_on_each_host),
            "threads_per_rank": str(placement.layout.threads_per_rank or 1),
            "hosts": ",".join(placement.hosts),
            "binding": str(placement.layout.binding),
            "directory": WORKING_DIRECTORY if placement.hosts else ".",
            LINE: shlex.join(started),
            **{name: shlex.join(tokens) for name, tokens in whole.items()},
        }
        return [program, *_filled(_with_variables(self._template[1:], job.environment), whole, texts)]


def check_reach(reach: Sequence[str]) -> None:
    """Raise UsageError where the tokens of `reach` cannot run a program on a node."""
    used = _checked("testbed.reach", reach, PLACES_OF_REACH, '["kubectl", "exec", "-i", "{node}", "--", "{program}"]')
    if NODE not in used:
        raise UsageError(
            "testbed.reach: its tokens name no node: {node} is missing",
            hint='write it where the node goes: reach = ["kubectl", "exec", "-i", "{node}", "--", "{program}"]',
        )


def reached(reach: Sequence[str], node: str, program: Sequence[str]) -> list[str]:
    """Return the tokens that run a program on a node, as the testbed's `reach` says."""
    line = shlex.join(program)
    return _filled(reach, {PROGRAM: program}, {NODE: node, LINE: line, PROGRAM: line})


def check_fan_out(fan_out: Sequence[str]) -> None:
    """Raise UsageError where the tokens of `fan_out` cannot run a program on many nodes."""
    example = '["pdsh", "-w", "{nodes}", "{line}"]'
    used = _checked("testbed.fan_out", fan_out, PLACES_OF_FAN_OUT, example)
    if NODES not in used:
        raise UsageError(
            "testbed.fan_out: its tokens name no nodes: {nodes} is missing",
            hint=f"write it where their names go, with commas between: fan_out = {example}",
        )


def spread(fan_out: Sequence[str], nodes: Sequence[str], program: Sequence[str]) -> list[str]:
    """Return the tokens that run a program on all these nodes, as the testbed's `fan_out` says."""
    line = shlex.join(program)
    return _filled(fan_out, {PROGRAM: program}, {NODES: node_list(nodes), LINE: line, PROGRAM: line})


def _checked(key: str, template: Sequence[str], places: Sequence[str], example: str) -> list[str]:
    """Return the placeholders of a template; UsageError for one that there is not, or where it starts no program."""
    used = [place for token in template for place in PLACEHOLDER.findall(token)]
    if strange := next((place for place in used if place not in places), None):
        raise UsageError(
            f"{key}: {{{strange}}} is no placeholder{did_you_mean(strange, list(places))}",
            hint=f"there are {', '.join(f'{{{place}}}' for place in places)}",
        )
    if PROGRAM not in used and LINE not in used:
        name = key.rpartition(".")[2]
        raise UsageError(
            f"{key}: its tokens start no program: {{program}} is missing",
            hint=f"write it where the program goes: {name} = {example}",
        )
    return used


def _with_variables(template: Sequence[str], environment: Mapping[str, str]) -> list[tuple[str, Mapping[str, str]]]:
    """Return the tokens, those of the option for variables once for each, with what {name} and {value} are there."""
    tells = [any(place in VARIABLE for place in PLACEHOLDER.findall(token)) for token in template]
    if True not in tells:
        return [(token, {}) for token in template]
    first, end = tells.index(True), len(tells) - tells[::-1].index(True)
    is_after_option = first > 0 and template[first - 1].startswith("-") and not template[first].startswith("-")
    begin = first - 1 if is_after_option else first
    again = [
        (token, dict(zip(VARIABLE, variable, strict=True)))
        for variable in environment.items()
        for token in template[begin:end]
    ]
    return [*((token, {}) for token in template[:begin]), *again, *((token, {}) for token in template[end:])]


def _filled(
    template: Sequence[str] | Sequence[tuple[str, Mapping[str, str]]],
    whole: Mapping[str, Sequence[str]],
    texts: Mapping[str, str],
) -> list[str]:
    """Return a template with its placeholders filled in: those of `whole` that stand alone become as many tokens as they have."""
    written: list[str] = []
    for one in template:
        token, own = (one, {}) if isinstance(one, str) else one
        known = {**texts, **own}
        alone = PLACEHOLDER.fullmatch(token)
        if alone is not None and alone[1] in whole:
            written += whole[alone[1]]
        else:
            written.append(PLACEHOLDER.sub(lambda place, known=known: known[place[1]], token))  # type: ignore[misc]
    return written
