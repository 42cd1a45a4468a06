"""The noise profile of a stored run: how the launch values of its cells scatter between launches, and within them."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.campaign.noise import CellKind, NoiseProfile, kind_of, pooled
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.quantity import count
from fabricbench.record.store import CELL_NAMES, Run, StoredLaunch
from fabricbench.record.values import SUMS, counted_batches, launch_value
from fabricbench.statistics.planning import Components, components

Floats = NDArray[np.float64]

BATCHES = 4
"""Parts of equal time that a cell's samples are cut into. The scatter of batches stands for that of any such time, so they should
be long beside the samples' memory; four of a cell of 50 ms are 12 ms each."""

LEAST_BLOCKS = 3
"""From two blocks a deviation is uncertain by a factor of four and more; from three it is at least of the right size."""


class _Batches(NamedTuple):
    """A cell in a launch: the logarithm of each batch's value, NaN where it has none, and how long a batch is."""

    log_values: Floats
    seconds: float


def read_noise(run: Run) -> NoiseProfile:
    """Return the profile of a run, from its valid launches; UsageError where too few blocks or cells tell of it."""
    fabrics = list(dict.fromkeys(launch.fabric for launch in run.launches if launch.is_valid))
    blocks = sorted({launch.block for launch in run.launches if launch.is_valid})
    if len(blocks) < LEAST_BLOCKS:
        raise UsageError(
            f"{run.path} has {count(len(blocks), 'block')} with valid launches, too few to tell how launches scatter",
            hint=f"name a run of {LEAST_BLOCKS} blocks or more, 20 say",
        )
    table = run.cells().filter(pl.col("status") == "done", pl.col("congestor").is_null())
    found: dict[tuple[object, ...], dict[tuple[str, int], _Batches]] = defaultdict(dict)
    for launch in (one for one in run.launches if one.is_valid):
        cells = table.filter(pl.col("launch_id") == launch.launch_id)
        for key, batches in _batches_of(launch, cells).items():
            found[key][launch.fabric, launch.block] = batches
    profile = pooled(
        f"the run {run.path.name}",
        f"{count(len(blocks), 'block')} of campaign {run.manifest.campaign_name} on {run.manifest.testbed.name}",
        (
            (layer, kind, estimate)
            for key, of in found.items()
            for layer, kind in [_kind_of(key)]
            if kind is not None
            for estimate in [_components(of, fabrics, blocks)]
            if np.isfinite(estimate.launch)
        ),
    )
    if not profile.scatter:
        raise UsageError(
            f"{run.path} measured nothing whose launches could be planned with",
            hint="name a run with times or throughputs over a network layer, measured in several blocks",
        )
    return profile


def _kind_of(key: tuple[object, ...]) -> tuple[Layer, CellKind | None]:
    named = dict(zip(CELL_NAMES, key, strict=True))
    layer, size = Layer(str(named["layer"])), int(str(named["message_bytes"]))
    return layer, kind_of(layer, Pattern(str(named["pattern"])), size)


def _batches_of(launch: StoredLaunch, cells: pl.DataFrame) -> dict[tuple[object, ...], _Batches]:
    """Return the batches of each cell of a launch: of a time the median, of a rate all bytes over all time."""
    total = pl.col("time_ns").sum().over("cell")
    middle = pl.col("time_ns").cum_sum().over("cell") - pl.col("time_ns") / 2
    batches = pl.concat(
        samples.filter(pl.col("time_ns") > 0)
        .with_columns(batch=(BATCHES * middle / total).floor(), total=total)
        .group_by("cell", "batch", "total")
        .agg(SUMS)
        .join(cells.select("cell", *CELL_NAMES), on="cell")
        .with_columns(value=launch_value())
        for samples in counted_batches(launch.directory, launch.summary.samples, cells)
    )
    found = {}
    for key, rows in batches.partition_by(CELL_NAMES, as_dict=True).items():
        log_values = np.full(BATCHES, np.nan)
        log_values[rows["batch"].to_numpy().astype(int)] = np.log(rows["value"].to_numpy())
        found[key] = _Batches(log_values, float(rows["total"][0]) * 1e-9 / BATCHES)
    return found


def _components(of: dict[tuple[str, int], _Batches], fabrics: list[str], blocks: list[int]) -> Components:
    """Return the components of a cell over the fabrics that have it, aligned by block."""
    sides = [fabric for fabric in fabrics if any(name == fabric for name, _ in of)]
    missing = np.full(BATCHES, np.nan)
    values = np.array(
        [[of[side, block].log_values if (side, block) in of else missing for block in blocks] for side in sides]
    )
    return components(values, float(np.median([each.seconds for each in of.values()])))
