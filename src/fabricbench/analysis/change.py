"""Before and after: whether a comparison is one, what differs between the two configurations, and how many rows changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.findings import Changes, Comparison, PairEffect, Verdict
from fabricbench.analysis.wording import enumeration
from fabricbench.model import Layer
from fabricbench.testbed.model import Fabric

PLACES = ("interface", "subnet")
"""Two conditions in one run are two entries, each in its own place: that is not what was varied."""
PASSING = ("load", "advice")
"""What an inventory tells of the moment, not of the configuration."""
UNTOLD = ("name", "description", "condition_of", "price_per_node", "currency", "is_emulated", "layers")
"""What a fabric is called or costs does not change what is measured; `wire` and `settings` are told part by part."""


def is_change(pairings: Sequence[Pairing]) -> bool:
    """Whether everything compared is one thing before and after a change: two runs of it, or two conditions in one run."""
    return bool(pairings) and all(not pairing.is_paired or _is_condition(pairing) for pairing in pairings)


def _is_condition(pairing: Pairing) -> bool:
    return bool(pairing.a.fabric.condition_of) and pairing.a.fabric.condition_of == pairing.b.fabric.condition_of


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

    Slower and faster are by more than the margin; what is only ahead is unknown.
    """
    verdicts = [verdict_of(one) for one in cells if one.layer is not Layer.MEMORY]
    return Changes(
        slower=verdicts.count(Verdict.A_FASTER),
        faster=verdicts.count(Verdict.B_FASTER),
        same=verdicts.count(Verdict.EQUIVALENT),
        unknown=sum(one.is_ahead or one is Verdict.NOT_ENOUGH_DATA for one in verdicts),
        configuration=tuple(dict.fromkeys(text for pairing in pairings for text in _differences(pairing))),
    )


def _differences(pairing: Pairing) -> Iterable[str]:
    name = pairing.a.fabric.name if not _is_condition(pairing) else pairing.a.fabric.condition_of
    unlike = PLACES if _is_condition(pairing) else ()
    before, after = (_told(side.fabric, unlike) for side in (pairing.a, pairing.b))
    for what in dict.fromkeys((*before, *after)):
        old, new = before.get(what, "not set"), after.get(what, "not set")
        if old != new:
            yield f"{name}: {what} {old} became {new}"
    if not pairing.is_paired:
        yield from _of_machines(pairing)


def _told(fabric: Fabric, left_out: Sequence[str]) -> dict[str, str]:
    """Return a fabric's settings as texts, those of its wire and those that a lab was told one by one."""
    told: dict[str, str] = {}
    for name, value in fabric.model_dump(mode="json").items():
        if name in UNTOLD or name in left_out or value in (None, {}, [], ""):
            continue
        if isinstance(value, dict):
            told |= {f"{key}".replace("_", " "): str(one) for key, one in value.items() if one is not None}
        else:
            told[name.replace("_", " ")] = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return told


def _of_machines(pairing: Pairing) -> Iterable[str]:
    before, after = pairing.a.run.manifest, pairing.b.run.manifest
    for name, old in before.versions.items():
        if after.versions.get(name, old) != old:
            yield f"{name} {old} became {after.versions[name]}"
    changed: dict[tuple[str, str, str], list[str]] = {}
    for host, facts in before.inventory.items():
        for what, old in facts.items():
            new = after.inventory.get(host, {}).get(what, old)
            if new != old and not what.startswith(PASSING):
                changed.setdefault((what, old, new), []).append(host)
    for (what, old, new), hosts in changed.items():
        yield f"{enumeration(hosts)}: {what} {old} became {new}"
