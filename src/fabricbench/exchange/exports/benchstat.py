"""The text of Go's benchmarks, which benchstat compares: configuration lines, units, then a line for each launch and test.

`benchstat -col fabric FILE` sets the fabrics side by side. `origin` and `path` are configuration too, so that benchstat never puts
measured and imported numbers, or proven and unproven ones, into one table. It takes a name's end in `-4` for GOMAXPROCS, so a name
never ends so; intervals are its own, over launches, and need six of them.
(https://pkg.go.dev/golang.org/x/perf/benchfmt, https://go.dev/design/14313-benchmark-format)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from fabricbench import __version__
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, Result, name_of, without
from fabricbench.model import Metric
from fabricbench.printable import one_line

SUFFIX = ".txt"

NS_IN_A_SECOND = 1e9
UNITS = {
    Metric.ROUND_TRIP_TIME: "rtt-sec",
    Metric.OPERATION_TIME: "op-sec",
    Metric.THROUGHPUT: "bit/s",
    Metric.MESSAGE_RATE: "message/s",
}
LOOKS_LIKE_PROCESSORS = re.compile(r"-(?=\d+$)")


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield the text."""
    yield ExportedFile(f"launches{SUFFIX}", ("\n".join(_lines(export)) + "\n").encode())


def _lines(export: Export) -> Iterator[str]:
    manifest = export.run.manifest
    yield f"fabricbench: {__version__}"
    yield f"campaign: {one_line(manifest.campaign_name)}"
    yield f"testbed: {one_line(manifest.testbed.name)}"
    for unit, metric in sorted({_unit(one): one.metric for one in export.results}.items()):
        yield f"Unit {unit} better={'lower' if metric.is_lower_better else 'higher'}"
    head, launch = None, None
    for one in export.results:
        configuration = (f"fabric: {one.fabric}", f"origin: {one.origin}", f"path: {one.proof}")
        if configuration != head:
            yield from ("", *configuration)
            head = configuration
        if one.launch_id != launch:
            yield f"# launch {one_line(one.launch_id)}, block {one.block}"
            launch = one.launch_id
        if one.value is not None:
            value = one.value / NS_IN_A_SECOND if one.metric.is_time else one.value
            yield f"{_name(one)} {max(one.samples, 1)} {value!r} {_unit(one)}"


def _unit(result: Result) -> str:
    """Return the unit: of a rate of work that of its program, without the blanks that would end it."""
    return UNITS.get(result.metric) or quote(result.unit, safe="/")


def _name(result: Result) -> str:
    pattern = "".join(part.capitalize() for part in result.pattern.value.split("-"))
    name = f"Benchmark{pattern}/{name_of(without(result.labels, 'pattern', 'origin', 'path'))}"
    return LOOKS_LIKE_PROCESSORS.sub("%2D", name)


EXPORTER = Exporter(
    name="benchstat",
    title="benchstat (Go): comparisons of launches in a terminal",
    suffix=SUFFIX,
    files=files,
    cannot_hold=(Fact.SPREAD, Fact.LOSSES, Fact.TIME, Fact.CONFIGURATION),
    remarks=("the launch of each value is a comment, which benchstat passes over: -col fabric compares fabrics",),
)
