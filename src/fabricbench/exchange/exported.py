"""What an exporter is given: the results of a run, typed, and what each of them carries; and what it returns: files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from fabricbench.model import Layer, Metric, Pattern, RdmaDoor, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.provenance import MARKS, Origin, Proof
from fabricbench.record.setup import CongestorSetup, Setup, stored_setup, variant_of
from fabricbench.record.store import Run
from fabricbench.record.values import NO_VALUE

DOOR = "door"
"""The parameter of a cell that names the way into its layer."""


class Fact(StrEnum):
    """What a result carries and a format may have no place for, in the words that people are told."""

    LAUNCH = "which launch a value is of"
    SPREAD = "the spread of a launch's samples"
    LOSSES = "messages that were lost, and samples that missed their start"
    PROOF = "whether counters show that the traffic took the fabric"
    TIME = "when it was measured"
    MACHINES = "what the machines were"
    CONFIGURATION = "what the machines and programs were"


class Statistic(StrEnum):
    """What a launch's value is: the median of its times, all bytes over all time, or what a program told of itself."""

    MEDIAN = "median"
    TOTAL = "total"
    TOLD = "told"


TestKey = tuple[str, Layer, Pattern, Receive | None, int, Setup, str, Origin]
"""What is repeated from launch to launch."""


@dataclass(frozen=True, slots=True)
class Result:
    """One cell in one launch: what it is, where it comes from, and its value in `unit`, None where there is none.

    A value that is not `is_good` counts nowhere: `why_bad` says why. `ranks` counts them, 0 where a cell failed too early to tell.
    `program` measured it, by name and version. `q25` and `q75` are the quartiles of the launch's samples; `mean` is theirs, of a
    rate all that was moved over all time.
    """

    launch_id: str
    block: int
    fabric: str
    origin: Origin
    proof: Proof
    layer: Layer
    pattern: Pattern
    receive: Receive | None
    message_bytes: int
    setup: Setup
    ranks: int
    metric: Metric
    unit: str
    statistic: Statistic
    value: float | None
    why_bad: str
    samples: int
    mean: float | None
    minimum: float | None
    q25: float | None
    q75: float | None
    maximum: float | None
    total_time_ns: int
    seconds: float
    is_verified: bool
    printed_step: float | None
    started_unix_ns: int | None
    ended_unix_ns: int | None
    program: str
    figure: str = ""
    """What one of several numbers of an imported program is of (a variable of ReFrame): each is a test of its own."""

    @property
    def is_good(self) -> bool:
        """Whether it has a value that counts."""
        return not self.why_bad

    @property
    def test(self) -> TestKey:
        """What it is a repetition of."""
        place = self.fabric, self.layer, self.pattern, self.receive, self.message_bytes
        return *place, self.setup, self.figure, self.origin

    @property
    def door(self) -> str:
        """The way into its layer; empty where the layer has one."""
        usual = RdmaDoor.SEND.value if self.layer is Layer.RDMA else ""
        return str(dict(self.setup.parameters).get(DOOR, usual))

    @property
    def labels(self) -> dict[str, str]:
        """All that tells its test from others of its fabric, by name and in one order; what marks its numbers is last.

        `origin` is there unless it was measured on hardware, `path` unless counters prove it.
        """
        found = {"layer": self.layer.value, DOOR: self.door, "pattern": self.pattern.value}
        found |= {"size": str(self.message_bytes), "receive": self.receive or "", "ranks": str(self.ranks or "")}
        found |= {"members": ".".join(map(str, self.setup.members))}
        found |= {name: str(value) for name, value in self.setup.parameters if name != DOOR}
        found |= {"figure": self.figure}
        beside = self.setup.congestor
        found |= {"beside": "" if beside is None else congestor_name(beside)}
        found |= {"without": ".".join(self.setup.lost_nodes)}
        found |= {"origin": self.origin.value if self.origin in MARKS else ""}
        found |= {"path": "" if self.proof is Proof.PROVEN else self.proof.value}
        return {name: text for name, text in found.items() if text}

    @property
    def variant(self) -> str:
        """The words of reports for its setup."""
        return variant_of(self.pattern, self.setup)


def name_of(labels: Mapping[str, str], between: str = "=") -> str:
    """Return labels as one name without blanks, `layer=tcp/size=64`: two tests never have the same."""
    return "/".join(f"{quote(name)}{between}{quote(text, safe='=._-')}" for name, text in labels.items())


def congestor_name(beside: CongestorSetup) -> str:
    """Return what other ranks did meanwhile as one word: `incast.tcp.65536.4.flows=2`."""
    parts = [beside.pattern, beside.layer, beside.message_bytes, beside.ranks, *(["idle"] if beside.is_idle else [])]
    return ".".join([*map(str, parts), *(f"{name}={value}" for name, value in beside.parameters)])


@dataclass(frozen=True)
class ExportedFile:
    """A file of an export: its name, with folders before it where it is one of several, and what it holds or what is copied."""

    name: str
    content: bytes | Path


DATE_OF_IMPORT = "that of the import: its texts do not tell when they were measured"


