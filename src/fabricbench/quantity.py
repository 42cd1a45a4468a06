"""Quantities with units, and lists: reads what people write (`100Mbit/s`, `5us` or `5 µs`, `64KiB`) and writes what they read.

Inside, everything is in SI base units or the unit that the name says; scaling happens at these borders only.
Rates and times use decimal prefixes; sizes take both decimal (kB) and binary (KiB) ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9].*?)?\s*\Z")

SECONDS_OF = MappingProxyType(
    {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
)
"""Units of time, in seconds."""
_PRINTED = re.compile(r"[+-]?(?P<whole>[0-9]*)(?:\.(?P<decimals>[0-9]*))?(?:[eEdD](?P<exponent>[+-]?[0-9]{1,9}))?")
LARGEST_EXPONENT = 300
"""Of ten, that a number here holds."""
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
    return _finite(float(match.group(1)) * units[unit], what)


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
    """Return a share from `5%` or `0.05`. Raises ValueError.

    Also of a bare number above 1, and of the text `1`: to most who write it `5` is 5 %.
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            if text.endswith("%"):
                return float(text[:-1]) / 100.0
            share = float(text)
        except ValueError:
            raise ValueError(f"{value!r} is not a share: write 5% or 0.05") from None
    else:
        share = _finite(value, "share")
    if share > 1.0 or (share == 1.0 and isinstance(value, str)):
        raise ValueError(f"{share:g} would be {share * 100:g} %: did you mean {share:g}%, which is {share / 100:g}?")
    return share


def last_digit(text: str) -> float:
    """Return what the last digit of a printed number counts: 0.01 of `0.15`, 100 of `1.0e3` or `1.0D+03`, 1 of `12`.

    ValueError where it is no number. What was printed is off by half of it, either way.
    """
    found = _PRINTED.fullmatch(text.strip())
    whole, decimals, power = found.groups(default="") if found is not None else ("", "", "")
    if not (whole or decimals):
        raise ValueError(f"{text!r} is no number")
    exponent = int(power or 0) - len(decimals)
    return float(10.0 ** min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT))


@lru_cache(maxsize=1024)  # the last digits of a text's numbers count the same, mostly
def decimal_product(value: float, scale: float) -> float:
    """Return a printed number in another unit, multiplied as decimals: 22.2 us are 22200 ns, and not 22199.999999999996."""
    return float(Decimal(repr(float(value))) * Decimal(repr(float(scale))))


def _finite(value: float, what: str) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a {what}")
    return float(value)


class Scaled(NamedTuple):
    """A quantity as people read it, its number and its unit apart: `71.2` and `µs`."""

    number: str
    unit: str

    def __str__(self) -> str:
        """Return both in one text."""
        return f"{self.number} {self.unit}".rstrip()


SECOND_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
RATE_UNITS = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
MEGABYTE_S, MEBIBYTE_S = 8e6, 8.0 * 2**20
"""In bit/s."""


class RateUnit(StrEnum):
    """What throughputs are written in for people; each goes down from there as values need it, and programs always get bit/s."""

    BITS = "Gbit/s"
    MEGABYTES = "MB/s"
    MEBIBYTES = "MiB/s"


_RATES_IN: Mapping[RateUnit, Sequence[tuple[str, float]]] = {
    RateUnit.BITS: RATE_UNITS,
    RateUnit.MEGABYTES: (("MB/s", MEGABYTE_S), ("kB/s", 8e3), ("B/s", 8.0)),
    RateUnit.MEBIBYTES: (("MiB/s", MEBIBYTE_S), ("KiB/s", 8.0 * 2**10), ("B/s", 8.0)),
}
_rate_unit: ContextVar[RateUnit] = ContextVar("the unit of throughputs", default=RateUnit.BITS)


@contextmanager
def rates_in(unit: RateUnit) -> Iterator[None]:
    """Write throughputs in a unit and those below it, as far as the context reaches: as `decimal.localcontext`, of a command."""
    before = _rate_unit.set(unit)
    try:
        yield
    finally:
        _rate_unit.reset(before)


def rate_unit() -> RateUnit:
    """Return what throughputs are written in here."""
    return _rate_unit.get()


def rate_units() -> Sequence[tuple[str, float]]:
    """Return the units of throughputs, the largest first, each with what it is in bit/s."""
    return _RATES_IN[rate_unit()]


MESSAGE_RATE_UNITS = (("Gmessage/s", 1e9), ("Mmessage/s", 1e6), ("kmessage/s", 1e3), ("message/s", 1.0))


def _in_its_unit(value: float, digits: int, units: Sequence[tuple[str, float]]) -> Scaled:
    """Return a value in the largest unit that it reaches, else in the last."""
    size = abs(value)
    for unit, scale in units:  # noqa: B007 - the last, where it reaches none
        if size >= scale:
            break
    return Scaled(_significant(value / scale, digits), unit)


WIDEST_NUMBER = 100_000
"""From here on a number in the unit of a smaller one beside it is harder to read than one in its own unit."""
MISREAD = 0.2
"""Of what two numbers differ by: steps of their digits that are finer do not blur it."""


def scale_together(values: Sequence[float], units: Sequence[tuple[str, float]]) -> tuple[Scaled, ...]:
    """Return values in one unit, that of the smallest, with the digits that tell them apart: `32` and `94`, `1,270` and `94`."""
    unit, scale = next((one for one in units if min(map(abs, values)) >= one[1]), units[-1])
    shown = [value / scale for value in values]
    if max(map(abs, shown)) >= WIDEST_NUMBER:
        return tuple(_in_its_unit(value, 3, units) for value in values)
    finest = MISREAD * (max(shown) - min(shown))
    smallest = min(map(abs, shown))
    wanted = [1 - math.floor(math.log10(smallest))] if smallest > 0 else [0]
    wanted += [math.ceil(-math.log10(finest))] if finest > 0 else []
    decimals = min(max(0, *wanted), MOST_DECIMALS)
    return tuple(Scaled(f"{_rounded(one, finest):,.{decimals}f}", unit) for one in shown)


