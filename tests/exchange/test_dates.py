"""The date of an imported run is that of its texts where they tell one, and else said to be that of the import."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.exchange.samples import sample

from fabricbench.exchange.exporter import export_run, exporter_named
from fabricbench.exchange.storing import import_run
from fabricbench.record.past_run import past_run
from fabricbench.record.past_runs import past_runs
from fabricbench.record.store import Run
from support.calling import Call
from support.exported_run import exported, text_of
from support.osu_texts import osu_text

HPL = sample("hpl.txt")
AFTER_ROW = "HPL_pdgesv() start time Fri Nov 27 09:30:00 2026\n\nHPL_pdgesv() end time   Fri Nov 27 09:30:10 2026\n"
"""What version 2.1 and later prints below each row."""


def hpl_with_times() -> str:
    row = next(line for line in HPL.splitlines() if line.startswith("WR"))
    return HPL.replace(row + "\n", f"{row}\n{AFTER_ROW}")


def imported(folder: Path, *texts: str) -> Run:
    paths = [folder / f"{number}.txt" for number, _ in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    import_run(folder / "run", {"ib": paths})
    return Run.open(folder / "run")


IPERF3_TEXT = sample("iperf3-tcp.txt")


@pytest.mark.parametrize(
    ("text", "date"),
    [
        (hpl_with_times(), "2026-11-27T09:30:00"),
        (sample("hpcc.txt"), "2026-11-22T15:34:28"),
        (sample("imb-pingpong.txt"), "2026-11-22T15:22:28"),
        (sample("iperf3-tcp.json"), "2026-11-22T15:27:31"),
        (sample("reframe-4.log"), "2024-02-21T22:51:16"),
    ],
    ids=["hpl", "hpcc", "imb", "iperf3", "reframe"],
)
def test_a_date_that_a_text_tells_is_that_of_the_run_and_of_its_exports(tmp_path: Path, text: str, date: str):
    run = imported(tmp_path, text)
    assert f"{run.manifest.created:%Y-%m-%dT%H:%M:%S}" == date
    assert not past_run(run.path).is_dated_by_import
    assert json.loads(text_of(exported(run, "google-benchmark")))["context"]["date"].startswith(date)
    assert f'timestamp="{date}"' in text_of(exported(run, "junit"))
    assert not any("date" in one for one in export_run(run, exporter_named("junit")).remarks)


def test_the_first_of_several_texts_dates_the_run(tmp_path: Path):
    later = sample("imb-pingpong.txt").replace("Nov 22 15:22:28 2026", "Nov 24 08:00:00 2026").replace(".", ".")
    run = imported(tmp_path, osu_text(), later.replace("5.", "6."), sample("imb-pingpong.txt"))
    assert f"{run.manifest.created:%Y-%m-%d %H:%M}" == "2026-11-22 15:22"


def test_a_date_that_no_text_tells_is_said_to_be_that_of_the_import(tmp_path: Path, fabricbench: Call):
    before = datetime.now(UTC)
    run = imported(tmp_path, osu_text())
    assert before <= run.manifest.created <= datetime.now(UTC)
    assert past_run(run.path).is_dated_by_import
    note = "that of the import: its texts do not tell when they were measured"
    assert f"the run's date is {note}" in export_run(run, exporter_named("csv")).remarks
    assert json.loads(text_of(exported(run, "google-benchmark")))["context"]["date_note"] == note
    gauges = text_of(exported(run, "openmetrics"))
    assert "measured_timestamp" not in gauges
    assert "fabricbench_imported_timestamp_seconds " in gauges
    _, out, _ = fabricbench("runs", tmp_path)
    assert f"{run.manifest.created:%Y-%m-%d %H:%M} (import)" in out


def test_runs_are_listed_and_searched_by_the_date_of_their_texts(tmp_path: Path, fabricbench: Call):
    imported(tmp_path, sample("reframe-4.log"))
    assert [f"{one.created:%Y-%m-%d}" for one in past_runs(tmp_path)] == ["2024-02-21"]
    _, out, _ = fabricbench("runs", tmp_path, "--since", "2024-02-21", "--until", "2024-02-21")
    assert "2024-02-21 22:51 " in out


def test_how_long_a_program_ran_that_does_not_tell_is_not_made_up(tmp_path: Path):
    run = imported(tmp_path, sample("reframe-4.log"))
    suite = text_of(exported(run, "junit"))
    assert 'time="0.000000"' in suite
    assert 'time="1.0' not in suite


def test_a_time_that_a_program_tells_is_that_of_its_case(tmp_path: Path):
    assert 'time="0.090000"' in text_of(exported(imported(tmp_path, hpl_with_times()), "junit"))
