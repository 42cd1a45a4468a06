"""What the reader must know before believing a number: every check that becomes a warning, a function each.

Each takes `Material` and yields warnings; many cells with the same trouble become one line. A check is added by writing it and
listing it in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fabricbench.analysis.caution import data, machine, network, noise
from fabricbench.analysis.caution.material import Material
from fabricbench.analysis.findings import Severity, Warning  # noqa: A004 - the field's word
from fabricbench.analysis.wording import enumeration

__all__ = ["CHECKS", "Material", "find_warnings"]

CHECKS: tuple[Callable[[Material], Iterator[Warning]], ...] = (
    data.invalid_launches,
    data.unproven_launches,
    data.dead_switches,
    machine.emulated,
    machine.beyond_the_wire,
    machine.memory_control,
    machine.unpaired_runs,
    data.missing_launches,
    data.unusual_ends,
    data.wide_gaps,
    noise.drifts,
    noise.ratio_drifts,
    noise.outlying_launches,
    data.losses,
    data.few_launches,
    machine.ladder_order,
    network.slow_pairs,
    network.failed_pairs,
    data.failed_cells,
    data.unequal_work,
    network.missed_starts,
    network.loose_starts,
    network.uncertain_clocks,
    noise.clock_cost,
    noise.dependent_samples,
    noise.two_modes,
    machine.random_order,
)
"""In the order in which they are told, of warnings that are equally severe: first what touches the numbers that are shown."""


def find_warnings(material: Material) -> list[Warning]:
    """Return all warnings, the gravest first; what is said of several subjects in the same words is said once."""
    subjects: dict[tuple[Severity, str], list[str]] = {}
    for check in CHECKS:
        for one in check(material):
            subjects.setdefault((one.severity, one.text), []).append(one.subject)
    found = [
        Warning(severity=severity, subject=enumeration(list(dict.fromkeys(names))), text=text)
        for (severity, text), names in subjects.items()
    ]
    return sorted(found, key=lambda warning: list(Severity).index(warning.severity))
