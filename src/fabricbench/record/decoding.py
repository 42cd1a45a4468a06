"""Whether a Parquet file can be decoded and holds what it should; where nobody vouches for its bytes, found out in a child process.

A damaged Parquet file may end its reader: a panic is caught, an allocation without bounds or an abort is not. A file whose hash is
known is checked by it before anything decodes it. One without is decoded by a child of this process first, which may die of it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
from pydantic import ValidationError

from fabricbench.configuration import first_problem
from fabricbench.record.frames import (
    CELL_SCHEMA,
    CHANNEL_SCHEMA,
    LATER_CELL_COLUMNS,
    LATER_SAMPLE_COLUMNS,
    OF_A_CHANNELS_NUMBER,
    SAMPLE_SCHEMA,
    Schema,
    check_cells,
    in_schema,
    lacking,
)
from fabricbench.record.integrity import CELLS, CHANNELS, LAUNCH, SAMPLES

PARQUET_SCHEMAS: dict[str, tuple[Schema, Mapping[str, Any]]] = {
    CELLS: (CELL_SCHEMA, LATER_CELL_COLUMNS),
    SAMPLES: (SAMPLE_SCHEMA, LATER_SAMPLE_COLUMNS),
    CHANNELS: (CHANNEL_SCHEMA, {}),
}

UNREADABLE = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What a file that is not as it should be may raise here."""

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
    return next(iter(str(error).splitlines()), type(error).__name__)


def scan_stored(path: Path) -> pl.LazyFrame:
    """Return a Parquet file of a launch with the columns that such a file has now, unread."""
    wanted, later = PARQUET_SCHEMAS[path.name]
    return in_schema(_scanned(path), wanted, later)


def _scanned(path: Path) -> pl.LazyFrame:
    """Return a file as it is, unread. Left alone, polars takes `[`, `?` and `*` for patterns and `file:x` for an address."""
    return pl.scan_parquet(path.absolute(), glob=False)


def check_content(path: Path, rows: int | None = None) -> None:
    """Raise one of UNREADABLE where a Parquet file of a launch cannot be decoded or holds something else than it should.

    `rows` is how many its `launch.json` says; cells are looked at one by one instead.
    """
    wanted, later = PARQUET_SCHEMAS[path.name]
    missing = lacking(_scanned(path).collect_schema(), wanted, later)
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    frame = scan_stored(path)
    if path.name == CELLS:
        check_cells(frame.collect())
        return
    complete = [name for name in wanted if path.name == SAMPLES or name not in OF_A_CHANNELS_NUMBER]
    # The largest of each column makes polars decode all of them, a piece at a time.
    found = frame.select(
        pl.len().alias("rows"),
        pl.sum_horizontal(pl.col(complete).null_count()).alias("nulls"),
        pl.all().max().name.prefix("largest "),
    ).collect(engine="streaming")
    if found["rows"][0] != rows:
        raise ValueError(f"it has {found['rows'][0]} rows, {LAUNCH} says {rows}")
    if found["nulls"][0]:
        raise ValueError("it has rows in which something is missing")


class Apart:
    """`check_content` in a child process: one for many files, another one where it has died. Starts none before the first file."""

    def __init__(self) -> None:
        self._child: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def check_content(self, path: Path, rows: int | None = None) -> None:
        """Raise ValueError where the file cannot be decoded, holds something else than it should, or ended its reader."""
        _, channel = self._child = self._child or self._start()
        question = json.dumps({"path": os.fspath(path.absolute()), "rows": rows})
        try:
            channel.sendall(question.encode() + b"\n")
            with channel.makefile("rb") as answers:
                answer = answers.readline()
        except (ConnectionError, TimeoutError):
            answer = b""
        if not answer.endswith(b"\n"):
            raise ValueError(f"decoding it ended the process that tried (exit code {self._end()})")
        reason = json.loads(answer)
        if reason is not None:
            raise ValueError(reason)

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, childs = socket.socketpair()
        ours.settimeout(PATIENCE_S)
        with childs:
            # -P: nothing is imported from the current directory, which may be the one in question.
            command = [sys.executable, "-P", "-m", "fabricbench.record.decoding"]
            return subprocess.Popen(
                command, stdin=childs.fileno(), stdout=childs.fileno(), stderr=subprocess.DEVNULL
            ), ours

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


def _serve() -> None:
    """Answer each line of standard input, a file, with why it cannot be used, null where it can."""
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
