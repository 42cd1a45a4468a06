"""Bencher's metric format (BMF): of each test on each fabric the median of its launches, with the smallest and the largest.

(https://bencher.dev/docs/reference/bencher-metric-format/)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from statistics import median

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

SUFFIX = ".json"

LONGEST_NAME = 1024
"""Of a benchmark, by its documentation."""


def why_not(result: Result, /) -> str:
    """Return why a test cannot be named."""
    return "" if len(_name([result])) <= LONGEST_NAME else f"its name has more than {LONGEST_NAME} letters"


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the document."""
    document: dict[str, dict[str, dict[str, float]]] = {}
    for results in export.tests.values():
        values = values_of(results)
        measure = results[0].metric.value.replace("_", "-")
        metric = {"value": median(values), "lower_value": min(values), "upper_value": max(values)}
        document.setdefault(_name(results), {})[measure] = metric
    yield ExportedFile(f"launches{SUFFIX}", (json.dumps(document, indent=1) + "\n").encode())


def _name(results: list[Result]) -> str:
    one = results[0]
    return f"{one.pattern}/{name_of({'fabric': one.fabric} | without(labels_of(results), 'pattern'))}"


EXPORTER = Exporter(
    name="bencher",
    title="Bencher: continuous benchmarking with thresholds (`bencher run --adapter json --file`)",
    suffix=SUFFIX,
    files=files,
    cannot_hold=(Fact.LAUNCH, Fact.SPREAD, Fact.LOSSES, Fact.TIME, Fact.CONFIGURATION),
    remarks=(
        "value is the median of the launches, lower_value and upper_value are the smallest and the largest of them: no interval",
        "the format has no units: times are in ns, rates in bit/s and message/s",
    ),
    why_not=why_not,
)
