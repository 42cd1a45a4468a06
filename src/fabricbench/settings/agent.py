"""What runs on a node: `python -m fabricbench.settings.agent ORDER` reads, examines or writes settings, and prints a line of JSON.

It writes what differs and nothing else, through `sudo -n` where it is not root, and reads back. Where the node is not the one that
the order was made for (it was started anew, or another has its place) it writes nothing: what was set is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from fabricbench.model import Model
from fabricbench.settings import KINDS, writes_of
from fabricbench.settings.setting import SUDO, CannotSetError, Setting, SettingsHost, Write, as_json, sudo_rule
from fabricbench.settings.turn import NotItsTurnError, turn

MODULE = "fabricbench.settings.agent"

ROUNDS = 3
"""Of writing what still differs: some settings can be written only once another one is."""


class Task(StrEnum):
    """What the agent is to do: read; read and see whether each value could be written; write."""

    READ = "read"
    EXAMINE = "examine"
    WRITE = "write"


class AgentRequest(Model):
    """What a node is told. To examine, a setting may be there with several values. `node`: the identity that it must have.

    `run` names the run: once an order that `restores` it has come, none of its other orders writes.
    """

    task: Task
    settings: tuple[Setting, ...]
    node: str = ""
    run: str = ""
    restores: bool = False


class Problem(Model):
    """A setting that cannot be had on a node."""

    setting: str
    found: str
    needed: str
    action: str


class AgentAnswer(Model):
    """What a node answers: its identity, the value of each setting by its key, what is wrong, the commands that were run."""

    node: str
    values: dict[str, str] = {}
    problems: tuple[Problem, ...] = ()
    written: tuple[str, ...] = ()
    is_another: bool = False
    refused: str = ""


WAIT_SECONDS, RESTORING_WAIT_SECONDS = 30.0, 10.0
"""For another agent there: less than who asks waits, so that its answer is heard. Every command restores, with less patience."""


def obey(order: AgentRequest, host: SettingsHost) -> AgentAnswer:
    """Do what an order says, while no other agent of this user is at work here. `refused`: why nothing was done."""
    identity = node_identity(host)
    if order.node and order.node != identity:
        lasting, _ = _read([one for one in order.settings if KINDS[one.kind].OUTLIVES_BOOT], host)
        return AgentAnswer(node=identity, is_another=True, values=lasting)
    try:
        with turn(RESTORING_WAIT_SECONDS if order.restores else WAIT_SECONDS) as mine:
            if order.restores:
                mine.end(order.run)
            elif order.task is Task.WRITE and order.run and mine.is_over(order.run):
                return AgentAnswer(node=identity, refused="its run was restored, so nothing more is written")
            host.handed_on = (mine.descriptor,)
            return _obeyed(order, identity, host)
    except NotItsTurnError as error:
        return AgentAnswer(node=identity, refused=str(error))


def _obeyed(order: AgentRequest, identity: str, host: SettingsHost) -> AgentAnswer:
    each = {one.key: one for one in order.settings}
    values, problems = _read(order.settings, host)
    written: list[str] = []
    match order.task:
        case Task.EXAMINE:
            restored = [one.with_value(values[key]) for key, one in each.items() if key in values]
            problems += _examine([one for one in order.settings if one.key in values] + restored, host)
        case Task.WRITE:
            for _ in range(ROUNDS):
                wished = [one for one in order.settings if one.key in values and one.value != values[one.key]]
                if not wished:
                    break
                failed = _write(wished, host, written)
                values, problems = _read(order.settings, host)
                problems += [one for one in failed if values.get(one.setting) != each[one.setting].value]
    return AgentAnswer(node=identity, values=values, problems=tuple(problems), written=tuple(written))


def node_identity(host: SettingsHost) -> str:
    """Return what names this node until it is started anew: the kernel's boot and the network namespace."""
    boot = host.text("proc/sys/kernel/random/boot_id")
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def _read(settings: Iterable[Setting], host: SettingsHost) -> tuple[dict[str, str], list[Problem]]:
    values: dict[str, str] = {}
    problems = []
    for one in settings:
        try:
            values[one.key] = KINDS[one.kind].read(one, host)
        except CannotSetError as error:
            problems.append(_problem(one, error))
        except OSError as error:
            cannot = CannotSetError(f"{one.key} cannot be read: {error}", "a value that can be read", "leave it out")
            problems.append(_problem(one, cannot))
    for problem in problems:  # one of several values is not there: none of it is touched
        values.pop(problem.setting, None)
    return values, problems


def _problem(setting: Setting, error: CannotSetError) -> Problem:
    return Problem(setting=setting.key, found=error.found, needed=error.needed, action=error.action)


def _examine(settings: Sequence[Setting], host: SettingsHost) -> list[Problem]:
    """Return what keeps settings from being written: a program that is not there, a permission."""
    problems: dict[tuple[str, str], Problem] = {}
    for one in settings:
        for write in writes_of([one], [_device(one, host)]):
            try:
                _check_allowed(write.expanded(), host)
            except CannotSetError as error:
                problems.setdefault((one.key, error.found), _problem(one, error))
    return list(problems.values())


def _check_allowed(write: Write, host: SettingsHost) -> None:
    program = write.tokens[0]
    if os.geteuid() == 0:
        host.run(("sh", "-c", 'command -v -- "$0" >/dev/null || { echo "no $0 there" >&2; exit 1; }', program))
        return
    try:
        host.run((*SUDO, "-l", *write.tokens))
    except CannotSetError as error:
        line = write.words(with_sudo=False).rpartition("| ")[2]
        raise CannotSetError(
            f"that this user may not run `{line}` as root ({error.found})",
            "root's permission, without a password",
            f"allow this very command in /etc/sudoers.d, or leave it out: `{sudo_rule(write.tokens)}`",
        ) from None


def _write(settings: Sequence[Setting], host: SettingsHost, written: list[str]) -> list[Problem]:
    """Write what differs, group by group; what fails is told and does not keep the others from being written."""
    problems: list[Problem] = []
    groups: dict[tuple[str, str], list[Setting]] = {}
    for one in settings:
        groups.setdefault((one.kind, _device(one, host)), []).append(one)
    for (_, device), group in sorted(groups.items(), key=lambda one: (list(KINDS).index(one[0][0]), one[0][1])):
        for write in writes_of(group, [device] * len(group)):
            tokens = (*(SUDO if os.geteuid() != 0 else ()), *write.expanded().tokens)
            written.append(write.words(with_sudo=os.geteuid() != 0))
            try:
                host.run(tokens, write.stdin)
            except CannotSetError as error:
                problems += [_problem(one, error) for one in group]
    return problems


def _device(setting: Setting, host: SettingsHost) -> str:
    return host.device(setting) if setting.interface or setting.subnet else ""


def main(arguments: Sequence[str]) -> str:
    """Return the answer to an order (JSON), as JSON."""
    return as_json(obey(AgentRequest.model_validate_json(arguments[0]), SettingsHost()))


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]) + "\n")
