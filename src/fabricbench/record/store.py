"""The run directory as data: what was planned, every launch, a row for each cell, every sample, quantiles of each launch.

Works on a run that is finished, unfinished or still going on: a launch counts from the moment its `launch.json` is in place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fabricbench.errors import UsageError
from fabricbench.model import Pattern
from fabricbench.printable import shortened
from fabricbench.record.confinement import ATTEMPT, check_confined
from fabricbench.record.decoding import DECODER
from fabricbench.record.frames import CELL_SCHEMA, SAMPLE_SCHEMA, Schema
from fabricbench.record.integrity import (
    LAUNCH,
    LAUNCHES,
    MANIFEST,
    Room,
    Seals,
    check_sha256,
    file_sha256,
    launch_path,
    seals,
)
from fabricbench.record.launch import (
    LaunchFacts,
    LaunchSummary,
    is_converted,
    is_stored,
    read_header,
    read_launch,
    scan_cells,
    scan_samples,
    scan_table,
    write_launch,
)
from fabricbench.record.lines import Phase
from fabricbench.record.manifest import (
    Manifest,
    PlannedLaunch,
    has_moved,
    looks_of,
    lost_by,
    paired_blocks,
    read_manifest,
    subject_of_name,
    write_manifest,
)
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.provenance import Marks, Origin, Proof, marks_of, origin_of, unproven_of
from fabricbench.record.setup import stored_setup, variant_of
from fabricbench.record.tables import CHANNELS, COUNTERS, STAGES, RecordTable
from fabricbench.record.values import AT_ONCE, IS_TIME, IS_WORK, SUMS, counted_batches, launch_value, of_each_cell, rate

__all__ = [
    "DamagedLaunch",
    "LaunchFacts",
    "LaunchSummary",
    "Manifest",
    "PlannedLaunch",
    "Run",
    "SetAside",
    "StoredLaunch",
    "write_launch",
    "write_manifest",
]

READERS = 3
"""Threads that read launches: two wait for the children that decode tables, another parses."""

DEFAULT_PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class StoredLaunch:
    """A converted launch: where it is, what its `launch.json` says, its place in the block (None if unknown), and its origin.

    `subject` is what it measures, alike on every fabric: the name of its workload; empty for the measurer.
    """

    directory: Path
    summary: LaunchSummary
    position: int | None
    origin: Origin
    subject: str

    @property
    def launch_id(self) -> str:
        """The launch's name, which is its directory's."""
        return self.directory.name

    @property
    def block(self) -> int:
        """The block of the launch."""
        return self.summary.block

    @property
    def fabric(self) -> str:
        """The fabric under test."""
        return self.summary.fabric

    @property
    def proof(self) -> Proof:
        """Whether its traffic was shown to take its fabric."""
        return self.summary.proof

    @property
    def is_valid(self) -> bool:
        """Whether it counts: nothing shows that its traffic took another way, or that it was measured as it must not be."""
        return self.summary.is_valid


@dataclass(frozen=True)
class DamagedLaunch:
    """A launch that was converted, and of which something cannot be read any more; `reason` names the file."""

    launch_id: str
    reason: str


@dataclass(frozen=True)
class SetAside:
    """An earlier attempt of a launch that was kept and enters no comparison.

    A directory of these reads like that of a launch (`record.launch.read_launch`, `scan_cells`, `scan_samples`).
    """

    directory: Path

    @property
    def is_complete(self) -> bool:
        """Whether it had come to its end, and is as it was written: every table of it is read for that."""
        try:
            return is_converted(self.directory) and read_launch(self.directory).is_finished
        except UsageError:
            return False

    @property
    def name(self) -> str:
        """How it is named: `b03-myrinet/attempt-1`."""
        return f"{self.directory.parent.name}/{self.directory.name}"


@dataclass(frozen=True)
class Run:
    """A run directory that was opened for reading.

    With `headers_only` launches are taken for what their `launch.json` says, and no table is decoded: enough for a list of runs
    and their accounts, and nothing else may be read of it. Whether files are as they were written is then not asked.
    """

    path: Path
    manifest: Manifest
    headers_only: bool = False

    @classmethod
    def open(cls, path: Path | str, *, headers_only: bool = False) -> Run:
        """Open a run directory, finished or not; UsageError if it is none, leads out, is garbled, or is of a newer version."""
        directory = Path(path)
        if os.path.lexists(directory / MANIFEST):  # else it may be anybody's folder, of any size
            check_confined(directory)
        return cls(directory, read_manifest(directory), headers_only)

    def __repr__(self) -> str:
        """Name the run in a line."""
        of = f"campaign {self.manifest.campaign_name} on {self.manifest.testbed.name}"
        return f"<Run {str(self.path)!r}: {of}, {len(self.launches)} of {len(self.manifest.planned)} launches>"

    @cached_property
    def launches(self) -> tuple[StoredLaunch, ...]:
        """The finished launches, by block and position."""
        return tuple(launch for launch in self._stored[0] if launch.summary.is_finished)

    @cached_property
    def unfinished(self) -> tuple[StoredLaunch, ...]:
        """Launches that left something and do not count: cut short, or failed. Their directories read like those of others."""
        return tuple(launch for launch in self._stored[0] if not launch.summary.is_finished)

    @property
    def damaged(self) -> tuple[DamagedLaunch, ...]:
        """The launches that were converted and cannot be read any more; they are not among `launches`."""
        return self._stored[1]

    @cached_property
    def _stored(self) -> tuple[tuple[StoredLaunch, ...], tuple[DamagedLaunch, ...]]:
        planned = {launch.launch_id: launch for launch in self.manifest.planned}
        found, damaged = [], []
        fabrics = {fabric.name: fabric for fabric in self.manifest.testbed.fabrics}
        for directory, read in self._read_launches():
            place = planned.get(directory.name)
            try:
                summary = read.result()
                self._check_place(directory, summary, place)
            except UsageError as error:
                damaged.append(DamagedLaunch(directory.name, error.message))
                continue
            position = summary.facts.position
            if position is None and place is not None:
                position = place.position
            origin = summary.facts.origin or origin_of(fabrics[summary.fabric])
            subject = (
                place.subject if place is not None else subject_of_name(directory.name, summary.block, summary.fabric)
            )
            found.append(StoredLaunch(directory, summary, position, origin, subject))
        return tuple(sorted(found, key=lambda one: (one.block, one.position or 0, one.launch_id))), tuple(damaged)

    def _read_launches(self) -> Iterator[tuple[Path, Future[LaunchSummary]]]:
        """Yield the folder of each stored launch and what is read of it: a child decodes the tables of one, another is parsed."""
        sealed, room = {} if self.headers_only else self.seals, Room()

        def read(directory: Path) -> LaunchSummary:
            if self.headers_only:
                return read_header(directory, room)
            return read_launch(directory, sealed.get(launch_path(directory.name), ()), room)

        with ThreadPoolExecutor(1 if self.headers_only else READERS) as readers:
            try:
                directories = filter(is_stored, self._launch_directories())
                yield from [(directory, readers.submit(read, directory)) for directory in directories]
            except BaseException:
                readers.shutdown(wait=False, cancel_futures=True)
                DECODER.give_up()
                raise

    @cached_property
    def seals(self) -> Seals:
        """The hashes that the journal holds."""
        return seals(self.path)

    @property
    def altered_manifest(self) -> str | None:
        """Why the manifest is not as it was written; None if it is, or nobody can tell."""
        try:
            check_sha256(file_sha256(self.path / MANIFEST), self.seals[MANIFEST])
        except KeyError:
            return None
        except ValueError as error:
            return str(error)
        return None

    def _check_place(self, directory: Path, summary: LaunchSummary, place: PlannedLaunch | None) -> None:
        """Raise UsageError for a launch that is not the one that its folder and the manifest say."""
        fabrics = [fabric.name for fabric in self.manifest.testbed.fabrics]
        found = None
        if summary.launch_id != directory.name:
            found = f"is of launch {summary.launch_id}, not of the one that its folder is named after"
        elif summary.fabric not in fabrics:
            found = f"is of the fabric {summary.fabric}, which the manifest does not have: it has {', '.join(fabrics)}"
        elif place is None and self.manifest.planned:
            found = "is of a launch that the manifest does not plan"
        elif place is not None and (place.fabric, place.block) != (summary.fabric, summary.block):
            found = (
                f"is of block {summary.block} on {summary.fabric}, and the manifest plans it in block {place.block} on "
                f"{place.fabric}"
            )
        if found is not None:
            raise UsageError(
                shortened(f"{directory / LAUNCH} {found}"), hint="put the folder back where it came from, or remove it"
            )

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """What earlier attempts of launches left, by launch and attempt."""
        found = [path for launch in self._launch_directories() for path in launch.glob(f"{ATTEMPT}*") if path.is_dir()]
        return tuple(SetAside(path) for path in sorted(found, key=lambda one: (one.parent, attempt_number(one))))

    @property
    def looks(self) -> tuple[int, ...]:
        """How many blocks held a whole pair at each look, the present one last: what `statistics.correction.level_of_look` takes.

        Empty where no pair is whole. A look before the present one is each time that blocks were added (or given up).
        """
        earlier = looks_of(self.manifest)
        planned = {launch.block for launch in self.manifest.planned}
        paired = paired_blocks(self.manifest.planned, {launch.launch_id for launch in self.launches})
        unplanned = {launch.block for launch in self.launches} - planned  # of a manifest without its plan
        present = max((len(paired | unplanned), *earlier))
        return tuple(dict.fromkeys((*earlier, present))) if present else ()

    @cached_property
    def missing(self) -> tuple[PlannedLaunch, ...]:
        """Planned launches without data."""
        there = {launch.launch_id for launch in self.launches}
        return tuple(launch for launch in self.manifest.planned if launch.launch_id not in there)

    @property
    def marks(self) -> Marks:
        """What the numbers of this run are marked as, each origin with the fabrics that have launches of it."""
        return marks_of((launch.fabric, launch.origin) for launch in self.launches)

    @property
    def unproven(self) -> tuple[str, ...]:
        """The fabrics that have launches of unproven path."""
        return unproven_of((launch.fabric, launch.proof) for launch in self.launches)

    @property
    def is_final(self) -> bool:
        """Whether no look at other data follows: the run was declared final, and every planned launch has data."""
        return self.manifest.is_final and not self.missing

    def cells(self) -> pl.DataFrame:
        """Return a row for each launch and cell: what was measured, how it ended, what was lost, which way it went.

        Columns: launch_id, block, position, fabric, is_valid, origin, proof, those of `record.frames.CELL_SCHEMA`, and lost_nodes.
        The columns of the end are null for a failed cell. Where the run went on without nodes that failed, they are the lost
        nodes of a cell whose ranks are on other nodes since: it is another cell, and its variant ends in `without c3`.
        """
        return self._cells

    @cached_property
    def _cells(self) -> pl.DataFrame:
        scans = [scan_cells(launch.directory) for launch in self.launches]
        frames = [
            frame for start in range(0, len(scans), AT_ONCE) for frame in pl.collect_all(scans[start : start + AT_ONCE])
        ]
        if not frames:
            return pl.DataFrame(schema=self._launch_schema | CELL_SCHEMA | LOST_NODES)
        of_launch = np.repeat(np.arange(len(frames)), [frame.height for frame in frames])
        launches = pl.DataFrame(
            [
                (*(one.launch_id, one.block, one.position, one.fabric, one.is_valid), one.origin.value, one.proof.value)
                for one in self.launches
            ],
            schema=self._launch_schema,
            orient="row",
        )
        blocks = [self.launches[index].block for index in of_launch]
        named = launches[of_launch].hstack(pl.concat(frames).select(*CELL_SCHEMA))
        return self._on_their_nodes(named, blocks)

    def _on_their_nodes(self, cells: pl.DataFrame, blocks: Sequence[int]) -> pl.DataFrame:
        """Return cells of these blocks with the nodes that they lacked, and with the words of today for what tells them apart."""
        testbed = self.manifest.testbed
        lost_in = {block: lost_by(self.manifest.losses, block) for block in set(blocks)}
        found: dict[tuple[Any, ...], tuple[str, tuple[str, ...]]] = {}  # a run repeats few of them in many launches
        told = []
        columns = ("pattern", "ranks", "parameters", "congestor")
        for block, (pattern, ranks, *rest) in zip(blocks, cells.select(columns).iter_rows(), strict=True):
            mark = (pattern, tuple(ranks or ()), *rest, lost_in[block])
            if mark not in found:
                row = dict(zip((*columns, "lost_nodes"), mark, strict=True))
                ranks_of_all = (*row["ranks"], *_ranks_beside(row["congestor"]))
                if row["lost_nodes"] and not has_moved(ranks_of_all, testbed, row["lost_nodes"]):
                    row["lost_nodes"] = ()
                found[mark] = variant_of(Pattern(pattern), stored_setup(row)), row["lost_nodes"]
            told.append(found[mark])
        return cells.with_columns(
            pl.Series("variant", [variant for variant, _ in told], dtype=cells.schema["variant"]),
            pl.Series("lost_nodes", [lost for _, lost in told], dtype=LOST_NODES["lost_nodes"]),
        )

    def samples(self) -> pl.LazyFrame:
        """Return every sample of every launch, unread: launch_id, cell, phase, index, time_ns, bytes, missed.

        A sample that `missed` had a rank that was too late for its start: it is kept, and counts nowhere.
        """
        scans = [self._named(launch, scan_samples(launch.directory)) for launch in self.launches]
        return pl.concat(scans) if scans else pl.LazyFrame(schema={"launch_id": self._launch_ids, **SAMPLE_SCHEMA})

    def channels(self) -> pl.LazyFrame:
        """Return what every logical channel did, unread: launch_id, then the columns of `record.frames.CHANNEL_SCHEMA`."""
        return self._table(CHANNELS)

    def stages(self) -> pl.LazyFrame:
        """Return when messages passed the boundaries between their stages, unread: launch_id, then `record.frames.STAGE_SCHEMA`."""
        return self._table(STAGES)

    def counters(self) -> pl.LazyFrame:
        """Return what was counted beside the messages of cells, unread: launch_id, then `record.counter_frame.COUNTER_SCHEMA`."""
        return self._table(COUNTERS)

    def _table(self, table: RecordTable) -> pl.LazyFrame:
        scans = [
            self._named(launch, scan_table(launch.directory, table))
            for launch in self.launches
            if launch.summary.has(table)
        ]
        return pl.concat(scans) if scans else pl.LazyFrame(schema={"launch_id": self._launch_ids, **table.schema})

    def _named(self, launch: StoredLaunch, frame: pl.LazyFrame) -> pl.LazyFrame:
        return frame.select(pl.lit(launch.launch_id, dtype=self._launch_ids).alias("launch_id"), pl.all())

    def launch_quantiles(
        self, probabilities: Sequence[float] = DEFAULT_PROBABILITIES, phase: Phase = Phase.MEASURED
    ) -> pl.DataFrame:
        """Return a row for each launch and cell that was measured: how its samples are spread, in the metric's unit.

        A time is the sample's over its operations (ns); a throughput its payload over its time (bit/s), a message rate that in
        messages of the cell's size (message/s). Samples that missed their start are left out. Columns: those of `cells()` that
        name the launch and the cell, then n, mean, minimum, maximum, launch_value (`record.values`: what comparisons take),
        median, total_bytes, total_time_ns, and `q<probability>` for each of `probabilities` (interpolated linearly,
        Hyndman and Fan 1996, type 7). The mean of a rate is all that was moved over all time (the harmonic mean).
        One launch is in memory at a time.
        """
        cells = self.cells().filter(pl.col("status") == "done")
        frames = [
            _quantiles(launch, cells.filter(pl.col("launch_id") == launch.launch_id), probabilities, phase)
            for launch in self.launches
        ]
        return pl.concat(frames) if frames else _empty_quantiles(cells, probabilities)

    def _launch_directories(self) -> list[Path]:
        return sorted(path for path in (self.path / LAUNCHES).glob("*") if path.is_dir())

    @cached_property
    def _launch_ids(self) -> pl.Enum:
        return pl.Enum([launch.launch_id for launch in self.launches])

    @property
    def _fabrics(self) -> pl.Enum:
        named = [fabric.name for fabric in self.manifest.testbed.fabrics]
        return pl.Enum(list(dict.fromkeys([*named, *(launch.fabric for launch in self.launches)])))

    @property
    def _launch_schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        return {
            "launch_id": self._launch_ids,
            "block": pl.UInt32,
            "position": pl.UInt32,
            "fabric": self._fabrics,
            "is_valid": pl.Boolean,
            "origin": pl.Enum([origin.value for origin in Origin]),
            "proof": pl.Enum([proof.value for proof in Proof]),
        }


LOST_NODES: Schema = {"lost_nodes": pl.List(pl.String)}
"""The column of `Run.cells` that no file of a launch has: its manifest tells."""

CELL_NAMES = ("layer", "pattern", "receive", "message_bytes", "variant", "metric")


def _ranks_beside(congestor: str | None) -> tuple[int, ...]:
    return () if congestor is None else PlanCongestor.model_validate_json(congestor).ranks


def attempt_number(attempt: Path) -> int:
    """Return the number of an attempt's folder, also of one that is being moved; 0 for a name without one."""
    digits = attempt.name.removeprefix(ATTEMPT).split(".")[0]
    return int(digits) if digits.isdecimal() else 0


