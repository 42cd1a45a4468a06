"""Every MPI operation in every mode on this machine's loopback: verified, measured, and what its record holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fabricbench.model import Metric, Pattern
from fabricbench.pattern_facts import Family, PatternFacts
from fabricbench.patterns import PATTERNS
from fabricbench.record.lines import FailureCode, Samples
from support.measurer import Outcome

pytestmark = pytest.mark.mpi

RANKS = 4
LEAST_TOLERANCE_NS = 8 * 1000
"""Eight readings of a slow clock."""
TURNS = 4
OPERATIONS = [facts for facts in PATTERNS.values() if facts.family is Family.OPERATION]
COLLECTIVES = [facts for facts in OPERATIONS if "mode" in facts.parameters]
ONE_SIDED = [facts for facts in OPERATIONS if "sync" in facts.parameters]
# How many results all ranks together compare in a turn, where it is not one for each rank.
RESULTS = {
    Pattern.BCAST: RANKS - 1,
    Pattern.REDUCE: 1,
    Pattern.EXSCAN: RANKS - 1,
    Pattern.ALLGATHER: RANKS * RANKS,
    Pattern.ALLGATHERV: RANKS * RANKS,
    Pattern.ALLTOALL: RANKS * RANKS,
    Pattern.ALLTOALLV: RANKS * RANKS,
    Pattern.NEIGHBOR_ALLGATHER: RANKS * 4,
    Pattern.NEIGHBOR_ALLTOALL: RANKS * 4,
    Pattern.PUT: 1,
    Pattern.ACCUMULATE: 1,
    Pattern.GET: 2,
    Pattern.FETCH_AND_OP: 2,
    Pattern.COMPARE_AND_SWAP: 2,
}
WHOLE = {Pattern.BARRIER, Pattern.BCAST, Pattern.REDUCE, Pattern.ALLREDUCE, Pattern.SCAN, Pattern.EXSCAN}


@pytest.fixture(autouse=True)
def _ranks_that_wait_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take MPICH over TCP: through shared memory its ranks spin while they wait, here more of them than processors."""
    for name, value in {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "lo",
        "MPIR_CVAR_NOLOCAL": "1",
    }.items():
        monkeypatch.setenv(name, value)


def sizes_of(facts: PatternFacts) -> tuple[int, ...]:
    return (8, 65536) if facts.has_size else (facts.smallest_message_bytes,)


def cells_of(operations: Iterable[PatternFacts], **parameters: str | int) -> list[dict[str, Any]]:
    """A short cell for each operation and size."""
    return [
        {
            "layer": "mpi",
            "pattern": Pattern(facts.name),
            "message_bytes": size,
            "receive": "library",
            "ranks": list(range(facts.most_ranks or RANKS)),
            "verify_messages": TURNS,
            "parameters": parameters,
            "stopping": {"maximum_samples": 60, "maximum_seconds": 0.1},
        }
        for facts in operations
        for size in sizes_of(facts)
    ]


LATE = "calls did all ranks begin within"


def check_measured(outcome: Outcome, cells: list[dict[str, Any]]) -> None:
    measured = in_time(outcome, cells)
    for line in outcome.lines:
        if line.type == "cell_failed":
            assert line.values["back_to_back_ns"] > 0
    for number in measured:
        cell = cells[number]
        line, end = outcome.cell(number), outcome.end(number)
        assert (line.pattern, line.metric, line.channels) == (cell["pattern"], Metric.OPERATION_TIME, 1)
        assert end.verified == TURNS * RESULTS.get(line.pattern, len(cell["ranks"])), line.pattern
        assert end.corrupted == 0, line.pattern
        assert len(outcome.times(number)) == end.measured >= 1
        assert all(time > 0 for time in outcome.times(number))
        assert end.missed == len(missed_of(outcome, number)) < end.measured
        assert end.values["window_ns"] > 0
        assert end.values["back_to_back_ns"] > 0
        assert (end.values.get("barrier_start_ns", 0) > 0) == ("mode" in PATTERNS[line.pattern].parameters)
        assert end.values["start_tolerance_ns"] <= max(LEAST_TOLERANCE_NS, end.values["start_limit_ns"])


def in_time(outcome: Outcome, cells: list[dict[str, Any]]) -> list[int]:
    """The cells whose ranks could begin together; all others failed for that and nothing else."""
    assert outcome.code == 0, outcome.stderr
    failed = {line.cell: line.reason for line in outcome.lines if line.type == "cell_failed"}
    assert [reason for reason in failed.values() if LATE not in reason] == []
    if len(failed) == len(cells):
        pytest.skip("more ranks than idle processors: none of these calls could begin together on all of them")
    return [number for number in range(len(cells)) if number not in failed]


def missed_of(outcome: Outcome, number: int) -> list[int]:
    """The positions of samples whose window some rank missed."""
    batches = [line for line in outcome.lines if isinstance(line, Samples) and line.cell == number]
    return [batch.first_index + position for batch in batches for position in batch.missed]


