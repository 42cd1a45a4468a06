"""What besides the fabric bounds a workload's number: shared processors, hosts, and what an emulated switch did meanwhile. Pure.

In a few words for each, which stand beside the ratio: whoever reads the ratio alone would take it for the fabric's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fabricbench.analysis.expectation import LoadLaunch
from fabricbench.analysis.findings import CellKey, Verdict
from fabricbench.analysis.findings.loads import Agreement, Limit, LoadExpectation
from fabricbench.analysis.instrument import DROPPED, RECEIVED, counted_by_switch, doubt_of
from fabricbench.analysis.measured import Side
from fabricbench.analysis.wording import percent
from fabricbench.quantity import count
from fabricbench.record.lines import RankInfo
from fabricbench.record.workload_cells import COMMUNICATION_SHARE

HARDLY_COMMUNICATES = 0.05
"""Share of the ranks' time in MPI below which no network makes a difference that is worth a word."""
DROPS_WORTH_A_WORD = 1e-5
"""Of all frames: a drop costs TCP a round trip or, at the end of a message, 0.2 s and more."""


def limits_of(
    key: CellKey, sides: Sequence[tuple[Side, Sequence[LoadLaunch]]], verdict: Verdict, expected: LoadExpectation | None
) -> Iterator[Limit]:
    """Yield what bounds a workload on a slower and a faster side, each with its launches, besides the fabric."""
    yield from _processors(sides)
    yield from _hosts(key, [side for side, _ in sides], verdict, expected)
    for side, launches in sides:
        yield from _switch(key, side, launches)


def _processors(sides: Sequence[tuple[Side, Sequence[LoadLaunch]]]) -> Iterator[Limit]:
    """Tell of ranks that have fewer processors than they are: a lab's nodes are one machine, a host of a cluster is its own."""
    told = []
    for side, launches in sides:
        is_one_machine = not side.run.manifest.testbed.launcher.is_cluster
        headers = [one.launch.summary.header for one in launches]
        told += [sharing(one.ranks, is_one_machine=is_one_machine) for one in headers if one is not None]
    found = [one for one in told if one is not None]
    if found:
        ranks, processors = max(found, key=lambda one: one[0] / one[1])
        yield Limit(what=f"{ranks} ranks share {count(processors, 'processor')}")


def sharing(ranks: Sequence[RankInfo], *, is_one_machine: bool) -> tuple[int, int] | None:
    """Return how many ranks share how many processors on the machine that is most crowded; None where each can have its own."""
    machines: dict[str, list[RankInfo]] = {}
    for one in ranks:
        machines.setdefault("" if is_one_machine else one.host, []).append(one)
    crowds = [(len(mine), len({cpu for one in mine for cpu in one.cpus})) for mine in machines.values()]
    crowded = [(number, processors) for number, processors in crowds if 0 < processors < number]
    return max(crowded, key=lambda one: one[0] / one[1], default=None)


def _hosts(key: CellKey, sides: Sequence[Side], verdict: Verdict, expected: LoadExpectation | None) -> Iterator[Limit]:
    share = communication_share(key, sides)
    if share is not None and share < HARDLY_COMMUNICATES:
        yield Limit(what="computes", extent=f"{percent(share)} of its time is communication")
    elif expected is not None and expected.agreement is Agreement.LESS:
        yield Limit(what="bound by hosts or overlapped: gains less than its bytes say")
    elif share is not None and verdict is Verdict.EQUIVALENT:
        yield Limit(
            what="waits for hosts, not for the wire", extent=f"{percent(share)} communication and no difference"
        )


def communication_share(key: CellKey, sides: Sequence[Side]) -> float | None:
    """Return the largest share of communication on any of the sides; None where no launch tells."""
    told = [side.cells[key].values.get(COMMUNICATION_SHARE) for side in sides if key in side.cells]
    means = [float(np.nanmean(one)) for one in told if one is not None and not np.isnan(one).all()]
    return max(means, default=None)


def _switch(key: CellKey, side: Side, launches: Sequence[LoadLaunch]) -> Iterator[Limit]:
    """Tell of frames that the side's emulated switch dropped, and whether it was late."""
    counted = sum(
        (counted_by_switch(one.launch, side.fabric.network, (DROPPED, RECEIVED)) for one in launches), Counter[str]()
    )
    if counted[DROPPED] > DROPS_WORTH_A_WORD * max(counted[RECEIVED], 1):
        yield Limit(what=f"{side.name} dropped frames", extent=f"{counted[DROPPED]:,} of {counted[RECEIVED]:,}")
    doubt = doubt_of(side, side.cells[key]) if key in side.cells else None
    if doubt is not None:
        yield Limit(what=f"the switch of {side.name} held frames", extent=f"up to {percent(doubt.factor)} of the time")
    if doubt is not None and doubt.lost_frames:
        yield Limit(what=f"the switch of {side.name} lost frames itself", extent=f"{doubt.lost_frames:,}")
