"""The hosts that a run was measured on, from their inventories: what they are, whether they were busy, what the doctor found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fabricbench.analysis.findings import Caution, Severity
from fabricbench.analysis.material import Material, warn
from fabricbench.quantity import count
from fabricbench.record.store import Manifest
from fabricbench.testbed.advice import BUSY_SHARE, AdviceWeight, findings_in
from fabricbench.testbed.preflight_result import folded

Inventory = Mapping[str, Mapping[str, str]]
"""The doctor's facts of each host: host -> what -> value."""

SEVERITIES = {AdviceWeight.WARNING: Severity.WARNING, AdviceWeight.NOTE: Severity.NOTE}


def host_findings(material: Material) -> Iterator[Caution]:
    """Tell what the doctor found on the hosts before the run: it bears on every number."""
    for run in {id(side.run): side.run for side in material.sides}.values():
        inventory = run.manifest.inventory
        found: dict[tuple[AdviceWeight, str], dict[str, list[str]]] = {}
        for host, facts in inventory.items():
            for weight, subject, finding in findings_in(facts):
                found.setdefault((weight, subject), {}).setdefault(finding, []).append(host)
        for (weight, _), findings in found.items():
            first = next(iter(findings))
            hosts = [host for those in findings.values() for host in those]
            alike = "" if len(findings) == 1 else f" (on {folded(findings[first])}; much the same on the others)"
            subject = "every node" if len(hosts) == len(inventory) > 1 else folded(hosts)
            yield warn(SEVERITIES[weight], subject, f"{first}{alike}")


def busy_words(inventory: Inventory) -> str:
    """Return that a host was busy as the run began, `load 7.8 on 1 processor`, of the busiest; nothing where none was."""
    loads = [
        (load / usable, f"load {load:.1f} on {count(int(usable), 'processor')}")
        for facts in inventory.values()
        if (load := _number(facts.get("load"))) is not None and (usable := _number(facts.get("cpu.usable")))
    ]
    busy, words = max(loads, default=(0.0, ""))
    return words if busy > BUSY_SHARE else ""


def system_words(manifests: Sequence[Manifest]) -> str:
    """Return what runs were measured on in a line: nodes, processor, system, kernel, MPI, without what nodes differ in."""
    inventory = [facts for one in manifests for facts in one.inventory.values() if "missing" not in facts]
    if not inventory:
        return ""
    nodes = {count(len(one.inventory), "node") for one in manifests}

    def shared(what: str, written: Callable[[str], str] = str) -> str:
        values = {facts.get(what, "") for facts in inventory}
        (value,) = values if len(values) == 1 else ("",)
        return written(value) if value else ""

    facts = (
        shared("cpu.model"),
        shared("cpu.usable", lambda text: _processors(text, shared("cpu.logical"))),
        shared("kernel.distribution"),
        shared("kernel.release", lambda text: f"Linux {text}"),
        shared("mpi.version"),
    )
    return ", ".join(filter(None, (nodes.pop() if len(nodes) == 1 else "", *facts)))


def _processors(usable: str, logical: str) -> str:
    number = _number(usable)
    if number is None:
        return ""
    return f"{usable} of {logical} processors" if logical not in ("", usable) else count(int(number), "processor")


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def quiet_words(manifests: Sequence[Manifest]) -> str:
    """Return how busy the hosts of the busiest run were."""
    return next(filter(None, (busy_words(one.inventory) for one in manifests)), "")
