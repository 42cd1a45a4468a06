from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricbench.record.counters import Counter, CounterScope, Uncounted
from fabricbench.record.decoding import scan_stored
from fabricbench.record.frames import LATER_STAGE_COLUMNS, stages_frame
from fabricbench.record.lines import Phase
from fabricbench.record.probe_plan import ProbePlan
from fabricbench.record.reading import Record, parse_record, read_record

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/record.jsonl"
HEADER, *_ = FIXTURE.read_bytes().splitlines(keepends=True)


def line(**keys: Any) -> bytes:
    return json.dumps(keys, separators=(",", ":")).encode() + b"\n"


def opening(cell: int) -> bytes:
    names = {"layer": "tcp", "pattern": "pingpong", "receive": "blocking", "metric": "round_trip_time"}
    return line(type="cell", id=cell, message_bytes=64, ranks=[0, 1], bytes_per_sample=128, **names)


def samples(cell: int, times: list[int], *, phase: str = "measured", first: int = 0, **keys: Any) -> bytes:
    return line(type="samples", cell=cell, phase=phase, first_index=first, time_ns=times, **keys)


def end(cell: int, measured: int, warmup: int = 0, seconds: float = 0.1) -> bytes:
    return line(type="cell_end", cell=cell, stop="count", warmup=warmup, measured=measured, seconds=seconds)


def whole_cell(cell: int, times: list[int]) -> bytes:
    return opening(cell) + samples(cell, times) + end(cell, len(times), seconds=sum(times) * 1e-9)


def footer(cells: int, failed: int = 0) -> bytes:
    return line(type="footer", finished_unix_ns=1793400001000000000, cells=cells, failed=failed)


def parsed(text: bytes) -> Record:
    return parse_record(text.splitlines(keepends=True))


def measured(record: Record) -> dict[int, list[int]]:
    return {
        cell.id: np.concatenate([batch.time_ns for batch in cell.batches]).tolist() for cell in record.cells if cell.end
    }


def test_the_fixture_is_read_whole():
    record = read_record(FIXTURE)
    assert record.is_complete
    assert measured(record) == {0: [210500, 200100, 190100, 190700, 191300], 1: [150000, 151000], 2: [5590000, 5600000]}
    assert record.cells[2].batches[0].bytes is not None
    assert record.cells[2].batches[0].bytes.tolist() == [65536, 64512]
    assert [cell.failed.code for cell in record.cells if cell.failed] == ["permission"]
    assert record.cells[0].count(Phase.WARMUP) == 2


def test_keys_may_stand_in_any_order_and_have_space_between_them():
    odd = b'{ "time_ns": [1, 2], "phase": "measured", "first_index": 0, "cell": 0, "type": "samples" }\n'
    sorted_keys = b'{"bytes":[5,6],"cell":0,"first_index":2,"phase":"measured","time_ns":[3,4],"type":"samples"}\n'
    record = parsed(HEADER + opening(0) + odd + sorted_keys + end(0, 4) + footer(1))
    assert record.damage == []
    assert measured(record) == {0: [1, 2, 3, 4]}


@pytest.mark.parametrize(
    "bad",
    [
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,-2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,,2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,2.5]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":["1",2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[true,2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,99999999999999999999999]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":5}\n',
        b'{"type":"samples","cell":0,"phase":"cooldown","first_index":0,"time_ns":[1,2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":-1,"time_ns":[1,2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,2],"bytes":[1]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,2],"colour":"red"}\n',
        b'{"type":"samples","cell":"0","phase":"measured","first_index":0,"time_ns":[1,2]}\n',
        b'["time_ns"]\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,2],"missed":[2]}\n',
        b'{"type":"samples","cell":0,"phase":"measured","first_index":0,"time_ns":[1,2],"missed":[true]}\n',
        b'{"type":"channel","cell":0,"source":0,"destination":1,"quantity":"round_trip","time_ns":[-5]}\n',
        b'{"type":"channel","cell":0,"source":0,"destination":1,"quantity":"hops","time_ns":[5]}\n',
        b'{"type":"channel","cell":0,"source":0,"quantity":"transfer","time_ns":[5]}\n',
        b'{"type":"channel","cell":0,"source":0,"destination":1,"quantity":"transfer","time_ns":[5,6],"bytes":[-7,8]}\n',
        b'{"type":"surprise"}\n',
        b"\x00\x00\xff\n",
    ],
)
def test_a_line_that_is_wrong_costs_its_cell_and_no_other(bad: bytes):
    text = HEADER + whole_cell(1, [7, 8]) + opening(0) + bad + end(0, 2) + whole_cell(2, [9]) + footer(3)
    record = parsed(text)
    assert measured(record) == {1: [7, 8], 2: [9]}
    assert record.damage[0].line == 6
    assert any(damage.cell == 0 and damage.lost_samples == 2 for damage in record.damage)


