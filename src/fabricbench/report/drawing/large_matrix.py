"""The matrix of a network of hundreds of hosts: an image of a pixel for each pair, the slowest pairs, and all of them as a file."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fabricbench.analysis.findings import NetworkMap
from fabricbench.report.drawing.figure import Panel
from fabricbench.report.drawing.heat import LABELS_WIDTH, LEAST_REACH
from fabricbench.report.drawing.raster import raster_spec
from fabricbench.report.words import value_parts

MOST_LISTED = 1000
"""Pairs in its table; all of them are in a file beside it."""
IMAGE_SIZE = 640
"""Pixels of the page."""
PALE = 0.3
"""Of full colour, at most: what no test found slow."""


def large_panel(one: NetworkMap, title: str, margin: float, colours: tuple[str, str]) -> Panel:
    """Return the panel of a large matrix: an image, with a frame around all pairs of whoever is slow."""
    values = _array(one)
    middle = float(np.sort(values[~np.isnan(values)])[np.count_nonzero(~np.isnan(values)) // 2])
    slower = np.log(values / middle) * (1.0 if one.metric.is_lower_better else -1.0)
    is_found = _is_found(one)
    reach = np.where(is_found, LEAST_REACH, LEAST_REACH / PALE)
    most = np.where(is_found, 1.0, PALE)
    heat = np.where(np.abs(slower) <= math.log1p(margin), 0.0, np.clip(slower / reach, -most, most))
    unit = value_parts(one.metric, middle).unit
    spec = raster_spec(heat, one.hosts, colours, list(_frames(one)), f"to (middle: {unit})")
    tags = {"left": one.fabric, "right": one.fabric, "layer": one.layer.value}
    return Panel(title, spec, tags, height=IMAGE_SIZE, widest=IMAGE_SIZE + LABELS_WIDTH)


def _is_found(one: NetworkMap) -> NDArray[np.bool_]:
    """Return which pairs belong to what was found, or to nothing that could be named."""
    found = np.zeros((len(one.hosts), len(one.hosts)), dtype=np.bool_)
    place = {host: index for index, host in enumerate(one.hosts)}
    for slow in one.slow:
        for host in slow.hosts:
            found[place[host]] |= [slow.touches(host, other) for other in one.hosts]
            found[:, place[host]] |= [slow.touches(other, host) for other in one.hosts]
    for pair in one.unexplained:
        found[place[pair.source], place[pair.destination]] = True
        found[place[pair.destination], place[pair.source]] |= one.metric.is_lower_better
    return found


def _frames(one: NetworkMap) -> Iterator[dict[str, str | int]]:
    """Yield a frame for the row and the column of each host that is slow with many, and for each pair that is."""
    place = {host: index for index, host in enumerate(one.hosts)}
    whole = (0, len(one.hosts))

    def frame(rows: tuple[int, int], columns: tuple[int, int], framed: str, found: str) -> dict[str, str | int]:
        ends = {"x": columns[0], "x_end": columns[1], "y": rows[0], "y_end": rows[1]}
        return {**ends, "framed": framed, "found": found}

    def only(host: str) -> tuple[int, int]:
        return place[host], place[host] + 1

    for slow in one.slow:
        framed = "whole" if slow.is_confirmed else "dashed"
        first, last = slow.hosts[0], slow.hosts[-1]
        is_sending = sum(slow.touches(first, other) for other in one.hosts) > 1
        is_receiving = sum(slow.touches(other, first) for other in one.hosts) > 1
        if is_sending:
            yield frame(only(first), whole, framed, slow.words)
        if is_receiving:
            yield frame(whole, only(first), framed, slow.words)
        if not (is_sending or is_receiving):
            yield frame(only(first), only(last), framed, slow.words)
    for pair in one.unexplained:
        yield frame(only(pair.source), only(pair.destination), "dotted", "cannot be named yet")


def slowest_pairs(one: NetworkMap) -> list[tuple[str, str, float]]:
    """Return MOST_LISTED pairs and directions with their values, the slowest first."""
    values = _array(one)
    slowness = np.nan_to_num(values if one.metric.is_lower_better else -values, nan=-np.inf)
    places = np.argsort(-slowness, axis=None, kind="stable")[
        : min(MOST_LISTED, int(np.count_nonzero(~np.isnan(values))))
    ]
    ends = (divmod(int(place), len(one.hosts)) for place in places)
    return [
        (one.hosts[source], one.hosts[destination], float(values[source, destination])) for source, destination in ends
    ]


def _array(one: NetworkMap) -> NDArray[np.float64]:
    """Return the matrix, NaN where there is no value."""
    return np.array(one.matrix, dtype=np.float64)


def matrix_csv(one: NetworkMap) -> str:
    """Return a large matrix as CSV, with as many digits as anybody measures: a line for each host that sends."""
    unit = f"from \\ to ({one.metric.unit})"
    lines = (
        ",".join([host, *("" if value is None else f"{value:.4g}" for value in row)])
        for host, row in zip(one.hosts, one.matrix, strict=True)
    )
    return "\n".join([",".join([unit, *one.hosts]), *lines]) + "\n"
