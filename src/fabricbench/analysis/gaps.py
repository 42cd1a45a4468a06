"""Pauses: halves of a pair that were not measured close together, and blocks that were measured in several sessions.

What drifted between two halves would be in their ratio, so they are no pair. What one session, a day say, does to a ratio is in all
of its blocks, so blocks of one session are no repetitions of what differs from session to session. Both are found from the
launches' own times. A run of today keeps halves close (`campaign.order`); one of an earlier version may hold a launch that was
retried after all others, or resumed days later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from fabricbench.analysis.measured import Side
from fabricbench.record.store import StoredLaunch

WIDE_FACTOR = 3.0
"""A gap is wide where it is so many times what is usual in the run for the same measurement..."""

WIDE_SECONDS = 60.0
"""...and longer than this: in less, neighbours and temperature rarely change."""


PAUSE_SECONDS = 3600.0
"""Nothing measured for an hour: when a run goes on, neighbours, temperature, memory, and perhaps the nodes, are others."""

SMALL_SESSION = 0.25
"""Of the blocks of the largest session: one of fewer, a block that was measured again say, does not stand for another day."""

BlockSessions = Mapping[tuple[int, str], int]
"""The session, from 0, of each block of each subject."""


@dataclass(frozen=True)
class Gap:
    """How long nothing was measured between the launches of one group: those of a block of the same `subject` (empty: no kernel).

    Of launches that do not tell when they ended, from start to start.
    `usual_seconds` is the median over the run's groups of that subject.
    """

    block: int
    subject: str
    launch_ids: tuple[str, ...]
    seconds: float
    usual_seconds: float

    @property
    def is_wide(self) -> bool:
        """Whether that is further apart than it should be."""
        return self.seconds > max(WIDE_SECONDS, WIDE_FACTOR * self.usual_seconds)


def find_gaps(launches: Iterable[StoredLaunch]) -> list[Gap]:
    """Return the gap of every group of at least two launches, by block and subject; launches that tell no start are passed over."""
    groups: dict[tuple[int, str], list[StoredLaunch]] = defaultdict(list)
    for launch in launches:
        if _started_seconds(launch) > 0:
            groups[launch.block, launch.subject].append(launch)
    spread: dict[tuple[int, str], float] = {}
    for key, group in groups.items():
        if len(group) > 1:
            ordered = sorted(group, key=_started_seconds)
            waits = (_started_seconds(later) - _ended_seconds(earlier) for earlier, later in pairwise(ordered))
            spread[key] = sum(max(wait, 0.0) for wait in waits)
    by_subject: dict[str, list[float]] = defaultdict(list)
    for (_, subject), seconds in spread.items():
        by_subject[subject].append(seconds)
    # The lower median: of two blocks the closer one says what is usual.
    usual = {subject: median_low(seconds) for subject, seconds in by_subject.items()}
    return [
        Gap(block, subject, tuple(one.launch_id for one in groups[block, subject]), seconds, usual[subject])
        for (block, subject), seconds in sorted(spread.items())
    ]


def mispaired(a: Side, b: Side) -> frozenset[tuple[int, str]]:
    """Return the pairs of two sides whose halves were measured too far apart, as block and subject; none for sides of two runs."""
    if a.run is not b.run:
        return frozenset()
    return frozenset((gap.block, gap.subject) for gap in wide(find_gaps((*a.launches, *b.launches))))


def sessions_of(launches: Iterable[StoredLaunch]) -> BlockSessions:
    """Return in which session each block of a run was measured: sessions lie PAUSE_SECONDS apart or more.

    One of few blocks counts with the one before it. Launches that tell no start are passed over.
    """
    found: dict[tuple[int, str], int] = {}
    session, last_end = 0, None
    for launch in sorted((one for one in launches if _started_seconds(one) > 0), key=_started_seconds):
        session += last_end is not None and _started_seconds(launch) - last_end > PAUSE_SECONDS
        last_end = max(_ended_seconds(launch), last_end or 0.0)
        found.setdefault((launch.block, launch.subject), session)
    blocks = Counter(dict(found).values())
    least = SMALL_SESSION * max(blocks.values(), default=0)
    large = sorted(one for one, number in blocks.items() if number >= least)
    return {key: max(sum(one <= mine for one in large) - 1, 0) for key, mine in found.items()}


def sessions_of_runs(side: Side) -> BlockSessions:
    """Return in which of its several runs each block of a side was measured."""
    run_of = dict(zip(side.blocks, side.run_of, strict=True))
    return {(launch.block, launch.subject): run_of[launch.block] for launch in side.launches}


def wide(gaps: Iterable[Gap]) -> list[Gap]:
    """Return the gaps that are wide."""
    return [gap for gap in gaps if gap.is_wide]


def _started_seconds(launch: StoredLaunch) -> float:
    header = launch.summary.header
    return header.started_unix_ns / 1e9 if header is not None else 0.0


def _ended_seconds(launch: StoredLaunch) -> float:
    footer = launch.summary.footer
    return max(_started_seconds(launch), footer.finished_unix_ns / 1e9 if footer is not None else 0.0)
