"""Where a command's data goes: stdout, or the file of `--output`, which appears whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fabricbench.printable import printable


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
