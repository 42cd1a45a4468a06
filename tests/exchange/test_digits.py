"""What was printed in decimals is converted as decimals, from the text to the export."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.samples import read, sample

from fabricbench.exchange.storing import import_run
from fabricbench.quantity import decimal_product
from fabricbench.record.store import Run
from fabricbench.workload.application import FigureTable
from support.exported_run import exported, text_of
from support.osu_texts import osu_text


@given(st.decimals("0.01", "99999.99", places=2), st.sampled_from(["1e3", "2e3", "8e6", "1e-6", "1048576"]))
def test_a_printed_number_in_another_unit_is_the_nearest_to_the_exact_one(number: Decimal, scale: str):
    assert decimal_product(float(number), float(scale)) == float(number * Decimal(scale))


def test_half_a_round_trip_is_doubled_without_a_remainder():
    (cell,) = read(osu_text(values=(11.1,))).cells
    assert (cell.values, cell.printed_step) == ((22200.0,), 20.0)


def test_a_time_is_exported_as_it_was_printed(tmp_path: Path):
    text = sample("hpcc.txt").replace("RandomlyOrderedRingLatency_usec=64.2433", "RandomlyOrderedRingLatency_usec=22.2")
    (tmp_path / "hpccoutf.txt").write_text(text)
    import_run(tmp_path / "run", {"ib": [tmp_path / "hpccoutf.txt"]})
    csv = text_of(exported(Run.open(tmp_path / "run"), "csv"))
    (row,) = [line for line in csv.splitlines() if "random ring latency" in line]
    assert ",22200.0," in row
    assert "99999" not in csv


def test_a_time_that_a_command_prints_is_kept_as_it_was_printed():
    figure = FigureTable.model_validate({"name": "latency", "regex": "x (\\S+)", "unit": "us"})
    assert figure.value([22.2]) == 2.22e-05
