"""The self-check: verdicts on data where nothing differs, so that each one that names a faster side is wrong.

Two ways. *Splits*: the launches of one fabric are dealt into two halves many times at random, and each time the halves are compared
as two runs would be. *Twins*: a fabric that the testbed lists twice under two names is compared with itself by block, and
again with the sides of blocks exchanged at random. Splits of the same launches overlap, so their share scatters more than that of
as many independent experiments: it is a check of order, the proof is in the simulations (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.analysing import check_levels
from fabricbench.analysis.comparing import pair
from fabricbench.analysis.measured import Side, read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model
from fabricbench.record.store import Run
from fabricbench.statistics.correction import benjamini_hochberg
from fabricbench.statistics.decision import decision_codes
from fabricbench.statistics.ratios import MINIMUM_LAUNCHES, Ratios, paired_ratios, unpaired_ratios
from fabricbench.testbed.model import Fabric

Floats = NDArray[np.float64]

MOST_TRIALS = 1000


class SelfcheckResult(Model):
    """How often the verdicts on one fabric against itself were wrong.

    `trials` splits (or exchanges) of `cells` cells each; `wrong_trials` is the share with any wrong verdict (should be at most
    1 - confidence), `wrong_verdicts` the share of all verdicts. `largest_ratio` is the geometric mean ratio farthest from 1, as a
    factor above 1, that a trial showed in a cell; `typical_half_width` the median half width of the intervals, a relative
    difference: what this machine can resolve.
    """

    way: Literal["splits", "twins"]
    fabric: str
    twin: str | None
    launches: int
    cells: int
    trials: int
    wrong_trials: float
    wrong_verdicts: float
    equivalent: float
    not_enough_data: float
    largest_ratio: float
    typical_half_width: float


class Selfcheck(Model):
    """The self-check of a run, an entry for each fabric and way."""

    margin: float
    confidence: float
    results: tuple[SelfcheckResult, ...]
    skipped: tuple[str, ...]
    """Fabrics that could not be checked, with the reason."""

    @property
    def wrong_trials(self) -> float:
        """Share of trials with a wrong verdict, over all fabrics and ways."""
        trials = sum(result.trials for result in self.results)
        return sum(result.wrong_trials * result.trials for result in self.results) / max(trials, 1)


def analyse_selfcheck(
    run: Run, *, fabric: str | None = None, margin: float = 0.02, confidence: float = 0.95, seed: int = 1
) -> Selfcheck:
    """Return how often verdicts are wrong where nothing differs; of one `fabric` or of all. UsageError if none can be checked."""
    check_levels(margin, confidence)
    sides = read_sides([run])
    names = [side.name for side in sides]
    if fabric is not None and fabric not in names:
        raise UsageError(f"there is no fabric {fabric} in the run", hint=f"choose one of {', '.join(names)}")
    random = np.random.default_rng(seed)
    results, skipped = [], []
    for side in sides:
        if fabric is not None and side.name != fabric:
            continue
        if len(side.blocks) < 2 * MINIMUM_LAUNCHES:
            skipped.append(
                f"{side.name}: {len(side.blocks)} valid launches, {2 * MINIMUM_LAUNCHES} are needed to split them"
            )
        elif not side.cells:
            skipped.append(f"{side.name}: no network layer was measured")
        else:
            results.append(_splits(side, margin, confidence, random))
    for a, b in combinations(sides, 2):
        if are_twins(a.fabric, b.fabric) and fabric in (None, a.name, b.name):
            results.append(_twins(a, b, margin, confidence, random))
    if not results:
        raise UsageError(f"nothing in {run.path} can be checked: {'; '.join(skipped)}", hint="measure more blocks")
    return Selfcheck(margin=margin, confidence=confidence, results=tuple(results), skipped=tuple(skipped))


def are_twins(a: Fabric, b: Fabric) -> bool:
    """Return whether two entries of a testbed are the same fabric but for the name."""
    neutral = {"name": "twin", "description": ""}
    return a.model_copy(update=neutral) == b.model_copy(update=neutral)


def _splits(side: Side, margin: float, confidence: float, random: np.random.Generator) -> SelfcheckResult:
    table = _table(side)
    launches = table.shape[1]
    half = launches // 2
    if comb(launches, half) <= MOST_TRIALS:
        halves = [np.array(chosen) for chosen in combinations(range(launches), half)]
    else:
        halves = [random.permutation(launches)[:half] for _ in range(MOST_TRIALS)]

    def trial(index: int) -> Ratios:
        rest = np.setdiff1d(np.arange(launches), halves[index])
        return unpaired_ratios(table[:, halves[index]], table[:, rest], confidence)

    return _result("splits", side, None, table.shape[0], trial, len(halves), margin, confidence)


def _twins(a: Side, b: Side, margin: float, confidence: float, random: np.random.Generator) -> SelfcheckResult:
    pairing = pair(a, b)
    keys = [key for key in pairing.keys if key.layer is not Layer.MEMORY]
    table = np.stack([pairing.log_ratios(key) for key in keys])
    blocks = table.shape[1]
    if blocks - 1 <= int(np.log2(MOST_TRIALS)):  # all ways that differ in more than an exchange of the names
        signs = 1 - 2 * ((np.arange(2 ** (blocks - 1))[:, None] >> np.arange(blocks)) & 1)
    else:
        signs = random.choice([-1, 1], size=(MOST_TRIALS, blocks))
        signs[0] = 1

    def trial(index: int) -> Ratios:
        return paired_ratios(table * signs[index], confidence)

    return _result("twins", a, b.name, len(keys), trial, len(signs), margin, confidence)


def _table(side: Side) -> Floats:
    rows = [cell.log_values for key, cell in side.cells.items() if key.layer is not Layer.MEMORY]
    return np.stack(rows or [cell.log_values for cell in side.cells.values()])


def _result(
    way: Literal["splits", "twins"],
    side: Side,
    twin: str | None,
    cells: int,
    trial: Callable[[int], Ratios],
    trials: int,
    margin: float,
    confidence: float,
) -> SelfcheckResult:
    codes = np.zeros((trials, cells), dtype=np.int64)
    largest, widths = 0.0, []
    for index in range(trials):
        ratios = trial(index)
        codes[index] = decision_codes(ratios, benjamini_hochberg(ratios.p_value), margin, confidence)
        largest = max(largest, float(np.nanmax(np.abs(np.log(ratios.ratio)))))
        widths.append(np.nanmedian(np.log(ratios.high / ratios.low)) / 2.0)
    is_wrong = (codes == 1) | (codes == 2)
    return SelfcheckResult(
        way=way,
        fabric=side.name,
        twin=twin,
        launches=len(side.blocks),
        cells=cells,
        trials=trials,
        wrong_trials=float(is_wrong.any(axis=1).mean()),
        wrong_verdicts=float(is_wrong.mean()),
        equivalent=float((codes == 3).mean()),
        not_enough_data=float((codes == 0).mean()),
        largest_ratio=float(np.exp(largest)),
        typical_half_width=float(np.expm1(np.median(widths))),
    )
