"""Before and after: whether a comparison is one, what differs between the two configurations, and how many rows changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricbench.analysis.equal_work import unequal_work
from fabricbench.analysis.findings import CellKey, Changes, Comparison, PairEffect, Verdict
from fabricbench.analysis.measured import Side, workload_of
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.wording import named
from fabricbench.model import Layer
from fabricbench.quantity import enumeration, format_bit_s, format_seconds
from fabricbench.record.manifest import Manifest
from fabricbench.record.workload_cells import WorkloadPart
from fabricbench.testbed.differences import MISSING, PASSING
from fabricbench.testbed.model import FABRIC_SETTINGS, Fabric
from fabricbench.testbed.preflight_result import folded

PLACES = ("interface", "subnet", "nodes")
"""Two conditions in one run are two entries, each in its own place: that is not what was varied."""
NOT_SET = "not set"
OF_ANOTHER_MACHINE = ("cpu.model", "cpu.logical", "kernel.release")
"""Facts of an inventory by which a host is another machine than it was, or its kernel another one."""


def is_change(pairings: Sequence[Pairing]) -> bool:
    """Whether everything compared is one thing before and after a change: two runs of it, or two conditions in one run."""
    return bool(pairings) and all(pairing.is_change for pairing in pairings)


def name_of_change(pairings: Sequence[Pairing], pair: PairEffect) -> str:
    """Return what changed in a row."""
    return changed_name(next(one for one in pairings if (one.a.name, one.b.name) == (pair.fabric_a, pair.fabric_b)))


def changed_name(pairing: Pairing) -> str:
    """Return what changed: the fabric's name, or the thing that two entries are conditions of."""
    return pairing.a.fabric.condition_of or pairing.a.fabric.name


def changes_of(
    pairings: Sequence[Pairing], cells: Sequence[Comparison], verdict_of: Callable[[Comparison], Verdict]
) -> Changes:
    """Return the counts over all network cells by a verdict for each, and what differs between the configurations.

    Slower and faster are by more than the margin; of work that was not the same nothing is known.
    """
    sides = {(one.a.name, one.b.name): (one.a, one.b) for one in pairings}
    verdicts = [
        Verdict.NOT_ENOUGH_DATA if unequal_work(sides[one.fabric_a, one.fabric_b], (one.key,)) else verdict_of(one)
        for one in cells
        if one.layer is not Layer.MEMORY
    ]
    return Changes(
        slower=verdicts.count(Verdict.A_FASTER),
        faster=verdicts.count(Verdict.B_FASTER),
        same=verdicts.count(Verdict.EQUIVALENT),
        ahead=sum(one.is_ahead for one in verdicts),
        unknown=sum(one.is_open for one in verdicts),
        configuration=tuple(dict.fromkeys(text for pairing in pairings for text in _differences(pairing))),
    )


def _differences(pairing: Pairing) -> Iterable[str]:
    if pairing.is_paired:
        return _of_fabrics(changed_name(pairing), pairing.a, pairing.b, PLACES if pairing.is_change else ())
    return differences(pairing.a, pairing.b)


def differences(before: Side, after: Side) -> Iterable[str]:
    """Yield what differs between one fabric before and after, of itself, of measuring, machines, and the workloads on it."""
    yield from _of_fabrics(after.fabric.name, before, after)
    yield from _of_measuring(before, after)
    yield from map(str, machine_changes(*([run.manifest for run in side.runs] for side in (before, after))))
    yield from _of_workloads(before, after)


def _of_measuring(before: Side, after: Side) -> Iterator[str]:
    """Yield that ranks had hardware counters open on one side alone, which makes receivers that sleep slower."""
    was, now = ({_has_counters(run.manifest) for run in side.runs} for side in (before, after))
    if was != now:
        words = {frozenset({True}): "open", frozenset({False}): "not open"}
        old, new = (words.get(frozenset(side), "open in some runs") for side in (was, now))
        yield f"while ranks were measured, hardware counters {old} became {new}"


def _has_counters(manifest: Manifest) -> bool:
    return manifest.campaign.get("hardware_counters") is True


