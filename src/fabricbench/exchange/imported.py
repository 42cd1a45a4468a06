"""What an importer returns: results of another program in our own units and definitions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from fabricbench.model import Layer, Metric, Pattern
from fabricbench.patterns import metric_of
from fabricbench.record.import_notes import ImportNote
from fabricbench.record.workload_cells import FigureFound

CellParameters = tuple[tuple[str, str | int | float], ...]
"""What sets a cell apart: names and values."""


@dataclass(frozen=True, slots=True)
class ImportedCell:
    """One result: `values` in the unit of the pattern's metric, ns of an operation (of a whole round trip), bit/s, or message/s.

    One value is what a program tells that prints a mean alone; several are its samples. `message_bytes`, `layer` and `ranks` are
    None where the text does not tell them. `printed_step` is what the last printed digit of a value counts, in the unit of
    `values`: they may be off by half of it; None where the text does not tell. `parameters` tell what else sets a cell apart from
    one of ours of the same name. Of a matrix `pairs` has the source and the destination of each value, by rank, and `hosts` the
    host of each rank.
    """

    pattern: Pattern
    message_bytes: int | None
    values: tuple[float, ...]
    printed_step: float | None = None
    layer: Layer | None = None
    ranks: int | None = None
    parameters: CellParameters = ()
    pairs: tuple[tuple[int, int], ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def metric(self) -> Metric:
        """What is measured: the pattern says it."""
        return metric_of(self.pattern)


@dataclass(frozen=True)
class ImportedLoad:
    """One run of a program that does work of its own, as own runs of the same workload are named: with these parameters.

    `ranks` is None where the text does not tell them.
    `figure` is what it is judged by; `seconds` is how long it took, `started_unix_ns` and `ended_unix_ns` when, where that is told.
    A kernel of NPB has a pattern of its own, and is the same test as an official one that was run here; of others the parameter
    `by` names whose they are.
    """

    workload: str
    ranks: int | None
    parameters: CellParameters
    figure: FigureFound
    seconds: float | None = None
    pattern: Pattern = Pattern.WORKLOAD
    started_unix_ns: int | None = None
    ended_unix_ns: int | None = None

    @property
    def has_own_pattern(self) -> bool:
        """Whether its pattern says what it is."""
        return self.pattern is not Pattern.WORKLOAD


@dataclass(frozen=True)
class Imported:
    """What one text says. `statistic` tells readers what each number is, `mean of the iterations` say.

    A cell or load that is there several times was measured so often: each is a launch. `datatypes` are those that it tells of any
    test; `notes` say what of the text was left out, repaired or is doubted. `started_unix_ns` is when the program was started that
    printed them all, None where the text does not tell, or a time for each load.
    """

    program: str
    version: str
    statistic: str
    cells: tuple[ImportedCell, ...] = ()
    loads: tuple[ImportedLoad, ...] = ()
    mpi_library: str = ""
    started_unix_ns: int | None = None
    datatypes: tuple[str, ...] = ()
    notes: tuple[ImportNote, ...] = ()

    @property
    def measured_unix_ns(self) -> int | None:
        """When it was measured, as the text tells: the first of all times in it; None where it tells none."""
        of_loads = (time for load in self.loads for time in (load.started_unix_ns, load.ended_unix_ns))
        return min((time for time in (self.started_unix_ns, *of_loads) if time is not None), default=None)

    def repetitions(self) -> list[Imported]:
        """Return one for each time that the text has its results, all of them once: a script had the program run in a loop."""
        found: list[tuple[list[ImportedCell], list[ImportedLoad]]] = []
        seen: Counter[object] = Counter()

        def place(key: object) -> tuple[list[ImportedCell], list[ImportedLoad]]:
            if seen[key] == len(found):
                found.append(([], []))
            seen[key] += 1
            return found[seen[key] - 1]

        for cell in self.cells:
            place((cell.layer, cell.pattern, cell.message_bytes, cell.ranks, cell.parameters))[0].append(cell)
        for load in self.loads:
            place((load.workload, load.ranks, load.parameters))[1].append(load)
        return [replace(self, cells=tuple(cells), loads=tuple(loads)) for cells, loads in found]
