"""The texts of an import: read within bounds, each measurement counted once, and what of them is to be noted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabricbench.errors import UsageError
from fabricbench.exchange.imported import CellParameters, Imported
from fabricbench.model import Pattern
from fabricbench.quantity import format_bytes
from fabricbench.record.import_notes import ImportNote, ImportNoteKind
from fabricbench.record.manifest import PlannedLaunch

MOST_BYTES = 64 * 1024 * 1024
"""Of a text: a log with every line of a day's job has less, and all of it is held in memory."""

USUAL_SCATTER = 0.002
"""Of a launch's value, relative: of a quiet machine with a fast network. Others scatter by more, and agree by chance less often."""

NO_CHANCE = 0.01
"""Probability of the same digits in several of the texts below which they are taken for one measurement."""

NO_CHANCE_AT_ALL = 1e-6
"""That below which two fabrics' texts are: nothing is imported then, so it has to be beyond doubt."""


@dataclass(frozen=True)
class ImportedText:
    """A text as it was read, whose it is, and what it says."""

    path: Path
    content: bytes
    importer: str
    imported: Imported


Sources = Mapping[PlannedLaunch, Sequence[ImportedText]]
"""The texts of each launch."""


def read_file(path: Path) -> tuple[bytes, str]:
    """Return what a file holds, and as text with line feeds alone; UsageError where it is no text, or a huge one."""
    try:
        with path.open("rb") as file:  # once: a pipe has no more to give
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="check the file and its permissions"
        ) from error
    if len(content) > MOST_BYTES:
        raise UsageError(
            f"{path} has more than {format_bytes(MOST_BYTES)}, which no benchmark prints",
            hint="give the part of it that the benchmark printed, with its head",
        )
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))  # as redirected by PowerShell
    text = content.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")
    if "\0" in text:
        raise UsageError(f"{path} is no text: a zero byte is in it", hint="give what the benchmark printed")
    if not text.strip():
        raise UsageError(f"{path} is empty", hint="give what the benchmark printed")
    return content, text.replace("\r\n", "\n").replace("\r", "\n")


def notes_of(sources: Iterable[ImportedText]) -> Iterator[ImportNote]:
    """Yield what was noted of some texts, each note with its file."""
    for one in sources:
        yield from (
            note if note.file else note.model_copy(update={"file": one.path.name}) for note in one.imported.notes
        )


def chance_of_the_same(imported: Imported) -> float:
    """Return how likely another measurement prints the same numbers, about: few digits often agree, many hardly ever.

    Of a cell it is the step of its last digit over how far launches scatter (the density of a normal difference, at its highest);
    cells count as independent.
    """
    of_cells = math.prod(_chance(cell.printed_step, cell.values) for cell in imported.cells)
    return of_cells * math.prod(_chance(load.figure.printed_step, (load.figure.value,)) for load in imported.loads)


def _chance(printed_step: float | None, values: Sequence[float]) -> float:
    if printed_step is None:
        return 1.0
    widest = math.sqrt(4.0 * math.pi) * USUAL_SCATTER
    return math.prod(min(1.0, printed_step / value / widest) for value in values if value > 0)


def once(sources: Sources) -> dict[PlannedLaunch, list[ImportedText]]:
    """Return the texts of each launch without those that repeat the numbers of one before, and note which do and which end early.

    Whatever else stands in them: a remark makes no second measurement of one. Where that many texts with the same numbers may be
    chance, they stay. UsageError where two fabrics have the same numbers, and that is none.
    """
    alike: dict[object, list[tuple[str, ImportedText]]] = {}
    for launch, source in ((launch, source) for launch, found in sources.items() for source in found):
        numbers = (
            frozenset(
                (cell.layer, cell.pattern, cell.message_bytes, cell.ranks, cell.parameters, cell.values)
                for cell in source.imported.cells
            ),
            frozenset(
                (load.workload, load.ranks, load.parameters, load.figure.value) for load in source.imported.loads
            ),
        )
        alike.setdefault(numbers, []).append((launch.fabric, source))
    texts = sum(len(found) for found in sources.values())
    repeated: dict[int, list[str]] = {}
    dropped: set[int] = set()
    for (fabric, first), *others in alike.values():
        # Any two of the texts might have agreed; each further one has to agree with these.
        chance = (chance_of_the_same(first.imported) * math.comb(texts, 2)) ** len(others)
        elsewhere = next(((name, source) for name, source in others if name != fabric), None)
        if elsewhere is not None and chance < NO_CHANCE_AT_ALL:
            raise UsageError(
                f"{first.path} of {fabric} and {elsewhere[1].path} of {elsewhere[0]} hold the same numbers, to the last digit",
                hint="that is no chance but one measurement: give it for the fabric that it was measured on",
            )
        if others and elsewhere is None and chance < NO_CHANCE:
            repeated[id(first)] = [source.path.name for _, source in others]
            dropped |= {id(source) for _, source in others}
    kept = {launch: [one for one in found if id(one) not in dropped] for launch, found in sources.items()}
    longest = _longest(source for found in kept.values() for source in found)
    return {
        launch: [_noted(source, repeated.get(id(source), ()), longest) for source in found]
        for launch, found in kept.items()
        if found
    }


Test = tuple[Pattern, CellParameters]
"""What has a size each: cells that differ in it alone."""


def _longest(sources: Iterable[ImportedText]) -> dict[Test, int]:
    """Return the largest size of each test that any of the texts has."""
    found: dict[Test, int] = {}
    for cell in (cell for source in sources for cell in source.imported.cells):
        test = (cell.pattern, cell.parameters)
        found[test] = max(found.get(test, 0), cell.message_bytes or 0)
    return found


def _noted(source: ImportedText, repeated: Sequence[str], longest: Mapping[Test, int]) -> ImportedText:
    notes = [
        ImportNote(kind=ImportNoteKind.REPEATED, file=name, text=source.path.name) for name in dict.fromkeys(repeated)
    ]
    for test, size in _longest([source]).items():
        if size < longest[test]:
            text = f"{test[0]} ends at {format_bytes(size)}, that of others at {format_bytes(longest[test])}"
            notes.append(ImportNote(kind=ImportNoteKind.SHORTER, text=text))
    return replace(source, imported=replace(source.imported, notes=(*source.imported.notes, *notes)))
