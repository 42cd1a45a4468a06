"""Quantities with units: reads what people write (`100Mbit/s`, `5us` or `5 µs`, `64KiB`) and writes what they read.

Inside, everything is in SI base units or the unit that the name says; scaling happens at these borders only.
Rates and times use decimal prefixes; sizes take both decimal (kB) and binary (KiB) ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator

_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9].*?)?\s*\Z")

SECONDS_OF = MappingProxyType(
    {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
)
"""Units of time, in seconds."""
_BIT_S = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
_BIT_S |= {"B/s": 8.0, "kB/s": 8e3, "MB/s": 8e6, "GB/s": 8e9}
MOST_MEANT = 3
"""Units that a slip is answered with; where more would do, all are listed anyway."""
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _scaled(text: str, units: Mapping[str, float], what: str) -> float:
    match = _NUMBER.match(text)
    unit = match.group(2) if match else None
    if match is None or unit is None or unit not in units:
        examples = ", ".join(unit for unit in units if unit != "µs")
        meant = _meant(match.group(1), unit, units) if match is not None else ""
        raise ValueError(f"{text!r} is not a {what}: {meant or 'write'} a number and one of the units {examples}")
    return float(match.group(1)) * units[unit]


def _meant(number: str, unit: str | None, units: Mapping[str, float]) -> str:
    """Return `write 64KiB (65536) or 64kB (64000)? it takes` for a unit that is one of ours but for its letters."""
    if not unit:
        return ""
    plain = unit.lower().replace("i", "")
    near = [
        one for one in units if plain in (one.lower().replace("i", ""), one.lower().replace("i", "").removesuffix("b"))
    ]
    told = [
        f"{number}{one} ({float(number) * units[one]:,.12g} B)" if units is _BYTES else f"{number}{one}" for one in near
    ]
    return f"did you mean {' or '.join(told)}? It takes" if told and len(told) <= MOST_MEANT else ""


def parse_seconds(value: str | float) -> float:
    """Return seconds from text such as `5us`; a bare number is refused except 0. Raises ValueError."""
    if isinstance(value, str):
        return _scaled(value, SECONDS_OF, "time")
    return _finite(value, "time")


def parse_bit_s(value: str | float) -> float:
    """Return bit/s from text such as `1.28Gbit/s` or `276MB/s`. Raises ValueError."""
    if isinstance(value, str):
        return _scaled(value, _BIT_S, "rate")
    return _finite(value, "rate")


def parse_bytes(value: str | int) -> int:
    """Return bytes from text such as `64KiB` or a bare number. Raises ValueError."""
    if isinstance(value, str):
        if value.strip().isdigit():
            return int(value)
        size = _scaled(value, _BYTES, "size")
        if size != int(size):
            raise ValueError(f"{value!r} is not a whole number of bytes")
        return int(size)
    return value


def parse_share(value: str | float) -> float:
    """Return a share from `5%` or `0.05`. Raises ValueError."""
    if isinstance(value, str):
        text = value.strip()
        try:
            return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
        except ValueError:
            raise ValueError(f"{value!r} is not a share: write 5% or 0.05") from None
    return _finite(value, "share")


def _finite(value: float, what: str) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a {what}")
    return float(value)


def format_seconds(seconds: float, digits: int = 3) -> str:
    """Write a time with the unit that suits it: `71.2 µs`, `1.20 s`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= scale:
            return f"{_significant(seconds / scale, digits)} {unit}"
    return f"{_significant(seconds / 1e-9, digits)} ns"


def format_bit_s(bit_s: float, digits: int = 3) -> str:
    """Write a rate with the unit that suits it: `94.1 Mbit/s`."""
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if abs(bit_s) >= scale:
            return f"{_significant(bit_s / scale, digits)} {unit}"
    return f"{_significant(bit_s, digits)} bit/s"


def write_bit_s(bit_s: float) -> str:
    """Write a rate as people write it into a file, with all its digits: `1Gbit/s`, `1.28Gbit/s`."""
    unit, scale = ("Gbit/s", 1e9) if bit_s >= 1e9 else ("Mbit/s", 1e6)
    return f"{bit_s / scale:.12g}{unit}"


def format_message_s(message_s: float, digits: int = 3) -> str:
    """Write a rate of messages: `1.25 Mmessage/s`, `840 message/s`."""
    for unit, scale in (("Gmessage/s", 1e9), ("Mmessage/s", 1e6), ("kmessage/s", 1e3)):
        if abs(message_s) >= scale:
            return f"{_significant(message_s / scale, digits)} {unit}"
    return f"{_significant(message_s, digits)} message/s"


def format_work(rate: float, digits: int = 3, *, unit: str = "") -> str:
    """Write a rate of work in a program's own unit, which may stand elsewhere: `361 GFLOP/s`, `2.77e-05`."""
    number = f"{rate:.{digits}g}" if abs(rate) < 1e-3 or abs(rate) >= 1e6 else _significant(rate, digits)
    return f"{number} {unit}".rstrip()


def format_bytes(size: int) -> str:
    """Write a size in the binary unit that divides it, else in bytes: `64 KiB`, `1472 B`."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """Write how long something takes, for people who wait: `45 s`, `4 min 10 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def count(number: int, noun: str) -> str:
    """Return `1 launch`, `3 launches`, `2 more blocks`."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number:,} {noun}{ending}"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


Seconds = Annotated[float, BeforeValidator(parse_seconds)]
BitPerSecond = Annotated[float, BeforeValidator(parse_bit_s)]
Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Share = Annotated[float, BeforeValidator(parse_share)]


NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)")
"""A number that stands for itself, perhaps with commas between thousands: no part of a name, nor of an address."""


def without_numbers(text: str) -> str:
    """Return what texts have in common that differ in their numbers only."""
    return NUMBER.sub("#", text)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def with_ranges(texts: Sequence[str]) -> str:
    """Return texts that differ in their numbers only as one, `in 3 to 12 of 70 calls`."""
    columns = zip(*(NUMBER.findall(text) for text in texts), strict=True)
    ranges = (
        low if (low := min(each, key=_value)) == (high := max(each, key=_value)) else f"{low} to {high}"
        for each in columns
    )
    return NUMBER.sub(lambda _: next(ranges), texts[0])
