"""Brings all nodes of a run to the settings of one side after the other, and back to what they were, whatever happens.

What a side does not mention has its original value, so that sides differ in nothing else. Originals are in the ledger, on the disk,
before the first write; where this process dies, the next command of any kind restores them (`restoring`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab.process import ProcessIdentity, identify
from fabricbench.record.launch import HeldSetting
from fabricbench.settings import KINDS, ledger
from fabricbench.settings.agent import AgentAnswer, AgentRequest, Problem, Task
from fabricbench.settings.asking import InNode, Silence, ask_nodes, question
from fabricbench.settings.restoring import RESTORE_BY_HAND, restore_entry
from fabricbench.settings.setting import Setting
from fabricbench.testbed.preflight_result import folded

Sides = Mapping[str, tuple[Setting, ...]]
"""What each side sets, by its name; sides that set nothing are there too."""

MOST_TOLD = 8


class SettingsNotHeldError(Exception):
    """Nodes could not be brought to a side's settings; the text says which, and why."""


def union_of(sides: Sides) -> tuple[Setting, ...]:
    """Return every setting that any side sets, with each of its values once."""
    every = [setting for settings in sides.values() for setting in settings]
    return tuple({(one.key, one.value): one for one in every}.values())


def examine_nodes(
    in_node: InNode, nodes: Sequence[str], sides: Sides, *, are_apart: bool
) -> dict[str, AgentAnswer | Silence]:
    """Return of each node what its settings are now, and what keeps any from being written."""
    order = AgentRequest(task=Task.EXAMINE, settings=union_of(sides))
    return ask_nodes(in_node, dict.fromkeys(nodes, order), are_apart=are_apart)


class SettingsSession:
    """The nodes of a run whose settings are varied."""

    def __init__(self, in_node: InNode, sides: Sides, told: Mapping[str, AgentAnswer], *, are_apart: bool) -> None:
        self._in_node = in_node
        self._sides = sides
        self._are_apart = are_apart
        self._told = dict(told)
        self._run = secrets.token_hex(8)
        self._before: dict[str, AgentAnswer | Silence] = {}
        self._keys = list(dict.fromkeys(one.key for one in union_of(sides)))

    @property
    def lasting(self) -> frozenset[str]:
        """The keys of what may outlive a node that is started anew, or an emulated one."""
        return frozenset(one.key for one in union_of(self._sides) if KINDS[one.kind].OUTLIVES_BOOT)

    def varies(self, side: str) -> bool:
        """Tell whether a side is one of those between which settings differ."""
        return side in self._sides

    def bring(self, side: str) -> None:
        """Bring every node to a side's settings and read them back. Raises SettingsNotHeldError."""
        orders = {node: self._order(Task.WRITE, side, node) for node in self._told}
        self._before = self._ask(orders)
        if wrong := self._deviations(side, self._before):
            raise SettingsNotHeldError(f"the settings of {side} do not hold: {_listed(wrong)}")

    def look(self, side: str) -> tuple[tuple[HeldSetting, ...], tuple[str, ...]]:
        """Return each setting of a side as it was before and is after a launch, and in words what did not hold."""
        orders = {node: self._order(Task.READ, side, node) for node in self._told}
        after = self._ask(orders)
        wished = {one.key: one.value for one in self._sides[side]}
        held = tuple(
            HeldSetting(
                setting=key,
                wished=wished.get(key) or "",
                before=_by_value(self._before, key),
                after=_by_value(after, key),
            )
            for key in self._keys
        )
        wrong = self._deviations(side, after)
        return held, tuple(f"after the launch a setting was not what it had to be: {line}" for line in wrong)

    def restoring_orders(self) -> dict[str, AgentRequest]:
        """Return what brings each node back, if it is still the same."""
        return {
            name: AgentRequest(
                task=Task.WRITE, settings=self._wished({}, name), node=told.node, run=self._run, restores=True
            )
            for name, told in self._told.items()
        }

    def _ask(self, orders: Mapping[str, AgentRequest]) -> dict[str, AgentAnswer | Silence]:
        """Return what each node told; who told nothing is asked once more: a question that is lost is no setting that strayed."""
        told = ask_nodes(self._in_node, orders, are_apart=self._are_apart)
        silent = {node: orders[node] for node, one in told.items() if isinstance(one, Silence)}
        return told | ask_nodes(self._in_node, silent, are_apart=self._are_apart)

    def _order(self, task: Task, side: str, node: str) -> AgentRequest:
        wished = {one.key: one for one in self._sides[side]}
        return AgentRequest(task=task, settings=self._wished(wished, node), node=self._told[node].node, run=self._run)

    def _wished(self, wished: Mapping[str, Setting], node: str) -> tuple[Setting, ...]:
        """Return every setting with the value that a side wishes, else with that node's original one."""
        each = {one.key: one for one in union_of(self._sides)}
        original = self._told[node].values
        return tuple(wished.get(key) or one.with_value(original[key]) for key, one in each.items())

    def _deviations(self, side: str, told: Mapping[str, AgentAnswer | Silence]) -> list[str]:
        """Return in words what is not as the side wishes, nodes that share it folded."""
        wrong: dict[str, list[str]] = {}
        for node, one in told.items():
            for text in self._wrong_on(side, node, one):
                wrong.setdefault(text, []).append(node)
        return [f"{folded(nodes)}: {text}" for text, nodes in wrong.items()]

    def _wrong_on(self, side: str, node: str, told: AgentAnswer | Silence) -> Iterator[str]:
        if isinstance(told, Silence):
            yield f"it did not answer: {told}"
            return
        if told.is_another:
            yield "it was started anew, or another machine has its name now"
            return
        reasons = {one.setting: one.found for one in told.problems}
        for one in self._order(Task.READ, side, node).settings:
            found = told.values.get(one.key)
            if found != one.value:
                reason = f" ({reasons[one.key]})" if one.key in reasons else ""
                yield f"{one.key} is {found if found is not None else 'not there'}, not {one.value}{reason}"


