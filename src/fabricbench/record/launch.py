"""A finished launch on the disk: `launch.json` as a model, and the conversion of its record into Parquet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import model_validator

from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.atomic import replace_text, replaced
from fabricbench.record.crossings import Crossings
from fabricbench.record.decoding import DECODER, UNREADABLE, most_bytes, reason_of, scan_stored
from fabricbench.record.frames import NO_CROSSINGS, cells_frame, samples_frame
from fabricbench.record.import_notes import ImportNote
from fabricbench.record.integrity import (
    CELLS,
    LAUNCH,
    LAUNCHES,
    MOST_LAUNCH_BYTES,
    MOST_LAUNCH_VALUES,
    SAMPLES,
    DamagedFile,
    Room,
    check_file,
    check_has_hashes,
    check_sha256,
    file_sha256,
)
from fabricbench.record.kernel_lines import KernelHeader, KernelRun
from fabricbench.record.launch_files import KERNEL_RECORDS, RECORDS
from fabricbench.record.lines import BusiestProcess, Clock, Footer, Header, PairFailed
from fabricbench.record.outcome import LaunchOutcome, outcome_of, signal_name, signal_number
from fabricbench.record.probe_plan import PlanProbe, ProbePlan, plan_beside
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.reading import Damage, Record, read_record
from fabricbench.record.tables import CHANNELS, STAGES, TABLES, RecordTable
from fabricbench.record.workload_cells import WorkloadPart

DEAD = "dead"
"""The state of an emulated switch whose process is gone, as the lab tells it."""

WRONG_RESULT = 1
"""Exit code of a kernel that ran to its end with a wrong result: its cell says so."""

MEASURE_AGAIN = "`fabricbench resume` measures that launch again"

ROW_GROUP_ROWS = 262_144
"""Small enough that a reader who streams holds little, large enough that compression works."""


class CellLateness(Model):
    """How much later than computed the emulated switch released frames while a cell was measured, in nanoseconds.

    Over the `count` frames of all nodes that left during the cell, warm-up included. The mean and quantiles are at most an
    eighth too high. `held_share` is the share of the cell's time in which some frame was held that should have left, None in
    runs of earlier versions: by more of its time than that it delayed nothing, but by frames that it lost.
    """

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    maximum: float
    held_share: float | None = None


class HeldSetting(Model):
    """A setting of the hosts that was varied: what its side wished (empty: what it was before the run), and what nodes read.

    `before` and `after` the launch, by value, the nodes as a node set; under an empty value those that did not tell.
    """

    setting: str
    wished: str
    before: dict[str, str]
    after: dict[str, str]


class Standstill(Model):
    """A time in which something that a launch needs did nothing: `what`, with its `pid` where it is a process that was stopped.

    `seconds` are at most: whoever watches looks twice a second.
    """

    what: str
    pid: int | None = None
    begin_unix_ns: int
    seconds: float

    def __str__(self) -> str:
        """Return it in words."""
        who = f"{self.what} (process {self.pid})" if self.pid is not None else self.what
        return f"{who} stood still for {self.seconds:.1f} s"


class LaunchFacts(Model):
    """What only the one who ran the launch knows. `proof`: did its traffic take its fabric; `invalid_because` says why not.

    `origin` and `proof` are None in runs of earlier versions, which have `is_valid` alone: ask `LaunchSummary` for them.
    `outcome` is how it ended, None in runs of earlier versions; `signal` and `died_on` (a node) are there where a signal ended it.
    `conditions` are what a reader must know of how programs were started (how MPI waits, say): what -> fact. `lateness` is that
    of the launch's emulated switch, by the cell's number; a cell of which nothing is known is left out. `settings` are the hosts'
    that the campaign varies, as they were read back. `standstills`: times in which what it needs stood still; it does not count.
    `throttled_share` is the share of the launch's time for which a quota withheld processors from its ranks (of a container, say),
    None where nobody looked.
    """

    block: int | None = None
    position: int | None = None
    origin: Origin | None = None
    proof: Proof | None = None
    is_valid: bool = True
    invalid_because: tuple[str, ...] = ()
    exit_code: int | None = None
    outcome: LaunchOutcome | None = None
    signal: str | None = None
    died_on: str | None = None
    path_proof: dict[str, Any] = {}
    conditions: dict[str, str] = {}
    switches_before: dict[str, Any] = {}
    switches_after: dict[str, Any] = {}
    lateness: dict[int, CellLateness] = {}
    settings: tuple[HeldSetting, ...] = ()
    standstills: tuple[Standstill, ...] = ()
    throttled_share: float | None = None
    observing_seconds: dict[str, float] = {}
    """What looking at something took before and after it (`campaign/observing.py`), by name: no part of its time."""
    import_notes: tuple[ImportNote, ...] = ()
    """What was left out of the texts of an imported launch, repaired in them, or is in doubt."""

    def has_dead_switch(self, fabric: str) -> bool:
        """Tell whether the emulated switch of a fabric was dead when the launch had ended."""
        status = self.switches_after.get(fabric)
        return isinstance(status, dict) and status.get("state") == DEAD


class KernelPart(Model):
    """What a kernel recorded of itself: where and what it ran, and every repetition with its checks and its profile."""

    header: KernelHeader | None
    runs: tuple[KernelRun, ...]


OF_EARLIER_VERSIONS = {"channel_rows": CHANNELS.name, "stage_rows": STAGES.name}
"""Fields of a `launch.json` with the number of rows of a table."""


ANY_CELL = -1
"""What stands for the cell where an earlier version told none."""


def _is_of_rank(told: object) -> bool:
    return isinstance(told, dict) and any(isinstance(why, str) for why in told.values())


class LaunchSummary(Model):
    """`launch.json`: the record's header, clocks, failed pairs and footer, what of it was lost, and the facts of the runner.

    `table_rows` is how many rows each table of `record.tables` has that it has, by name.
    By cell and rank, of those whose stages were measured: `refused_stages` has the boundaries that the rank's host did not show,
    and why; `busiest_processes` who else used the rank's processors most meanwhile.
    `workload` is there where one was run, and `kernel` where it was one of NPB. `sha256` has the hash of each Parquet file beside
    it, none in earlier versions.
    """

    launch_id: str
    fabric: str
    complete: bool
    damage: tuple[Damage, ...] = ()
    cells: int
    failed: int
    samples: int
    table_rows: dict[str, int] = {}
    refused_stages: dict[int, dict[int, dict[str, str]]] = {}
    busiest_processes: dict[int, dict[int, BusiestProcess]] = {}
    header: Header | None
    clocks: tuple[Clock, ...] = ()
    failed_pairs: tuple[PairFailed, ...] = ()
    footer: Footer | None
    facts: LaunchFacts = LaunchFacts()
    workload: WorkloadPart | None = None
    kernel: KernelPart | None = None
    sha256: dict[str, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _takes_rows_of_earlier_versions(cls, data: Any) -> Any:
        """Earlier versions had a field for each table, 0 without it, and told of a rank what it had refused in any cell."""
        if isinstance(data, dict) and OF_EARLIER_VERSIONS.keys() & data.keys():
            rows = {OF_EARLIER_VERSIONS[name]: data[name] for name in OF_EARLIER_VERSIONS if data.get(name)}
            data = {name: value for name, value in data.items() if name not in OF_EARLIER_VERSIONS}
            data.setdefault("table_rows", rows)
        if isinstance(data, dict) and isinstance(refused := data.get("refused_stages"), dict):
            by_rank = {rank: told for rank, told in refused.items() if _is_of_rank(told)}
            if by_rank:
                data = {**data, "refused_stages": {ANY_CELL: by_rank}}
        return data

    def refused_in(self, cell: int) -> Iterable[tuple[str, str]]:
        """Yield the boundaries that a rank's host did not show in a cell, each with why."""
        for number in (cell, ANY_CELL):
            for refused in self.refused_stages.get(number, {}).values():
                yield from refused.items()

    @property
    def proof(self) -> Proof:
        """Whether its traffic was shown to take its fabric; earlier versions told only whether it was shown not to."""
        if self.facts.proof is not None:
            return self.facts.proof
        if not self.facts.is_valid:
            return Proof.REFUTED
        return Proof.PROVEN if self.facts.path_proof.get("cells") else Proof.UNKNOWN

    @property
    def is_valid(self) -> bool:
        """Whether it counts: nothing shows that its traffic took another way, or that it was measured as it must not be."""
        return self.proof is not Proof.REFUTED and self.facts.is_valid

    @property
    def parquet(self) -> tuple[str, ...]:
        """The names of the Parquet files beside it."""
        return (CELLS, SAMPLES, *(table.file for table in TABLES if self.has(table)))

    def has(self, table: RecordTable) -> bool:
        """Tell whether it has a table."""
        return self.table_rows.get(table.name, 0) > 0

    @property
    def needs_cells(self) -> bool:
        """Whether its cells alone tell why tests failed, or what became of the jobs of an earlier version's farm."""
        return self.failed > 0 or (self.workload is not None and self.workload.jobs is None)

    @property
    def block(self) -> int:
        """The block that the launch belongs to, from the runner or from the launch's name."""
        if self.facts.block is not None:
            return self.facts.block
        named = re.match(r"b(\d+)-", self.launch_id)
        return int(named.group(1)) if named else 0

    @property
    def outcome(self) -> LaunchOutcome:
        """How the launch ended; of a run of an earlier version it follows from the exit code."""
        if self.facts.outcome is not None and self.complete:
            return self.facts.outcome
        well = (0,) if self.kernel is None else (0, WRONG_RESULT)
        code = self.facts.exit_code
        return outcome_of(is_whole=self.complete, is_success=code in well, exit_code=code)

    @property
    def end_in_words(self) -> str:
        """How a program ended that died after its record, or of which nobody knows."""
        facts = self.facts
        if self.outcome is not LaunchOutcome.DIED_AFTER_RECORD:
            return "its record is whole, and nobody saw how its program ended"
        by_signal = facts.signal or signal_name(signal_number(facts.exit_code))
        if by_signal is None:
            return "its record was whole, and its program hung until its time limit"
        return f"its record was whole when {by_signal} ended its program" + (
            f" on {facts.died_on}" if facts.died_on else ""
        )

    @property
    def is_finished(self) -> bool:
        """Whether the launch counts: run, resume and report ask this and nothing else."""
        return self.outcome.counts


