"""What a Parquet file would take in memory, from its footer and the headers of its pages alone: nothing is decoded to know it.

A file of kilobytes can hold a page that unpacks to gigabytes, or rows without end in a run of equal values. Both are told in the
metadata, which is in Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md; apache/parquet-format,
parquet.thrift), read here field by field within the bytes that there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PAR1"
MOST_FOOTER_BYTES = 16 * 1024 * 1024
"""100 million rows in groups of a quarter million have one of half a megabyte."""
HEADER_BYTES = 4096
"""Read of each page at first; statistics of long texts make a header longer."""
MOST_HEADER_BYTES = 1024 * 1024
MOST_DEPTH = 12
"""Structures within one another; Parquet's have six."""

ROWS, ROW_GROUPS = 3, 4
"""Of the file's metadata."""
COLUMNS = 1
"""Of a row group."""
META_DATA = 3
"""Of a column's chunk."""
VALUES, COMPRESSED, DATA_PAGE, DICTIONARY_PAGE = 5, 7, 9, 11
"""Of a chunk's metadata."""
UNPACKED, PACKED = 2, 3
"""Of a page's header; its numbers of values are those of its kind, each the first field of it."""
PAGE_KINDS = (5, 7, 8)
"""Data page, dictionary page, data page of the second version."""

Fields = dict[int, Any]


def check_parquet_size(path: Path, most_rows: int, most_values: int, most_bytes: int) -> None:
    """Raise ValueError where a file has more rows, values in a column or unpacked bytes than that, or cannot be read.

    Where footer and pages differ the larger counts. OSError where there is no file.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        footer = _footer(file, size)
        _check(_number(footer, ROWS), most_rows, "rows")
        values: dict[int, int] = {}
        unpacked = 0
        for group in _list(footer, ROW_GROUPS):
            for number, chunk in enumerate(_list(group, COLUMNS)):
                told, held = _chunk(file, size, chunk)
                values[number] = values.get(number, 0) + told
                unpacked += held
                _check(values[number], most_values, "values in a column")
                _check(unpacked, most_bytes, "bytes unpacked")


def _check(found: int, most: int, what: str) -> None:
    if found > most:
        raise ValueError(f"it has {found:,} {what}, and {most:,} are the most that are read")


def _footer(file: BinaryIO, size: int) -> Fields:
    if size < 3 * len(MAGIC):
        raise ValueError("it is no Parquet file")
    file.seek(size - 8)
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or not 0 < length <= min(size - 12, MOST_FOOTER_BYTES):
        raise ValueError("it is no Parquet file")
    file.seek(size - 8 - length)
    try:
        return _Reader(file.read(length)).structure()
    except IndexError:
        raise ValueError("its footer is not whole") from None


def _chunk(file: BinaryIO, size: int, chunk: Any) -> tuple[int, int]:
    """Return how many values a column's chunk has, and what its pages unpack to; the larger where footer and pages differ."""
    told = chunk.get(META_DATA) if isinstance(chunk, dict) else None
    if not isinstance(told, dict):
        raise ValueError("its footer does not tell where its columns are")  # noqa: TRY004 - of the file
    at = min(one for one in (_number(told, DATA_PAGE), told.get(DICTIONARY_PAGE)) if type(one) is int and one >= 0)
    end = at + _number(told, COMPRESSED)
    if end > size:
        raise ValueError("a column of it ends behind its end")
    values = unpacked = 0
    while at < end:
        length, header = _header(file, at, end)
        kinds = [header[kind] for kind in PAGE_KINDS if isinstance(header.get(kind), dict)]
        values += sum(_number(kind, 1) for kind in kinds)
        unpacked += _number(header, UNPACKED)
        at += length + _number(header, PACKED)
    return max(values, _number(told, VALUES)), unpacked


def _header(file: BinaryIO, at: int, end: int) -> tuple[int, Fields]:
    for most in (HEADER_BYTES, MOST_HEADER_BYTES):
        file.seek(at)
        reader = _Reader(file.read(min(most, end - at)))
        try:
            header = reader.structure()
        except IndexError:
            continue
        return reader.at, header
    raise ValueError("the header of a page of it is not whole")


def _number(fields: Fields, field: int) -> int:
    found = fields.get(field)
    if type(found) is not int or found < 0:
        raise ValueError("its metadata lacks a number")
    return found


def _list(fields: Any, field: int) -> list[Any]:
    found = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(found, list):
        raise ValueError("its metadata lacks a list")  # noqa: TRY004 - of the file, not of a caller
    return found


class _Reader:
    """Reads a structure of the compact protocol; IndexError where the bytes end before it does."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def structure(self, depth: int = 0) -> Fields:
        """Return the fields by their numbers."""
        if depth > MOST_DEPTH:
            raise ValueError("its metadata is nested too deep")
        found: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 0x0F
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7 | 8:
                self._skip(8 if kind == 7 else self._unsigned())
                return None
            case 9 | 10:
                return list(self._elements(depth))
            case 12:
                return self.structure(depth + 1)
        raise ValueError(f"its metadata holds a value of kind {kind}")

    def _elements(self, depth: int) -> Iterator[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 != 0x0F else self._unsigned()
        for _ in range(count):  # each takes a byte at least, so that it ends with the bytes that there are
            yield self._value(head & 0x0F, depth + 1)

    def _skip(self, length: int) -> None:
        if self.at + length > len(self._content):
            raise IndexError
        self.at += length

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7
            if shift > 63:
                raise ValueError("its metadata holds a number of more than 64 bits")

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)
