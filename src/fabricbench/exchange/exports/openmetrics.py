"""OpenMetrics 1.0, for Prometheus: gauges in base units, of each test on each fabric the median, smallest and largest launch.

Rows have no time stamps and every family is a gauge, so that the text collector of node_exporter takes the file as well
(`fabricbench.prom`, renamed into its folder): it reads the format of before, which has no type `info`. When it was measured is a
gauge of its own. (https://prometheus.io/docs/specs/om/open_metrics_spec/)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from fabricbench import __version__
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, Result, labels_of, values_of
from fabricbench.model import Metric
from fabricbench.printable import one_line

SUFFIX = ".prom"


@dataclass(frozen=True)
class MetricFamily:
    """A family of gauges: its name without prefix, unit (its name's end) and how many of ours are one of them."""

    name: str
    unit: str
    of_ours: float
    summary: str


FAMILIES = {
    Metric.ROUND_TRIP_TIME: MetricFamily("round_trip_time", "seconds", 1e9, "Whole round trip"),
    Metric.OPERATION_TIME: MetricFamily("operation_time", "seconds", 1e9, "One operation"),
    Metric.THROUGHPUT: MetricFamily("throughput", "bits_per_second", 1.0, "Payload over time"),
    Metric.MESSAGE_RATE: MetricFamily("message_rate", "messages_per_second", 1.0, "Messages over time"),
    Metric.WORK_RATE: MetricFamily("work_rate", "", 1.0, "What a program told of itself, in the unit of its label"),
}
STATISTICS: dict[str, Callable[[list[float]], float]] = {"median": median, "minimum": min, "maximum": max}
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the exposition."""
    yield ExportedFile(f"fabricbench{SUFFIX}", ("\n".join([*_lines(export), "# EOF"]) + "\n").encode())


def _lines(export: Export) -> Iterator[str]:
    manifest = export.run.manifest
    told = {"version": __version__, "campaign": manifest.campaign_name, "testbed": manifest.testbed.name}
    yield from _head("fabricbench_run_info", "", "What the numbers are of.")
    yield f"fabricbench_run_info{_labels(told)} 1"
    if not manifest.is_dated_by_import:
        yield from _head("fabricbench_measured_timestamp_seconds", "seconds", "When the run was begun.")
        yield f"fabricbench_measured_timestamp_seconds {manifest.created.timestamp()!r}"
    if manifest.imported is not None:
        yield from _head("fabricbench_imported_timestamp_seconds", "seconds", "When the run was imported.")
        yield f"fabricbench_imported_timestamp_seconds {manifest.imported.timestamp()!r}"
    yield from _head(
        "fabricbench_invalid_launches", "", "Launches of a fabric that count nowhere, and are in no other gauge."
    )
    invalid = Counter(launch.fabric for launch in export.run.launches if not launch.is_valid)
    for fabric in manifest.testbed.fabrics:
        yield f"fabricbench_invalid_launches{_labels({'fabric': fabric.name})} {invalid[fabric.name]}"
    yield from _head("fabricbench_launches", "", "Launches that the other gauges of a test are made of.")
    for results in export.tests.values():
        yield f"fabricbench_launches{_labels(_of_test(results))} {len(results)}"
    for metric, family in FAMILIES.items():
        yield from _family(family, [one for one in export.tests.values() if one[0].metric is metric])


def _family(family: MetricFamily, tests: list[list[Result]]) -> Iterator[str]:
    if not tests:
        return
    name = f"fabricbench_{family.name}" + (f"_{family.unit}" if family.unit else "")
    yield from _head(name, family.unit, f"{family.summary}: of the launches of a test.")
    for results in tests:
        values = values_of(results)
        unit = {} if family.unit else {"unit": results[0].unit}
        for statistic, of in STATISTICS.items():
            labels = _of_test(results) | unit | {"stat": statistic}
            yield f"{name}{_labels(labels)} {of(values) / family.of_ours!r}"


def _head(name: str, unit: str, text: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {text}"


def _of_test(results: list[Result]) -> dict[str, str]:
    one = results[0]
    shown = {"layer": "layer", "door": "door", "pattern": "pattern", "size": "message_bytes", "receive": "receive"}
    shown |= {"ranks": "ranks", "figure": "figure", "path": "path"}
    labels = labels_of(results)
    found = {label: labels[name] for name, label in shown.items() if name in labels}
    return {"fabric": one.fabric, **found, "variant": one.variant, "origin": one.origin.value}


def _labels(labels: Mapping[str, str]) -> str:
    return (
        "{" + ",".join(f'{name}="{one_line(text).translate(ESCAPED)}"' for name, text in labels.items() if text) + "}"
    )


EXPORTER = Exporter(
    name="openmetrics",
    title="Prometheus and its node_exporter: gauges of tests",
    suffix=SUFFIX,
    files=files,
    cannot_hold=(Fact.LAUNCH, Fact.SPREAD, Fact.LOSSES, Fact.CONFIGURATION),
)
