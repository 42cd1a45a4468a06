"""NAS Parallel Benchmarks, the official programs over MPI: the time of each kernel, as that of official ones that are run here.

What a program prints is read by the workload's own reader, so that an imported kernel and one that was measured here with
`program = "official"` are one test. The rate, where it is finer than the printed time, tells the time
(https://www.nas.nasa.gov/software/npb.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fabricbench.exchange.imported import Imported, ImportedLoad
from fabricbench.exchange.rows import RowError, TextLine, TextReading, lines_of
from fabricbench.model import Pattern
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.kernel_lines import KernelRecord
from fabricbench.workload.npb_adapter import OFFICIAL, SECONDS, KernelStart
from fabricbench.workload.official_npb import PRINTED_SECONDS, parse_official

NAME = "npb"
TITLE = "NAS Parallel Benchmarks"

HEAD = re.compile(r"\s*NAS Parallel Benchmarks\b.*\b[A-Z]{2} Benchmark\b")
PRINTED_TIME = re.compile(r"\s*Time in seconds +=\s+(?P<time>\S+)")


IN_HEAD = {
    "Class": re.compile(r"\s*Size\s*: .*\(class (?P<value>\w)\)"),
    "Size": re.compile(r"\s*Size\s*: *(?P<value>\d[\dx ]*?)(?: *\(class \w\))?"),
    "Total processes": re.compile(r"\s*(?:Total number|Number) of processes *: *(?P<value>\d+)"),
    "Active processes": re.compile(r"\s*Number of active processes *: *(?P<value>\d+)"),
}
"""What the head says of a run, by the names of the fields that say it again behind the results."""
BEHIND = re.compile(r"\s*(?P<name>Class|Size|Total processes|Active processes) *= *(?P<value>.*)")


def is_it(text: str) -> bool:
    """Tell by the line that each of its programs begins with."""
    return any(HEAD.match(line) for line in text.split("\n") if len(line) < 200)


def read(text: str) -> Imported:
    """Return a load for each program whose result was verified."""
    found, loads, versions = TextReading(), [], []
    for head, part in _programs(text):
        with found.row(head):
            record = parse_official(part)
            if record.damage:
                first = record.damage[0]
                raise RowError(f"{first.reason}, in its line {first.line}")
            _check_head(part.split("\n"))
            loads.append(_load(record, part))
            if not (record.runs[0].mops_total and record.runs[0].operations):
                why = "the printed one: no rate and no size that is known tell it finer"
                found.note(ImportNoteKind.READ_AS, head, "its time", why)
            versions.append(record.header.program_version if record.header is not None else "")
    return Imported(
        program="NAS Parallel Benchmarks",
        version=", ".join(dict.fromkeys(versions)),
        statistic="the time of one run",
        loads=tuple(loads),
        notes=tuple(found.notes),
    )


def _programs(text: str) -> Iterator[tuple[TextLine, str]]:
    """Yield what each program printed, and the line that it begins with."""
    lines = lines_of(text)
    begins = [place for place, line in enumerate(lines) if HEAD.match(line.text)]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        yield lines[begin], "".join(line.text + ("\n" if line.has_end else "") for line in lines[begin:end])


def _check_head(lines: Sequence[str]) -> None:
    """Raise RowError where the head of a program's output and the block of its results do not tell of the same run."""
    behind = [one for line in lines if (one := BEHIND.fullmatch(line.rstrip())) is not None]
    results = {one["name"]: one["value"] for one in reversed(behind)}
    for name, pattern in IN_HEAD.items():
        head = next((one["value"] for line in lines if (one := pattern.fullmatch(line.rstrip())) is not None), None)
        if head is not None and name in results and _parts(head) != _parts(results[name]):
            raise RowError(f"its head says {name} {head!r}, its results {results[name]!r}")
    total, active = (_parts(results.get(name, "")) for name in ("Total processes", "Active processes"))
    if len(total) == len(active) == 1 and int(active[0]) > int(total[0]):
        raise RowError(f"{active[0]} of its {total[0]} processes were active")


def _parts(text: str) -> list[str]:
    return re.findall(r"\d+|[A-Z]", text)


def _load(record: KernelRecord, part: str) -> ImportedLoad:
    header, run = record.header, record.runs[0]
    if header is None or not run.verified:
        raise RowError("its result is not verified")
    printed = [one["time"] for line in part.split("\n") if (one := PRINTED_TIME.fullmatch(line.rstrip())) is not None]
    if run.operations and run.mops_total:
        by_rate = run.operations / run.mops_total * 1e-6
        slack = PRINTED_SECONDS + by_rate * PRINTED_SECONDS / run.mops_total
        if not printed or abs(float(printed[0]) - by_rate) > slack:
            raise RowError("its rate is not that of its operations and its time")
    start = _start(header.kernel, header.problem_class or "", header.rank_count)
    return ImportedLoad(
        workload="npb",
        ranks=header.rank_count,
        parameters=tuple(start.parameters.items()),
        figure=SECONDS.found(run.seconds, (header.clock_resolution_ns or 0.0) * 1e-9 or None),
        seconds=run.seconds,
        pattern=Pattern.NPB,
    )


def _start(kernel: str, problem_class: str, ranks: int) -> KernelStart:
    """Return what would start the same kernel here; RowError where there is none such."""
    try:
        return KernelStart(benchmark=kernel.upper(), problem_class=problem_class, ranks=ranks, program=OFFICIAL)
    except ValueError:
        raise RowError(f"there is no kernel {kernel.upper()} of class {problem_class} on {ranks} ranks here") from None
