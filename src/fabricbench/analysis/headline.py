"""The first screen: the rows, the answer that they give, what is in doubt, what to measure next.

How the answer is chosen (docs/dossier.md tells it to readers):

    1. rows are those of `effects`: applications, then the layers that programs talk through; layers below explain
    2. who wins four fifths of the leading rows takes the sentence, in absolute values; where rows speak for both, both are named;
       a row counts for its fabric only where the other sizes of its curve bear it out, by their number and by their mean
    3. "it depends on the size" leads where as many rows are contested so, or rows speak for both and a curve crosses once
    4. exceptions follow, each decided within the error of all comparisons; breadth is claimed only where nothing is slower
    5. where a row that it quotes is in doubt, it says "seems"

1 is `effects`, 2 and 5 are `answer`, 3 and 4 are `single_sizes`.

What to do next comes from what is open: at most four lines, an action each, the most useful first. An instrument in doubt spoils
whatever else is measured, and its cause is named where it is known; then replication that the comparison lacks altogether; then the
blocks that settle what is open where users meet it; applications; prices; sizes where the answer changes; launches for
"equivalent".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from math import log
from pathlib import Path
from shlex import join, quote
from typing import Protocol

import numpy as np

from fabricbench.analysis.answer import answer_of
from fabricbench.analysis.change import changed_name, changes_of, is_change
from fabricbench.analysis.comparing import subjects_of
from fabricbench.analysis.effects import Compared, ErrorRates, effect_of, error_rates
from fabricbench.analysis.evidence import evidence_of
from fabricbench.analysis.findings import CellKey, Comparison, Doubt, Effect, Grade, Headline, Replication, Verdict
from fabricbench.analysis.grading import UNTESTED_CORRELATION, SharedDoubts
from fabricbench.analysis.measured import Side
from fabricbench.analysis.pairing import Pairing
from fabricbench.analysis.rows import Row, choose_rows
from fabricbench.analysis.single_sizes import size_verdict
from fabricbench.analysis.wording import percent, what
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, format_bytes
from fabricbench.statistics.decision import EQUIVALENT_LAUNCHES, FEWEST_PAIRS, POWER
from fabricbench.statistics.dependence import LagOne, pooled_lag_one

IN_DOUBT = (Grade.VOID, Grade.ALARM, Grade.DOUBTFUL)
"""The grades of what cannot be relied on, the gravest first."""
BY_THE_SCREEN = Doubt.of("by its interval on the first screen, which holds together with the others there")
"""Of a comparison whose interval in the tables, which is of it alone, would give another verdict."""
DEPENDENCE_LEVEL = 0.01
"""Chance of doubting blocks that do not depend on each other."""


Verdicts = dict[tuple[str, str, CellKey], Verdict]
"""Of the rows of the first screen: both fabrics and the cell, and what is said of them."""


def write_headline(compared: Compared) -> tuple[Headline, Verdicts]:
    """Return the first screen but for what to do next and how to reproduce it, which only whoever knows the run can add.

    And the verdicts of its rows: one ratio has one verdict, wherever it stands.
    """
    rows, effects, rates = rows_of(compared)
    leading = [effect for row, effect in zip(rows, effects, strict=True) if row.is_leading]
    mildest = min((row.tail for row in rows if row.tail is not None), default=None)
    tails = [effect for row, effect in zip(rows, effects, strict=True) if row.tail is not None and row.tail == mildest]
    shown = [*leading, *tails]
    of_samples = [effect for row, effect in zip(rows, effects, strict=True) if not row.is_typical]
    answer = answer_of(compared, leading, of_samples, rates)
    in_doubt = any(one.grade in IN_DOUBT for one in answer.quoted)
    verdicts = {
        (pair.fabric_a, pair.fabric_b, row.key): pair.verdict
        for row, effect in zip(rows, effects, strict=True)
        for pair in effect.pairs
        if row.is_typical
    }
    headline = Headline(
        sentence=answer.sentence,
        exceptions=answer.exceptions,
        detail=answer.detail,
        evidence=evidence_of(shown),
        in_doubt=in_doubt,
        effects=tuple(shown),
        more_effects=tuple(one for one in effects if one not in shown),
        changes=changes_of(compared.pairings, compared.cells, lambda one: size_verdict(one, rates, compared))
        if is_change(compared.pairings)
        else None,
    )
    return headline, verdicts


def rows_of(compared: Compared) -> tuple[list[Row], list[Effect], ErrorRates]:
    """Return the rows that are chosen, what each of them shows, and the error that they were given."""
    rows = choose_rows(compared.sides, compared.ladder)
    found = len(compared.cells) + len(compared.curves)
    rates = error_rates(rows, len(compared.pairings), found, compared.confidence)
    effects = _effects(compared, rows, rates)
    return rows * (len(effects) // max(len(rows), 1)), effects, rates


def as_on_screen(cells: Iterable[Comparison], verdicts: Verdicts, pairings: Sequence[Pairing]) -> list[Comparison]:
    """Return the comparisons, those that are rows of the first screen with the verdict that they have there, and a note of it.

    Not where blocks are of several sessions: the screen tells what these show beside its verdict, and a table has no room for that.
    """
    graded = {(one.a.name, one.b.name) for one in pairings if one.has_sessions}
    return [
        one if pair in graded else _with_verdict(one, verdicts.get((*pair, one.key), one.verdict))
        for one in cells
        for pair in [(one.fabric_a, one.fabric_b)]
    ]


def _with_verdict(one: Comparison, verdict: Verdict) -> Comparison:
    """Return a comparison with the verdict of the first screen, which says so where its own interval would give another one."""
    if verdict is one.verdict:
        return one
    return one.model_copy(update={"verdict": verdict, "notes": (BY_THE_SCREEN, *one.notes)})


def _effects(compared: Compared, rows: Sequence[Row], rates: ErrorRates) -> list[Effect]:
    by_key = {(one.fabric_a, one.fabric_b, one.key): one for one in compared.cells}
    table = {
        (pairing.a.name, pairing.b.name, row.key): one
        for pairing in compared.pairings
        for row in rows
        if (one := by_key.get((pairing.a.name, pairing.b.name, row.key))) is not None
    }
    lags = _lags(compared)
    level = DEPENDENCE_LEVEL / max(len(lags), 1)
    shared_doubts = SharedDoubts(
        _control_drift(compared),
        {name: lag.autocorrelation for name, lag in lags.items() if lag is not None and lag.p_value < level},
        _scatter_of_sessions(compared),
        frozenset(name for name, lag in lags.items() if lag is None or lag.most >= UNTESTED_CORRELATION),
    )
    groups: list[tuple[Sequence[Side], Sequence[Pairing]]] = [(compared.sides, compared.pairings)]
    if is_change(compared.pairings):
        groups = [((pairing.a, pairing.b), (pairing,)) for pairing in compared.pairings]
    return [
        _named(effect_of(row, sides, pairings, table, rates, compared, shared_doubts), pairings, len(groups))
        for sides, pairings in groups
        for row in rows
    ]


def _named(effect: Effect, pairings: Sequence[Pairing], groups: int) -> Effect:
    """Return a row with the fabric that was changed, where several were."""
    if groups == 1:
        return effect
    return effect.model_copy(update={"what": f"{changed_name(pairings[0])}: {effect.what}"})


def _lags(compared: Compared) -> dict[tuple[str, str, str], LagOne | None]:
    """Return how much blocks resemble the one before, by both sides and the subject; None where too few tell.

    Where they do there are fewer independent blocks than intervals reckon with. The cells of a subject are pooled, the order of
    blocks is exchanged.
    """
    return {
        (pairing.a.name, pairing.b.name, subject): pooled_lag_one(np.stack([pairing.log_ratios(key) for key in keys]))
        for pairing in compared.pairings
        if pairing.is_paired
        for subject, keys in subjects_of(pairing).items()
    }


def _scatter_of_sessions(compared: Compared) -> dict[tuple[str, str, str], float]:
    """Return the median over a subject's tests of how much the means of sessions scatter, where blocks are of several."""
    found = {}
    for pairing in compared.pairings:
        for subject, keys in subjects_of(pairing).items() if pairing.sessions else ():
            means = [pairing.session_means(key, pairing.log_ratios(key)) for key in keys]
            known = [one[~np.isnan(one)] for one in means]
            scatter = [float(np.std(one, ddof=1)) for one in known if one.size > 1]
            if scatter:
                found[pairing.a.name, pairing.b.name, subject] = float(np.median(scatter))
    return found


