"""The first screen: the rows, the answer that they give, what is in doubt, what to measure next.

How the answer is chosen (docs/dossier.md tells it to readers):

    1. rows are those of `effects`: applications, then the layers that programs talk through; layers below explain
    2. who wins four fifths of the leading rows takes the sentence, in absolute values; where rows speak for both, both are named
    3. "it depends on the size" leads only with a crossing in a layer that users meet, decided on both sides, measured closely
    4. exceptions follow, each decided within the error of all comparisons; breadth is claimed only where nothing is slower
    5. where the instrument is in doubt for what the sentence says, it says "seems"

1 is `effects`, 2 and 5 are `answer`, 3 and 4 are `single_sizes`.

What to measure next comes from what is open: at most three lines, the most useful first. An instrument in doubt spoils whatever
else is measured; then replication that the comparison lacks altogether; then the blocks that settle what is open where users meet
it; sizes where the answer changes; applications; launches for "equivalent".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from math import exp, log
from pathlib import Path
from shlex import join, quote
from typing import Protocol

import numpy as np

from fabricbench.analysis.answer import answer_of
from fabricbench.analysis.change import changed_name, changes_of, is_change
from fabricbench.analysis.comparing import Pairing
from fabricbench.analysis.effects import Compared, ErrorRates, effect_of, error_rates, key_parts
from fabricbench.analysis.findings import Comparison, Effect, Grade, Headline, Replication, Verdict
from fabricbench.analysis.measured import Side
from fabricbench.analysis.rows import Row, choose_rows
from fabricbench.analysis.single_sizes import size_verdict
from fabricbench.analysis.wording import enumeration, percent, what
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family
from fabricbench.quantity import count, format_bytes, with_ranges, without_numbers
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, POWER
from fabricbench.statistics.dependence import pooled_lag_one

MOST_NAMED = 2
"""Rows that a line of evidence names; each row carries its own mark as well."""
DEPENDENCE_LEVEL = 0.01
"""Chance of doubting blocks that do not depend on each other."""


def write_headline(compared: Compared) -> Headline:
    """Return the first screen but for what to do next and how to reproduce it, which only whoever knows the run can add."""
    rows = choose_rows(compared.sides, compared.ladder)
    found = len(compared.cells) + len(compared.curves)
    rates = error_rates(rows, len(compared.pairings), found, compared.confidence)
    effects = _effects(compared, rows, rates)
    rows = rows * (len(effects) // max(len(rows), 1))
    leading = [effect for row, effect in zip(rows, effects, strict=True) if row.is_leading]
    mildest = min((row.tail for row in rows if row.tail is not None), default=None)
    tails = [effect for row, effect in zip(rows, effects, strict=True) if row.tail is not None and row.tail == mildest]
    shown = [*leading, *tails]
    answer = answer_of(compared, leading, rates)
    in_doubt = any(one.grade in (Grade.DOUBTFUL, Grade.VOID) for one in answer.quoted)
    return Headline(
        sentence=answer.sentence,
        exceptions=answer.exceptions,
        detail=answer.detail,
        evidence=_evidence(shown),
        in_doubt=in_doubt,
        effects=tuple(shown),
        more_effects=tuple(one for one in effects if one not in shown),
        changes=changes_of(compared.pairings, compared.cells, lambda one: size_verdict(one, rates, compared.margin))
        if is_change(compared.pairings)
        else None,
    )


def _effects(compared: Compared, rows: Sequence[Row], rates: ErrorRates) -> list[Effect]:
    by_key = {(one.fabric_a, one.fabric_b, key_parts(one)): one for one in compared.cells}
    table = {
        (pairing.a.name, pairing.b.name, row.key): one
        for pairing in compared.pairings
        for row in rows
        if (one := by_key.get((pairing.a.name, pairing.b.name, key_parts(row.key)))) is not None
    }
    unrest, dependence = _unrest(compared.cells), dependence_of(compared)
    groups: list[tuple[Sequence[Side], Sequence[Pairing]]] = [(compared.sides, compared.pairings)]
    if is_change(compared.pairings):
        groups = [((pairing.a, pairing.b), (pairing,)) for pairing in compared.pairings]
    made = [
        _named(effect_of(row, sides, pairings, table, rates, compared), pairings, len(groups))
        for sides, pairings in groups
        for row in rows
    ]
    return [_in_doubt(_weighed(one, unrest), dependence) for one in made]


def _named(effect: Effect, pairings: Sequence[Pairing], groups: int) -> Effect:
    """Return a row with the fabric that was changed, where several were."""
    if groups == 1:
        return effect
    return effect.model_copy(update={"what": f"{changed_name(pairings[0])}: {effect.what}"})


def dependence_of(compared: Compared) -> str:
    """Return in words that the ratios of neighbouring blocks resemble each other; empty where they do not, or nobody can tell.

    Then there are fewer independent blocks than intervals reckon with. Network cells are pooled, the order of blocks is exchanged.
    """
    found = []
    for pairing in compared.pairings:
        keys = [key for key in pairing.keys if key.layer is not Layer.MEMORY]
        if not pairing.is_paired or not keys:
            continue
        lag = pooled_lag_one(np.stack([pairing.log_ratios(key) for key in keys]), np.random.default_rng(1))
        if lag is not None and lag.p_value < DEPENDENCE_LEVEL / len(compared.pairings):
            found.append(lag.autocorrelation)
    if not found:
        return ""
    return (
        f"ratios of neighbouring blocks resemble each other (lag-1 correlation {max(found):.2f}): intervals are too narrow, "
        "measure again, or longer"
    )


def _in_doubt(effect: Effect, text: str) -> Effect:
    if not text or effect.grade in (Grade.OPEN, Grade.VOID):
        return effect
    return effect.model_copy(update={"grade": Grade.DOUBTFUL, "doubts": (*effect.doubts, text)})


def _unrest(cells: Sequence[Comparison]) -> float:
    """Return by how much memory, which no fabric changes, differs between the sides (log); 0 where it does not."""
    control = [one for one in cells if one.layer is Layer.MEMORY and one.verdict.leader]
    return max((abs(log(one.ratio)) for one in control), default=0.0)


def _weighed(effect: Effect, unrest: float) -> Effect:
    """Return an effect in doubt where it is no larger than what the machine itself changed by."""
    if effect.grade is not Grade.CLEAR or all(
        abs(log(pair.times)) > unrest for pair in effect.pairs if pair.verdict.leader
    ):
        return effect
    text = (
        f"the memory control differs by as much ({percent(exp(unrest) - 1)}): the machine changed between the launches"
    )
    return effect.model_copy(update={"grade": Grade.DOUBTFUL, "doubts": (*effect.doubts, text)})


def _evidence(effects: Iterable[Effect]) -> tuple[str, ...]:
    """Return what is in doubt, effects whose doubts differ in figures only together, with their ranges, the impossible first."""
    grouped: dict[tuple[bool, str], list[tuple[str, str]]] = {}
    for one in effects:
        for doubt in one.doubts if one.grade in (Grade.DOUBTFUL, Grade.VOID) else ():
            grouped.setdefault((one.grade is not Grade.VOID, without_numbers(doubt)), []).append((one.what, doubt))
    return tuple(
        f"{'doubtful' if is_doubt else 'void'}: {_few(list(dict.fromkeys(what for what, _ in told)))}: "
        + with_ranges([doubt for _, doubt in told])
        for (is_doubt, _), told in sorted(grouped.items(), key=lambda item: item[0][0])
    )


def _few(names: Sequence[str]) -> str:
    return (
        enumeration(names)
        if len(names) <= MOST_NAMED
        else f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    )


MOST_STEPS = 3
"""More is a list, and nobody begins with a list."""

RUNS_A_SIDE = 3
"""The fewest whose mean has an error: two runs say almost nothing of how far a third would differ."""

MOST_TIMES = 4
"""As many times the blocks that there are: whoever is told to measure ten times as long measures something else."""

SIZES_INSIDE = 3
"""As many sizes as a bracket gets at once: they quarter it."""

TO_USERS = (Layer.MPI, Layer.TCP, Layer.RDMA, Layer.UDP, Layer.IP, Layer.FRAME, Layer.MEMORY)
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
    run_directory: Path | str | None,
    blocks: int,
    doubts: Sequence[str] = (),
    has_workload: bool | None = None,
    testbed: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return at most MOST_STEPS lines. `doubts` are what is wrong with the instrument or the host, in words, the gravest first.

    `has_workload` says whether an application or kernel was measured (default: whether `cells` hold one), `testbed` are the
    arguments that name the testbed, where they are known, `blocks` how many the run has. `run_directory` None: it was imported,
    and cannot be resumed.
    """
    directory = None if run_directory is None else quote(str(run_directory))
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


def _more_blocks(comparisons: Sequence[Comparison], directory: str | None, blocks: int) -> Iterable[str]:
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
        f"{_to_have(blocks + more, directory)}"
    )


def _to_have(blocks: int, directory: str | None) -> str:
    """Return what gives a run so many blocks."""
    if directory is None:
        return f"import {count(blocks, 'launch')} of each fabric"
    return f"fabricbench resume {directory} --blocks {blocks}"


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


def _equivalence(cells: Sequence[Comparison], margin: float, directory: str | None, blocks: int) -> Iterable[str]:
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
            f"{_to_have(blocks + EQUIVALENT_LAUNCHES - least, directory)}"
        )
