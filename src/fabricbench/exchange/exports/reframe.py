"""Performance logs as ReFrame 4 writes them: `SYSTEM/PARTITION/TEST.log`, a header, then a line for each launch and size.

The system is the testbed, the partition the fabric, the test the pattern, for workloads that give no time with their metric. A test
has one performance variable, called after what it measures, with no reference: `0` with open thresholds, as ReFrame writes where a
test has none. A launch that counts nowhere is a line `fail` without a value.
(https://reframe-hpc.readthedocs.io/en/stable/manuals.html, `handlers_perflog`)
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from fabricbench import __version__
from fabricbench.exchange.exported import DOOR, Export, ExportedFile, Exporter, Fact, Result, iso_time
from fabricbench.patterns import metric_of
from fabricbench.printable import one_line

SUFFIX = ".log"

BETWEEN = "|"
NULL = "null"
"""What ReFrame writes for a variable without a value."""
OPEN = "None"
"""A threshold that is none."""


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield a log for each fabric and test."""
    system = export.run.manifest.testbed.name
    logs: dict[tuple[str, str], list[Result]] = {}
    for one in export.results:
        logs.setdefault((one.fabric, _test(one)), []).append(one)
    for (fabric, test), results in logs.items():
        rows = [_row(one, system) for one in results]
        lines = [BETWEEN.join(rows[0]), *(BETWEEN.join(map(_field, row.values())) for row in rows)]
        path = "/".join(map(_name, (system, fabric, f"{test}{SUFFIX}")))
        yield ExportedFile(path, ("\n".join(lines) + "\n").encode())


def _test(result: Result) -> str:
    """Return the name of a test: all of its results are of one metric."""
    is_usual = result.metric is metric_of(result.pattern)
    return "_".join(("fabricbench", result.pattern, *(() if is_usual else (result.metric,))))


def _name(text: str) -> str:
    """Return a text as the name of a file or folder, and never as the way out of one: `..` is a name as well."""
    name = quote(text, safe="")
    return name if name.strip(".") else name.replace(".", "%2E")


def _row(result: Result, system: str) -> dict[str, str]:
    """Return a line by its columns."""
    variable, ended = result.metric.value, result.ended_unix_ns
    labels = result.labels
    return {
        "result": "pass" if result.is_good else "fail",
        "job_completion_time": iso_time(ended) if ended else "",
        "descr": result.why_bad,
        "environ": result.program,
        "name": _test(result),
        "num_tasks": str(result.ranks or ""),
        "partition": result.fabric,
        "system": system,
        "version": __version__,
        "launch": result.launch_id,
        "layer": result.layer.value,
        DOOR: result.door,
        "message_bytes": str(result.message_bytes),
        "receive": labels.get("receive", ""),
        "variant": result.variant,
        "origin": result.origin.value,
        "path": result.proof.value,
        f"{variable}_value": NULL if result.value is None or not result.is_good else repr(result.value),
        f"{variable}_unit": result.unit,
        f"{variable}_ref": "0",
        f"{variable}_lower_thres": OPEN,
        f"{variable}_upper_thres": OPEN,
    }


def _field(text: str) -> str:
    """Return a field that ends neither its column nor its line: the format has no way to write that."""
    return one_line(text).replace(BETWEEN, quote(BETWEEN))


EXPORTER = Exporter(
    name="reframe",
    title="what reads ReFrame's performance logs",
    suffix=SUFFIX,
    files=files,
    is_folder=True,
    marks_bad=True,
    cannot_hold=(Fact.SPREAD, Fact.LOSSES, Fact.CONFIGURATION),
)
