"""What the reader must know before believing a number: every check that becomes a warning, a function each.

Each takes `Material` and yields warnings; many cells with the same trouble become one line. A check is added by writing it and
listing it in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fabricbench.analysis.caution import machine, numbers, rdma
from fabricbench.analysis.findings import Caution, Severity
from fabricbench.analysis.hosts import host_findings
from fabricbench.analysis.material import Material
from fabricbench.quantity import enumeration

__all__ = ["CHECKS", "find_warnings"]

CHECKS: tuple[Callable[[Material], Iterator[Caution]], ...] = (
    numbers.invalid_launches,
    numbers.foreign_launches,
    numbers.import_notes,
    numbers.unlike_tools,
    numbers.unproven_launches,
    numbers.dead_switches,
    machine.emulated,
    host_findings,
    machine.beyond_the_wire,
    machine.memory_control,
    machine.throttled,
    machine.unpaired_runs,
    machine.several_sessions,
    machine.unnamed_differences,
    numbers.failed_nodes,
    machine.unlike_nodes,
    numbers.missing_launches,
    numbers.unequal_starts,
    numbers.unusual_ends,
    numbers.wide_gaps,
    numbers.drifts,
    numbers.ratio_drifts,
    numbers.outlying_launches,
    numbers.losses,
    rdma.port_events,
    rdma.unlike_ends,
    rdma.unlike_fabrics,
    numbers.few_launches,
    machine.ladder_order,
    machine.slow_pairs,
    machine.failed_pairs,
    numbers.failed_cells,
    numbers.unequal_work,
    machine.missed_starts,
    machine.loose_starts,
    machine.uncertain_clocks,
    numbers.clock_cost,
    numbers.dependent_samples,
    numbers.two_modes,
    numbers.padded_messages,
    machine.random_order,
)
"""In the order in which they are told, of warnings that are equally severe: first what touches the numbers that are shown."""


def find_warnings(material: Material) -> list[Caution]:
    """Return all warnings, the gravest first; what is said of several subjects in the same words is said once."""
    subjects: dict[tuple[Severity, str], list[str]] = {}
    for check in CHECKS:
        for one in check(material):
            subjects.setdefault((one.severity, one.text), []).append(one.subject)
    found = [
        Caution(severity=severity, subject=enumeration(list(dict.fromkeys(names))), text=text)
        for (severity, text), names in subjects.items()
    ]
    return sorted(found, key=lambda warning: list(Severity).index(warning.severity))
