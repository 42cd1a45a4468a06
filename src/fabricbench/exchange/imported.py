"""What an importer returns: results of another program in our own units and definitions."""

from __future__ import annotations

from dataclasses import dataclass

from fabricbench.model import Layer, Metric, Pattern
from fabricbench.patterns import metric_of


@dataclass(frozen=True)
class ImportedCell:
    """One result: `values` in the unit of the pattern's metric, ns of an operation (of a whole round trip), bit/s, or message/s.

    One value is what a program tells that prints a mean alone; several are its samples. `layer` and `ranks` are None where the text
    does not tell them. `parameters` tell what else sets this cell apart from one of ours of the same name.
    """

    pattern: Pattern
    message_bytes: int
    values: tuple[float, ...]
    layer: Layer | None = None
    ranks: int | None = None
    parameters: tuple[tuple[str, str | int | float], ...] = ()

    @property
    def metric(self) -> Metric:
        """What is measured: the pattern says it."""
        return metric_of(self.pattern)


@dataclass(frozen=True)
class Imported:
    """What one text says. `statistic` tells readers what each number is, `mean of the iterations` say."""

    program: str
    version: str
    statistic: str
    cells: tuple[ImportedCell, ...]
    mpi_library: str = ""
    started_unix_ns: int | None = None
