"""Puts the files of an export where they belong: into a folder that appears whole or not at all, or into a ZIP file."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from fabricbench.exchange.exported import ExportedFile
from fabricbench.record.atomic import explained

AGAIN = "repeat the command: nothing was written"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: the same export is the same file."""
MODE = 0o644 << 16


def write_folder(files: Iterable[ExportedFile], folder: Path) -> None:
    """Write files into a new folder, which takes its name when all of them are there. Raises as `atomic.replaced` does."""
    aside = folder.parent / f".{secrets.token_hex(16)}.tmp"
    try:
        try:
            aside.mkdir()
            for file in files:
                path = _within(aside, file.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as stream:
                    write_file(file, stream)
            aside.rename(folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    except Exception as error:
        raise explained(error, folder, way_on=AGAIN) from error


def _within(folder: Path, name: str) -> Path:
    """Return the path of a name in a folder; ValueError, a bug of the exporter, for one that leads out of it."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{name} leads out of the export")
    return path


def write_zip(files: Iterable[ExportedFile], stream: BinaryIO) -> None:
    """Write files into a ZIP file, their names as they are."""
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for file in files:
            entry = ZipInfo(file.name, ZIP_EPOCH)
            entry.compress_type, entry.external_attr = ZIP_DEFLATED, MODE
            with archive.open(entry, "w", force_zip64=True) as member:
                write_file(file, member)


def write_file(file: ExportedFile, stream: IO[bytes]) -> None:
    """Write what a file of an export holds, or copy it."""
    if isinstance(file.content, bytes):
        stream.write(file.content)
    else:
        with file.content.open("rb") as source:
            shutil.copyfileobj(source, stream)
