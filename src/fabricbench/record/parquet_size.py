"""What a Parquet file would take in memory, from its footer and the headers of its pages alone: nothing is decoded to know it.

A file of kilobytes can hold a page that unpacks to gigabytes, or rows without end in a run of equal values. Both are told in the
metadata, which is in Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md; apache/parquet-format,
parquet.thrift), read here field by field within the bytes that there are.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PAR1"
MOST_FOOTER_BYTES = 16 * 1024 * 1024
"""100 million rows in groups of a quarter million have one of half a megabyte."""
HEADER_BYTES = 4096
"""Read of each page at first; statistics of long texts make a header longer."""
MOST_HEADER_BYTES = 1024 * 1024
SMALL_BYTES = 1024 * 1024
"""A file that is read at once: most are, and have a page for each of forty columns."""
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
    with path.open("rb") as stored:
        size = os.fstat(stored.fileno()).st_size
        file = BytesIO(stored.read(size)) if size <= SMALL_BYTES else stored
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
        return _structure(file.read(length), 0)[0]
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
        try:
            header, length = _structure(file.read(min(most, end - at)), 0)
        except IndexError:
            continue
        return length, header
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


def _structure(content: bytes, at: int, depth: int = 0) -> tuple[Fields, int]:
    """Return the fields of a structure of the compact protocol by their numbers, and where it ends.

    IndexError where the bytes end before it does. A footer has thousands of numbers, so most are read here and not one call deeper.
    """
    if depth > MOST_DEPTH:
        raise ValueError("its metadata is nested too deep")
    found: Fields = {}
    number = 0
    while head := content[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(content, at)
        kind = head & 0x0F
        if kind in (4, 5, 6):
            if (byte := content[at]) < 0x80:
                found[number] = (byte >> 1) ^ -(byte & 1)
                at += 1
            else:
                found[number], at = _signed(content, at)
        elif kind in (1, 2):
            found[number] = kind == 1
        else:
            found[number], at = _value(content, at, kind, depth)
    return found, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2 | 3:
            return content[at], at + 1
        case 4 | 5 | 6:
            return _signed(content, at)
        case 7:
            return None, _after(content, at + 8)
        case 8:
            length, at = _unsigned(content, at)
            return None, _after(content, at + length)
        case 9 | 10:
            return _elements(content, at, depth)
        case 12:
            return _structure(content, at, depth + 1)
    raise ValueError(f"its metadata holds a value of kind {kind}")


def _elements(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    head = content[at]
    count, at = (head >> 4, at + 1) if head >> 4 != 0x0F else _unsigned(content, at + 1)
    found = []
    for _ in range(count):  # each takes a byte at least, so that it ends with the bytes that there are
        value, at = _value(content, at, head & 0x0F, depth)
        found.append(value)
    return found, at


def _after(content: bytes, at: int) -> int:
    """Return a place behind what is passed over."""
    if at > len(content):
        raise IndexError
    return at


def _unsigned(content: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = content[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
        if shift > 63:
            raise ValueError("its metadata holds a number of more than 64 bits")


def _signed(content: bytes, at: int) -> tuple[int, int]:
    found, at = _unsigned(content, at)
    return (found >> 1) ^ -(found & 1), at
