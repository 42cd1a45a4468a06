"""Units of figures that programs print: what they are units of, how large they are, which way is better. Pure.

One grammar for all of them: words with `/` or ` per ` between them, `s`, `GFLOP/s`, `ms/step`, `MB/s/node`. A word is of time, of
data, of counted work (with a prefix, as in `Mflop`) or, where no table has it, the name of a thing (`step`, `job`). A few words are
rates by themselves: `GFLOPS`, `Mbps`, `Hz`. What people write as the `unit` of a figure and what a program prints behind a number
are read by the same grammar, so that one can be held against the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from fabricbench.quantity import SECONDS_OF

Direction = Literal["lower", "higher"]


class Dimension(StrEnum):
    """What a word of a unit counts."""

    TIME = "time"
    DATA = "data"
    WORK = "operations"
    MESSAGES = "messages"
    SHARE = "a share"
    THING = "things"
    """Whatever a program counts: steps, jobs, atoms."""


@dataclass(frozen=True)
class Word:
    """A word of a unit: what it counts, and how much of that: seconds, bits, operations."""

    dimension: Dimension
    scale: float = 1.0
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Unit:
    """A unit as it was written, and its words: what is counted, for each of what."""

    text: str
    counted: Word
    per: tuple[Word, ...] = ()

    @property
    def is_time(self) -> bool:
        """Whether it is a time and nothing else."""
        return self.counted.dimension is Dimension.TIME and not self.per

    @property
    def is_time_per_work(self) -> bool:
        """Whether it is a time for each of something: `s/step`."""
        return bool(self.per) and self.direction == "lower"

    @property
    def seconds(self) -> float:
        """What one of it is in seconds, or in seconds for each of something; 1 of what is no time."""
        return self.counted.scale if self.counted.dimension is Dimension.TIME and self.direction == "lower" else 1.0

    @property
    def is_known(self) -> bool:
        """Whether a table has it, so that it is no word of a sentence."""
        words = (self.counted, *self.per)
        return words[0].dimension is not Dimension.THING or any(word.dimension is Dimension.TIME for word in self.per)

    @property
    def direction(self) -> Direction | None:
        """Which way is better: less time for something, more of something in a time; None where the unit does not tell.

        Of two times one may be simulated: `ns/day` is a rate, `h/ns` its inverse, `s/s` may be either.
        """
        times = [word for word in self.per if word.dimension is Dimension.TIME]
        if self.counted.dimension is not Dimension.TIME:
            return "higher" if times else None
        if not times:
            return "lower"
        if len(times) > 1:
            return None
        counted, per = self.counted.scale, times[0].scale
        if counted <= LARGEST_SIMULATED and per >= LEAST_WAITED:
            return "higher"
        return "lower" if counted >= LEAST_WAITED and per <= LARGEST_SIMULATED else None

    @property
    def is_of_network(self) -> bool:
        """Whether it is what tests of networks are told in: times below a millisecond, rates of data or of messages."""
        if self.is_time:
            return self.counted.scale < SHORTEST_OF_WORK
        in_a_time = any(word.dimension is Dimension.TIME for word in self.per)
        return in_a_time and self.counted.dimension in (Dimension.DATA, Dimension.MESSAGES)

    def is_same(self, other: Unit) -> bool:
        """Tell whether a number means the same in both; two things that no table has may be one by two names."""
        mine, theirs = ((one.counted, *sorted(one.per, key=_in_order)) for one in (self, other))
        return len(mine) == len(theirs) and all(
            one.dimension is two.dimension and math.isclose(one.scale, two.scale)
            for one, two in zip(mine, theirs, strict=True)
        )


LARGEST_SIMULATED, LEAST_WAITED = 1e-6, 60.0
"""Seconds. Of a time over a time: programs simulate microseconds and less, and people count minutes and more while they wait."""

SHORTEST_OF_WORK = 1e-3
"""Seconds of the unit in which work is told: nobody tells a whole run in microseconds."""

_TIMES: Mapping[str, float] = MappingProxyType(
    {
        **SECONDS_OF,
        **dict.fromkeys(("sec", "secs", "second", "seconds"), 1.0),
        **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), 1e-3),
        **dict.fromkeys(("usec", "usecs", "µsec", "\u03bcsec", "microsecond", "microseconds"), 1e-6),
        **dict.fromkeys(("nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
        **dict.fromkeys(("ps", "picosecond", "picoseconds"), 1e-12),
        **dict.fromkeys(("fs", "femtosecond", "femtoseconds"), 1e-15),
        **dict.fromkeys(("mins", "minute", "minutes"), 60.0),
        **dict.fromkeys(("hr", "hrs", "hour", "hours"), 3600.0),
        **dict.fromkeys(("d", "day", "days"), 86400.0),
    }
)
"""Words for times, in seconds; capital letters are others' (`S` is siemens), but at the beginning of a long word."""

