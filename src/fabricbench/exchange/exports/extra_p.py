"""JSON Lines for Extra-P, which fits models of growth: a line for each curve and point, the values of its launches as repetitions.

The parameters of a point are the message size and the number of ranks, those of them that vary; all else that tells a test apart is
its place in the call tree, as a way from the fabric down. Extra-P refuses a file whose curves are not all of the same points, so
that each layer and pattern has a file, and several where fabrics were not measured at the same points.
(https://github.com/extra-p/extrap/blob/master/docs/file-formats.md#json-lines-format)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fabricbench.exchange.exported import (
    Export,
    ExportedFile,
    Exporter,
    Fact,
    Result,
    labels_of,
    name_of,
    values_of,
    without,
)
from fabricbench.patterns import PATTERNS

SUFFIX = ".jsonl"

STEP = "->"
"""Between the places of a call tree."""
PARAMETERS = {"message_bytes": "size", "ranks": "ranks"}
"""What a parameter is called there, and the label that it is here."""

Point = tuple[int, int]
"""The message size and the ranks of a test, in the order of `PARAMETERS`."""
Curve = Mapping[Point, Sequence[Result]]
"""The launches of each point of what is alike but for size and ranks."""


def why_not(result: Result, /) -> str:
    """Return why a point cannot be one: models have logarithms of its parameters."""
    if PATTERNS[result.pattern].has_size and result.message_bytes < 1:
        return "its messages are empty, and parameters of Extra-P are above 0"
    return "" if result.ranks else "it does not tell its ranks, and parameters of Extra-P are above 0"


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield a file for the curves of each layer, pattern and set of points."""
    curves: dict[tuple[str, ...], dict[Point, list[Result]]] = {}
    for results in export.tests.values():
        one = results[0]
        key = _path(results, PARAMETERS.values()), one.metric.value
        curves.setdefault(key, {})[one.message_bytes, one.ranks] = results
    groups: dict[tuple[str, tuple[Point, ...]], list[Curve]] = {}
    for _, curve in sorted(curves.items()):
        one = next(iter(curve.values()))[0]
        groups.setdefault((f"{one.layer}-{one.pattern}", tuple(sorted(curve))), []).append(curve)
    used: Counter[str] = Counter()
    for (name, points), alike in groups.items():
        used[name] += 1
        number = f"-{used[name]}" if used[name] > 1 else ""
        lines = [json.dumps(line) + "\n" for curve in alike for line in _lines(curve, _varied(points))]
        yield ExportedFile(f"{name}{number}{SUFFIX}", "".join(lines).encode())


def _varied(points: Sequence[Point]) -> list[str]:
    """Return the parameters that vary; where none does the size, or the ranks of what has none: a file needs one."""
    values = dict(zip(PARAMETERS, zip(*points, strict=True), strict=True))
    varied = [name for name, found in values.items() if len(set(found)) > 1]
    return varied or [next(name for name, found in values.items() if found[0] > 0)]


def _lines(curve: Curve, varied: Sequence[str]) -> Iterable[dict[str, object]]:
    for point, results in sorted(curve.items()):
        params = {name: value for name, value in zip(PARAMETERS, point, strict=True) if name in varied}
        path = _path(results, [PARAMETERS[name] for name in varied])
        yield {"params": params, "callpath": path, "metric": results[0].metric.value, "value": values_of(results)}


def _path(results: Sequence[Result], varied: Iterable[str]) -> str:
    one = results[0]
    rest = without(labels_of(results), "layer", "pattern", *varied)
    return STEP.join([one.fabric, one.layer.value, one.pattern.value, *([name_of(rest)] if rest else [])])


EXPORTER = Exporter(
    name="extra-p",
    title="Extra-P: models of how a time grows with size and ranks",
    suffix=SUFFIX,
    files=files,
    is_folder=True,
    cannot_hold=(Fact.LAUNCH, Fact.SPREAD, Fact.LOSSES, Fact.TIME, Fact.CONFIGURATION),
    remarks=(
        "the format has no units: times are in ns, rates in bit/s and message/s; Extra-P wants five points or more",
    ),
    why_not=why_not,
)