def write_launch(
    directory: Path,
    lines: Record | None = None,
    *,
    facts: LaunchFacts | None = None,
    workload: WorkloadPart | None = None,
    kernel: KernelPart | None = None,
    plan: ProbePlan | None = None,
    cells: bytes | None = None,
    crossings: Mapping[int, Crossings] = NO_CROSSINGS,
    keep_records: bool = False,
) -> LaunchSummary:
    """Convert the record in a launch's directory to Parquet and write `launch.json`, which marks it as converted.

    Each file appears whole or not at all, `launch.json` last. The raw record is removed only once everything in it is safely in
    Parquet; one that is damaged or cut short stays. Calling it again does no harm: a launch that is converted keeps its data and
    takes the new facts. EnvironmentLacks if the disk is full (the raw record stays); UsageError if there is nothing to convert.
    `plan` is what lies in the directory and `cells` what `cells_parquet` returns of `lines`, where that is known already.
    `crossings` are those of the emulated switch, by the number of a cell whose stages were measured.
    """
    records = directory / RECORDS
    if lines is None and not records.exists():
        return _rewritten(directory, facts)
    plan = plan or plan_beside(directory)
    record = read_record(records, plan) if lines is None else lines
    frames = {table: table.rows(record, crossings) for table in TABLES}
    found = {table: frame for table, frame in frames.items() if frame.height}
    rows = {table.name: frame.height for table, frame in found.items()}
    summary = _summary(directory, record, rows, facts or LaunchFacts())
    summary = summary.model_copy(update={"workload": workload, "kernel": kernel})
    probes = {probe.id: probe for probe in plan.probes} if plan is not None else {}
    tables = {CELLS: cells_frame(record, probes) if cells is None else cells, SAMPLES: samples_frame(record)}
    tables |= {table.file: frame for table, frame in found.items()}
    hashes = {name: _write_table(directory / name, table) for name, table in tables.items()}
    summary = summary.model_copy(update={"sha256": hashes})
    _write_summary(directory, summary)
    if summary.complete and not keep_records:
        for raw in (records, directory / KERNEL_RECORDS):
            raw.unlink(missing_ok=True)
    return summary


