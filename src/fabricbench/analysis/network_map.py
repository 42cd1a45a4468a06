"""The map of a network from the cells `pairs` and `pairs-stream`: the matrix, and which nodes, pairs and directions are slow.

Nobody is accused by eye or by one measurement: `statistics.culprits` finds groups of nodes and the few causes that explain the slow
pairs, and a second run of the same pairs has to confirm them. What one run alone suspects is called a suspect. Pairs that are far
behind the others in both runs without a cause (`statistics.judgement`) are told as such: "nobody was found slow" is said only where
there are none, with what would have been found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import FailedPair, FoundFrom, NetworkMap, Slow, UnexplainedPair
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Model, Pattern
from fabricbench.pattern_facts import SCHEDULE
from fabricbench.record.lines import Quantity
from fabricbench.record.setup import Setup, stored_setup
from fabricbench.record.store import Run
from fabricbench.record.values import channel_batches
from fabricbench.statistics.candidates import FEWEST_MEMBERS, Culprit
from fabricbench.statistics.culprits import smallest_found
from fabricbench.statistics.judgement import Matrix, judge

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_PAIRS = 4_000_000
"""Of all launches of a run: those of 256 nodes, both ways, in sixty launches."""
ALONE, HALVES = "alone", "halves"
"""The schedule that has each host in one pair: a slow pair may be either host's fault or what lies between them."""

OPERATIONS = "operations_per_sample"
"""The column of a cell that has how many of them its times are of."""

MATRIX_PATTERNS = (Pattern.PAIRS, Pattern.PAIRS_STREAM)

DEFAULT_MARGIN = 0.05
"""A healthy network's pairs differ by a few per cent for good: cables, places of processes, a switch's ports."""

LEVEL = 0.01
"""Probability that a map names anybody where nothing differs, before the confirmation squares it; and of an unexplained pair."""


CONFIRMATION = "confirmation"
"""The folder in a run directory that holds the second run of the same pairs."""


def confirmation_of(run: Run) -> Run | None:
    """Return the run that measured the pairs of this one again; None where nobody did."""
    folder = run.path / CONFIRMATION
    return Run.open(folder) if folder.exists() else None


def network_maps(
    run: Run, *, margin: float = DEFAULT_MARGIN, confirmation: Run | None = None
) -> tuple[NetworkMap, ...]:
    """Return a map for each fabric and each cell of a matrix pattern; with a `confirmation`, only what that confirms is slow.

    `margin` is the smallest relative slowness that matters. What the confirmation did not measure stays suspected. Empty where the
    run has no such cell. Pairs that were measured again one at a time confirm what was slow among pairs at once, too.
    """
    again = {} if confirmation is None else {_key(values): values for values in _values(confirmation)}

    def confirming(values: _Values) -> _Values | None:
        found = again.get(_key(values)) or again.get(_key(replace(values, schedule=ALONE)))
        return found if found is not None and found.hosts == values.hosts else None

    return tuple(_map(values, margin, confirming(values)) for values in _values(run))


@dataclass(frozen=True)
class _Values:
    """The values of one cell on one fabric, as launches measured them: of each its launch, the ranks of its ends, and the value."""

    fabric: str
    layer: Layer
    pattern: Pattern
    schedule: str
    message_bytes: int
    hosts: tuple[str, ...]
    launches: tuple[str, ...]
    rows: tuple[Integers, Integers, Integers, Floats]
    failed: tuple[FailedPair, ...] = ()

    @property
    def metric(self) -> Metric:
        return Metric.ROUND_TRIP_TIME if self.pattern is Pattern.PAIRS else Metric.THROUGHPUT

    def columns(self) -> tuple[Floats, Integers, Integers]:
        """Return values by launch and ordered pair, and the pairs' ends."""
        launch, source, destination, value = self.rows
        pairs, place = np.unique(source * len(self.hosts) + destination, return_inverse=True)
        values = np.full((len(self.launches), pairs.size), np.nan)
        values[launch, place] = value
        return values, pairs // len(self.hosts), pairs % len(self.hosts)

    def goodness(self) -> tuple[Floats, Integers, Integers]:
        """Return logarithms of which more is better."""
        values, source, destination = self.columns()
        return np.log(values) * (-1 if self.metric.is_lower_better else 1), source, destination


def _key(values: _Values) -> tuple[str, str, str, str, int]:
    return values.fabric, values.layer, values.pattern, values.schedule, values.message_bytes


