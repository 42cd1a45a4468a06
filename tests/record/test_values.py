"""What a launch is worth is the same wherever it is shown, and 0 ns is no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import support.synthetic_run as synthetic
from fabricbench.analysis import analyse
from fabricbench.analysis.sides import read_sides
from fabricbench.model import Layer, Pattern
from fabricbench.record import values
from fabricbench.record.export import summary_frame
from fabricbench.record.reading import Batch
from fabricbench.record.store import Run
from fabricbench.record.values import NO_VALUE
from support.synthetic_run import SyntheticCell, write_synthetic_run

FABRICS = {"one": 90e6, "other": 80e6}
STREAM = SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, FABRICS, samples=100, messages_per_sample=16)
TRIPS = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 1e5, "other": 2e5})
RATE = SyntheticCell(Layer.TCP, Pattern.MESSAGE_RATE, 8, {"one": 1e6, "other": 2e6}, messages_per_sample=100)


@pytest.fixture
def change_times(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a function change the times of every batch of a cell that is written from here on."""

    def change(by: Any) -> None:
        plain = synthetic._batches

        def changed(cell: SyntheticCell, *rest: Any) -> list[Batch]:
            batches = plain(cell, *rest)
            for batch in batches:
                by(cell, batch.time_ns)
            return batches

        monkeypatch.setattr(synthetic, "_batches", changed)

    return change


def in_bursts(_: SyntheticCell, times: Any) -> None:
    times[::5] *= 8


def shown_and_reported(run: Run) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The medians of `show --summary` and of `report`."""
    shown = {(row["fabric"], row["layer"], row["pattern"]): row["median"] for row in summary_frame(run).to_dicts()}
    reported = {(one.fabric, one.key.layer, one.key.pattern): one.median.value for one in analyse([run]).summaries}
    return shown, reported


def test_show_and_report_say_the_same_of_windows_that_arrive_in_bursts(tmp_path: Path, change_times: Any):
    change_times(in_bursts)
    shown, reported = shown_and_reported(write_synthetic_run(tmp_path, cells=[STREAM, TRIPS, RATE]))
    assert shown == pytest.approx(reported, rel=1e-12)
    assert len(shown) == 6


@pytest.mark.parametrize("at_once", [1, 150])
def test_figures_are_the_same_however_many_cells_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    run = write_synthetic_run(tmp_path, cells=[STREAM, TRIPS, RATE], blocks=2)
    quantiles, cells = run.launch_quantiles(), [side.cells for side in read_sides([run])]
    monkeypatch.setattr(values, "MOST_AT_ONCE", at_once)
    assert run.launch_quantiles().equals(quantiles)
    again = [side.cells for side in read_sides([run])]
    assert [list(side) for side in again] == [list(side) for side in cells]
    for side, before in zip(again, cells, strict=True):
        for key, cell in side.items():
            assert cell.launch_values.tolist() == before[key].launch_values.tolist()
            assert [one.tolist() for one in cell.values] == [one.tolist() for one in before[key].values]
            assert (cell.total_bytes, cell.total_ns) == (before[key].total_bytes, before[key].total_ns)


def test_a_cell_whose_times_are_all_zero_has_no_value_and_says_why(tmp_path: Path, change_times: Any):
    def nothing(cell: SyntheticCell, times: Any) -> None:
        if cell.pattern is not Pattern.MESSAGE_RATE:
            times[:] = 0

    change_times(nothing)
    run = write_synthetic_run(tmp_path, cells=[STREAM, TRIPS, RATE])
    rows = summary_frame(run).to_dicts()
    assert {(row["pattern"], row["median"] is None, row["reason"]) for row in rows} == {
        ("stream", True, NO_VALUE),
        ("pingpong", True, NO_VALUE),
        ("message-rate", False, None),
    }
    findings = analyse([run])
    assert {one.key.pattern for one in findings.summaries} == {"message-rate"}
    assert any(NO_VALUE in one.text and "pingpong" in one.text for one in findings.warnings)


def test_a_few_times_of_zero_leave_the_value_of_all_bytes_over_all_time(tmp_path: Path, change_times: Any):
    change_times(lambda _, times: times.__setitem__(slice(0, 3), 0))
    run = write_synthetic_run(tmp_path, cells=[STREAM, TRIPS])
    shown, reported = shown_and_reported(run)
    assert shown == pytest.approx(reported, rel=1e-12)
    measured = {key.pattern: cell for key, cell in read_sides([run])[0].cells.items()}
    assert measured[Pattern.STREAM].pooled.size == 6 * 97
    assert measured[Pattern.PINGPONG].pooled.min() == 0
    assert not np.isnan(measured[Pattern.STREAM].launch_values).any()


def test_a_launch_whose_times_are_all_zero_gave_nothing(tmp_path: Path, change_times: Any):
    written: list[str] = []

    def first_launch(_: SyntheticCell, times: Any) -> None:
        written.append("batch")
        if len(written) <= 2:
            times[:] = 0

    change_times(first_launch)
    run = write_synthetic_run(tmp_path, cells=[TRIPS])
    sides = read_sides([run])
    assert sorted(cell.gave_nothing for side in sides for cell in side.cells.values()) == [0, 1]
    assert analyse([run]).summaries
