"""Pauses: halves of a pair that were not measured close together, and blocks that were measured in several sessions.

What drifted between two halves would be in their ratio, so they are no pair. What one session, a day say, does to a ratio is in all
of its blocks, so blocks of one session are no repetitions of what differs from session to session. Both are found from the
launches' own times. A run of today keeps halves close (`campaign.order`); one of an earlier version may hold a launch that was
retried after all others, or resumed days later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from fabricbench.analysis.measured import Side
from fabricbench.record.store import Run, StoredLaunch

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
    """How long nothing was measured between two or more launches of a block of the same `subject` (empty: no kernel).

    The launches of the other fabrics between them are no gap: in a drawn order some fabrics are neighbours in one block, and have
    all others between them in the next. Of launches that do not tell when they ended, from start to start.
    `usual_seconds` is the median, over the run's blocks of that subject, of the gaps between all of their launches.
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


def find_gaps(launches: Iterable[StoredLaunch], runs: Iterable[Run] = ()) -> list[Gap]:
    """Return the gap of every group of at least two launches, by block and subject; launches that tell no start are passed over.

    `runs` are the runs that they are of, with the launches that the same blocks had on other fabrics.
    """
    groups = _groups(launches)
    wholes = {launch.directory: group for run in runs for group in _groups(run.launches).values() for launch in group}
    seconds: dict[tuple[int, str], float] = {}
    in_all: dict[str, list[float]] = defaultdict(list)
    for (block, subject), group in groups.items():
        whole = wholes.get(group[0].directory, group)
        first, last = _started_seconds(group[0]), _started_seconds(group[-1])
        if len(group) > 1:
            seconds[block, subject] = _waits([one for one in whole if first <= _started_seconds(one) <= last])
            in_all[subject].append(_waits(whole))
    # The lower median: of two blocks the closer one says what is usual.
    usual = {subject: median_low(gaps) for subject, gaps in in_all.items()}
    return [
        Gap(block, subject, tuple(one.launch_id for one in groups[block, subject]), gap, usual[subject])
        for (block, subject), gap in sorted(seconds.items())
    ]


def _groups(launches: Iterable[StoredLaunch]) -> dict[tuple[int, str], list[StoredLaunch]]:
    """Return the launches of each block and subject that tell when they began, in the order in which they did."""
    groups: dict[tuple[int, str], list[StoredLaunch]] = defaultdict(list)
    for launch in sorted(launches, key=_started_seconds):
        if _started_seconds(launch) > 0:
            groups[launch.block, launch.subject].append(launch)
    return groups


def _waits(ordered: Sequence[StoredLaunch]) -> float:
    """Return the seconds in which none of these launches was measured, from the start of the first to that of the last."""
    return sum(max(_started_seconds(later) - _ended_seconds(earlier), 0.0) for earlier, later in pairwise(ordered))


def mispaired(a: Side, b: Side) -> frozenset[tuple[int, str]]:
    """Return the pairs of two sides whose halves were measured too far apart, as block and subject; none for sides of two runs."""
    if a.run is not b.run:
        return frozenset()
    return frozenset((gap.block, gap.subject) for gap in wide(gaps_between(a, b)))


def gaps_between(a: Side, b: Side) -> list[Gap]:
    """Return the gaps between the halves of two sides of the same runs."""
    return find_gaps((*a.launches, *b.launches), a.runs)


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


def sessions_of_side(side: Side) -> BlockSessions:
    """Return in which session each block of a side was measured; of several runs each is a session."""
    if len(side.runs) == 1:
        return sessions_of(side.run.launches)
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
