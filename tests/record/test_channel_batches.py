"""The channels of a launch, read some at a time: each channel is whole, and none is missing or there twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fabricbench.analysis import network_map
from fabricbench.analysis.network_map import network_maps
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record import values
from fabricbench.record.launch import scan_channels
from fabricbench.record.store import Run
from fabricbench.record.values import channel_batches
from support.decoding import set_limits
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

CHANNEL = ["cell", "source", "destination", "flow", "round"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    ranks = (0, 1, 2, 3)
    medians = {(one, other): 1e5 + 1e3 * one for one in ranks for other in ranks if one < other}
    cell = SyntheticCell(Layer.TCP, Pattern.PAIRS, 1024, {"net": 1e5}, samples=30, ranks=ranks, pair_medians=medians)
    testbed = synthetic_testbed({"net": 100e6}, nodes=len(ranks))
    return write_synthetic_run(tmp_path / "run", cells=[cell], blocks=3, testbed=testbed)


def test_each_channel_is_whole_in_one_batch(run: Run, monkeypatch: pytest.MonkeyPatch):
    directory = run.launches[0].directory
    whole = scan_channels(directory).collect()
    cells = whole["cell"].unique().to_list()
    (one,) = channel_batches(directory, cells)
    assert one.collect().height == whole.height
    monkeypatch.setattr(values, "MOST_AT_ONCE", whole.height // 4)
    batches = [batch.collect() for batch in channel_batches(directory, cells)]
    assert len(batches) >= 4
    assert max(batch.height for batch in batches) < whole.height
    seen = [tuple(row) for batch in batches for row in batch.select(CHANNEL).unique().iter_rows()]
    assert len(seen) == len(set(seen)) == whole.select(CHANNEL).unique().height
    assert sum(batch.height for batch in batches) == whole.height


@pytest.mark.slow
def test_a_map_is_the_same_however_much_of_it_is_read_at_once(run: Run, monkeypatch: pytest.MonkeyPatch):
    whole = network_maps(run)
    assert whole
    monkeypatch.setattr(values, "MOST_AT_ONCE", 3)
    assert network_maps(run) == whole


def test_more_pairs_than_are_compared_at_once_are_refused_with_the_way_to_read_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(network_map, "MOST_PAIRS", 5)
    with pytest.raises(UsageError, match="and 5 are the most that are compared at once") as raised:
        network_maps(run)
    assert "channels.parquet" in str(raised.value.hint)


def test_a_matrix_of_ranks_that_its_launch_does_not_have_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(network_map, "_hosts", lambda *_: ("n0", "n1", "n2"))
    with pytest.raises(UsageError, match="tells of rank 3, and its launches have 3 ranks"):
        network_maps(run)


def test_channels_without_end_are_refused_before_any_is_compared(run: Run, monkeypatch: pytest.MonkeyPatch):
    set_limits(monkeypatch, MOST_CHANNELS=5)
    found = Run.open(run.path).damaged
    assert len(found) == 3
    assert "channels, and 5 are the most that are read" in found[0].reason
    assert 'pl.scan_parquet("channels.parquet")' in found[0].reason


def test_rows_of_few_channels_are_not_refused_for_their_number(run: Run, monkeypatch: pytest.MonkeyPatch):
    whole = scan_channels(run.launches[0].directory)
    channels = whole.select(pl.struct(CHANNEL).n_unique()).collect().item()
    rows = whole.select(pl.len()).collect().item()
    assert rows > channels + 1
    set_limits(monkeypatch, MOST_CHANNELS=channels + 1)
    assert Run.open(run.path).damaged == ()