def test_a_cell_whose_end_counts_more_samples_than_were_read_is_not_called_complete():
    record = parsed(HEADER + opening(0) + samples(0, [1, 2]) + end(0, 3) + footer(1))
    assert measured(record) == {}
    (damage,) = record.damage
    assert (damage.line, damage.cell, damage.lost_samples) == (4, 0, 2)
    assert "counts 3 measured samples, 2 were read" in damage.reason


def test_a_cell_without_its_opening_is_told_once_with_all_it_lost():
    lost = b"".join(samples(5, [1] * 10, first=10 * k) for k in range(50))
    record = parsed(HEADER + lost + end(5, 500) + whole_cell(6, [1]) + footer(1))
    (damage,) = record.damage
    assert (damage.line, damage.cell, damage.lost_samples) == (2, 5, 500)
    assert measured(record) == {6: [1]}


def test_batches_that_overlap_are_refused():
    record = parsed(HEADER + opening(0) + samples(0, [1, 2]) + samples(0, [3], first=1) + end(0, 3) + footer(1))
    assert measured(record) == {}


def test_a_failure_after_some_samples_keeps_them():
    failed = FIXTURE.read_bytes().splitlines(keepends=True)[-2].replace(b'"cell":3', b'"cell":0')
    record = parsed(HEADER + opening(0) + samples(0, [1, 2]) + failed + footer(0, 1))
    assert record.is_complete
    (cell,) = record.cells
    assert cell.failed is not None
    assert cell.count(Phase.MEASURED) == 2


def test_an_empty_record_is_incomplete_and_nothing_else():
    record = parse_record([])
    assert record.cells == []
    assert not record.is_complete


PATTERNS = Path(__file__).parents[2] / "schema/fixtures/record-patterns.jsonl"


def test_the_fixture_of_the_patterns_is_read_whole():
    record = read_record(PATTERNS)
    assert record.is_complete
    assert [clock.rank for clock in record.clocks] == [1, 2, 1]
    channels = {cell.id: cell.channels for cell in record.cells}
    assert [len(channels[cell]) for cell in range(5)] == [2, 2, 3, 0, 0]
    assert channels[1][0].time_ns.tolist() == [-120, 21000]
    assert [channel.bytes.tolist() for channel in channels[0] if channel.bytes is not None] == [[262144], [196608]]
    assert record.cells[3].batches[1].missed == (1,)
    states = [cell.end.port_state for cell in record.cells if cell.end is not None]
    assert states[:4] == [{}] * 4
    assert states[4]["n0"] == {"mlx5_0/1": {"packet_seq_err": 2, "np_cnp_sent": 1}, "eth0": {"rx_prio3_pause": 7}}
    assert states[4]["n1"] == {"mlx5_0/1": {}}


COUNTERS = Path(__file__).parents[2] / "schema/fixtures/record-counters.jsonl"


def test_counters_are_read_with_who_read_them_and_what_was_not_counted_is_in_the_header():
    plan = ProbePlan.model_validate_json(COUNTERS.with_name("plan-counters.json").read_bytes())
    record = read_record(COUNTERS, plan)
    assert record.damage == []
    pingpong, stream = record.cells
    told = {(line.rank, line.scope): line.counts for line in pingpong.counters}
    assert set(told) == {
        (0, CounterScope.RANK),
        (1, CounterScope.RANK),
        (0, CounterScope.HOST),
        (0, CounterScope.MACHINE),
    }, "both ranks are on one host"
    for rank in (0, 1):
        counts = told[rank, CounterScope.RANK]
        # Two of the warm-up, four measured, and one untimed before each batch.
        assert counts[Counter.MESSAGES_SENT] == counts[Counter.MESSAGES_RECEIVED] >= 6
        assert counts[Counter.USER_NS] + counts[Counter.SYSTEM_NS] > 0
    sender, receiver = (line.counts for line in stream.counters if line.scope is CounterScope.RANK)
    assert sender[Counter.MESSAGES_SENT] >= receiver[Counter.MESSAGES_RECEIVED] >= 16 * 5
    assert Counter.CYCLES not in sender
    assert record.header is not None
    (missing,) = record.header.not_counted
    assert (missing.counters[0], missing.why, missing.ranks) == (Counter.CYCLES, Uncounted.ABSENT, 2)


