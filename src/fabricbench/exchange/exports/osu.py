"""Text in the layout of OSU Micro-Benchmarks, a file for each launch: what ReFrame, Ramble and many scripts read.

What was imported from OSU goes out as it came in, under OSU's own head and version, with the digits that it had: importing it
again gives the same. Nothing else may claim to be OSU's: its head says fabricbench, and that the layout alone is theirs, so that no
importer takes it for OSU's. Latencies are half of the mean round trip as readers of the layout expect; an operation's time is the
slowest rank's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from fabricbench.exchange import osu as importer
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, Result, name_of, without
from fabricbench.model import Metric
from fabricbench.printable import one_line
from fabricbench.record.import_notes import DATATYPE
from fabricbench.record.provenance import BY, Origin

SUFFIX = ".txt"

TITLES = {pattern: title for title, (pattern, _, _) in importer.TESTS.items()}
SCALES = {pattern: scale for pattern, _, scale in importer.TESTS.values()}
DIGITS = 4
"""Decimals of our own results, in us or MB/s: a tenth of a nanosecond."""
PROGRAM = f"{importer.TITLE} "


def why_not(result: Result, /) -> str:
    """Return why a result has no table in the layout."""
    if result.pattern not in TITLES:
        return f"the layout has no table for {result.pattern}"
    if _is_theirs(result) and len(_version(result).split()) != 1:
        return "its launch is of several versions of OSU"
    return ""


def files(export: Export) -> Iterable[ExportedFile]:
    """Yield a text for each launch."""
    launches: dict[str, dict[object, list[Result]]] = {}
    for one in export.results:
        launches.setdefault(one.launch_id, {}).setdefault(_table_key(one), []).append(one)
    for launch, tables in launches.items():
        text = "\n".join("\n".join(_table(results)) + "\n" for results in tables.values())
        yield ExportedFile(f"{launch}{SUFFIX}", text.encode())


def _is_theirs(result: Result) -> bool:
    return result.origin is Origin.IMPORTED and dict(result.setup.parameters).get(BY) == importer.NAME


def _version(result: Result) -> str:
    """Return the version of OSU that measured it, as the launch's record has it."""
    return result.program.removeprefix(PROGRAM)


def _table_key(result: Result) -> tuple[object, ...]:
    return result.layer, result.pattern, result.receive, result.setup


def _table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of one table, ascending in size."""
    one = results[0]
    yield from _their_head(one) if _is_theirs(one) else _our_head(one)
    is_verified = not _is_theirs(one) and all(each.is_verified for each in results)
    column = "Avg Latency(us)" if one.metric.is_time else "Bandwidth (MB/s)"
    has_size = any(each.message_bytes for each in results)
    head = f"# Size{column:>22}" if has_size else f"# {column}"
    yield head + (f"{'Validation':>18}" if is_verified else "")
    for each in sorted(results, key=lambda one: one.message_bytes):
        number = f"{_number(each):18.{_digits(each)}f}"
        yield (f"{each.message_bytes:<10d}" if has_size else "") + number + (f"{'Pass':>18}" if is_verified else "")


def _their_head(result: Result) -> Iterator[str]:
    yield f"# OSU MPI {TITLES[result.pattern]} Test v{one_line(_version(result))}"
    datatype = dict(result.setup.parameters).get(DATATYPE)
    if datatype:
        yield f"# Datatype: {one_line(str(datatype))}."


def _our_head(result: Result) -> Iterator[str]:
    yield f"# fabricbench {result.layer} {TITLES[result.pattern]} (OSU layout)"
    named = f"{result.origin} on {result.fabric} by {result.program}, path {result.proof}, launch {result.launch_id}"
    yield f"# {one_line(named)}"
    yield f"# {name_of(without(result.labels, 'size', 'pattern', 'origin', 'path'))}"
    if result.origin is Origin.IMPORTED:
        yield "# as the program told it; half of what it told of a round trip"
        return
    yield {
        Metric.ROUND_TRIP_TIME: "# half of the mean round trip, in us",
        Metric.OPERATION_TIME: "# from an agreed start to the end of the slowest rank, mean of the calls, in us",
    }.get(result.metric, "# all payload over all time, in 10^6 bytes a second")


def _number(result: Result) -> float:
    """Return what is printed: an imported value as it was, ours as the mean that OSU would print."""
    is_mean = result.metric.is_time and not _is_theirs(result)
    number = result.mean if is_mean else result.value
    return (number or 0.0) / SCALES[result.pattern]


def _digits(result: Result) -> int:
    """Return how many decimals are printed: as many as there were, of what was imported."""
    if result.printed_step is None:
        return DIGITS
    return max(0, round(-math.log10(result.printed_step / SCALES[result.pattern])))


EXPORTER = Exporter(
    name="osu",
    title="scripts for OSU Micro-Benchmarks; ReFrame, Ramble",
    suffix=SUFFIX,
    files=files,
    is_folder=True,
    cannot_hold=(Fact.SPREAD, Fact.LOSSES, Fact.TIME, Fact.CONFIGURATION),
    remarks=(
        "times of ping-pongs are half of the mean round trip, as OSU's; comments, which its readers pass over, hold the rest",
        "what was imported from OSU goes out under OSU's own head alone: its fabric is in the name of its file",
    ),
    why_not=why_not,
)