@dataclass(frozen=True)
class Export:
    """A run and the results of it that a format takes; `frame` has all of them as a table (`record.export.launch_frame`)."""

    run: Run
    frame: pl.DataFrame
    results: tuple[Result, ...]

    @cached_property
    def tests(self) -> dict[TestKey, list[Result]]:
        """The results of each test, launch by launch."""
        found: dict[TestKey, list[Result]] = {}
        for one in self.results:
            found.setdefault(one.test, []).append(one)
        return found

    @property
    def versions(self) -> Mapping[str, str]:
        """The programs that the run was made with."""
        return self.run.manifest.versions

    @property
    def note_of_date(self) -> str | None:
        """What must be known of the run's date, if anything."""
        return DATE_OF_IMPORT if self.run.manifest.is_dated_by_import else None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where its numbers come from."""
        return tuple(dict.fromkeys(one.origin for one in self.results))


def takes_all(_: Result, /) -> str:
    """Say of no result that it has no place."""
    return ""


@dataclass(frozen=True)
class Exporter:
    """How results are written in one format: `--format` calls it `name`, `title` says what reads it.

    `files` yields its files, one unless it `is_folder`, and writes nothing; their names end in `suffix`. A terminal can show one
    that `is_text`. One that `marks_bad` holds results that count nowhere so that nobody takes them for good ones; of those that
    count `why_not` says why one has no place, empty where it has. `cannot_hold` is what of a result has no place; `remarks` are
    what else who exports must know, a sentence each.
    """

    name: str
    title: str
    suffix: str
    files: Callable[[Export], Iterable[ExportedFile]]
    is_text: bool = True
    is_folder: bool = False
    marks_bad: bool = False
    cannot_hold: Sequence[Fact] = ()
    remarks: Sequence[str] = ()
    why_not: Callable[[Result], str] = takes_all


def without(labels: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return the labels but these."""
    return {name: text for name, text in labels.items() if name not in names}


def iso_time(unix_ns: int) -> str:
    """Return a time as RFC 3339 has it, in UTC and to the microsecond."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat()


def values_of(results: Iterable[Result]) -> list[float]:
    """Return the values that count."""
    return [one.value for one in results if one.value is not None and one.is_good]


def labels_of(results: Sequence[Result]) -> dict[str, str]:
    """Return the labels of a test: its path is unproven where that of any launch is that counts."""
    counted = [one for one in results if one.is_good] or results
    return next((one for one in counted if one.proof is not Proof.PROVEN), counted[0]).labels


def results_of(frame: pl.DataFrame) -> Iterator[Result]:
    """Yield the results of a run's table of launches, row by row."""
    for row in frame.iter_rows(named=True):
        yield _result(row)


def _result(row: Mapping[str, Any]) -> Result:
    metric = Metric(row["metric"]) if row["metric"] else metric_of(Pattern(row["pattern"]))
    return Result(
        launch_id=row["launch_id"],
        block=row["block"],
        fabric=row["fabric"],
        origin=Origin(row["origin"]),
        proof=Proof(row["proof"]),
        layer=Layer(row["layer"]),
        pattern=Pattern(row["pattern"]),
        receive=Receive(row["receive"]) if row["receive"] else None,
        message_bytes=row["message_bytes"],
        setup=stored_setup(row),
        ranks=len(row["ranks"] or ()),
        metric=metric,
        unit=row["unit"] or metric.unit,
        statistic=_statistic(row, metric),
        value=row["launch_value"],
        why_bad=_why_bad(row),
        samples=row["n"] or 0,
        mean=row["mean"],
        minimum=row["minimum"],
        q25=row["q0.25"],
        q75=row["q0.75"],
        maximum=row["maximum"],
        total_time_ns=row["total_time_ns"] or 0,
        seconds=row["seconds"] or 0.0,
        is_verified=bool(row["verified"]) and not row["corrupted"],
        printed_step=row["printed_step"],
        started_unix_ns=row["started_unix_ns"],
        ended_unix_ns=row["ended_unix_ns"],
        program=row["program"] if row["origin"] == Origin.IMPORTED else f"fabricbench {row['program']}",
        figure=_figure(row),
    )


def _figure(row: Mapping[str, Any]) -> str:
    parameters = json.loads(row["parameters"] or "{}") if row["origin"] == Origin.IMPORTED else {}
    return str(parameters.get("figure", ""))


def _statistic(row: Mapping[str, Any], metric: Metric) -> Statistic:
    if row["figure_of_merit"] is not None or row["origin"] == Origin.IMPORTED:
        return Statistic.TOLD
    return Statistic.MEDIAN if metric.is_time else Statistic.TOTAL


def _why_bad(row: Mapping[str, Any]) -> str:
    if not row["is_valid"]:
        doubt = Proof.REFUTED.doubt if row["proof"] == Proof.REFUTED else "its launch is invalid"
        return f"{doubt}: {row['invalid_because']}" if row["invalid_because"] else doubt
    if row["status"] == "failed":
        return f"not measured: {row['reason'] or row['failure_code']}"
    return NO_VALUE if row["launch_value"] is None else ""