LAUNCH_NAMES = ("launch_id", "block", "position", "fabric", "is_valid", "origin", "proof")


def quantile_name(probability: float) -> str:
    """Return the column that holds a quantile: `q0.999`."""
    return f"q{probability:g}"


def _quantiles(launch: StoredLaunch, cells: pl.DataFrame, probabilities: Sequence[float], phase: Phase) -> pl.DataFrame:
    named = cells.select(*LAUNCH_NAMES, "cell", *CELL_NAMES, "operations_per_sample")
    spread = [
        pl.len().alias("n"),
        pl.col("value").mean().alias("mean"),
        pl.col("value").min().alias("minimum"),
        pl.col("value").max().alias("maximum"),
        *SUMS,
        *(pl.col("value").quantile(p, "linear").alias(quantile_name(p)) for p in probabilities),
    ]
    batches = counted_batches(launch.directory, launch.summary.samples, cells, phase)
    found = pl.concat(of_each_cell(batch, spread) for batch in batches)
    return (
        found.join(named, on="cell")
        .with_columns(
            mean=pl.when(IS_TIME | IS_WORK)
            .then("mean")
            .otherwise(rate(pl.col("total_bytes"), pl.col("total_time_ns"))),
            launch_value=launch_value(),
        )
        .select(*_empty_quantiles(cells, probabilities).columns)
        .sort("cell")
    )


def _empty_quantiles(cells: pl.DataFrame, probabilities: Sequence[float]) -> pl.DataFrame:
    numbers = ("mean", "minimum", "maximum", "launch_value", "median")
    return cells.select(*LAUNCH_NAMES, "cell", *CELL_NAMES).with_columns(
        pl.lit(0, dtype=pl.UInt32).alias("n"),
        *(pl.lit(0.0).alias(name) for name in numbers),
        *(pl.lit(0, dtype=pl.UInt64).alias(name) for name in ("total_bytes", "total_time_ns")),
        *(pl.lit(0.0).alias(quantile_name(p)) for p in probabilities),
    )
