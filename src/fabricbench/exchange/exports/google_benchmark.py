"""The JSON of Google Benchmark: a repetition for each launch, in which `real_time` is what one sample took.

A time is the launch's value itself, in ns; a rate stands beside the time as `bytes_per_second` or `items_per_second`, a rate of
work by its unit. A launch that counts nowhere is left out: readers pass over `error_occurred` and take the 0 beside it for a time.
(https://github.com/google/benchmark/blob/main/docs/user_guide.md#output-formats)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fabricbench import __version__
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, Result, labels_of, name_of, without
from fabricbench.model import Metric

SUFFIX = ".json"

NO_TIME: dict[str, Any] = {"iterations": 0, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"}


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the document."""
    manifest = export.run.manifest
    context = {
        "date": manifest.created.isoformat(),
        **({} if (note := export.note_of_date) is None else {"date_note": note}),
        "host_name": manifest.testbed.nodes[0].name,
        "executable": "fabricbench",
        "library_version": __version__,
        "json_schema_version": 1,
        "campaign": manifest.campaign_name,
        "testbed": manifest.testbed.name,
        "origins": ", ".join(export.origins),
        **{f"version.{name}": version for name, version in export.versions.items()},
    }
    benchmarks = [
        _benchmark(family, index, results)
        for family, results in enumerate(export.tests.values())
        for index in range(len(results))
    ]
    document = {"context": context, "benchmarks": benchmarks}
    yield ExportedFile(f"launches{SUFFIX}", (json.dumps(document, indent=1) + "\n").encode())


def _benchmark(family: int, index: int, results: list[Result]) -> dict[str, Any]:
    one = results[index]
    labels = {"fabric": one.fabric} | without(labels_of(results), "pattern")
    name = f"{one.pattern}/{name_of(labels, ':')}"
    named = {
        "name": name,
        "family_index": family,
        "per_family_instance_index": 0,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": len(results),
        "repetition_index": index,
        "threads": 1,
        "label": f"launch={one.launch_id} origin={one.origin} path={one.proof}",
    }
    return named | _numbers(one)


def _numbers(result: Result) -> dict[str, Any]:
    """Return the numbers of a result that counts."""
    samples = max(result.samples, 1)
    time = result.value if result.metric.is_time else result.total_time_ns / samples
    rates: dict[Metric, dict[str, Any]] = {
        Metric.THROUGHPUT: {"bytes_per_second": (result.value or 0.0) / 8},
        Metric.MESSAGE_RATE: {"items_per_second": result.value},
        Metric.WORK_RATE: {result.unit: result.value},
    }
    return NO_TIME | {"iterations": samples, "real_time": time} | rates.get(result.metric, {})


EXPORTER = Exporter(
    name="google-benchmark",
    title="tools/compare.py of Google Benchmark, and CI services that read its JSON",
    suffix=SUFFIX,
    files=files,
    cannot_hold=(Fact.SPREAD, Fact.LOSSES, Fact.TIME, Fact.MACHINES),
    remarks=("cpu_time is 0: nobody measured processor time, and readers of the format ask for the field",),
)
