"""Published figures of NPB: the table of the Fast Ethernet and Myrinet study of 2000, and a Cray to normalise to."""

from __future__ import annotations

from collections.abc import Iterator

from fabricbench.model import Model
from fabricbench.published.studies import study

STUDY = "korkhov-2000"
SLOW, FAST = "fast-ethernet", "myrinet"

CRAY = "cray-y-mp"
CRAY_SOURCE = (
    "sample Fortran code of NPB 1 on one processor of a Cray Y-MP, quoted in kthohr/jburkardt-f77, `*_serial.html`"
)
CRAY_SECONDS = {
    "EP.S": 11.0,
    "EP.A": 151.0,
    "EP.B": 512.0,
    "CG.S": 1.2,
    "CG.A": 22.0,
    "CG.B": 998.0,
    "BT.S": 7.2,
    "BT.A": 923.0,
    "BT.B": 3554.0,
}
"""Of the other kernels no figure was found in a document that could be read."""


class PublishedKernel(Model):
    """A kernel in the study: class A on 4 ranks, one a node. `ratio` is Fast Ethernet's time over Myrinet's."""

    benchmark: str
    seconds: dict[str, float]
    mops_total: dict[str, float]
    mops_per_process: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times longer it took on Fast Ethernet."""
        return self.seconds[SLOW] / self.seconds[FAST]


def published_kernels() -> tuple[PublishedKernel, ...]:
    """Return the study's table, the kernel that gained most first."""
    return tuple(sorted(_table(), key=lambda one: -one.ratio))


def published_kernels_source() -> str:
    """Return whose figures they are."""
    return study(STUDY).citation


def _table() -> Iterator[PublishedKernel]:
    facts = study(STUDY).fact("npb")
    for benchmark in facts[SLOW]:
        columns = {fabric: facts[fabric][benchmark] for fabric in (SLOW, FAST)}
        yield PublishedKernel(
            benchmark=benchmark,
            seconds={fabric: row[0] for fabric, row in columns.items()},
            mops_total={fabric: row[1] for fabric, row in columns.items()},
            mops_per_process={fabric: row[2] for fabric, row in columns.items()},
        )
