"""Whether a Parquet file can be decoded and holds what it should, found out in a child process.

A damaged Parquet file may end its reader: a panic prints what nobody asked for, an allocation without bounds or an abort ends the
process. A hash tells of damage by chance, and whoever forges a file can forge its hash. So a child decodes each file first, and may
die of it.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from fabricbench.configuration import first_problem
from fabricbench.errors import EnvironmentLacks
from fabricbench.interpreter import python
from fabricbench.printable import shortened
from fabricbench.record.frames import (
    CELL_SCHEMA,
    LATER_CELL_COLUMNS,
    LATER_SAMPLE_COLUMNS,
    SAMPLE_SCHEMA,
    Schema,
    check_cells,
    in_schema,
    lacking,
)
from fabricbench.record.integrity import CELLS, LAUNCH, SAMPLES
from fabricbench.record.parquet_size import check_parquet_size
from fabricbench.record.tables import CHANNELS, TABLES

PARQUET_SCHEMAS: dict[str, tuple[Schema, Mapping[str, Any]]] = {
    CELLS: (CELL_SCHEMA, LATER_CELL_COLUMNS),
    SAMPLES: (SAMPLE_SCHEMA, LATER_SAMPLE_COLUMNS),
    **{table.file: (table.schema, table.later) for table in TABLES},
}

WITHOUT_NULLS = {table.file: table.complete for table in TABLES}
"""Columns of files in which not all are complete."""

UNREADABLE = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What a file that is not as it should be may raise here."""

NO_READER = "tables (Parquet) cannot be read here"
LIMITS = (
    "is the number of processes limited (`ulimit -u`, pids.max of a container), or memory (`ulimit -v`)? allow more"
)

PATIENCE_S = 120.0
"""How long a child may take for one file; a gigabyte of samples takes seconds."""


def reason_of(error: BaseException) -> str:
    """Return what one of UNREADABLE says, in a line."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    if isinstance(error, pl.exceptions.PanicException):
        return "it makes the Parquet reader panic"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shortened(next(iter(str(error).splitlines()), type(error).__name__))


def scan_stored(path: Path) -> pl.LazyFrame:
    """Return a Parquet file of a launch with the columns that such a file has now, unread."""
    wanted, later = PARQUET_SCHEMAS[path.name]
    return in_schema(_scanned(path), wanted, later)


def _scanned(path: Path) -> pl.LazyFrame:
    """Return a file as it is, unread. Left alone, polars takes `[`, `?` and `*` for patterns and `file:x` for an address.

    It takes names that are text only: a file below a folder that has another name is read into memory.
    """
    place = path.absolute()
    try:
        os.fspath(place).encode()
    except UnicodeEncodeError:
        return pl.scan_parquet(BytesIO(place.read_bytes()))
    return pl.scan_parquet(place, glob=False)


MOST_SAMPLES, MOST_OF_A_CELL = 24_000_000, 10_000_000
"""Rows of a launch's samples, and of its channels; samples of one cell, which are in memory at once.

A cell takes 100,000 at most unless it is asked for more.
"""
MOST_CHANNELS = 2_000_000
"""Of a launch, which are in memory at once: each pair of 1,400 ranks. A hash tells how many there are, to a few per cent."""
BYTES_A_SAMPLE = 64
"""A row has 26; pages may hold more while they are packed."""
ROW_BYTES = {table.file: table.row_bytes for table in TABLES}
MOST_CELLS, MOST_CELL_VALUES, MOST_CELL_BYTES = 100_000, 8_000_000, 256 * 1024 * 1024
"""Of a launch's cells: a value is a rank of a cell, say."""
SMALL_BYTES = 4 * 1024 * 1024
FEW_ROWS = 100_000
"""Of a table that is decoded at once; a file of more goes through in pieces."""


