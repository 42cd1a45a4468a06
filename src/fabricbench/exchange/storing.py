"""Writes what was imported as a run directory, so that everything that reads runs reads it: each launch says that it was imported.

Another program's number is not one of ours, though it has our unit: each cell has the parameter `by` with the importer's name, so
that it is compared with others of the same program alone. Nobody counted the traffic: the path of every launch is unknown.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from fabricbench import __version__
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.importer import read_text
from fabricbench.model import Layer, Metric, Receive
from fabricbench.record.atomic import explained, synced
from fabricbench.record.integrity import LAUNCH, LAUNCHES, MANIFEST
from fabricbench.record.journal import Happened, Journal
from fabricbench.record.launch import LaunchFacts, write_launch
from fabricbench.record.lines import Cell, CellEnd, ClockInfo, Footer, Header, Phase, StopReason
from fabricbench.record.lock import LOCK, locked
from fabricbench.record.manifest import Manifest, PlannedLaunch, manifest_text, write_manifest
from fabricbench.record.outcome import LaunchOutcome
from fabricbench.record.provenance import BY, Origin, Proof
from fabricbench.record.reading import Batch, CellRecord, Record
from fabricbench.testbed.model import Fabric, Launcher, Node, Testbed

Told = TypeVar("Told", Layer, int)

TEXTS = "texts"
"""The folder of a launch that keeps what was imported: a text may have the name of any file of ours."""

OPERATIONS = 1000
"""A time is stored as that of so many operations: a sample is a whole number of nanoseconds, and texts tell 10 ns and less."""

RATE_NS = 1_000_000_000
"""A rate is stored as what it moves in a second."""


NOTHING_KEPT = "repeat the command: nothing was imported"
"""What to do where the disk was full."""

MOST = 2**63
"""Times and bytes that a file of a run holds are below it."""


@dataclass(frozen=True)
class Said:
    """What the texts do not tell: who imports says it. `importer` None takes the one that knows the text."""

    importer: str | None = None
    layer: Layer | None = None
    ranks: int | None = None


@dataclass(frozen=True)
class Source:
    """A text as it was read, whose it is, and what it says."""

    path: Path
    content: bytes
    importer: str
    imported: Imported


def import_run(
    directory: Path, fabrics: Mapping[str, Sequence[Path]], said: Said | None = None, *, command: Sequence[str] = ()
) -> Manifest:
    """Write a run directory of the texts of each fabric and return its manifest.

    Each path is one launch: a file, or a folder whose files are read together. The n-th launches of all fabrics are block n.
    The texts are kept beside what was read of them; `command` is what was typed. UsageError where the directory is used already, a
    text cannot be read or is given twice, or something is not told that must be. After any error nothing has been written.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is no folder", hint="give a new folder for the run")
    if directory.exists():
        _check_empty(directory)
    for fabric in fabrics:
        _check_name(fabric)
    told = said or Said()
    sources: dict[PlannedLaunch, list[Source]] = {}
    for position, (fabric, paths) in enumerate(fabrics.items()):
        for block, path in enumerate(paths):
            launch = PlannedLaunch(launch_id=f"b{block:02d}-{fabric}", block=block, position=position, fabric=fabric)
            sources[launch] = [_source(one, told) for one in _files(path)]
    _check_told_once(one for found in sources.values() for one in found)
    records = {launch: _record(launch, found, told) for launch, found in sources.items()}
    programs = {one.imported.program: one.imported for found in sources.values() for one in found}
    manifest = Manifest(
        campaign_name="imported",
        testbed=_testbed(fabrics, programs.values()),
        seed=0,
        command=tuple(command),
        planned=tuple(sorted(records, key=lambda one: (one.block, one.position))),
        versions={"fabricbench": __version__} | {name: one.version for name, one in programs.items()},
    )
    with _moved_into(directory) as aside:
        journal = Journal(aside)
        for launch, record in records.items():
            _write(journal, aside / LAUNCHES / launch.launch_id, launch, record, sources[launch])
        journal.append_written(MANIFEST, manifest_text(manifest))
        write_manifest(aside, manifest)
    return manifest