def _control_drift(compared: Compared) -> float:
    """Return by how much memory, which no fabric changes, differs between sides of one machine (log); 0 where it does not."""
    alike = {(one.a.name, one.b.name) for one in compared.pairings if one.is_one_machine}
    cells = (one for one in compared.cells if (one.fabric_a, one.fabric_b) in alike)
    control = [one for one in cells if one.layer is Layer.MEMORY and one.verdict.leader]
    return max((abs(log(one.ratio)) for one in control), default=0.0)


MOST_STEPS = 4
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
    left: int = 0,
    may_grow: Callable[[int], bool] = lambda _: True,
    not_quiet: str = "",
    beyond_wire: str = "",
    around_anomaly: str = "",
    has_workload: bool | None = None,
    has_prices: bool = True,
    testbed: Sequence[str] = (),
    runs_to_give: str | None = None,
) -> tuple[str, ...]:
    """Return at most MOST_STEPS lines.

    `not_quiet` is what shows that the machine was not quiet, where rows are open or in doubt; `beyond_wire` is a value that the
    link of the testbed does not allow. `has_workload` says whether an application or kernel was measured (default: whether
    `cells` hold one), `has_prices` whether costs are known, `testbed` are the arguments that name the testbed, where they are
    known, `blocks` how many the run has, measured or planned, `left` how many launches are still to be measured, and `may_grow`
    tells whether it may have so many. `run_directory` None: it was imported, and cannot be resumed. `around_anomaly` says which
    sizes would show more of an anomaly.
    `runs_to_give`: how runs of several configurations are given, where there are such.
    """
    directory = None if run_directory is None else quote(str(run_directory))

    def to_have(blocks: int) -> str:
        if directory is None:
            return f"import {count(blocks, 'launch')} of each fabric"
        if not may_grow(blocks):
            return f"measure anew, with {count(blocks, 'block')}: this run takes no more"
        return f"fabricbench resume {directory} --blocks {blocks}"

    measured = any(PATTERNS[one.pattern].family is Family.WORKLOAD for one in cells)
    steps = (
        *_left(directory, left),
        *_against(not_quiet, beyond_wire),
        *_more_runs(cells, runs_to_give or RUNS_OF_A_CHANGE),
        *(() if runs_to_give else _least_blocks(cells, blocks, to_have)),
        *(() if runs_to_give else _more_blocks([*cells, *curves], blocks, to_have)),
        *_applications(testbed, is_measured=measured if has_workload is None else has_workload),
        *_prices(directory, has_prices=has_prices),
        *filter(None, (around_anomaly,)),
        *_sizes(crossovers),
        *(() if runs_to_give else _equivalence(cells, margin, blocks, to_have)),
    )
    return tuple(dict.fromkeys(steps))[:MOST_STEPS]


