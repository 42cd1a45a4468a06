"""Reads a number that a program printed, from the match of somebody's regular expression, and refuses what is not all of one.

An expression that takes a part of a number (`2` of `2,940.4`), or a number of another unit than the figure's (`180.0` of `180.0ms`
where seconds are asked for), finds something on every fabric, and what it finds is wrong. So a match is looked at with what stands
around it. What the expression itself names there, the comma of a list say, is taken as meant; digits and units never are.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import MappingProxyType

from fabricbench.units import Unit, parse_unit


@dataclass(frozen=True)
class Printed:
    """A number and what its last printed digit is worth, both in the unit that it was printed in."""

    value: float
    last_digit: float


class NotWholeError(ValueError):
    """Why a match is no number, or not all of one; in words, with the text found."""


BLANKS = " \t\u00a0\u2007\u2009\u202f"
"""Of a line: also those that do not break, and the thin ones between groups of digits."""
GROUPING = ",'_\u2019" + BLANKS
"""What stands between groups of three digits."""

_NUMBER = re.compile(r"[+-]?(?P<whole>\d*)(?:\.(?P<decimals>\d*))?(?:[eEdD](?P<exponent>[+-]?\d+))?")
_GROUPED = re.compile(rf"[+-]?\d{{1,3}}(?P<mark>[{GROUPING}])\d{{3}}(?:(?P=mark)\d{{3}})*(?P<decimals>\.\d*)?")
_HAS_UNIT = re.compile(rf"[+-]?\d[\d.]*(?:[eE][+-]?\d+)?[{BLANKS}]*[A-Za-zµ\u03bc]")

_PART_OF_DURATION = re.compile(r"(\d+(?:\.\d*)?)\s*(min|ms|us|µs|\u03bcs|ns|[dhms])\s*")
_SECONDS_OF_PART = MappingProxyType(
    {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
    | dict.fromkeys(("us", "µs", "\u03bcs"), 1e-6)
    | {"ns": 1e-9}
)

_WORD_BEHIND = re.compile(
    rf"[{BLANKS}]*[\[(]?(?P<word>[A-Za-zµ\u03bc%][A-Za-z0-9µ\u03bc^-]*(?:/[A-Za-z0-9µ\u03bc^-]+)*)"
)
_NUMBER_BEHIND = re.compile(rf"[{BLANKS}]*[=:]?[{BLANKS}]*[+-]?\.?\d")
_ITEM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\.^$()|*+?{}\[]")
"""A letter, an escape or a class of a regular expression, at its beginning."""
_ITEM_AT_END = re.compile(rf"(?P<item>{_ITEM.pattern})(?:[*+?]|\{{\d*,?\d*\}})?[?+]?\Z")
_BROAD = re.compile(r"\\[SDWw]|\[\^.*")
"""Items that name nothing: what is no blank, say."""

MOST_SHOWN = 24
"""Letters of a line around a match, each way."""

MINUTE = "m"
"""Right behind a digit; anywhere else it is a metre, or a name."""

LOCALE = 'environment = { LC_ALL = "C" } has most programs print a point'


def read_number(text: str) -> Printed:
    """Read a number as C and Fortran print it (`1.0D+03`), and digits in groups of three where it cannot be another number."""
    plain = text.strip(BLANKS)
    if grouped := _GROUPED.fullmatch(plain):
        marks = len(re.findall(re.escape(grouped["mark"]), plain))
        if grouped["mark"] == "," and marks == 1 and grouped["decimals"] is None:
            raise NotWholeError(f"{text!r}, which may be thousands or decimals: nothing tells; {LOCALE}")
        plain = plain.replace(grouped["mark"], "")
    found = _NUMBER.fullmatch(plain)
    try:
        value = float(re.sub("[dD]", "E", plain)) if found is not None else math.nan
    except ValueError:
        value = math.nan
    if found is None or not math.isfinite(value):
        raise NotWholeError(f"{text!r}, which is no finite number{_advice(text)}")
    exponent = int(found["exponent"] or 0) - len(found["decimals"] or "")
    return Printed(value, 10.0 ** min(exponent, MOST_EXPONENT))


MOST_EXPONENT = 300


def _advice(text: str) -> str:
    if _HAS_UNIT.match(text):
        return (
            "; a unit is no part of a number: leave it out of the group, or write "
            'unit = "duration", which reads 1.4s and 180.0ms'
        )
    if re.fullmatch(r"[+-]?\d+,\d+", text.strip()):
        return f"; with a decimal comma it is none: {LOCALE}"
    return ""


def read_duration(text: str) -> Printed:
    """Read the seconds of `1m 2.50s`, `26h 6m` or `180.0ms`. A plain number is none: nobody says of what."""
    parts = _PART_OF_DURATION.findall(text)
    if not parts or _PART_OF_DURATION.sub("", text.strip()).strip():
        raise NotWholeError(f"{text!r}, which is no finite number of days, hours, minutes or seconds")
    last, unit = parts[-1]
    decimals = len(last.partition(".")[2])
    seconds = math.fsum(float(number) * _SECONDS_OF_PART[each] for number, each in parts)
    return Printed(seconds, _SECONDS_OF_PART[unit] * 10.0**-decimals)


def check_whole(found: re.Match[str]) -> None:
    """Raise NotWholeError where digits, signs or separators right before or behind the group belong to its number."""
    text, (begin, end) = found.string, found.span(1)
    before, behind = _around_group(found.re.pattern)
    if begin < end and (text[end - 1].isdigit() or text[end - 1] in ".,") and _goes_on(text, end, behind):
        raise NotWholeError(
            f"{found[1]!r} of {_shown(found)!r}, which goes on behind it; {_advice_of_regex(text[end])}"
        )
    if begin < end and (text[begin].isdigit() or text[begin] == ".") and _began(text, begin, before):
        advice = _advice_of_regex(text[begin - 1])
        raise NotWholeError(f"{found[1]!r} of {_shown(found)!r}, which begins before it; {advice}")


def _goes_on(text: str, end: int, behind: str) -> bool:
    """Whether a number goes on at `end`; `behind` is what the expression says of what comes there."""
    rest = text[end : end + MOST_SHOWN]
    mark = rest[:1]
    if mark.isdigit() or re.match(r"[eEdD][+-]?\d", rest):
        return True
    if not mark or mark not in f".{GROUPING}" or _names(behind, mark):
        return False
    if mark in BLANKS:
        has_few_digits = re.search(r"(?<![\d.,])\d{1,3}\Z", text[max(0, end - MOST_SHOWN) : end])
        return bool(has_few_digits and re.match(r".\d{3}(?!\d)", rest))
    return re.match(r".\d", rest) is not None


def _began(text: str, begin: int, before: str) -> bool:
    """Whether a number has begun before `begin`; `before` is what the expression says of what comes there."""
    mark, other = text[max(0, begin - 1) : begin], text[max(0, begin - 2) : max(0, begin - 1)]
    if mark.isdigit():
        return True
    if not mark or mark not in f".+-{GROUPING}" or _names_at_end(before, mark):
        return False
    if mark in "+-":
        return not other.isalnum()
    return other.isdigit() and (mark not in BLANKS or re.match(r"\d{3}(?!\d)", text[begin : begin + 4]) is not None)


def check_unit(found: re.Match[str], unit: Unit | None, written: str) -> None:
    """Raise NotWholeError where what stands right behind the group is a unit, and not the one that is asked for (`written`)."""
    behind = found.string[found.end(1) : found.end(1) + 2 * MOST_SHOWN].partition("\n")[0]
    word = _WORD_BEHIND.match(behind)
    if word is None:
        return
    printed = "min" if behind.startswith(MINUTE) and word["word"] == MINUTE else word["word"]
    other = parse_unit(printed)
    if other is None or not other.is_known or (unit is not None and unit.is_same(other)):
        return
    # `79.1 MBps 18.2`: what comes next has that name; but `3 min 1.1 s` is one time, unless `max` shows what `min` is.
    is_a_label = behind[0] in BLANKS and _NUMBER_BEHIND.match(behind, word.end()) is not None
    if is_a_label and (not other.is_time or re.search(r"\bmax\b", _line(found)) is not None):
        return
    raise NotWholeError(
        f"{found[1]!r} of {_shown(found)!r}, in {word['word']}, and the figure's unit is {written}; a program that changes its "
        'unit is read by unit = "duration" where it prints times (with the unit in the group), or must be told to keep one'
    )


def _advice_of_regex(mark: str) -> str:
    if mark in GROUPING:
        return (
            f"take the whole number into the group, ([\\d.{mark if mark not in BLANKS else ' '}]+) say: digits in groups of three "
            f"are read; or name what ends the number in the expression. {LOCALE}"
        )
    return "take the whole number into the group, as (\\S+) does"


def _line(found: re.Match[str]) -> str:
    begin = found.string.rfind("\n", 0, found.start(1)) + 1
    end = found.string.find("\n", found.end(1))
    return found.string[begin : end if end >= 0 else None]


def _shown(found: re.Match[str]) -> str:
    """Return a match with what stands on its line around it."""
    line_begin = found.string.rfind("\n", 0, found.start(1)) + 1
    begin = max(line_begin, found.start(1) - MOST_SHOWN)
    return found.string[begin : found.end(1) + MOST_SHOWN].partition("\n")[0].strip()


def _around_group(regex: str) -> tuple[str, str]:
    """Return what stands in a regular expression before its one group, and behind it."""
    depth, begin, position = 0, -1, 0
    while position < len(regex):
        item = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]").match(regex, position)
        if item is not None:
            position = item.end()
            continue
        if regex[position] == "(":
            if begin < 0 and (regex[position + 1 : position + 2] != "?" or regex.startswith("(?P<", position)):
                begin, depth = position, 0
            depth += 1
        elif regex[position] == ")":
            depth -= 1
            if begin >= 0 and depth == 0:
                return regex[:begin], regex[position + 1 :]
        position += 1
    return "", ""


def _names(regex: str, mark: str) -> bool:
    """Whether a regular expression begins with something that names this character."""
    item = _ITEM.match(regex)
    return item is not None and _is_of(item.group(), mark)


def _names_at_end(regex: str, mark: str) -> bool:
    item = _ITEM_AT_END.search(regex)
    return item is not None and _is_of(item["item"], mark)


def _is_of(item: str, mark: str) -> bool:
    return _BROAD.fullmatch(item) is None and re.fullmatch(item, mark) is not None