def cells_parquet(record: Record, probes: Mapping[int, PlanProbe] | None = None) -> bytes:
    """Return what `cells.parquet` of a record holds; `probes` are those of its launch's plan, by the number of their cell."""
    return _parquet(cells_frame(record, probes))


def _write_table(path: Path, table: pl.DataFrame | bytes) -> str:
    """Write a table, or what its file holds, and return what that hashes to."""
    with replaced(path) as file:
        content = table if isinstance(table, bytes) else _parquet(table)
        file.write(content)
    return hashlib.sha256(content).hexdigest()


def _parquet(frame: pl.DataFrame) -> bytes:
    content = BytesIO()
    frame.write_parquet(content, row_group_size=ROW_GROUP_ROWS)
    return content.getvalue()


def read_launch(
    directory: Path, sealed: tuple[str, ...] = (), room: Room | None = None, *, is_own: bool = False
) -> LaunchSummary:
    """Return a converted launch's `launch.json`, once every file of it is as it was written and holds what it should.

    `sealed` are the hashes that the journal has for `launch.json`; `room` is what the `launch.json` of a run may have together.
    `is_own`: this user wrote the journal, so that a file whose hash is known from it is what was written, and is not decoded.
    DamagedFile names the first file that is altered or cannot be read, so that nothing behind it meets a damaged one.
    """
    path = directory / LAUNCH
    try:
        if sealed:
            check_sha256(file_sha256(path), sealed)
        summary = read_summary(path, room)
        if not (summary.sha256 or sealed) and directory.parent.name == LAUNCHES:
            check_has_hashes(directory.parent.parent, directory.name)
        for name in summary.parquet:
            path = directory / name
            _check_table(path, summary, is_known=is_own and bool(sealed))
    except UNREADABLE as error:
        raise DamagedFile(path, reason_of(error), hint=MEASURE_AGAIN) from error
    return summary