def _left(directory: str | None, left: int) -> Iterable[str]:
    if left and directory is not None:
        yield f"measure the {count(left, 'launch')} that {'is' if left == 1 else 'are'} left: fabricbench resume {directory}"


def _against(not_quiet: str, beyond_wire: str) -> Iterable[str]:
    if beyond_wire:
        yield (
            "correct `line_rate` in the testbed, or measure more than a burst: the link is not what the testbed says, a "
            f"token-bucket shaper (tc tbf, a cloud's virtual machine)? {beyond_wire}"
        )
    elif not_quiet:
        yield f"measure again while the machine is quiet: {not_quiet}"


def _prices(directory: str | None, *, has_prices: bool) -> Iterable[str]:
    if not has_prices and directory is not None:
        yield f"give prices to decide: fabricbench report {directory} --decision PRICES.toml (docs/decision.md)"


RUNS_OF_A_CHANGE = "--before A1 A2 A3 --after B1 B2 B3"
RUNS_OF_EACH = "A1 A2 A3 B1 B2 B3 ..."


def _more_runs(cells: Sequence[Comparison], runs_to_give: str) -> Iterable[str]:
    if any(_has_few_runs(one) for one in cells):
        yield (
            f"{RUNS_A_SIDE} runs a side: fewer cannot tell a change from what differs between sessions "
            f"(fabricbench compare {runs_to_give})"
        )


def _has_few_runs(one: Comparison) -> bool:
    return one.replication is Replication.LAUNCHES or (
        one.replication is Replication.RUNS and one.launches < RUNS_A_SIDE
    )


ToHave = Callable[[int], str]
"""Says what gives a run so many blocks."""


def _least_blocks(cells: Sequence[Comparison], blocks: int, to_have: ToHave) -> Iterable[str]:
    """Yield how many blocks any statement takes, where so few were measured that none can be made of anything."""
    more = FEWEST_PAIRS - max((one.launches for one in cells), default=0)
    if cells and more > 0 and all(one.replication is Replication.BLOCKS and one.p_value is None for one in cells):
        yield (
            f"{count(more, 'more block')}, for nothing can be said of fewer than {FEWEST_PAIRS} whole pairs: "
            f"{to_have(blocks + more)}"
        )


def _more_blocks(comparisons: Sequence[Comparison], blocks: int, to_have: ToHave) -> Iterable[str]:
    """Yield the blocks that would settle half of what is open in the layer nearest to users, and name the most relevant of it.

    Half of all that is open there, whatever it needs: those that seem to need little seem so by luck. A layer of which half would
    take far longer than the run did is passed over.
    """
    layers: dict[int, list[Comparison]] = {}
    for one in comparisons:
        is_open = not (one.verdict.is_decided or one.verdict is Verdict.EQUIVALENT)
        if one.replication is Replication.BLOCKS and one.layer is not Layer.MEMORY and is_open:
            layers.setdefault(_distance(one), []).append(one)
    for _, of_layer in sorted(layers.items()):
        of_layer.sort(key=_needed)
        more = _needed(of_layer[(len(of_layer) - 1) // 2])
        if more <= MOST_TIMES * blocks:
            settled = sum(_needed(one) <= more for one in of_layer)
            others = "" if settled == 1 else f" and {count(settled - 1, 'more comparison')}"
            yield (
                f"{count(int(more), 'more block')} would settle {what(of_layer[0])}{others} ({percent(POWER)} chance each): "
                f"{to_have(blocks + int(more))}"
            )
            return


def _needed(one: Comparison) -> float:
    return math.inf if one.more_blocks_needed is None else one.more_blocks_needed


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


def _equivalence(cells: Sequence[Comparison], margin: float, blocks: int, to_have: ToHave) -> Iterable[str]:
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
            f"{to_have(blocks + EQUIVALENT_LAUNCHES - least)}"
        )
