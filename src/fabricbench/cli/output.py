"""Where a command's data goes, stdout or the file of `--output`, which appears whole or not at all, and how values are written.

Formats of all commands with a table (`fabricbench.table` writes those), shares, units.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.printable import printable
from fabricbench.quantity import format_bit_s, format_message_s, format_seconds, format_work, parse_share
from fabricbench.table import rows_csv

WIDEST_TEXT, NARROWEST_TEXT = 110, 60


def text_width() -> int:
    """Return how wide prose is: as the terminal, or COLUMNS says, between what is read with ease and what its words need."""
    return max(NARROWEST_TEXT, min(WIDEST_TEXT, shutil.get_terminal_size((WIDEST_TEXT, 0)).columns))


@contextmanager
def opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """Yield the binary stream to write to; without a path, or with `-`, stdout.

    EnvironmentLacks where the disk is full or may not be written to, UsageError for a path that cannot be.
    """
    from fabricbench.record.atomic import explained, replaced  # noqa: PLC0415 - keeps the start of the program fast

    if path is not None and str(path) != "-" and (path.is_file() or not path.exists()):
        with replaced(path) as temporary, temporary.open("wb") as stream:
            yield stream
        return
    try:
        if path is None or str(path) == "-":
            with _standard_output() as stream:
                yield stream
        else:
            with path.open("wb") as stream:  # a pipe or a device is written to, not replaced
                yield stream
    except Exception as error:
        raise explained(error, path or Path("standard output")) from error


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Yield stdout; a reader that has seen enough and closes the pipe (`| head`) is no error."""
    from fabricbench.record.atomic import error_number  # noqa: PLC0415

    sys.stdout.flush()
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except Exception as error:
        if error_number(error) != errno.EPIPE:
            raise
        # Python flushes stdout once more at its end, and would report the closed pipe there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_output(text: str, path: Path | None, *, has_colour: bool = False) -> None:
    """Write text as a command's data, printable; text that `has_colour` comes from a `PrintableConsole` and is."""
    with opened_output(path) as stream:
        stream.write((text if has_colour else printable(text)).encode())


def say(text: str) -> None:
    """Tell people something on stderr, printable: it may quote what others wrote."""
    sys.stderr.write(f"{printable(text)}\n")


class Format(StrEnum):
    """The formats that every command with a table writes."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as CSV with a header, without the last line's end; None becomes an empty field."""
    return rows_csv(rows, columns).rstrip("\n")


def as_json(value: Any) -> str:
    """Return JSON for programs that people also look at."""
    return json.dumps(value, indent=2)


def share_option(text: str, option: str) -> float:
    """Return the share that an option was given as `2%` or `0.02`; UsageError names the option."""
    try:
        return parse_share(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint=f"write {option} 2% say") from None


def value_text(value: float, metric: Metric, unit: str) -> str:
    """Return a number of a metric with the unit that suits it; `unit`, which it is stored in, is that of a rate of work."""
    if metric is Metric.WORK_RATE:
        return format_work(value, unit=unit)
    if metric.is_time:
        return format_seconds(value * 1e-9)
    return (format_message_s if metric is Metric.MESSAGE_RATE else format_bit_s)(value)


def bounded_text(value: str, low: str | None, high: str | None) -> str:
    """Return `value (low to high)`, or the value alone."""
    return value if low is None or high is None else f"{value} ({low} to {high})"