def _map(values: _Values, margin: float, again: _Values | None) -> NetworkMap:
    table, source, destination = values.columns()
    members = len(values.hosts)
    matrix: list[list[float | None]] = [[None] * members for _ in range(members)]
    for one, other, value in zip(source, destination, np.nanmedian(table, axis=0), strict=True):
        matrix[one][other] = float(value)
        if values.pattern is Pattern.PAIRS:
            matrix[other][one] = float(value)
    is_judged = members >= FEWEST_MEMBERS and values.schedule != HALVES
    found = _found(values, margin, again) if is_judged else _Found()
    return NetworkMap(
        fabric=values.fabric,
        layer=values.layer,
        pattern=values.pattern,
        schedule=values.schedule,
        message_bytes=values.message_bytes,
        metric=values.metric,
        launches=len(values.launches),
        hosts=values.hosts,
        matrix=tuple(tuple(row) for row in matrix),
        slow=found.slow,
        is_judged=is_judged,
        is_measured_again=again is not None,
        groups=found.groups,
        crossing=found.crossing,
        apart=found.apart,
        unexplained=found.unexplained,
        failed=values.failed,
        found_from=_found_from(values, margin, found) if is_judged else (),
    )


class _Found(Model):
    """What judging a matrix came to, the fields as those of a NetworkMap."""

    slow: tuple[Slow, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    crossing: float | None = None
    apart: tuple[str, ...] = ()
    unexplained: tuple[UnexplainedPair, ...] = ()


def _found(values: _Values, margin: float, again: _Values | None) -> _Found:
    """Judge one run, or what a second one confirms."""
    hosts = values.hosts
    last = _matrix(again or values, hosts)
    found = judge(_matrix(values, hosts), last if again else None, margin=margin, level=LEVEL)
    groups = tuple(tuple(hosts[member] for member in group) for group in found.groups)
    typical = np.exp(np.nanmedian(last.values, axis=0) * (-1 if values.metric.is_lower_better else 1))
    return _Found(
        slow=tuple(_named(one, hosts, is_confirmed=again is not None) for one in found.culprits),
        groups=() if found.is_unclear else groups,
        crossing=float(-np.expm1(found.crossing)) if groups else None,
        apart=tuple(hosts[member] for member in found.apart),
        unexplained=tuple(
            UnexplainedPair(
                source=hosts[last.source[one.column]],
                destination=hosts[last.destination[one.column]],
                value=float(typical[one.column]),
                slower=float(-np.expm1(one.effect)),
            )
            for one in found.outliers
        ),
    )


def _found_from(values: _Values, margin: float, found: _Found) -> tuple[FoundFrom, ...]:
    """Return from what slowness on a node, a pair or a direction would have been named; nothing where anything is told."""
    if found.slow or found.apart or found.unexplained:
        return ()
    matrix = _matrix(values, values.hosts)
    groups = tuple(tuple(values.hosts.index(host) for host in group) for group in found.groups)
    least = smallest_found(matrix.values, matrix.source, matrix.destination, margin=margin, level=LEVEL, groups=groups)
    return tuple(FoundFrom(touch=touch, slower=float(-np.expm1(effect))) for touch, effect in least.items())


def _matrix(values: _Values, hosts: tuple[str, ...]) -> Matrix:
    """Return what was measured among these hosts, by their ranks: another run may have started them in another order."""
    goodness, source, destination = values.goodness()
    rank = np.array([hosts.index(host) if host in hosts else -1 for host in values.hosts], dtype=np.int64)
    source, destination = rank[source], rank[destination]
    if values.pattern is Pattern.PAIRS:
        source, destination = np.minimum(source, destination), np.maximum(source, destination)
    is_there = (source >= 0) & (destination >= 0)
    return Matrix(goodness[:, is_there], source[is_there], destination[is_there])


def _named(culprit: Culprit, hosts: tuple[str, ...], *, is_confirmed: bool) -> Slow:
    ranks = [rank for rank in (culprit.candidate.first, culprit.candidate.second) if rank >= 0]
    return Slow(
        touch=culprit.candidate.touch,
        hosts=tuple(hosts[rank] for rank in ranks),
        slower=float(-np.expm1(culprit.effect)),
        slower_low=float(-np.expm1(culprit.high)),
        slower_high=float(-np.expm1(culprit.low)),
        is_confirmed=is_confirmed,
        group=tuple(hosts[rank] for rank in culprit.candidate.group),
    )


def _values(run: Run) -> list[_Values]:
    cells = run.cells().filter(
        pl.col("is_valid"),
        pl.col("status") == "done",
        pl.col("pattern").cast(pl.String).is_in([str(pattern) for pattern in MATRIX_PATTERNS]),
    )
    if cells.is_empty():
        return []
    setups = [stored_setup(row) for row in cells.iter_rows(named=True)]
    different = sorted(set(setups), key=lambda one: one.order)
    named = ["launch_id", "cell", "fabric", "layer", "pattern", "message_bytes", OPERATIONS]
    rate = pl.col("bytes").sum() * 8.0e9 / pl.col("time_ns").sum()
    is_rate = pl.col("quantity").first() == Quantity.TRANSFER.value
    cells = cells.select(named).with_columns(
        pl.col("fabric", "layer", "pattern", "launch_id").cast(pl.String), setup=pl.Series(map(different.index, setups))
    )
    frames = [
        batch.filter(pl.col("time_ns").is_not_null())
        .group_by("cell", "source", "destination")
        .agg(value=pl.when(is_rate).then(rate).otherwise(pl.col("time_ns").median()), is_rate=is_rate)
        .filter(pl.col("value") > 0)
        .collect(engine="streaming")
        .join(of_launch, on="cell")
        .with_columns(value=pl.col("value") / pl.when("is_rate").then(1).otherwise(OPERATIONS))
        for launch in run.launches
        for of_launch in [cells.filter(pl.col("launch_id") == launch.launch_id)]
        for batch in channel_batches(launch.directory, of_launch["cell"].to_list())
    ]
    if not frames:
        return []
    pairs = sum(frame.height for frame in frames)
    if pairs > MOST_PAIRS:
        raise UsageError(
            f"the matrices of {run.path} tell of {pairs:,} pairs, and {MOST_PAIRS:,} are the most that are compared at once",
            hint="compare a run of fewer launches or fewer nodes; Polars reads all of it: launches/*/channels.parquet",
        )
    values = pl.concat(frames)
    keys = ["fabric", "layer", "pattern", "setup", "message_bytes"]
    return [
        _values_of(run, key, different[key[3]], rows)
        for key, rows in sorted(values.partition_by(keys, as_dict=True).items())
    ]


def _values_of(run: Run, key: tuple[Any, ...], setup: Setup, rows: pl.DataFrame) -> _Values:
    """Return the values of one cell; the key is its fabric, layer, pattern, the number of its setup, and its size."""
    launches = sorted(rows["launch_id"].unique())
    hosts = _hosts(run, launches)
    last = max(int(str(rows[name].max())) for name in ("source", "destination"))
    if last >= len(hosts):
        raise UsageError(
            f"a matrix of {run.path} tells of rank {last}, and its launches have {len(hosts)} ranks",
            hint="its channels.parquet is of other launches: restore it from a copy, or measure again",
        )
    place = {launch: index for index, launch in enumerate(launches)}
    source, destination = (rows[name].cast(pl.Int64).to_numpy() for name in ("source", "destination"))
    fabric, layer, pattern, _, message_bytes = key
    return _Values(
        fabric=fabric,
        layer=Layer(layer),
        pattern=Pattern(pattern),
        schedule=str(dict(setup.parameters).get("schedule", SCHEDULE.default)),
        message_bytes=message_bytes,
        hosts=hosts,
        launches=tuple(launches),
        rows=(rows["launch_id"].replace_strict(place).to_numpy(), source, destination, rows["value"].to_numpy()),
        failed=_failed(run, set(rows.select("launch_id", "cell").iter_rows()), hosts),
    )


def _failed(run: Run, cells: set[tuple[str, int]], hosts: tuple[str, ...]) -> tuple[FailedPair, ...]:
    """Return the pairs that failed in these cells, a row each, by their ranks."""
    found: dict[tuple[int, int], list[str]] = {}
    for launch in run.launches:
        for pair in launch.summary.failed_pairs:
            if (launch.summary.launch_id, pair.cell) in cells:
                found.setdefault((pair.source, pair.destination), []).append(pair.reason)
    return tuple(
        FailedPair(source=hosts[one], destination=hosts[other], launches=len(reasons), reason=reasons[-1])
        for (one, other), reasons in sorted(found.items())
    )


def _hosts(run: Run, launches: Sequence[str]) -> tuple[str, ...]:
    """Return the host of each rank in these launches, the same in all; ranks that share a host are told apart by their number.

    Others of the run may be on other hosts: those before a node failed.
    """
    for launch in run.launches:
        if launch.launch_id in launches and launch.summary.header is not None:
            hosts = [rank.host for rank in launch.summary.header.ranks]
            return tuple(host if hosts.count(host) == 1 else f"{host} (rank {rank})" for rank, host in enumerate(hosts))
    raise UsageError(f"no launch of {run.path} tells its hosts", hint="measure again: `fabricbench resume`")
