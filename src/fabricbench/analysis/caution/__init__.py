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
    data.missing_launches,
    data.unusual_ends,
    data.dead_switches,
    data.wide_gaps,
    data.failed_cells,
    data.losses,
    data.few_launches,
    noise.drifts,
    noise.ratio_drifts,
    noise.outlying_launches,
    machine.memory_control,
    machine.ladder_order,
    machine.beyond_the_wire,
    machine.emulated,
    machine.unpaired_runs,
    network.slow_pairs,
    network.failed_pairs,
    network.missed_starts,
    network.loose_starts,
    network.uncertain_clocks,
    noise.clock_cost,
    noise.dependent_samples,
    noise.two_modes,
    machine.random_order,
)


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
