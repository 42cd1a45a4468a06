"""What to measure next, from what is open: at most three lines, the most useful first. Pure.

The order: an instrument in doubt spoils whatever else is measured; then replication that the comparison lacks altogether; then the
blocks that settle what is open where users meet it; sizes where the answer changes; applications; launches for "equivalent".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import join, quote
from typing import Protocol

from fabricbench.analysis.findings import Comparison, Replication, Verdict
from fabricbench.analysis.wording import percent, what
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family
from fabricbench.quantity import count, format_bytes
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, POWER

MOST_STEPS = 3
"""More is a list, and nobody begins with a list."""

RUNS_A_SIDE = 3
"""The fewest whose mean has an error: two runs say almost nothing of how far a third would differ."""

MOST_TIMES = 4
"""As many times the blocks that there are: whoever is told to measure ten times as long measures something else."""

SIZES_INSIDE = 3
"""As many sizes as a bracket gets at once: they quarter it."""

TO_USERS = (Layer.MPI, Layer.TCP, Layer.UDP, Layer.IP, Layer.FRAME, Layer.MEMORY)
"""The layers, those that programs of users talk to first."""


class Bracket(Protocol):
    """Two neighbouring measured sizes between which one side overtakes the other."""

    @property
    def layer(self) -> Layer:
        """Where."""
        ...

    @property
    def pattern(self) -> Pattern:
        """Of what."""
        ...

    @property
    def lower_bytes(self) -> int:
        """The largest size at which the one is ahead."""
        ...

    @property
    def upper_bytes(self) -> int:
        """The smallest size at which the other is."""
        ...


def next_steps(
    cells: Sequence[Comparison],
    curves: Sequence[Comparison],
    crossovers: Sequence[Bracket],
    margin: float,
    *,
    run_directory: Path | str,
    blocks: int,
    doubts: Sequence[str] = (),
    has_workload: bool | None = None,
    testbed: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return at most MOST_STEPS lines. `doubts` are what is wrong with the instrument or the host, in words, the gravest first.

    `has_workload` says whether an application or kernel was measured (default: whether `cells` hold one), `testbed` are the
    arguments that name the testbed, where they are known, `blocks` how many the run has.
    """
    directory = quote(str(run_directory))
    measured = any(PATTERNS[one.pattern].family is Family.WORKLOAD for one in cells)
    steps = (
        *_quieter(doubts),
        *_more_runs(cells),
        *(() if doubts else _more_blocks([*cells, *curves], directory, blocks)),
        *_sizes(crossovers),
        *_applications(testbed, is_measured=measured if has_workload is None else has_workload),
        *_equivalence(cells, margin, directory, blocks),
    )
    return tuple(dict.fromkeys(steps))[:MOST_STEPS]


def _quieter(doubts: Sequence[str]) -> Iterable[str]:
    if doubts:
        yield f"measure again on a quieter host, more blocks of the same will not help: {doubts[0]}"


def _more_runs(cells: Sequence[Comparison]) -> Iterable[str]:
    if any(one.replication is Replication.LAUNCHES for one in cells):
        yield (
            f"{RUNS_A_SIDE} runs a side: one run each cannot tell a change from what differs between sessions "
            "(fabricbench compare --before A1 A2 A3 --after B1 B2 B3)"
        )


def _more_blocks(comparisons: Sequence[Comparison], directory: str, blocks: int) -> Iterable[str]:
    """Yield the blocks that would settle half of what is open in the layer nearest to users, and name the most relevant of it."""
    ready = [
        one
        for one in comparisons
        if one.replication is Replication.BLOCKS
        and one.layer is not Layer.MEMORY
        and one.more_blocks_needed is not None
        and one.more_blocks_needed <= MOST_TIMES * blocks
        and not (one.verdict.is_decided or one.verdict is Verdict.EQUIVALENT)
    ]
    if not ready:
        return
    nearest = min(map(_distance, ready))
    of_layer = sorted((one for one in ready if _distance(one) == nearest), key=_needed)
    more = _needed(of_layer[(len(of_layer) - 1) // 2])
    settled = sum(_needed(one) <= more for one in of_layer)
    others = "" if settled == 1 else f" and {count(settled - 1, 'more comparison')}"
    chance = f"{percent(POWER)} chance each, if ratio and scatter stay"
    yield (
        f"{count(more, 'more block')} would settle {what(of_layer[0])}{others} ({chance}): "
        f"fabricbench resume {directory} --blocks {blocks + more}"
    )


def _needed(one: Comparison) -> int:
    return one.more_blocks_needed or 0


def _distance(one: Comparison | Bracket) -> int:
    """Return how far from users a comparison is: applications first, then layer by layer down."""
    return -1 if PATTERNS[one.pattern].family is Family.WORKLOAD else TO_USERS.index(one.layer)


def _sizes(crossovers: Sequence[Bracket]) -> Iterable[str]:
    for one in sorted(crossovers, key=_distance):
        inside = sizes_inside(one.lower_bytes, one.upper_bytes)
        if inside:
            sizes = ", ".join(f'"{format_bytes(size).replace(" ", "")}"' for size in inside)
            yield (
                f"sizes inside the bracket {format_bytes(one.lower_bytes)} to {format_bytes(one.upper_bytes)} "
                f"({one.layer} {one.pattern}), in a campaign file: message_bytes = [{sizes}]"
            )
            return


def sizes_inside(lower_bytes: int, upper_bytes: int) -> list[int]:
    """Return up to SIZES_INSIDE powers of two strictly between two sizes, spread evenly; where there is none, their middle."""
    first, last = max(lower_bytes, 1).bit_length(), (upper_bytes - 1).bit_length() - 1
    powers = [2**exponent for exponent in range(first, last + 1) if lower_bytes < 2**exponent < upper_bytes]
    if not powers:
        # A multiple of 8 where there is one: operations that sum take doubles.
        middle = math.isqrt(lower_bytes * upper_bytes)
        rounded = middle // 8 * 8
        middle = rounded if lower_bytes < rounded else middle
        return [middle] if lower_bytes < middle < upper_bytes else []
    if len(powers) <= SIZES_INSIDE:
        return powers
    steps = [round((index + 1) * (len(powers) + 1) / (SIZES_INSIDE + 1)) - 1 for index in range(SIZES_INSIDE)]
    return [powers[step] for step in steps]


def _applications(testbed: Sequence[str], *, is_measured: bool) -> Iterable[str]:
    if not is_measured:
        where = join(testbed) if testbed else "--testbed WHERE"
        yield f"measure applications, no workload was: fabricbench run npb {where} -o RUNDIR"


def _equivalence(cells: Sequence[Comparison], margin: float, directory: str, blocks: int) -> Iterable[str]:
    """Yield how many blocks "equivalent" needs where intervals lie within the margin already and launches are too few to say so."""
    limit = math.log1p(margin)
    within = [
        one
        for one in cells
        if one.verdict is Verdict.NOT_ENOUGH_DATA
        and one.replication is Replication.BLOCKS
        and one.launches < EQUIVALENT_LAUNCHES
        and one.ratio_low is not None
        and one.ratio_high is not None
        and -limit < math.log(one.ratio_low)
        and math.log(one.ratio_high) < limit
    ]
    if within:
        least = min(one.launches for one in within)
        yield (
            f'"equivalent" cannot be said below {EQUIVALENT_LAUNCHES} blocks (a rare slow mode would be missed), and '
            f"{count(len(within), 'comparison')} wait{'s' if len(within) == 1 else ''} for it: "
            f"fabricbench resume {directory} --blocks {blocks + EQUIVALENT_LAUNCHES - least}"
        )
