"""Writes what was imported as a run directory, so that everything that reads runs reads it: each launch says that it was imported.

Another program's number is not one of ours, though it has our unit: each cell has the parameter `by` with the importer's name, so
that it is compared with others of the same program alone. Nobody counted the traffic: the path of every launch is unknown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.errors import UsageError
from fabricbench.exchange.cells import CellTables, record_of_tests
from fabricbench.exchange.import_options import ImportOptions, check_options, completed
from fabricbench.exchange.imported import Imported
from fabricbench.exchange.importer import read_text
from fabricbench.exchange.loads import load_record, name_of
from fabricbench.exchange.rows import MOST_NOTES
from fabricbench.exchange.sources import NO_CHANCE, ImportedText, Sources, chance_of_the_same, notes_of, once, read_file
from fabricbench.printable import printable
from fabricbench.record.import_notes import DATATYPE, ImportNote, ImportNoteKind, note_words, tool_differences
from fabricbench.record.launch import LaunchFacts
from fabricbench.record.manifest import Manifest, PlannedLaunch
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.reading import Record
from fabricbench.record.run_writer import RunWriter, check_empty, new_run
from fabricbench.record.workload_cells import WorkloadPart
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed

NOTHING_KEPT = "repeat the command: nothing was imported"
"""What to do where the disk was full."""


def import_run(
    directory: Path,
    fabrics: Mapping[str, Sequence[Path]],
    options: ImportOptions | None = None,
    *,
    command: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
) -> Manifest:
    """Write a run directory of the texts of each fabric and return its manifest.

    Each path is one launch: a file, or a folder whose files are read together. The n-th launches of all fabrics are block n.
    The texts are kept beside what was read of them; `command` is what was typed; `tell` is called with what people should know of
    the texts, which the launches keep as notes. UsageError where the directory is used already, a text cannot be read or is given
    twice, or something is not told that must be. After any error nothing has been written.
    """
    check_empty(directory)
    for fabric in fabrics:
        _check_name(fabric)
    options = options or ImportOptions()
    read = {
        fabric: [[_source(one, options, path) for one in _files(path)] for path in paths]
        for fabric, paths in fabrics.items()
    }
    every = [one for found in read.values() for of_path in found for one in of_path]
    _check_told_once(every)
    overruled = check_options(options, every)
    texts = {
        fabric: [[completed(one, options) for one in of_path] for of_path in found] for fabric, found in read.items()
    }
    sources = once(_launches(texts))
    versions: dict[str, list[str]] = {}
    for one in (one for found in sources.values() for one in found):
        versions.setdefault(one.imported.program, []).append(one.imported.version)
    now = datetime.now(UTC)
    manifest = Manifest(
        created=_measured(every) or now,
        imported=now,
        campaign_name="imported",
        testbed=_testbed(sources),
        seed=0,
        command=tuple(command),
        planned=tuple(sorted(sources, key=lambda one: (one.block, one.position))),
        versions={"fabricbench": __version__}
        | {name: ", ".join(dict.fromkeys(told)) for name, told in versions.items()},
    )
    with new_run(directory, way_on=NOTHING_KEPT) as writer:
        tables = CellTables()
        for launch, found in sources.items():
            _write(writer, tables, launch, found)
        writer.write_manifest(manifest)
    notes = note_words(note for found in sources.values() for note in notes_of(found))
    passed_over = _passed_over(path for paths in fabrics.values() for path in paths if path.is_dir())
    for text in (*overruled, *notes, *_differences(sources), *passed_over):
        if tell is not None:
            tell(text)
    return manifest


def _measured(sources: Iterable[ImportedText]) -> datetime | None:
    """Return when the first of some texts was measured, of those that tell; None where none does."""
    told = [time for one in sources if (time := one.imported.measured_unix_ns) is not None]
    return datetime.fromtimestamp(min(told) / 1e9, UTC) if told else None


def _check_told_once(sources: Iterable[ImportedText]) -> None:
    """Refuse a text that is there twice: it is one measurement, and would count as two."""
    first: dict[bytes, ImportedText] = {}
    for source in sources:
        other = first.setdefault(hashlib.sha256(source.content).digest(), source)
        if other is source:
            continue
        if other.path == source.path:
            raise UsageError(f"{source.path} is given twice: it is one measurement", hint="give each text once")
        raise UsageError(
            f"{other.path} and {source.path} are the same text: it is one measurement",
            hint="give it once"
            if chance_of_the_same(source.imported) < NO_CHANCE
            else "give it once; were it two that printed the same to the last digit, tell them apart by a line of their own, "
            "`# launch 2` say",
        )


def _launches(texts: Mapping[str, Sequence[Sequence[ImportedText]]]) -> dict[PlannedLaunch, list[ImportedText]]:
    """Return the launches of each fabric, given the texts of each path: its tests are one, each of its loads is one of its own.

    A text that has its tests several times is as many blocks.
    """
    found: dict[PlannedLaunch, list[ImportedText]] = {}
    for position, (fabric, of_paths) in enumerate(texts.items()):
        parts = (part for of_path in of_paths for part in zip_longest(*(_repetitions(one) for one in of_path)))
        for block, part in enumerate(parts):
            for source in filter(None, part):
                imported = source.imported
                for load in imported.loads:
                    one = PlannedLaunch(
                        launch_id=f"b{block:02d}-{fabric}-{name_of(load)}",
                        block=block,
                        position=position,
                        fabric=fabric,
                        subject=name_of(load),
                    )
                    of_load = replace(
                        imported, cells=(), loads=(load,), notes=imported.notes if one not in found else ()
                    )
                    found.setdefault(one, []).append(replace(source, imported=of_load))
                    imported = replace(imported, notes=())
                if imported.cells:
                    one = PlannedLaunch(
                        launch_id=f"b{block:02d}-{fabric}", block=block, position=position, fabric=fabric
                    )
                    found.setdefault(one, []).append(replace(source, imported=replace(imported, loads=())))
    return found


def _repetitions(source: ImportedText) -> list[ImportedText]:
    """Return a text once for each time that it has its results; what is noted of it with the first."""
    found = source.imported.repetitions()
    if len(found) == 1:
        return [source]
    note = ImportNote(
        kind=ImportNoteKind.READ_AS, text="results that it has several times", why=f"{len(found)} launches"
    )
    first = replace(found[0], notes=(*source.imported.notes, note))
    return [
        replace(source, imported=one)
        for one in (first, *(replace(each, notes=(), started_unix_ns=None) for each in found[1:]))
    ]


def _write(writer: RunWriter, tables: CellTables, launch: PlannedLaunch, sources: Sequence[ImportedText]) -> None:
    """Write a launch and the texts that it was read from; UsageError where they hold what no run can."""
    record, part = _record(launch, sources)
    facts = LaunchFacts(
        block=launch.block,
        position=launch.position,
        origin=Origin.IMPORTED,
        proof=Proof.UNKNOWN,
        exit_code=0,
        outcome=LaunchOutcome.FINISHED,
        conditions={f"imported from {one.path.name}": _told_of(one.imported) for one in sources},
        import_notes=tuple(notes_of(sources)),
    )
    texts = {one.path.name: one.content for one in sources}
    writer.write_launch(launch.launch_id, record, facts, texts, workload=part, cells=tables.content(record))


def _check_name(fabric: str) -> None:
    try:
        Fabric(name=fabric)
    except ValidationError:
        raise UsageError(
            f"--fabric: a fabric cannot be named {fabric!r}, needed small letters, digits, '.', '_' and '-'",
            hint=f"write --fabric {fabric.lower()}=PATH"
            if re.fullmatch(r"[A-Za-z0-9][\w.-]*", fabric)
            else "give it another name",
        ) from None


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise UsageError(f"there is no {path}", hint="give files that the program wrote, or folders of them")
    found = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    if not found:
        raise UsageError(f"{path} holds no file", hint="give files that the program wrote, or folders of them")
    return found


def _passed_over(folders: Iterable[Path]) -> Iterator[str]:
    """Yield what is told of each folder that holds anything but files, which is not read."""
    for folder in dict.fromkeys(folders):
        others = sorted(one.name for one in folder.iterdir() if not one.is_file())
        if others:
            more = f" and {len(others) - MOST_NOTES} more" if len(others) > MOST_NOTES else ""
            names = ", ".join(map(printable, others[:MOST_NOTES]))
            yield f"{folder}: not read, for they are no files: {names}{more}"


def _told_of(imported: Imported) -> str:
    """Return `OSU Micro-Benchmarks 7.5, MPI_FLOAT: the mean of the iterations`."""
    return f"{', '.join((_tool_of(imported), *imported.datatypes))}: {imported.statistic}"


def _tool_of(imported: Imported) -> str:
    return f"{imported.program} {imported.version}"


def _source(path: Path, options: ImportOptions, given: Path) -> ImportedText:
    """Return a text and what it says; `given` is what the user named: the file, or its folder. UsageError where it says nothing."""
    try:
        content, text = read_file(path)
        return ImportedText(path, content, *read_text(text, str(path), options.importer))
    except UsageError as error:
        if given == path:
            raise
        hint = f"take {path.name} out of the folder {given} if it is no result: every file there is read"
        raise UsageError(str(error), hint="; ".join(filter(None, (error.hint, hint)))) from error


def _testbed(sources: Sources) -> Testbed:
    """Return what stands for the testbed, of which the texts tell nothing but which program measured each fabric."""
    by: dict[str, list[str]] = {}
    for launch, found in sources.items():
        by.setdefault(launch.fabric, []).extend(_tool_of(one.imported) for one in found)
    return Testbed(
        name="imported",
        launcher=LauncherKind.LOCAL,
        nodes=(Node(name="not-told"),),
        fabrics=tuple(
            Fabric(name=name, description=f"imported: {', '.join(dict.fromkeys(tools))}") for name, tools in by.items()
        ),
    )


def _differences(sources: Sources) -> list[str]:
    """Return in a sentence each in what the tools of the fabrics differ."""
    versions: dict[str, list[str]] = {}
    datatypes: dict[str, dict[str, list[str]]] = {}
    for launch, found in sources.items():
        for one in found:
            versions.setdefault(launch.fabric, []).append(_tool_of(one.imported))
            for cell in one.imported.cells:
                of_test = datatypes.setdefault(launch.fabric, {}).setdefault(cell.pattern.value, [])
                of_test.append(str(dict(cell.parameters).get(DATATYPE, "")))
    return tool_differences(versions, datatypes)


def _record(launch: PlannedLaunch, sources: Sequence[ImportedText]) -> tuple[Record, WorkloadPart | None]:
    loads = [(one, load) for one in sources for load in one.imported.loads]
    if not loads:
        return record_of_tests(launch, sources), None
    source, load = loads[0]
    if len(loads) > 1:
        raise UsageError(
            f"{source.path} and {loads[1][0].path} have the same {load.workload} of launch {launch.launch_id}",
            hint="give each repetition as a launch of its own: --fabric NAME=FIRST,SECOND",
        )
    try:
        return load_record(load, source.imported, launch.launch_id, launch.fabric)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{source.path}: {load.workload}: {error}", hint="needed a figure that a run can hold"
        ) from error