_DECIMAL = MappingProxyType({"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18})
_BINARY = MappingProxyType({"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40})
_PREFIX = "(?P<prefix>[KMGT]i|[kKMGTPE]?)"

_DATA = re.compile(rf"{_PREFIX}(?P<what>B|[Bb]ytes?|[Bb]its?)")
_COUNTED = re.compile(rf"{_PREFIX}(?P<what>(?i:flops?|flop|ops?|up|updates?|edges?|msgs?|messages?|pkts?|packets?))")
_RATE = re.compile(rf"{_PREFIX}(?P<what>bps|Bps|(?i:flops|ips|ups|lups|flups|teps|iops)|Hz|fps)")
"""Words that are a number of something in a second."""
_OF_MESSAGES = ("msg", "message", "pkt", "packet")


def _in_order(word: Word) -> tuple[str, float]:
    return word.dimension, word.scale


_WORD = re.compile(r"[A-Za-zµ\u03bc%1][A-Za-zµ\u03bc0-9^_.-]*")
_BETWEEN = re.compile(r"\s*/\s*|\s+per\s+")

MOST_OF_A_UNIT = 40
"""Letters: what is longer is a sentence."""


def parse_unit(text: str) -> Unit | None:
    """Return the unit that a text is; None where it is no words with `/` between them."""
    if len(text) > MOST_OF_A_UNIT:
        return None
    words = _BETWEEN.split(text.strip())
    if not all(_WORD.fullmatch(word) for word in words):
        return None
    if len(words) == 1 and (rate := _rate_of(words[0])) is not None:
        return Unit(text.strip(), rate, (Word(Dimension.TIME),))
    first, *others = (replace(_word_of(word), text=word) for word in words)
    return Unit(text.strip(), first, tuple(others))


def _word_of(text: str) -> Word:
    plain = text if len(text) <= MOST_CASED else text.lower()
    if plain in _TIMES:
        return Word(Dimension.TIME, _TIMES[plain])
    if text == "%":
        return Word(Dimension.SHARE)
    if data := _DATA.fullmatch(text):
        return Word(Dimension.DATA, _prefix(data) * (1.0 if "bit" in data["what"].lower() else 8.0))
    if counted := _COUNTED.fullmatch(text):
        is_message = counted["what"].lower().startswith(_OF_MESSAGES)
        return Word(Dimension.MESSAGES if is_message else Dimension.WORK, _prefix(counted))
    return Word(Dimension.THING)


MOST_CASED = 3
"""Letters of a word whose capitals tell it from another one: `Ms` and `ms`."""


def _rate_of(text: str) -> Word | None:
    found = _RATE.fullmatch(text)
    if found is None or text == "ups":
        return None
    if found["what"] in ("bps", "Bps"):
        return Word(Dimension.DATA, _prefix(found) * (1.0 if found["what"] == "bps" else 8.0))
    is_counted = found["what"] not in ("Hz", "fps")
    return Word(Dimension.WORK if is_counted else Dimension.THING, _prefix(found))


def _prefix(found: re.Match[str]) -> float:
    return {**_DECIMAL, **_BINARY}[found["prefix"]]


def seconds_in(unit: str) -> float:
    """Return what one of a time's unit is in seconds, `ms` and `ms/step` alike; 1 of what is no time."""
    found = parse_unit(unit)
    return 1.0 if found is None else found.seconds