@contextmanager
def varied_settings(
    in_node: InNode,
    nodes: Sequence[str],
    sides: Sides,
    *,
    run: Path,
    notice: Callable[[str], None],
    are_apart: bool = True,
    lives_with: ProcessIdentity | None = None,
    job: str = "",
) -> Iterator[SettingsSession | None]:
    """Yield the session in which settings are varied, None where no side sets any; restore all of them at its end.

    `job` is the Slurm job whose steps reach the nodes. Raises EnvironmentLacks where a node does not tell, a setting cannot be had,
    or another run varies settings there, and UsageError for what an emulated node cannot vary alone; nothing was written then.
    """
    if not any(sides.values()):
        yield None
        return
    if lives_with is not None:
        _check_emulated(sides)
    with (
        ledger.locked()
    ):  # from before they are read: what another run has set, or is being restored, is nobody's original
        told = _told_by_all(examine_nodes(in_node, nodes, sides, are_apart=are_apart))
        session = SettingsSession(in_node, sides, told, are_apart=are_apart)
        entry = _entry(session, told, in_node, run, lives_with).model_copy(update={"job": job})
        _check_free(entry)
        path = ledger.new_path()
        ledger.write(path, entry)
    try:
        yield session
    finally:
        restored = restore_entry(path, entry, are_apart=are_apart)
        for node, why in restored.failed.items():
            notice(f"settings of {node} are not restored: {why}; {RESTORE_BY_HAND}")


def _check_emulated(sides: Sides) -> None:
    """Raise UsageError where an emulated node would set what is its whole machine's: it would stay when the lab has gone."""
    wrong = dict.fromkeys(one.key for one in union_of(sides) if KINDS[one.kind].is_of_host(one))
    if wrong:
        raise UsageError(
            f"found {', '.join(wrong)} in a [[condition]] for a lab: the nodes of a lab share them with this machine",
            hint="in a lab vary interfaces and sysctls below net; measure the rest between machines, with a testbed file",
        )


def _told_by_all(answers: Mapping[str, AgentAnswer | Silence]) -> dict[str, AgentAnswer]:
    told = {node: one for node, one in answers.items() if isinstance(one, AgentAnswer)}
    wrong: dict[str, list[str]] = {}
    for node, one in answers.items():
        for text in [one] if isinstance(one, Silence) else [_in_words(problem) for problem in one.problems]:
            wrong.setdefault(text, []).append(node)
    if wrong:
        raise EnvironmentLacks(
            "settings cannot be varied: " + _listed([f"{folded(nodes)}: {text}" for text, nodes in wrong.items()]),
            hint="mend this and give the same command again; nothing was written",
        )
    return told


def _in_words(problem: Problem) -> str:
    return f"{problem.setting}: found {problem.found}; needed: {problem.needed}; what to do: {problem.action}"


def _entry(
    session: SettingsSession,
    told: Mapping[str, AgentAnswer],
    in_node: InNode,
    run: Path,
    lives_with: ProcessIdentity | None,
) -> ledger.SettingsEntry:
    owner = identify(os.getpid())
    assert owner is not None  # noqa: S101 - this process runs
    orders = session.restoring_orders()
    return ledger.SettingsEntry(
        owner=owner,
        run=str(run),
        nodes=tuple(
            ledger.NodeEntry(
                name=node,
                identity=one.node,
                restore=tuple(question(in_node, node, orders[node])),
                originals=one.values,
                lives_with=lives_with,
                lasting=tuple(key for key in one.values if key in session.lasting),
            )
            for node, one in told.items()
        ),
    )


def _check_free(mine: ledger.SettingsEntry) -> None:
    """Raise EnvironmentLacks where a node's settings are another run's, or were left by one. The lock must be held."""
    for path, other in ledger.entries().items():
        if other is None:
            raise EnvironmentLacks(f"{path} cannot be read", hint="look at it, set back what it names, and remove it")
        taken = {node.identity for node in other.left}
        shared = [node.name for node in mine.nodes if node.identity in taken]
        if shared and other.is_live:
            raise EnvironmentLacks(
                f"another run varies settings on {folded(shared)}: process {other.owner.pid}, {other.run}",
                hint="wait for it, or end it",
            )
        if shared:
            raise EnvironmentLacks(
                f"{folded(shared)} still has the settings of {other.run}, which ended without restoring them",
                hint=RESTORE_BY_HAND,
            )


def _by_value(told: Mapping[str, AgentAnswer | Silence], key: str) -> dict[str, str]:
    """Return the nodes, folded, by the value that they told of a setting."""
    nodes: dict[str, list[str]] = {}
    for node, one in told.items():
        value = one.values.get(key, "") if isinstance(one, AgentAnswer) else ""
        nodes.setdefault(value, []).append(node)
    return {value: folded(names) for value, names in nodes.items()}


def _listed(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else []
    return "; ".join([*lines[:MOST_TOLD], *more])
