"""What an exporter is, and which there are: it writes the results of a run in a format that other programs read.

An exporter is an `Exporter` in a module of `exports`, and one line in `EXPORTERS`. It takes typed results and parses no
text. A value keeps what makes it one: its unit, its test, its fabric, where it comes from (emulated, simulated, predicted, imported
numbers are marked in every format). What a format has no place for is declared, and told to who exports; a result that counts
nowhere is marked in the file where the format can (`marks_bad`), and else left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fabricbench.errors import UsageError
from fabricbench.exchange.exported import Export, ExportedFile, Exporter, Fact, results_of
from fabricbench.exchange.exports import (
    bencher,
    benchstat,
    extra_p,
    google_benchmark,
    junit,
    openmetrics,
    osu,
    parquet,
    reframe,
    ro_crate,
    tidy_csv,
)
from fabricbench.quantity import count
from fabricbench.record.export import launch_frame
from fabricbench.record.store import Run

MOST_REASONS = 5
"""Of those for which results were left out, that are told one by one."""


# One line for each.
EXPORTERS: tuple[Exporter, ...] = (
    tidy_csv.EXPORTER,
    parquet.EXPORTER,
    benchstat.EXPORTER,
    google_benchmark.EXPORTER,
    bencher.EXPORTER,
    openmetrics.EXPORTER,
    junit.EXPORTER,
    osu.EXPORTER,
    reframe.EXPORTER,
    extra_p.EXPORTER,
    ro_crate.EXPORTER,
)


@dataclass(frozen=True)
class Exported:
    """What an export gave: its files, how many results they hold, and what they do not, for who exports.

    `left_out` counts results by the reason for which they are not in it.
    """

    files: Sequence[ExportedFile]
    results: int
    left_out: Counter[str]
    cannot_hold: Sequence[Fact]
    of_the_format: Sequence[str]

    @property
    def remarks(self) -> list[str]:
        """What people are told, a sentence each."""
        told = []
        for reason, number in self.left_out.most_common(MOST_REASONS):
            told.append(f"left out {count(number, 'result')}: {reason}")
        others = self.left_out.most_common()[MOST_REASONS:]
        if others:
            told.append(f"left out {count(sum(number for _, number in others), 'result')} for other reasons")
        if self.cannot_hold:
            told.append(f"the format has no place for {'; '.join(self.cannot_hold)}")
        return [*told, *self.of_the_format]


def exporter_named(name: str) -> Exporter:
    """Return the exporter of a name; UsageError where there is none."""
    for each in EXPORTERS:
        if name == each.name:
            return each
    known = ", ".join(each.name for each in EXPORTERS)
    raise UsageError(f"there is no format {name!r}", hint=f"there are {known}")


def export_run(run: Run, exporter: Exporter) -> Exported:
    """Return a run in the exporter's format; UsageError where it has no result that the format takes."""
    frame = launch_frame(run)
    left_out: Counter[str] = Counter()
    taken = []
    for result in results_of(frame):
        reason = (result.why_bad if not exporter.marks_bad else "") or (
            exporter.why_not(result) if result.is_good else ""
        )
        if reason:
            left_out[reason] += 1
        else:
            taken.append(result)
    if not taken:
        told = "; ".join(left_out) or "it has none"
        raise UsageError(
            f"{run.path} has no result that {exporter.name} can hold: {told}",
            hint="`fabricbench show RUNDIR --summary` shows what is there; csv holds all of it",
        )
    export = Export(run, frame, tuple(taken))
    note = export.note_of_date
    remarks = (*exporter.remarks, *([] if note is None else [f"the run's date is {note}"]))
    return Exported(tuple(exporter.files(export)), len(taken), left_out, exporter.cannot_hold, remarks)
