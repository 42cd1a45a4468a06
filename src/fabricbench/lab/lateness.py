"""How late a switch released frames between two times: reads the windows that the switch has written, and adds them up.

The format is that of native/switch/lateness_file.hpp. Attribution is to spans of CLOCK_REALTIME, which all processes of a machine
share; whoever asks knows what was measured then.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricbench.model import Model

OLD_SUFFIX = ".old"
"""The full file before the one that grows."""

Span = tuple[int, int]
"""Begin and end, ns since 1970."""


class LatenessDuring(Model):
    """How much later than computed frames left a switch during a span, in ns; the mean and quantiles at most an eighth too high."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    maximum: float


@dataclass(frozen=True)
class Window:
    """What left in one window: `frames` are pairs, so many frames that were at most so many ns late."""

    begin_ns: int
    end_ns: int
    maximum_ns: int
    frames: tuple[tuple[int, int], ...]


def read_lateness(path: Path, spans: Mapping[int, Span]) -> dict[int, LatenessDuring]:
    """Return, for each span, how late frames were that left during it.

    One without a frame, or of which windows were dropped because it is too long ago, is left out; so is everything where
    the switch has written nothing. A line that cannot be read (its disk was full) is passed over.
    """
    if not spans:
        return {}
    first, last = min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
    old, lines = _lines(path.with_name(path.name + OLD_SUFFIX)), _lines(path)
    windows = _between(old + lines, first, last)
    # Nothing was dropped where there is no old file; one of which no line can be read does not say how much was.
    kept_from = next((window.begin_ns for window in map(_window, old) if window is not None), last) if old else first
    found = {key: lateness_between(windows, span) for key, span in spans.items() if span[0] >= kept_from}
    return {key: lateness for key, lateness in found.items() if lateness is not None}


def lateness_between(windows: Sequence[Window], span: Span) -> LatenessDuring | None:
    """Return the lateness of the frames in the windows that lie wholly in a span; None without a frame.

    A window at an edge holds frames of what ran before or after, a flood say; it counts only where no window is whole.
    """
    begin, end = span
    touching = [one for one in windows if one.end_ns > begin and one.begin_ns < end]
    whole = [one for one in touching if one.begin_ns >= begin and one.end_ns <= end]
    counted = whole or touching
    frames: Counter[int] = Counter()
    for window in counted:
        for late_ns, number in window.frames:
            frames[late_ns] += number
    count = sum(frames.values())
    if not count:
        return None
    maximum = max(one.maximum_ns for one in counted)
    return LatenessDuring(
        count=count,
        mean=min(sum(late_ns * number for late_ns, number in frames.items()) / count, maximum),
        p50=min(_quantile(frames, count, 50), maximum),
        p90=min(_quantile(frames, count, 90), maximum),
        p99=min(_quantile(frames, count, 99), maximum),
        maximum=maximum,
    )


def _quantile(frames: Counter[int], count: int, percent: int) -> int:
    rank, seen = -(-count * percent // 100), 0
    for late_ns in sorted(frames):
        seen += frames[late_ns]
        if seen >= rank:
            return late_ns
    raise AssertionError


def _lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file; the last may still be written."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []


def _between(lines: Sequence[bytes], begin_ns: int, end_ns: int) -> list[Window]:
    """Return the windows that touch a span, of lines in the order of time: a long file is not read for a short span."""

    def readable_until(at: int) -> int:
        return next((each for each in range(at, 0, -1) if _window(lines[each]) is not None), 0)

    def begin_until(at: int) -> int:
        window = _window(lines[readable_until(at)])
        return window.begin_ns if window is not None else -1

    at = readable_until(bisect_left(range(len(lines)), begin_ns, key=begin_until) - 1)
    windows = []
    for window in map(_window, lines[at:]):
        if window is None:
            continue
        if window.begin_ns >= end_ns:
            break
        windows.append(window)
    return windows


def _window(line: bytes) -> Window | None:
    """Return the window of a line; None where a full disk cut it short."""
    try:
        told = json.loads(line)
        frames = tuple((int(late_ns), int(number)) for late_ns, number in told["frames"])
        return Window(int(told["begin_unix_ns"]), int(told["end_unix_ns"]), int(told["maximum"]), frames)
    except (ValueError, KeyError, TypeError):
        return None