def most_bytes(name: str, rows: int | None) -> int:
    """Return how large a Parquet file of that name and so many rows may be, packed or not; of cells without a number."""
    if rows is None:
        return MOST_CELL_BYTES
    return ROW_BYTES.get(name, BYTES_A_SAMPLE) * rows + SMALL_BYTES


def check_size(path: Path, rows: int | None) -> None:
    """Raise one of UNREADABLE where a Parquet file of a launch would take more than one of that many rows can; decodes nothing."""
    if rows is None:
        check_parquet_size(path, MOST_CELLS, MOST_CELL_VALUES, MOST_CELL_BYTES)
        return
    if rows > MOST_SAMPLES:
        raise ValueError(f"{LAUNCH} says that it has {rows:,} rows, and {MOST_SAMPLES:,} are the most that are read")
    most_values = 2 * rows + 1000  # a column's dictionary holds as many again, at most
    check_parquet_size(path, rows, most_values, most_bytes(path.name, rows))


def check_content(path: Path, rows: int | None = None) -> None:
    """Raise one of UNREADABLE where a Parquet file of a launch cannot be decoded or holds something else than it should.

    `rows` is how many its `launch.json` says; cells are looked at one by one instead. One that would take too much is not decoded.
    """
    check_size(path, rows)
    wanted, later = PARQUET_SCHEMAS[path.name]
    found = _scanned(path)
    is_small = path.name == CELLS or (rows is not None and rows <= FEW_ROWS)
    if is_small:  # decoded at once, and looked at as it is
        found = found.collect(engine="in-memory").lazy()
    there = found.collect_schema()
    missing = lacking(there, wanted, later)
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    frame = found if there == wanted else in_schema(found, wanted, later)
    if path.name == CELLS:
        check_cells(frame.collect(engine="in-memory"))
        return
    complete = list(WITHOUT_NULLS.get(path.name, tuple(wanted)))
    # The largest of each column makes polars decode all of them, a piece at a time, and convert those of another type.
    is_looked_at = is_small and there == wanted
    told = frame.select(
        pl.len().alias("rows"),
        pl.sum_horizontal(pl.col(complete).null_count()).alias("nulls"),
        *([] if is_looked_at else [pl.all().max().name.prefix("largest ")]),
    ).collect(engine="in-memory" if is_small else "streaming")
    if told["rows"][0] != rows:
        raise ValueError(f"it has {told['rows'][0]} rows, {LAUNCH} says {rows}")
    if told["nulls"][0]:
        raise ValueError("it has rows in which something is missing")
    if path.name == CHANNELS.file and told["rows"][0] > MOST_CHANNELS:
        one = pl.struct("cell", "source", "destination", "flow", "round").hash().approx_n_unique()
        channels = frame.select(one).collect(engine="streaming").item()
        if channels > MOST_CHANNELS:
            raise ValueError(
                f"it tells of about {channels:,} channels, and {MOST_CHANNELS:,} are the most that are read; Polars reads all of "
                f'them: pl.scan_parquet("{path.name}")'
            )
    if path.name == SAMPLES and told["rows"][0] > MOST_OF_A_CELL:
        largest = frame.group_by("cell").len().select(pl.col("len").max()).collect(engine="streaming").item()
        if largest > MOST_OF_A_CELL:
            raise ValueError(f"a cell of it has {largest:,} samples, and {MOST_OF_A_CELL:,} are the most that are read")


