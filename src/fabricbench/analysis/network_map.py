"""The map of a network from the cells `pairs` and `pairs-stream`: the matrix, and which nodes, pairs and directions are slow.

Nobody is accused by eye or by one measurement: `statistics.culprits` finds the few causes that explain the slow pairs, and a second
run of the same pairs has to confirm them. What one run alone suspects is called a suspect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import NetworkMap, Slow
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Model, Pattern
from fabricbench.record.lines import Quantity
from fabricbench.record.store import Run
from fabricbench.statistics.culprits import (
    FEWEST_MEMBERS,
    Candidate,
    Culprit,
    confirm_culprits,
    find_culprits,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MATRIX_PATTERNS = (Pattern.PAIRS, Pattern.PAIRS_STREAM)

DEFAULT_MARGIN = 0.05
"""A healthy network's pairs differ by a few per cent for good: cables, places of processes, a switch's ports."""

LEVEL = 0.01
"""Probability that a map names anybody where nothing differs, before the confirmation squares it."""


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
    run has no such cell.
    """
    again = {} if confirmation is None else {_key(values): values for values in _values(confirmation)}
    return tuple(_map(values, margin, again.get(_key(values))) for values in _values(run))


def suspect_hosts(maps: Sequence[NetworkMap]) -> tuple[str, ...]:
    """Return the hosts that any map names, in the order of the hosts."""
    named = {host for one in maps for slow in one.slow for host in slow.hosts}
    order = list(dict.fromkeys(host for one in maps for host in one.hosts))
    return tuple(host for host in order if host in named)


class _Values(Model):
    """The values of one cell on one fabric, as launches measured them: (launch, source rank, destination rank) -> value."""

    fabric: str
    layer: Layer
    pattern: Pattern
    schedule: str
    message_bytes: int
    hosts: tuple[str, ...]
    launches: tuple[str, ...]
    rows: tuple[tuple[int, int, int, float], ...]

    @property
    def metric(self) -> Metric:
        return Metric.ROUND_TRIP_TIME if self.pattern is Pattern.PAIRS else Metric.THROUGHPUT

    def columns(self) -> tuple[Floats, Integers, Integers]:
        """Return values by launch and ordered pair, and the pairs' ends."""
        pairs = sorted({(source, destination) for _, source, destination, _ in self.rows})
        place = {pair: column for column, pair in enumerate(pairs)}
        values = np.full((len(self.launches), len(pairs)), np.nan)
        for launch, source, destination, value in self.rows:
            values[launch, place[source, destination]] = value
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return values, ends[:, 0], ends[:, 1]

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
        slow=_slow(values, margin, again),
        is_judged=members >= FEWEST_MEMBERS,
        is_measured_again=again is not None,
    )


def _slow(values: _Values, margin: float, again: _Values | None) -> tuple[Slow, ...]:
    goodness, source, destination = values.goodness()
    found = find_culprits(goodness, source, destination, margin=margin, level=LEVEL)
    if again is None:
        return tuple(_named(one, values.hosts, is_confirmed=False) for one in found)
    if not found:
        return ()
    suspects = [_moved(one.candidate, values.hosts, again.hosts) for one in found]
    new, new_source, new_destination = again.goodness()
    confirmed = confirm_culprits(
        new, new_source, new_destination, [one for one in suspects if one], margin=margin, level=LEVEL
    )
    return tuple(_named(one, again.hosts, is_confirmed=True) for one in confirmed)


def _moved(candidate: Candidate, hosts: tuple[str, ...], others: tuple[str, ...]) -> Candidate | None:
    """Return the candidate with the ranks that its hosts have in another run; None where they are not in it."""
    named = [hosts[rank] for rank in (candidate.first, candidate.second) if rank >= 0]
    if any(host not in others for host in named):
        return None
    ranks = [others.index(host) for host in named]
    return Candidate(candidate.touch, ranks[0], ranks[1] if len(ranks) > 1 else -1)


def _named(culprit: Culprit, hosts: tuple[str, ...], *, is_confirmed: bool) -> Slow:
    ranks = [rank for rank in (culprit.candidate.first, culprit.candidate.second) if rank >= 0]
    return Slow(
        touch=culprit.candidate.touch,
        hosts=tuple(hosts[rank] for rank in ranks),
        slower=float(-np.expm1(culprit.effect)),
        slower_low=float(-np.expm1(culprit.high)),
        slower_high=float(-np.expm1(culprit.low)),
        is_confirmed=is_confirmed,
    )


def _values(run: Run) -> list[_Values]:
    cells = run.cells().filter(
        pl.col("is_valid"),
        pl.col("status") == "done",
        pl.col("pattern").cast(pl.String).is_in([str(pattern) for pattern in MATRIX_PATTERNS]),
    )
    if cells.is_empty():
        return []
    named = ["launch_id", "cell", "fabric", "layer", "pattern", "variant", "message_bytes"]
    rate = pl.col("bytes").sum() * 8.0e9 / pl.col("time_ns").sum()
    is_rate = pl.col("quantity").first() == Quantity.TRANSFER.value
    values = (
        run.channels()
        .filter(pl.col("time_ns").is_not_null())
        .join(cells.lazy().select(named), on=["launch_id", "cell"])
        .with_columns(pl.col("fabric", "layer", "pattern", "launch_id", "quantity").cast(pl.String))
        .group_by([*named, "source", "destination"])
        .agg(value=pl.when(is_rate).then(rate).otherwise(pl.col("time_ns").median()))
        .filter(pl.col("value") > 0)
        .collect()
    )
    hosts = _hosts(run)
    keys = ["fabric", "layer", "pattern", "variant", "message_bytes"]
    found = []
    for key, rows in sorted(values.partition_by(keys, as_dict=True).items()):
        launches = sorted(rows["launch_id"].unique())
        place = {launch: index for index, launch in enumerate(launches)}
        columns = zip(rows["launch_id"], rows["source"], rows["destination"], rows["value"], strict=True)
        found.append(
            _Values(
                fabric=str(key[0]),
                layer=Layer(str(key[1])),
                pattern=Pattern(str(key[2])),
                schedule="rounds" if "rounds" in str(key[3]) else "alone",
                message_bytes=int(str(key[4])),
                hosts=hosts,
                launches=tuple(launches),
                rows=tuple((place[launch], one, other, value) for launch, one, other, value in columns),
            )
        )
    return found


def _hosts(run: Run) -> tuple[str, ...]:
    """Return the host of each rank; ranks that share a host are told apart by their number."""
    for launch in run.launches:
        if launch.summary.header is not None:
            hosts = [rank.host for rank in launch.summary.header.ranks]
            return tuple(host if hosts.count(host) == 1 else f"{host} (rank {rank})" for rank, host in enumerate(hosts))
    raise UsageError(f"no launch of {run.path} tells its hosts", hint="measure again: `fabricbench resume`")