def test_a_counter_that_is_unknown_or_negative_costs_its_cell_alone():
    for before, after in ((b'"tcp_sent":', b'"tcp_lost":'), (b'"tcp_timeouts":0', b'"tcp_timeouts":-1')):
        record = parse_record(COUNTERS.read_bytes().replace(before, after, 1).splitlines(keepends=True))
        assert [cell.id for cell in record.cells] == [1]


STAGES = Path(__file__).parents[2] / "schema/fixtures/record-stages.jsonl"


def test_the_fixture_of_stages_is_read_whole_and_its_leading_rank_has_the_samples():
    record = read_record(STAGES, ProbePlan.model_validate_json(STAGES.with_name("plan-stages.json").read_bytes()))
    assert record.is_complete
    for cell in record.cells:
        leads, follows = cell.stages
        assert (leads.leads, follows.leads) == (True, False)
        assert leads.round_trip_ns == tuple(cell.batches[-1].time_ns.tolist())
        assert set(leads.number) <= set(follows.number)
        frame = stages_frame(record).filter(pl.col("cell") == cell.id, "leads")
        assert (frame["scheduled_unix_ns"] - leads.base_unix_ns).to_list() == list(leads.scheduled_ns)


def test_stages_whose_columns_differ_in_length_are_refused():
    text = STAGES.read_bytes().replace(b'"number":[', b'"number":[99,', 1)
    record = parse_record(io.BytesIO(text))
    assert "before_ns has 4 positions, number has 5" in record.damage[0].reason


def test_stages_that_no_library_tells_of_have_no_times_of_one_nor_have_files_of_earlier_versions(tmp_path: Path):
    frame = stages_frame(
        read_record(STAGES, ProbePlan.model_validate_json(STAGES.with_name("plan-stages.json").read_bytes()))
    )
    later = list(LATER_STAGE_COLUMNS)
    assert frame.select(later).null_count().row(0) == (frame.height,) * len(later)
    file = tmp_path / "stages.parquet"
    frame.drop(later).write_parquet(file)
    assert scan_stored(file).collect().equals(frame)


def test_a_channel_of_a_cell_that_is_not_open_costs_no_other():
    stray = line(type="channel", cell=9, source=0, destination=1, quantity="transfer", time_ns=[5], bytes=[8])
    record = parsed(HEADER + opening(0) + samples(0, [1]) + stray + end(0, 1) + footer(1))
    assert measured(record) == {0: [1]}
    assert "a channel of a cell that is not open" in record.damage[0].reason


TIMES = st.lists(st.integers(0, 10**15), min_size=1, max_size=6)
CELLS = st.lists(TIMES, min_size=1, max_size=5)


def rendered(cells: list[list[int]]) -> tuple[bytes, list[int]]:
    """Return a record of the cells, and the offset at which each of them ends."""
    text, ends = HEADER, []
    for number, times in enumerate(cells):
        text += whole_cell(number, times)
        ends.append(len(text))
    return text + footer(len(cells)), ends


@given(CELLS, st.data())
def test_a_record_cut_anywhere_keeps_exactly_the_cells_before_the_cut(cells: list[list[int]], data: st.DataObject):
    text, ends = rendered(cells)
    cut = data.draw(st.integers(0, len(text) - 1))
    record = parsed(text[:cut])
    assert measured(record) == {number: cells[number] for number, stop in enumerate(ends) if stop <= cut}
    assert not record.is_complete


GARBAGE = st.lists(st.sampled_from(b"\x00\xff{}]#"), min_size=1, max_size=40).map(bytes)
"""Bytes that cannot turn one number into another, which no reader could notice."""


@given(CELLS, GARBAGE, st.data())
def test_a_record_garbled_anywhere_keeps_the_cells_before_and_invents_none(
    cells: list[list[int]], garbage: bytes, data: st.DataObject
):
    text, ends = rendered(cells)
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + garbage + text[at + len(garbage) :]
    found = measured(parsed(garbled))
    assert {number for number, stop in enumerate(ends) if stop <= at} <= set(found)
    assert all(found[number] == cells[number] for number in found)


@given(st.binary(max_size=300), CELLS)
def test_anything_at_all_can_follow_and_nothing_raises(noise: bytes, cells: list[list[int]]):
    text, _ = rendered(cells)
    found = measured(parsed(text + noise))
    assert all(found[number] == times for number, times in enumerate(cells))