def _check_empty(directory: Path) -> None:
    """Refuse a folder that holds anything but the lock, which is of this import or of another that runs."""
    if any(path.name != LOCK for path in directory.iterdir()):
        raise UsageError(f"{directory} is not empty", hint="give a new folder: what is there is never overwritten")


def _check_told_once(sources: Iterable[Source]) -> None:
    """Refuse a text that is there twice: it is one measurement, and would count as two."""
    first: dict[bytes, Source] = {}
    for source in sources:
        other = first.setdefault(hashlib.sha256(source.content).digest(), source)
        if other is source:
            continue
        if other.path == source.path:
            raise UsageError(f"{source.path} is given twice: it is one measurement", hint="give each text once")
        raise UsageError(
            f"{other.path} and {source.path} are the same text: it is one measurement",
            hint="give it once; were it two that printed the same to the last digit, tell them apart by a line of their own, "
            "`# launch 2` say",
        )


def _write(journal: Journal, folder: Path, launch: PlannedLaunch, record: Record, sources: Sequence[Source]) -> None:
    """Write a launch and the texts that it was read from, and seal both."""
    (folder / TEXTS).mkdir(parents=True)
    texts = [folder / TEXTS / one.path.name for one in sources]
    for path, source in zip(texts, sources, strict=True):
        path.write_bytes(source.content)
        synced(path)
    facts = LaunchFacts(
        block=launch.block,
        position=launch.position,
        origin=Origin.IMPORTED,
        proof=Proof.UNKNOWN,
        exit_code=0,
        outcome=LaunchOutcome.FINISHED,
        conditions={
            f"imported from {one.path.name}": f"{one.imported.program} {one.imported.version}: {one.imported.statistic}"
            for one in sources
        },
    )
    write_launch(folder, record, facts=facts)
    journal.append(Happened.IMPORTED, launch.launch_id, sha256=journal.hashes(folder / LAUNCH, *texts))