MOST_DECIMALS = 5


def _rounded(value: float, finest: float) -> float:
    """Return a number of four digits and more with three that count, where what stands beside it differs by much more."""
    lost = math.floor(math.log10(abs(value))) - 2 if value else 0
    return round(value, -lost) if lost > 0 and 10**lost <= finest else value


def scale_seconds(seconds: float, digits: int = 3) -> Scaled:
    """Return a time in the unit that suits it."""
    return _in_its_unit(seconds, digits, SECOND_UNITS)


def scale_bit_s(bit_s: float, digits: int = 3) -> Scaled:
    """Return a rate in the unit that suits it."""
    return _in_its_unit(bit_s, digits, rate_units())


def scale_message_s(message_s: float, digits: int = 3) -> Scaled:
    """Return a rate of messages in the unit that suits it."""
    return _in_its_unit(message_s, digits, MESSAGE_RATE_UNITS)


def scale_work(rate: float, digits: int = 3, *, unit: str = "") -> Scaled:
    """Return a rate of work in a program's own unit, which may stand elsewhere."""
    is_plain = 1e-3 <= abs(rate) < 1e6
    return Scaled(_significant(rate, digits) if is_plain else f"{rate:.{digits}g}", unit)


def format_seconds(seconds: float, digits: int = 3) -> str:
    """Write a time with the unit that suits it: `71.2 µs`, `1.20 s`."""
    return str(scale_seconds(seconds, digits))


def format_seconds_between(least: float, most: float) -> str:
    """Write the bounds of a time: `0 to 2 s`; one of them where they are the same."""
    return f"{least:g} to {most:g} s" if least < most else f"{most:g} s"


def format_bit_s(bit_s: float, digits: int = 3) -> str:
    """Write a rate with the unit that suits it: `94.1 Mbit/s`."""
    return str(scale_bit_s(bit_s, digits))


def megabytes_s(bit_s: float, digits: int = 3) -> str:
    """Write a rate in MB/s without its unit, which stands above it."""
    return _significant(bit_s / MEGABYTE_S, digits)


def write_bit_s(bit_s: float) -> str:
    """Write a rate as people write it into a file, with all its digits: `1Gbit/s`, `1.28Gbit/s`."""
    unit, scale = ("Gbit/s", 1e9) if bit_s >= 1e9 else ("Mbit/s", 1e6)
    return f"{bit_s / scale:.12g}{unit}"


def format_message_s(message_s: float, digits: int = 3) -> str:
    """Write a rate of messages: `1.25 Mmessage/s`, `840 message/s`."""
    return str(scale_message_s(message_s, digits))


def format_work(rate: float, digits: int = 3, *, unit: str = "") -> str:
    """Write a rate of work in a program's own unit: `361 GFLOP/s`, `2.77e-05`."""
    return str(scale_work(rate, digits, unit=unit))


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


def listed(items: Sequence[str]) -> str:
    """Return `a, b`; `a, b; c, d` of items that have commas of their own."""
    return ("; " if any(", " in one for one in items) else ", ").join(items)


def enumeration(items: Sequence[str], last: str = "and") -> str:
    """Return `a`, `a and b`, `a, b and c`; of items that have commas of their own `a, b; c, d and e`."""
    if len(items) < 3:
        return f" {last} ".join(items)
    return listed([*items[:-2], f"{items[-2]} {last} {items[-1]}"])


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


Seconds = Annotated[float, BeforeValidator(parse_seconds)]
BitPerSecond = Annotated[float, BeforeValidator(parse_bit_s)]
Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Share = Annotated[float, BeforeValidator(parse_share)]


NUMBER = re.compile(r"(?<![\w.,])(?:(?<![^\s(])-)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)")
"""A number that stands for itself, perhaps with a sign and commas between thousands: no part of a name, nor of an address.

For what other programs told, reasons of failures say; what we say ourselves has its numbers apart (`analysis.findings.Doubt`).
"""


def without_numbers(text: str) -> str:
    """Return what texts have in common that differ in their numbers only."""
    return NUMBER.sub("#", text)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


QUOTED = re.compile(r"(?<!\w)'[^']*'|\"[^\"]*\"|`[^`]*`")
"""What others wrote, inside of what we say."""


def with_ranges(texts: Sequence[str]) -> str:
    """Return texts that differ in their numbers only as one, `in 3 to 12 of 70 calls`.

    Nobody wrote a range: of what is quoted the first stays as it is, and that there are others like it is told.
    """
    first, columns = texts[0], list(zip(*(NUMBER.findall(text) for text in texts), strict=True))
    quoted = [found.span() for found in QUOTED.finditer(first)]
    parts, end, has_others = [], 0, False
    for found, each in zip(NUMBER.finditer(first), columns, strict=True):
        low, high = min(each, key=_value), max(each, key=_value)
        is_quoted = any(begin <= found.start() < close for begin, close in quoted)
        has_others = has_others or (is_quoted and low != high)
        written = found.group() if is_quoted or low == high else f"{low} to {high}"
        parts += [first[end : found.start()], written]
        end = found.end()
    return "".join([*parts, first[end:], " (and others like it)" if has_others else ""])