def _of_fabrics(name: str, a: Side, b: Side, unlike: Sequence[str] = ()) -> Iterable[str]:
    before, after = (fabric_settings(side.fabric, unlike) for side in (a, b))
    for what in dict.fromkeys((*before, *after)):
        old, new = before.get(what, NOT_SET), after.get(what, NOT_SET)
        if old != new:
            yield f"{name}: {what} {old} became {new}"


def fabric_settings(fabric: Fabric, left_out: Sequence[str] = ()) -> dict[str, str]:
    """Return a fabric's settings as texts, those of its wire and those that a lab was told one by one."""
    told: dict[str, str] = {}
    for name, value in fabric.model_dump(mode="json", include=set(FABRIC_SETTINGS)).items():
        if name in left_out or value in (None, {}, [], ""):
            continue
        if isinstance(value, dict):
            told |= dict(_setting(f"{key}", one) for key, one in value.items() if one is not None)
        else:
            told |= dict([_setting(name, " ".join(map(str, value)) if isinstance(value, list) else value)])
    return told


IN_UNITS: Mapping[str, Callable[[float], str]] = {"_bit_s": format_bit_s, "_seconds": format_seconds}


def _setting(name: str, value: object) -> tuple[str, str]:
    """Return a setting as people write it: the unit behind the number, not in the name."""
    for ending, written in IN_UNITS.items():
        if name.endswith(ending) and isinstance(value, int | float):
            return name.removesuffix(ending).replace("_", " "), written(value)
    return name.replace("_", " "), str(value)


def redefined(before: Side, after: Side) -> dict[CellKey, tuple[str, ...]]:
    """Return the cells of both sides that are another test than they were, whatever they are called, and what is another.

    That is what was asked for, and the files that the command names: of those what both sides tell.
    """
    asked = [_facts_of(side, lambda part: part.definition) for side in (before, after)]
    files = [_facts_of(side, lambda part: part.files) for side in (before, after)]
    names = {workload_of(part): part.name for part in _parts(before)}
    found = {}
    for key in before.cells:
        name = names.get(key.workload, "") if key.workload is not None and key in after.cells else ""
        old, new = (side.get(name, {}) for side in asked)
        read, reads = (side.get(name, {}) for side in files)
        found[key] = (
            *(what for what, _, _ in _unlike(old, new, old | new if old and new else ())),
            *(what for what, _, _ in _unlike(read, reads, read.keys() & reads.keys())),
        )
    return {key: names for key, names in found.items() if names}


def _of_workloads(before: Side, after: Side) -> Iterable[str]:
    """Yield what of the workloads that both sides have is not what it was. What one side does not tell at all is no change."""
    called = {part.name: str(part.parameters.get("workload", part.name)) for part in _parts(before)}
    changed: dict[tuple[str, str, str], list[str]] = {}
    for has_all, facts in ((True, lambda part: part.definition), (False, _found_by)):
        asked, found = (_facts_of(side, facts) for side in (before, after))
        for name, title in called.items():
            old, new = asked.get(name, {}), found.get(name, {})
            compared = old | new if has_all and old and new else [what for what in old if what in new]
            for difference in _unlike(old, new, compared):
                changed.setdefault(difference, []).append(title)
    for (what, was, now), names in changed.items():
        yield f"{enumeration(list(dict.fromkeys(names)))}: {what} {was} became {now}"


def _parts(side: Side) -> list[WorkloadPart]:
    return [part for launch in side.launches if (part := launch.summary.workload) is not None]


def _found_by(part: WorkloadPart) -> dict[str, str]:
    """Return what a launch found; in an earlier version's, which has no definition, the name of its primary figure as well."""
    has_told = bool(part.definition or not part.figures)
    return part.fixed if has_told else {**part.fixed, "primary figure": part.figures[0].name}


Facts = dict[str, dict[str, None]]
"""What -> every text that launches told of it, each once, in their order."""