class Decoder:
    """`check_content` in a child process: one for all files, another one where it has died.

    It starts with the first file (half a second) and ends with this process, or with `end`.
    """

    def __init__(self) -> None:
        self._child: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._lock = threading.Lock()

    def check_content(self, path: Path, rows: int | None = None) -> None:
        """Raise ValueError where the file cannot be decoded, holds something else than it should, or ended its reader.

        EnvironmentLacks where no file can be decoded here.
        """
        question = json.dumps({"path": os.fspath(path.absolute()), "rows": rows})
        with self._lock:
            _, channel = self._child = self._child or self._start()
            try:
                channel.sendall(question.encode() + b"\n")
                with channel.makefile("rb") as answers:
                    answer = answers.readline()
            except (ConnectionError, TimeoutError):
                answer = b""
            except BaseException:  # interrupted: the answer that comes would be taken for that of the next file
                self._end()
                raise
            if not answer.endswith(b"\n"):
                code = self._end()
                if code == EnvironmentLacks.exit_code:
                    raise EnvironmentLacks(f"{NO_READER}: it does not read its own", hint=LIMITS)
                raise ValueError(f"decoding it ended the process that tried (exit code {code})")
        reason = json.loads(answer)
        if reason is not None:
            raise ValueError(reason)

    @property
    def is_busy(self) -> bool:
        """Whether a file is being decoded."""
        return self._lock.locked()

    def end(self) -> None:
        """End the child; the next file starts another one."""
        with self._lock:
            self._end()

    def give_up(self) -> None:
        """End the child whatever it does: whoever waits for an answer in another thread is told that the file ended it."""
        child = self._child
        if child is not None:
            child[0].kill()

    def forget(self) -> None:
        """Leave the child to the process that this one was forked from."""
        self._lock = threading.Lock()
        if self._child is not None:
            self._child[1].close()
            self._child = None

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, childs = socket.socketpair()
        ours.settimeout(PATIENCE_S)
        with childs:
            try:
                return subprocess.Popen(
                    python("fabricbench.record.decoding"),
                    stdin=childs.fileno(),
                    stdout=childs.fileno(),
                    stderr=subprocess.DEVNULL,
                ), ours
            except OSError as error:
                raise EnvironmentLacks(f"{NO_READER}: {error.strerror}", hint=LIMITS) from error

    def _end(self) -> int | None:
        if self._child is None:
            return None
        (child, channel), self._child = self._child, None
        channel.close()
        try:
            return child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


MANY_FILES = 200
"""So many are worth a second child, whose start takes as long as decoding some of them."""


class Decoders:
    """Two children: the second decodes while the first is busy, once many files were asked for."""

    def __init__(self) -> None:
        self._first, self._second = self._both = Decoder(), Decoder()
        self._asked = 0

    def check_content(self, path: Path, rows: int | None = None) -> None:
        """Do what `Decoder.check_content` does."""
        self._asked += 1
        one = self._second if self._asked > MANY_FILES and self._first.is_busy else self._first
        one.check_content(path, rows)

    def end(self) -> None:
        """End both; the next file is again the first."""
        for one in self._both:
            one.end()
        self._asked = 0

    def give_up(self) -> None:
        """End both whatever they do."""
        for one in self._both:
            one.give_up()

    def forget(self) -> None:
        """Leave both to the process that this one was forked from."""
        for one in self._both:
            one.forget()


DECODER = Decoders()
"""Those of this process."""
atexit.register(DECODER.end)
os.register_at_fork(after_in_child=DECODER.forget)


def _can_decode() -> bool:
    """Tell whether a file of our own can be decoded: that takes threads, and a host may allow none, which is no file's fault."""
    try:
        file = BytesIO()
        pl.DataFrame({"rows": [1]}).write_parquet(file)
        file.seek(0)
        return bool(pl.scan_parquet(file).select(pl.len()).collect(engine="streaming").item() == 1)
    except (*UNREADABLE, MemoryError, RuntimeError):
        return False


def _serve() -> None:
    """Answer each line of standard input, a file, with why it cannot be used, null where it can."""
    if not _can_decode():
        os._exit(EnvironmentLacks.exit_code)
    for line in sys.stdin.buffer:
        question = json.loads(line)
        reason = None
        try:
            check_content(Path(question["path"]), question["rows"])
        except UNREADABLE as error:
            reason = reason_of(error)
        sys.stdout.buffer.write(json.dumps(reason).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