@contextmanager
def _moved_into(directory: Path) -> Iterator[Path]:
    """Yield a folder within a new run directory; what is written there takes its place when all of it is, the manifest last.

    After a failure nothing is left, the directory neither where it was made here. The folder lies within, for the directory may be
    where somebody stands, or a disk of its own.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory):
            try:
                _check_empty(directory)  # again: another import may have taken it while the texts were read
                with _written_aside(directory) as aside:
                    yield aside
            finally:
                (directory / LOCK).unlink()  # while it is held
    except BaseException as error:
        for path in made:
            with suppress(OSError):
                path.rmdir()
        cause = error.__cause__ if isinstance(error, EnvironmentLacks) and error.__cause__ else error
        told = explained(cause, directory, way_on=NOTHING_KEPT) if isinstance(cause, Exception) else error
        if told is not cause:
            raise told from cause
        raise


@contextmanager
def _written_aside(directory: Path) -> Iterator[Path]:
    """Yield a folder within `directory`, which is empty; what it holds goes there, or is removed after a failure."""
    aside = directory / f".import.{os.getpid()}.tmp"
    moved: list[Path] = []
    try:
        aside.mkdir()
        yield aside
        for path in sorted(aside.iterdir(), key=lambda one: one.name == MANIFEST):
            place = directory / path.name
            path.rename(place)
            moved.append(place)
        aside.rmdir()
        synced(directory)
    except BaseException:
        for path in (aside, *moved):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


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


def _source(path: Path, said: Said) -> Source:
    try:
        content = path.read_bytes()  # once: a pipe has no more to give
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="check the file and its permissions"
        ) from error
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace").read()
    return Source(path, content, *read_text(text, str(path), said.importer))


def _testbed(fabrics: Iterable[str], programs: Iterable[Imported]) -> Testbed:
    """Return what stands for the testbed, of which the texts tell nothing."""
    by = ", ".join(f"{one.program} {one.version}" for one in programs)
    return Testbed(
        name="imported",
        launcher=Launcher.LOCAL,
        nodes=(Node(name="not-told"),),
        fabrics=tuple(Fabric(name=name, description=f"imported: {by}") for name in fabrics),
    )


def _record(launch: PlannedLaunch, sources: Sequence[Source], said: Said) -> Record:
    started = next((one.imported.started_unix_ns for one in sources if one.imported.started_unix_ns), None) or 0
    mpi = next((one.imported.mpi_library for one in sources if one.imported.mpi_library), "not told")
    results = [(one, cell) for one in sources for cell in one.imported.cells]
    keys = [(cell.layer, cell.pattern, cell.message_bytes, cell.parameters) for _, cell in results]
    for (source, cell), key in zip(results, keys, strict=True):
        if keys.count(key) > 1:
            raise UsageError(
                f"{source.path}: {cell.pattern} of {cell.message_bytes} B is in launch {launch.launch_id} twice",
                hint="give each repetition as a launch of its own: --fabric NAME=FIRST,SECOND",
            )
    return Record(
        header=Header(
            launch_id=launch.launch_id,
            fabric=launch.fabric,
            probe_version=", ".join(dict.fromkeys(f"{one.imported.program} {one.imported.version}" for one in sources)),
            mpi_library=mpi,
            started_unix_ns=started,
            ranks=(),
            clock=ClockInfo(name="the program's own", resolution_ns=1.0, overhead_ns=0.0, loop_floor_ns=0.0),
        ),
        cells=[_cell(number, source, cell, said) for number, (source, cell) in enumerate(results)],
        footer=Footer(finished_unix_ns=started, cells=len(results), failed=0),
    )


def _known(value: Told | None, otherwise: str, option: str) -> Told:
    if value is None:
        raise UsageError(otherwise, hint=f"say it, {option} for instance")
    return value


def _cell(number: int, source: Source, cell: ImportedCell, said: Said) -> CellRecord:
    of = f"{source.path} does not tell the {{}} of its {cell.pattern}"
    layer = _known(cell.layer or said.layer, of.format("layer"), "--layer tcp")
    ranks = _known(cell.ranks or said.ranks, of.format("number of ranks"), "--ranks 4")
    values = np.array(cell.values)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise UsageError(
            f"{source.path}: {cell.pattern} of {cell.message_bytes} B is {', '.join(f'{one:g}' for one in values)}",
            hint="needed times and rates that are finite and above 0",
        )
    rate_scale = max(cell.message_bytes, 1) if cell.metric is Metric.MESSAGE_RATE else 1 / 8
    scale = OPERATIONS if cell.metric.is_time else rate_scale
    stored = np.rint(values * scale)
    if not ((stored > 0) & (stored < MOST)).all():
        unit = cell.metric.unit
        raise UsageError(
            f"{source.path}: {cell.pattern} of {cell.message_bytes} B is {', '.join(f'{one:g}' for one in values)} {unit}",
            hint=f"a run holds from {1 / scale:g} to {MOST / scale:.0e} {unit}: was the number read in another unit?",
        )
    whole = stored.astype(np.uint64)
    times, moved = (whole, None) if cell.metric.is_time else (np.full(len(values), RATE_NS, np.uint64), whole)
    return CellRecord(
        Cell(
            id=number,
            layer=layer,
            pattern=cell.pattern,
            message_bytes=cell.message_bytes,
            receive=Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING,
            metric=cell.metric,
            ranks=tuple(range(ranks)),
            operations_per_sample=OPERATIONS if cell.metric.is_time else 1,
            bytes_per_sample=0,
            parameters={BY: source.importer, **dict(cell.parameters)},
        ),
        [Batch(Phase.MEASURED, 0, times, moved)],
        end=CellEnd(cell=number, stop=StopReason.COUNT, warmup=0, measured=len(values), seconds=0.0),
    )