def _check_table(path: Path, summary: LaunchSummary, *, is_known: bool = False) -> None:
    """Raise one of UNREADABLE where a Parquet file of a launch is altered or does not hold what it should."""
    rows = _rows(path.name, summary)
    found = file_sha256(path, most_bytes(path.name, rows))
    if summary.sha256:
        check_sha256(found, (summary.sha256.get(path.name, "no hash"),))
        if is_known:
            return
    DECODER.check_content(path, rows)


def _rows(name: str, summary: LaunchSummary) -> int | None:
    """Return how many rows a Parquet file of a launch has; None of its cells, whose number says little of their size."""
    rows = {table.file: summary.table_rows.get(table.name, 0) for table in TABLES}
    return {SAMPLES: summary.samples, **rows}.get(name)


def read_header(directory: Path, room: Room | None = None) -> LaunchSummary:
    """Return a converted launch's `launch.json` without asking whether it is as it was written, once its tables are there.

    Of these only the cells are looked into, where they alone tell what an account needs (`needs_cells`). DamagedFile names
    the first file that cannot be read.
    """
    path = directory / LAUNCH
    try:
        summary = read_summary(path, room)
        for name in summary.parquet:
            path = directory / name
            check_file(path, most_bytes(name, _rows(name, summary)))
            if name == CELLS and summary.needs_cells:
                _check_table(path, summary)
    except UNREADABLE as error:
        raise DamagedFile(path, reason_of(error), hint=MEASURE_AGAIN) from error
    return summary


