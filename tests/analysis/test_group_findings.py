"""Topologies, congestion, operations and one-way latencies against runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.channels import jain_index
from fabricbench.analysis.findings import Findings, Verdict
from fabricbench.chapters.congestion import CONGESTIONS
from fabricbench.chapters.one_way import ONE_WAYS
from fabricbench.chapters.operations import COEFFICIENTS, OPERATIONS, START_UPS
from fabricbench.chapters.topologies import TOPOLOGIES
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.lines import Clock
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run
from support.synthetic_run import START_UP_NS, Noise, SyntheticCell, synthetic_testbed

from .conftest import MakeRun

ALL = (0, 1, 2, 3)
BED = synthetic_testbed({"a": 100e6, "b": 100e6}, nodes=4)
FULL_TCP = 100e6 * 1448 / 1538


def tcp_incast(flows: int, total: float, **more: object) -> SyntheticCell:
    given = {"samples": 20, "ranks": ALL, "channels": 3 * flows, "parameters": {"flows": flows}} | more
    return SyntheticCell(
        Layer.TCP, Pattern.INCAST, 65536, {"a": total, "b": total / 2}, messages_per_sample=16, **given
    )


def congestor(flows: int = 1) -> PlanCongestor:
    return PlanCongestor(
        layer=Layer.TCP, pattern=Pattern.INCAST, message_bytes=65536, ranks=(5, 2, 3), parameters={"flows": flows}
    )


def test_a_channel_has_its_share_of_the_whole_and_of_what_arithmetic_predicts(make_run: MakeRun):
    ring = SyntheticCell(
        Layer.TCP,
        Pattern.RING,
        65536,
        {"a": 4 * 0.97 * FULL_TCP, "b": 4 * 0.5 * FULL_TCP},
        samples=20,
        ranks=ALL,
        channels=4,
        messages_per_sample=16,
    )
    star = SyntheticCell(
        Layer.TCP, Pattern.STAR, 65536, {"a": 2 * FULL_TCP}, samples=20, ranks=ALL, channels=6, messages_per_sample=16
    )
    found = {
        (one.fabric, one.key.pattern): one for one in TOPOLOGIES.of(analyse([make_run([ring, star], testbed=BED)]))
    }
    on_a, on_b = found["a", Pattern.RING], found["b", Pattern.RING]
    assert on_a.arithmetic == pytest.approx(FULL_TCP)
    assert on_a.throughput.value == pytest.approx(4 * on_a.channel_throughput.value)
    assert on_a.share_of_arithmetic is not None
    assert on_a.share_of_arithmetic.value == pytest.approx(0.97, rel=0.02)
    assert on_a.share_of_arithmetic.low is not None
    assert on_b.share_of_arithmetic is not None
    assert on_b.share_of_arithmetic.value == pytest.approx(0.5, rel=0.02)
    of_star = found["a", Pattern.STAR]
    assert of_star.arithmetic == pytest.approx(FULL_TCP / 3)
    assert of_star.share_of_arithmetic is not None
    assert of_star.share_of_arithmetic.value == pytest.approx(1.0, rel=0.02)
    assert of_star.fairness is None


def test_turns_tell_their_time_and_what_a_channel_carries_in_it(make_run: MakeRun):
    cell = SyntheticCell(
        Layer.TCP, Pattern.EXCHANGE, 1000, {"a": 2e5, "b": 4e5}, ranks=ALL, channels=8, messages_per_sample=8
    )
    one = next(one for one in TOPOLOGIES.of(analyse([make_run([cell], testbed=BED)])) if one.fabric == "a")
    assert one.time is not None
    assert one.time.value == pytest.approx(2e5, rel=0.02)
    assert one.channel_throughput.value == pytest.approx(1000 * 8e9 / 2e5, rel=0.02)
    assert one.arithmetic is None


def test_an_incast_tells_goodput_loss_and_fairness_from_its_channels(make_run: MakeRun):
    fair = {(source, 0, 0): 1 / 3 for source in (1, 2, 3)}
    unfair = {(1, 0, 0): 1.0, (2, 0, 0): 0.0, (3, 0, 0): 0.0}
    lossy = SyntheticCell(
        Layer.UDP,
        Pattern.INCAST,
        1472,
        {"a": 9e7, "b": 9e7},
        samples=10,
        ranks=ALL,
        channels=3,
        messages_per_sample=100,
        channel_shares=fair,
        lost_on={(1, 0, 0): 600, (2, 0, 0): 300},
    )
    run = make_run([tcp_incast(1, 9e7, channel_shares=unfair), lossy], testbed=BED)
    found = {one.key.layer: one for one in TOPOLOGIES.of(analyse([run])) if one.fabric == "a"}
    tcp, udp = found[Layer.TCP], found[Layer.UDP]
    assert tcp.fairness is not None
    assert tcp.fairness.value == pytest.approx(1 / 3)
    assert udp.fairness is not None
    assert udp.fairness.value == pytest.approx(1.0)
    assert udp.loss_share is not None
    assert udp.loss_share.value == pytest.approx(900 / 3000)


def test_jains_index_is_1_where_all_have_the_same_and_1_over_n_where_one_has_everything():
    assert jain_index(np.full(7, 3.0)) == pytest.approx(1.0)
    assert jain_index(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert np.isnan(jain_index(np.zeros(3)))


def test_the_impact_factor_is_paired_within_launches_and_above_1_is_worse_for_times_and_rates(make_run: MakeRun):
    def both(pattern: Pattern, size: int, alone: float, beside: float) -> list[SyntheticCell]:
        more = {"messages_per_sample": 16} if pattern is Pattern.STREAM else {}
        return [
            SyntheticCell(Layer.TCP, pattern, size, {"a": value}, samples=300, congestor=other, **more)
            for value, other in ((alone, None), (beside, congestor(4)))
        ]

    cells = [*both(Pattern.PINGPONG, 64, 1e5, 3e5), *both(Pattern.STREAM, 65536, 9e7, 3e7)]
    run = make_run(cells, testbed=BED, noise=Noise(launch=0.0, sample=0.02))
    time, rate = CONGESTIONS.of(analyse([run]))
    for one in (time, rate):
        assert one.congestor.flows == 4
        assert one.launches == 8
        assert one.samples_a_launch == 300
        for factor in (one.impact, one.impact_p99, one.impact_p999):
            assert factor is not None
            assert factor.value == pytest.approx(3.0, rel=0.05)
            assert factor.low is not None
            assert factor.high is not None
            assert factor.low <= factor.value <= factor.high
    assert time.isolated.value == pytest.approx(1e5, rel=0.02)
    assert time.key.variant == ""


def test_an_idle_congestor_has_an_impact_of_1_within_its_interval_as_often_as_95_percent_says(make_run: MakeRun):
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, {"a": 1e5}, congestor=other)
        for size in range(1, 41)
        for other in (None, congestor())
    ]
    impacts = [one.impact for one in CONGESTIONS.of(analyse([make_run(cells, testbed=BED)]))]
    assert len(impacts) == 40
    holding = sum(one is not None and bool(one.low and one.high) and one.low <= 1.0 <= one.high for one in impacts)
    assert holding >= 34  # 38 are expected; fewer than 34 would come by chance once in 290


def test_a_cell_that_was_not_measured_alone_has_no_factor(make_run: MakeRun):
    cells = [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5}, congestor=congestor())]
    assert CONGESTIONS.of(analyse([make_run(cells, testbed=BED)])) == ()


def operations(make_run: MakeRun) -> Findings:
    library = {"receive": Receive.LIBRARY, "ranks": ALL}
    cells = [
        SyntheticCell(Layer.MPI, Pattern.ALLREDUCE, 8192, {"a": 4e5, "b": 3e5}, missed=20, **library),
        SyntheticCell(
            Layer.MPI, Pattern.ALLGATHER, 1024, {"a": 2e5, "b": 2e5}, messages_per_sample=4, values={}, **library
        ),
        SyntheticCell(
            Layer.MPI,
            Pattern.BCAST,
            1024,
            {"a": 2e5, "b": 2e5},
            parameters={"mode": "nonblocking"},
            values={
                "overlap": 0.7,
                "back_to_back_ns": 1.5e5,
                "barrier_start_ns": 1.8e5,
                "start_tolerance_ns": 1e5,
                "clock_error_ns": 3e4,
            },
            **library,
        ),
        SyntheticCell(Layer.MPI, Pattern.BARRIER, 0, {"a": 1e5, "b": 1e5}, **library),
    ]
    return analyse([make_run(cells, testbed=BED, blocks=8)])


def test_collectives_have_bandwidths_as_their_users_know_them(make_run: MakeRun):
    found = {one.key.pattern: one for one in OPERATIONS.of(operations(make_run)) if one.fabric == "a"}
    allreduce, allgather, barrier = (found[each] for each in (Pattern.ALLREDUCE, Pattern.ALLGATHER, Pattern.BARRIER))
    assert allreduce.algorithm_bandwidth is not None
    assert allreduce.bus_bandwidth is not None
    assert allreduce.algorithm_bandwidth.value == pytest.approx(8192 * 8e9 / 4e5, rel=0.02)
    assert allreduce.bus_bandwidth.value == pytest.approx(1.5 * allreduce.algorithm_bandwidth.value)
    assert allreduce.missed_share == pytest.approx(0.1)
    assert allgather.algorithm_bandwidth is not None
    assert allgather.algorithm_bandwidth.value == pytest.approx(4 * 1024 * 8e9 / 2e5, rel=0.02)
    assert allgather.bus_factor == 0.75
    assert barrier.algorithm_bandwidth is None
    assert barrier.bus_bandwidth is None


def test_what_a_nonblocking_call_hides_is_told(make_run: MakeRun):
    found = {one.key.pattern: one for one in OPERATIONS.of(operations(make_run)) if one.fabric == "a"}
    overlap = found[Pattern.BCAST].overlap
    assert overlap is not None
    assert overlap.value == pytest.approx(0.7)
    assert found[Pattern.ALLREDUCE].overlap is None


def test_what_a_plain_loop_would_show_is_told_beside_the_time_from_an_agreed_start(make_run: MakeRun):
    found = {one.key.pattern: one for one in OPERATIONS.of(operations(make_run)) if one.fabric == "a"}
    back_to_back = found[Pattern.BCAST].back_to_back
    assert back_to_back is not None
    assert back_to_back.value == pytest.approx(1.5e5)
    assert found[Pattern.BCAST].time.value == pytest.approx(2e5, rel=0.02)
    assert found[Pattern.ALLGATHER].back_to_back is None


def test_how_well_starts_and_clocks_agreed_stands_beside_the_time(make_run: MakeRun):
    found = operations(make_run)
    by_pattern = {one.key.pattern: one for one in OPERATIONS.of(found) if one.fabric == "a"}
    bcast, allgather = by_pattern[Pattern.BCAST], by_pattern[Pattern.ALLGATHER]
    assert bcast.barrier_start is not None
    assert bcast.barrier_start.value == pytest.approx(1.8e5)
    assert (bcast.start_tolerance_ns, bcast.clock_error_ns) == (1e5, 3e4)
    assert (allgather.barrier_start, allgather.start_tolerance_ns, allgather.clock_error_ns) == (None, None, None)
    texts = [warning.text for warning in found.warnings]
    assert sum("up to 50 % of the time after the agreed start (most in mpi (" in text for text in texts) == 1
    assert sum("are known to no better than 15 % of the time (most in mpi (" in text for text in texts) == 1


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        ((0, 1), "ranks, 4 on 2 processors, began"),
        ((0, 1, 2, 3), "ranks, though each had a processor to itself, began"),
        ((), "ranks began, as where they share processors,"),
    ],
)
def test_whether_ranks_shared_processors_is_said_as_far_as_the_record_tells(
    make_run: MakeRun, cpus: tuple[int, ...], said: str
):
    cell = SyntheticCell(
        Layer.MPI,
        Pattern.BCAST,
        1024,
        {"a": 2e5},
        receive=Receive.LIBRARY,
        ranks=ALL,
        values={"start_tolerance_ns": 1e5},
    )
    run = make_run([cell], testbed=BED)
    for launch in run.launches:
        assert launch.summary.header is not None
        ranks = tuple(rank.model_copy(update={"cpus": cpus, "host": "n0"}) for rank in launch.summary.header.ranks)
        header = launch.summary.header.model_copy(update={"ranks": ranks})
        told = launch.summary.model_copy(update={"header": header})
        (launch.directory / "launch.json").write_text(told.model_dump_json(by_alias=True))
    (warning,) = [one.text for one in analyse([Run.open(run.path)]).warnings if "after the agreed start" in one.text]
    assert said in warning


def test_the_coefficient_is_the_ratio_less_1_with_its_interval_and_verdict(make_run: MakeRun):
    found = {one.key.pattern: one for one in COEFFICIENTS.of(operations(make_run))}
    allreduce = found[Pattern.ALLREDUCE]
    assert allreduce.coefficient.value == pytest.approx(-0.25, abs=0.02)
    assert allreduce.coefficient.low is not None
    assert allreduce.coefficient.high is not None
    assert allreduce.coefficient.low < -0.25 < allreduce.coefficient.high
    assert allreduce.verdict is Verdict.B_FASTER


def test_starting_mpi_counts_on_the_slowest_rank(make_run: MakeRun):
    found = operations(make_run)
    assert {one.fabric: one.time.value for one in START_UPS.of(found)} == dict.fromkeys("ab", START_UP_NS + 3e6)
    assert START_UPS.of(found)[0].ranks == 4


def clock(rank: int, phase: str, error_ns: float, *, is_shared: bool = False) -> Clock:
    return Clock(
        rank=rank,
        phase=phase,
        offset_ns=0,
        drift_ppb=0,
        at_ns=0,
        error_ns=error_ns,
        is_shared=is_shared,
        estimated_offset_ns=0,
        estimated_drift_ppb=0,
        estimated_error_ns=error_ns,
        exchanges=100,
    )


def test_each_direction_is_told_with_the_worst_bound_of_the_clocks(make_run: MakeRun):
    cell = SyntheticCell(
        Layer.UDP, Pattern.ONEWAY, 64, {"a": 9.5e4}, one_way=(2e4, 7e4), values={"clock_error_ns": 900.0}
    )
    clocks = [clock(0, "begin", 0), clock(1, "begin", 800), clock(0, "end", 0), clock(1, "end", 1200)]
    (one,) = ONE_WAYS.of(analyse([make_run([cell], testbed=BED, clocks=clocks)]))
    assert one.forth.value == pytest.approx(2e4, rel=0.02)
    assert one.back.value == pytest.approx(7e4, rel=0.02)
    assert one.total.value == pytest.approx(9e4, rel=0.02)
    assert one.round_trip.value == pytest.approx(9.5e4, rel=0.02)
    assert one.asymmetry.value == pytest.approx(-5e4, rel=0.03)
    assert one.asymmetry.high is not None
    assert one.asymmetry.high < 0
    assert (one.clock_bound_begin_ns, one.clock_bound_end_ns, one.clock_bound_ns) == (900, 1200, 1200)
    assert not one.is_shared_clock


def test_a_shared_clock_is_named_and_an_unknown_bound_is_none(make_run: MakeRun):
    cell = SyntheticCell(Layer.UDP, Pattern.ONEWAY, 64, {"a": 9.5e4}, one_way=(2e4, 7e4))
    shared = [clock(rank, phase, 0, is_shared=True) for rank in (0, 1) for phase in ("begin", "end")]
    (one,) = ONE_WAYS.of(analyse([make_run([cell], "shared", testbed=BED, clocks=shared)]))
    assert one.is_shared_clock
    assert one.clock_bound_ns == 0
    (unknown,) = ONE_WAYS.of(analyse([make_run([cell], "unknown", testbed=BED)]))
    assert unknown.clock_bound_ns is None
    assert not unknown.is_shared_clock


def test_findings_with_all_of_it_are_read_back_from_json(make_run: MakeRun):
    found = operations(make_run)
    assert Findings.model_validate_json(found.model_dump_json()) == found