@pytest.mark.parametrize("mode", ["blocking", "nonblocking", "persistent"])
def test_every_collective_is_verified_and_measured(probe: Callable[..., Outcome], mode: str):
    cells = cells_of(COLLECTIVES, mode=mode)
    outcome = probe(cells, ranks=RANKS)
    check_measured(outcome, cells)
    for number in in_time(outcome, cells):
        cell = cells[number]
        blocks = 1 if cell["pattern"] in WHOLE else RANKS
        assert outcome.cell(number).bytes_per_sample == blocks * cell["message_bytes"]


def test_a_nonblocking_call_tells_how_much_of_it_hides_behind_computing(probe: Callable[..., Outcome]):
    cells = cells_of([PATTERNS[Pattern.ALLREDUCE]], mode="nonblocking")
    outcome = probe(cells, ranks=RANKS)
    for number in in_time(outcome, cells):
        values = outcome.end(number).values
        assert {"pure_ns", "compute_ns", "overlapped_ns", "overlap"} <= values.keys()
        assert min(values["pure_ns"], values["compute_ns"], values["overlapped_ns"]) > 0
        hidden = values["pure_ns"] + values["compute_ns"] - values["overlapped_ns"]
        shorter = min(values["pure_ns"], values["compute_ns"])
        assert values["overlap"] == pytest.approx(min(1.0, max(0.0, hidden / shorter)))


@pytest.mark.parametrize("sync", ["fence", "lock", "flush"])
def test_every_access_to_a_window_is_verified_and_measured(probe: Callable[..., Outcome], sync: str):
    cells = cells_of(ONE_SIDED, sync=sync)
    outcome = probe(cells)
    check_measured(outcome, cells)
    for number in in_time(outcome, cells):
        assert outcome.cell(number).bytes_per_sample == cells[number]["message_bytes"]


def test_partitions_and_threads_carry_messages_both_ways(probe: Callable[..., Outcome]):
    partitioned = [
        {**cell, "parameters": {"partitions": partitions}}
        for cell in cells_of([PATTERNS[Pattern.PARTITIONED]])
        for partitions in (1, 8)
    ]
    threaded = [{**cell, "parameters": {"threads": 1}} for cell in cells_of([PATTERNS[Pattern.THREADED]])]
    cells = [*partitioned, *threaded]
    outcome = probe(cells)
    check_measured(outcome, cells)
    for number in in_time(outcome, cells):
        assert outcome.cell(number).bytes_per_sample == 2 * cells[number]["message_bytes"]


def test_each_thread_has_its_own_message(probe: Callable[..., Outcome]):
    cells = cells_of([PATTERNS[Pattern.THREADED]], threads=3)
    outcome = probe(cells)
    for number in in_time(outcome, cells):
        end = outcome.end(number)
        assert (end.verified, end.corrupted) == (TURNS * 2 * 3, 0)
        assert outcome.cell(number).bytes_per_sample == 2 * 3 * cells[number]["message_bytes"]


def test_an_operation_of_some_ranks_in_any_order_leaves_the_others_alone(probe: Callable[..., Outcome]):
    cells = cells_of([PATTERNS[Pattern.ALLTOALL], PATTERNS[Pattern.NEIGHBOR_ALLTOALL], PATTERNS[Pattern.GATHER]])
    cells = [{**cell, "ranks": [3, 1, 2]} for cell in cells]
    outcome = probe(cells, ranks=RANKS)
    for number in in_time(outcome, cells):
        assert outcome.cell(number).ranks == (3, 1, 2)
        assert (outcome.end(number).verified > 0, outcome.end(number).corrupted) == (True, 0)


REFUSALS: list[tuple[str, int, dict[str, str | int], str]] = [
    ("barrier", 8, {}, "a barrier has no message"),
    ("allreduce", 12, {}, "must be a multiple of 8"),
    ("accumulate", 4, {}, "must be a multiple of 8"),
    ("fetch-and-op", 16, {}, "of one 64-bit integer"),
    ("bcast", 0, {}, "message_bytes must be at least 1"),
    ("bcast", 8, {"mode": "sometimes"}, "mode must be one of blocking, nonblocking, persistent"),
    ("bcast", 8, {"sync": "fence"}, "parameter 'sync' is unknown to bcast"),
    ("put", 8, {"sync": "later"}, "sync must be one of fence, lock, flush"),
    ("partitioned", 8, {"partitions": 3}, "must be a multiple of the 3 partitions"),
    ("partitioned", 8, {"partitions": 0}, "partitions must be an integer from 1 to 1024"),
]


def test_what_an_operation_cannot_do_is_refused_with_the_reason(probe: Callable[..., Outcome]):
    cells = [
        {"layer": "mpi", "pattern": pattern, "message_bytes": size, "receive": "library", "parameters": parameters}
        for pattern, size, parameters, _ in REFUSALS
    ]
    outcome = probe(cells)
    assert outcome.code == 0, outcome.stderr
    for number, (*_, reason) in enumerate(REFUSALS):
        assert outcome.failed(number).code is FailureCode.UNSUPPORTED
        assert reason in outcome.failed(number).reason


def test_every_rank_tells_how_long_mpi_took_to_start(probe: Callable[..., Outcome]):
    header = probe(cells_of([PATTERNS[Pattern.BARRIER]]), ranks=RANKS).header
    assert len(header.ranks) == RANKS
    assert all(rank.start_up_ns is not None and rank.start_up_ns > 100_000 for rank in header.ranks)