def read_summary(path: Path, room: Room | None = None) -> LaunchSummary:
    """Return a `launch.json`, whatever has become of the files that it tells of. Raises OSError or ValueError."""
    return LaunchSummary.model_validate_json((room or Room()).read(path, MOST_LAUNCH_BYTES, MOST_LAUNCH_VALUES))


def scan_cells(directory: Path) -> pl.LazyFrame:
    """Return the cells of a converted launch, a row for each, unread."""
    return scan_stored(directory / CELLS)


def scan_samples(directory: Path) -> pl.LazyFrame:
    """Return the samples of a converted launch, unread."""
    return scan_stored(directory / SAMPLES)


def scan_channels(directory: Path) -> pl.LazyFrame:
    """Return what the channels of a converted launch did, unread; no rows where none was recorded."""
    return scan_table(directory, CHANNELS)


def scan_stages(directory: Path) -> pl.LazyFrame:
    """Return when the messages of a converted launch passed their boundaries, unread; no rows where nobody asked."""
    return scan_table(directory, STAGES)


def scan_table(directory: Path, table: RecordTable) -> pl.LazyFrame:
    """Return a table of a converted launch, unread; no rows where it has none."""
    path = directory / table.file
    return scan_stored(path) if path.exists() else pl.LazyFrame(schema=table.schema)


def is_converted(directory: Path) -> bool:
    """Whether a launch's directory holds everything that a reader needs."""
    return is_stored(directory) and all((directory / name).exists() for name in (CELLS, SAMPLES))


def is_stored(directory: Path) -> bool:
    """Whether a launch was stored in a directory, whatever has become of its other files. A pipe would never end."""
    return (directory / LAUNCH).is_file()


def _rewritten(directory: Path, facts: LaunchFacts | None) -> LaunchSummary:
    if not is_converted(directory):
        raise UsageError(
            f"{directory} holds no record: {RECORDS} is missing",
            hint="look into stderr.log beside it: the measurer did not start or could not write",
        )
    summary = read_launch(directory)
    if facts is not None and facts != summary.facts:
        summary = summary.model_copy(update={"facts": facts})
        _write_summary(directory, summary)
    return summary


def _write_summary(directory: Path, summary: LaunchSummary) -> None:
    replace_text(directory / LAUNCH, summary.model_dump_json(by_alias=True, indent=2) + "\n")


def _summary(directory: Path, record: Record, table_rows: dict[str, int], facts: LaunchFacts) -> LaunchSummary:
    launch_id = record.header.launch_id if record.header else directory.name
    return LaunchSummary(
        launch_id=launch_id,
        fabric=record.header.fabric if record.header else re.sub(r"^b\d+-", "", directory.name),
        complete=record.is_complete,
        damage=tuple(record.damage),
        cells=sum(cell.end is not None for cell in record.cells),
        failed=sum(cell.failed is not None for cell in record.cells),
        samples=sum(len(batch.time_ns) for cell in record.cells for batch in cell.batches),
        table_rows=table_rows,
        refused_stages={
            cell.id: {line.rank: line.refused for line in cell.stages if line.refused}
            for cell in record.cells
            if any(line.refused for line in cell.stages)
        },
        busiest_processes={
            cell.id: {line.rank: line.busiest for line in cell.stages if line.busiest is not None}
            for cell in record.cells
            if any(line.busiest is not None for line in cell.stages)
        },
        header=record.header,
        clocks=tuple(record.clocks),
        failed_pairs=tuple(record.failed_pairs),
        footer=record.footer,
        facts=facts,
    )
