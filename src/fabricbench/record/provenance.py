"""Where the numbers of a launch come from, and whether their traffic was shown to take the fabric that they are told of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabricbench.testbed.model import Fabric

BY = "by"
"""The parameter of a cell that names the program whose number it is, where that is not ours."""


class Origin(StrEnum):
    """How the numbers of a launch came about."""

    MEASURED = "measured"
    EMULATED = "emulated"
    """Measured on links that a lab emulates."""
    SIMULATED = "simulated"
    PREDICTED = "predicted"
    IMPORTED = "imported"
    """Measured by another program, and read from what it wrote."""


@dataclass(frozen=True)
class Mark:
    """What marks numbers of an origin wherever they are shown: what is so, `fabrics` say, and the rest of the sentence.

    `condition` follows the names of fabrics among the conditions of a comparison.
    """

    noun: str
    remark: str
    condition: str


MARKS = {
    Origin.EMULATED: Mark("fabrics", "the lab's switches, not hardware", "emulated on one machine"),
    Origin.SIMULATED: Mark("numbers", "computed by a simulation, not measured", "simulated, not measured"),
    Origin.PREDICTED: Mark("numbers", "computed by a model, not measured", "predicted by a model, not measured"),
    Origin.IMPORTED: Mark(
        "numbers", "measured by another program, not by fabricbench", "imported from what another program wrote"
    ),
}
"""The one place that says how an origin reads. What fabricbench measured on hardware has no mark."""


Marks = dict[Origin, tuple[str, ...]]
"""What numbers are marked as: each origin with the names of its fabrics in their order."""


def marks_of(origins: Iterable[tuple[str, Origin | None]]) -> Marks:
    """Return the marks of fabrics, given their names and origins; a fabric with numbers of two origins has two."""
    marks: Marks = {}
    for name, origin in dict.fromkeys(origins):
        if origin is not None and origin in MARKS:
            marks[origin] = (*marks.get(origin, ()), name)
    return marks


def mark_words(marks: Mapping[Origin, Iterable[str]]) -> list[str]:
    """Return for each mark a line such as `emulated: myrinet (the lab's switches, not hardware)`."""
    return [f"{mark.value}: {', '.join(names)} ({MARKS[mark].remark})" for mark, names in marks.items()]


def origin_column(fabric: str, marks: Marks) -> dict[str, str]:
    """Return the column of a row that says where a fabric's numbers come from; nothing where all are measured on hardware."""
    if not marks:
        return {}
    return {
        "origin": ", ".join(mark.value for mark, names in marks.items() if fabric in names) or Origin.MEASURED.value
    }


class Proof(StrEnum):
    """Whether counters show that the traffic of a launch took its fabric, and no other way."""

    PROVEN = "proven"
    REFUTED = "refuted"
    """The traffic went elsewhere: the launch is kept, and counts nowhere."""
    UNKNOWN = "unknown"
    """Nobody counted it. The launch counts, and what is made of it says so."""

    @property
    def doubt(self) -> str:
        """What is to be said beside a path; empty where it is proven."""
        return {Proof.PROVEN: "", Proof.REFUTED: "path refuted", Proof.UNKNOWN: "path unproven"}[self]


def unproven_of(proofs: Iterable[tuple[str, Proof]]) -> tuple[str, ...]:
    """Return the fabrics that have launches whose traffic nobody counted, given the name and the proof of each."""
    return tuple(dict.fromkeys(name for name, proof in proofs if proof is Proof.UNKNOWN))


def unproven_words(fabrics: Iterable[str]) -> list[str]:
    """Return the line that says so of fabrics; none where all paths are proven."""
    names = ", ".join(fabrics)
    return [f"{Proof.UNKNOWN.doubt}: {names} (no counter shows that the traffic took the fabric)"] if names else []


def origin_of(fabric: Fabric) -> Origin:
    """Return where the numbers come from that are measured on a fabric."""
    return Origin.EMULATED if fabric.is_emulated else Origin.MEASURED