def _facts_of(side: Side, facts: Callable[[WorkloadPart], Mapping[str, str]]) -> dict[str, Facts]:
    """Return what the launches of each workload of a side told, by its name."""
    found: dict[str, Facts] = {}
    for part in _parts(side):
        for what, text in facts(part).items():
            found.setdefault(part.name, {}).setdefault(what, {})[text] = None
    return found


def _unlike(before: Facts, after: Facts, compared: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what differs, what it was and what it is."""
    for what in compared:
        old, new = (side.get(what, {NOT_SET: None}) for side in (before, after))
        if old.keys() != new.keys():
            yield what, named(list(old)), named(list(new))


@dataclass(frozen=True)
class MachineChange:
    """What of the machines is not what it was: which nodes there are, a version, or a fact of some hosts.

    `is_other`: not a setting of theirs, but other machines, or another kernel.
    """

    what: str
    old: str
    new: str
    hosts: tuple[str, ...] = ()
    is_other: bool = False

    def __str__(self) -> str:
        where = f"{enumeration(self.hosts)}: " if self.hosts else ""
        return f"{where}{self.what} {self.old} became {self.new}"


def machine_changes(before: Sequence[Manifest], after: Sequence[Manifest]) -> Iterator[MachineChange]:
    """Yield how the machines of some runs differ from those of others; what one side does not tell at all is no change.

    Hosts of one name are compared with each other; of those that one side alone has, what machines they are.
    """
    was, now = (_texts(run.versions for run in side) for side in (before, after))
    yield from (MachineChange(*one) for one in _unlike(was, now, [name for name in was if name in now]))
    old, new = (_machines(side) for side in (before, after))
    if not old or not new:
        return
    nodes = _unlike({"nodes": _node_sets(before)}, {"nodes": _node_sets(after)}, ("nodes",))
    yield from (MachineChange(*one, is_other=True) for one in nodes)
    changed: dict[tuple[str, str, str], list[str]] = {}
    for host in (host for host in old if host in new):
        compared = [what for what in old[host] if what in new[host] and not what.startswith(PASSING)]
        for difference in _unlike(old[host], new[host], compared):
            changed.setdefault(difference, []).append(host)
    for difference, hosts in changed.items():
        yield MachineChange(*difference, tuple(hosts), is_other=difference[0] in OF_ANOTHER_MACHINE)
    gone, come = (
        [facts for host, facts in one.items() if host not in other] for one, other in ((old, new), (new, old))
    )
    left, added = _texts(gone), _texts(come)
    alone = [what for what in OF_ANOTHER_MACHINE if what in left and what in added]
    yield from (MachineChange(*one, is_other=True) for one in _unlike(left, added, alone))


def _machines(runs: Sequence[Manifest]) -> dict[str, Facts]:
    """Return what the inventories of some runs tell of each host; nothing of those that gave none."""
    hosts = dict.fromkeys(host for run in runs for host, facts in run.inventory.items() if MISSING not in facts)
    return {host: _texts(run.inventory[host] for run in runs if host in run.inventory) for host in hosts}


def _node_sets(runs: Sequence[Manifest]) -> dict[str, None]:
    """Return the nodes of each run as one text, each text once, in order of their names."""
    return dict.fromkeys(sorted(filter(None, map(_nodes_in_words, runs))))


def _nodes_in_words(run: Manifest) -> str:
    """Return `n[0-3]`, or of fabrics over some of the nodes `gige on n[0-1]; ib on n[2-3]`; empty where no node told of itself."""
    hosts = [host for host, facts in run.inventory.items() if MISSING not in facts]
    sets = run.testbed.node_sets
    if not hosts or all(len(nodes) == len(run.testbed.nodes) for nodes in sets):
        return folded(hosts)
    return "; ".join(f"{enumeration(names)} on {folded(nodes)}" for nodes, names in sets.items())


def _texts(tables: Iterable[Mapping[str, str | None] | Facts]) -> Facts:
    """Return what some tables tell of each fact, each text once."""
    found: Facts = {}
    for table in tables:
        for what, text in table.items():
            texts = text if isinstance(text, Mapping) else {str(text): None}
            found.setdefault(what, {}).update(texts)
    return found
