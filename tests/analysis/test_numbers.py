"""Summaries, comparisons, crossovers and the ladder of runs whose truth is known."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.caution import numbers
from fabricbench.analysis.comparing import adjusted_with_control
from fabricbench.analysis.equal_work import WorkDifference
from fabricbench.analysis.findings import Verdict, WorkloadName
from fabricbench.analysis.material import Material
from fabricbench.analysis.sides import read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.record.reading import Batch
from fabricbench.report.formats import FORMATS, Format
from fabricbench.statistics.decision import PValues
from support.synthetic_run import Noise, SyntheticCell, ladder_cells

from .conftest import NETWORK, MakeRun, scaled, two


@pytest.mark.slow
def test_the_values_of_launches_are_those_of_the_store(make_run: MakeRun):
    run = make_run(two(1.1))
    stored = run.launch_quantiles()
    for side in read_sides([run]):
        for key, cell in side.cells.items():
            rows = stored.filter(
                pl.col("fabric").cast(pl.String) == side.name,
                pl.col("layer").cast(pl.String) == key.layer.value,
                pl.col("metric").cast(pl.String) == key.metric.value,
                pl.col("message_bytes") == key.message_bytes,
            ).sort("block")
            column = "median" if key.metric is Metric.ROUND_TRIP_TIME else "mean"
            assert cell.launch_values == pytest.approx(rows[column].to_numpy())


def test_windows_that_arrive_in_bursts_do_not_exceed_the_wire(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch):
    import support.synthetic_run as synthetic

    plain = synthetic._batches

    def in_bursts(*arguments: Any) -> list[Batch]:
        # a receiver that sleeps through nine windows and then finds them all in its buffer
        batches = plain(*arguments)
        for batch in batches:
            whole = batch.time_ns[: len(batch.time_ns) // 10 * 10].reshape(-1, 10)
            whole[:, 0] += (whole[:, 1:] - 100).sum(axis=1)
            whole[:, 1:] = 100
        return batches

    monkeypatch.setattr(synthetic, "_batches", in_bursts)
    cell = SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"one": 90e6}, samples=200, messages_per_sample=16)
    (summary,) = analyse([make_run([cell])]).summaries
    assert summary.quantiles["0.5"] > 10 * 90e6
    assert summary.median.value == pytest.approx(90e6, rel=0.02)


def test_a_summary_holds_what_was_measured(make_run: MakeRun):
    cell = SyntheticCell(Layer.UDP, Pattern.STREAM, 1024, {"one": 80e6}, samples=50, messages_per_sample=16, lost=3)
    run = make_run([cell], blocks=6)
    (summary,) = analyse([run]).summaries
    times = run.samples().filter(pl.col("phase") == "measured").collect()["time_ns"].to_numpy()
    rates = 1024 * 16 * 8e9 / times
    assert (summary.launches, summary.samples, summary.warmup_samples) == (6, 300, 60)
    assert (summary.sent, summary.lost, summary.verified) == (6 * 50 * 16, 18, 24)
    assert summary.mean == pytest.approx(1024 * 16 * 8e9 * 300 / times.sum())  # total bits over total time
    assert summary.quantiles["0.99"] == pytest.approx(np.quantile(rates, 0.99))
    assert "0.999" not in summary.quantiles  # of 300 samples none lies beyond it
    assert (summary.minimum, summary.maximum) == pytest.approx((rates.min(), rates.max()))
    assert summary.share_of_line_rate == pytest.approx(summary.median.value / 100e6)
    assert summary.share_of_payload_rate == pytest.approx(summary.median.value / (100e6 * 1024 / 1090))


def test_a_histogram_counts_every_sample(make_run: MakeRun):
    findings = analyse([make_run(two(1.0), blocks=3)])
    samples = {(one.fabric, one.key): one.samples for one in findings.summaries}
    assert {(one.fabric, one.key): sum(one.counts) for one in findings.distributions} == samples
    for one in findings.distributions:
        assert len(one.edges) == len(one.counts) + 1
        assert all(np.diff(one.edges) > 0)


@pytest.mark.slow
@pytest.mark.parametrize(("slower", "verdict"), [(1.12, Verdict.A_FASTER), (0.88, Verdict.B_FASTER), (1.0, None)])
def test_every_network_cell_gets_its_verdict_and_memory_stays_out_of_it(
    make_run: MakeRun, slower: float, verdict: Verdict | None
):
    findings = analyse([make_run(two(slower))])
    for one in [*findings.cells, *findings.curves]:
        assert (one.fabric_a, one.fabric_b, one.launches, one.is_paired) == ("one", "other", 8, True)
        if one.layer is Layer.MEMORY or verdict is None:
            assert not one.verdict.is_decided
        else:
            assert one.verdict is verdict
            expected = slower if one.metric is Metric.ROUND_TRIP_TIME else 1 / slower
            assert one.ratio == pytest.approx(expected, rel=0.02)
            assert one.more_blocks_needed is None


def test_a_curve_is_the_geometric_mean_of_its_cells(make_run: MakeRun):
    findings = analyse([make_run(two(1.3))])
    for curve in findings.curves:
        ratios = [one.ratio for one in findings.cells if (one.layer, one.metric) == (curve.layer, curve.metric)]
        assert curve.ratio == pytest.approx(np.exp(np.mean(np.log(ratios))))
        assert curve.message_bytes is None
        assert curve.value_a is None


def test_drift_that_both_fabrics_share_cancels_in_the_ratio(make_run: MakeRun):
    # the launches of a block are compared with each other: reversing one side's blocks must destroy the agreement
    run = make_run(two(1.05), noise=Noise(launch=0.0, sample=0.01))
    ratios = [one for one in analyse([run]).cells if one.layer is not Layer.MEMORY]
    assert all(one.ratio_low < one.ratio < one.ratio_high for one in ratios)  # type: ignore[operator]
    assert max(one.ratio_high / one.ratio_low for one in ratios) < 1.03  # type: ignore[operator]


@pytest.mark.slow
def test_a_crossover_is_the_pair_of_decided_sizes_around_it_and_no_point_without_a_model(make_run: MakeRun):
    sizes = (64, 256, 1024, 4096, 16384, 65536)
    run = make_run(two(lambda cell: 1.0 + 0.05 * (np.log2(cell.message_bytes) - 11.0), sizes=sizes))
    findings = analyse([run])
    trips = [one for one in findings.crossovers if one.metric is Metric.ROUND_TRIP_TIME]
    assert {one.layer for one in trips} == set(NETWORK) - {Layer.FRAME}  # frames end at 1500 B, below the crossing
    for one in trips:
        assert (one.lower_bytes, one.upper_bytes) == (1024, 4096)
        assert (one.message_bytes, one.low, one.high, one.model) == (None, None, None, "")  # a ratio linear in log2
        assert (one.faster_below, one.faster_above) == ("other", "one")
    rates = [one for one in findings.crossovers if one.metric is Metric.THROUGHPUT]
    assert rates
    assert all((one.lower_bytes, one.upper_bytes) == (1024, 4096) for one in rates)
    assert all((one.faster_below, one.faster_above) == ("other", "one") for one in rates)


def test_latency_against_bandwidth_crosses_at_a_point_in_round_trips_and_in_streams(make_run: MakeRun):
    sizes = (64, 256, 1024, 4096, 16384, 65536)
    line = {"one": (20_000.0, 8.0), "other": (30_000.0, 2.0)}  # ns, and ns for each byte: they meet at 10000 / 6 B
    cells = [
        SyntheticCell(Layer.TCP, pattern, size, {name: shape(size, *of) for name, of in line.items()}, samples=50)
        for size in sizes
        for pattern, shape in ((Pattern.PINGPONG, _trip), (Pattern.STREAM, _rate))
    ]
    findings = analyse([make_run(cells, blocks=12, noise=Noise(launch=0.002, sample=0.002))])
    assert {one.metric for one in findings.crossovers} == {Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT}
    for one in findings.crossovers:
        assert (one.lower_bytes, one.upper_bytes, one.model) == (1024, 4096, "Hockney")
        assert one.message_bytes == pytest.approx(10_000 / 6, rel=0.03)
        assert one.low is not None
        assert one.high is not None
        assert 1024 <= one.low < one.message_bytes < one.high <= 4096
        assert one.worst_misfit is not None
        assert one.worst_misfit < 0.02
        assert one.fitted_bytes == sizes
        assert (one.faster_below, one.faster_above) == ("one", "other")


def _trip(size: int, latency_ns: float, ns_per_byte: float) -> float:
    return latency_ns + size * ns_per_byte


def _rate(size: int, latency_ns: float, ns_per_byte: float) -> float:
    return 8e9 * size / _trip(size, latency_ns, ns_per_byte)


@pytest.mark.slow
def test_equal_fabrics_do_not_cross(make_run: MakeRun):
    assert analyse([make_run(two(1.0))]).crossovers == ()


@pytest.mark.slow
def test_the_ladder_climbs_from_frame_to_mpi_and_says_what_each_layer_adds(make_run: MakeRun):
    findings = analyse([make_run(two(1.5))])
    for name, factor in (("one", 1.0), ("other", 1.5)):
        steps = [step for step in findings.ladder if step.fabric == name]
        assert [step.layer for step in steps] == NETWORK
        assert steps[0].added_round_trip is None
        for step in steps[1:]:
            assert step.round_trip_message_bytes == 64
            assert step.added_round_trip is not None
            assert step.added_round_trip.value == pytest.approx(20_000 * factor, rel=0.1)
        for below, step in pairwise(steps):
            shares = [
                {
                    one.key.message_bytes: one.share_of_line_rate
                    for one in findings.summaries
                    if (one.fabric, one.key.layer, one.key.metric) == (name, layer, Metric.THROUGHPUT)
                }
                for layer in (below.layer, step.layer)
            ]
            common = max(shares[0].keys() & shares[1].keys())
            assert common == (1024 if below.layer is Layer.FRAME else 16384)  # a frame carries no more than the MTU
            assert shares[0][common] is not None
            assert shares[1][common] is not None
            assert step.lost_share_of_line_rate == pytest.approx(shares[0][common] - shares[1][common])
            assert step.throughput_message_bytes == 16384


def test_without_a_message_size_that_all_layers_share_nothing_is_said_about_what_a_layer_adds(make_run: MakeRun):
    cells = [
        SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {"one": 50e3}),
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 128, {"one": 70e3}),
    ]
    steps = analyse([make_run(cells)]).ladder
    assert [step.round_trip_message_bytes for step in steps] == [64, 128]
    assert [step.added_round_trip for step in steps] == [None, None]


def test_a_ladder_does_not_mix_sleeping_and_spinning(make_run: MakeRun):
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, 64, {"one": trip * factor}, receive=receive)
        for layer, trip in ((Layer.UDP, 40e3), (Layer.TCP, 50e3))
        for receive, factor in ((Receive.BLOCKING, 1.0), (Receive.POLLING, 0.3))
    ]
    cells.append(SyntheticCell(Layer.MPI, Pattern.PINGPONG, 64, {"one": 55e3}, receive=Receive.LIBRARY))
    steps = analyse([make_run(cells)]).ladder
    assert [(step.layer, step.receive) for step in steps] == [
        (Layer.UDP, Receive.BLOCKING),
        (Layer.TCP, Receive.BLOCKING),
        (Layer.MPI, Receive.LIBRARY),
    ]


@pytest.mark.slow
def test_every_two_of_more_fabrics_are_compared_and_the_baseline_comes_first(make_run: MakeRun):
    factors = {"one": lambda _: 1.0, "two": lambda _: 1.1, "three": lambda _: 0.9}
    run = make_run(scaled(ladder_cells({"slow": 100e6}), factors))
    pairs = {(one.fabric_a, one.fabric_b) for one in analyse([run]).cells}
    assert pairs == {("one", "two"), ("one", "three"), ("two", "three")}
    findings = analyse([run], baseline="two")
    pairs = {(one.fabric_a, one.fabric_b) for one in findings.cells}
    assert pairs == {("two", "one"), ("two", "three"), ("one", "three")}
    assert [(fabric.name, fabric.letter) for fabric in findings.fabrics] == [("two", "A"), ("one", "B"), ("three", "C")]


@pytest.mark.slow
def test_two_runs_are_compared_before_and_after_without_pairing(make_run: MakeRun):
    before, after = make_run(two(1.1), "before"), make_run(two(1.1 * 1.0), "after", seed=2, blocks=6)
    findings = analyse([before, after])
    assert [fabric.name for fabric in findings.fabrics] == [
        "one (before)",
        "one (after)",
        "other (before)",
        "other (after)",
    ]
    assert {(one.fabric_a, one.fabric_b) for one in findings.cells} == {
        ("one (before)", "one (after)"),
        ("other (before)", "other (after)"),
    }
    assert all(not one.is_paired and one.launches == 6 for one in findings.cells)
    assert not {one.verdict for one in findings.cells} & {Verdict.A_FASTER, Verdict.B_FASTER}


@pytest.mark.slow
def test_an_invalid_or_missing_launch_takes_its_block_out_of_the_pairs(make_run: MakeRun):
    run = make_run(two(1.1), invalid=["b02-other"], missing=["b05-one"])
    findings = analyse([run])
    assert {one.launches for one in findings.cells} == {6}
    assert (findings.launches, findings.launches_invalid) == (15, 1)


def test_one_fabric_alone_is_summarised(make_run: MakeRun):
    findings = analyse([make_run([SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 50e3})])])
    assert findings.cells == ()
    assert findings.headline.sentence == "one answers a small TCP message in 49.88 µs (49.69 to 50.07)."
    assert "matter" not in findings.headline.conditions
    for name in ("html", "markdown", "text"):
        form = FORMATS[name]
        assert isinstance(form, Format)
        text = form.render(findings).decode()
        assert "TCP round trip" in text
        assert not re.findall("Best first|Evidence</th>|Evidence \\||Every pair", text)


def test_findings_survive_json(make_run: MakeRun):
    findings = analyse([make_run(two(1.1), blocks=2)])
    assert type(findings).model_validate_json(findings.model_dump_json()) == findings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline": "token-ring"}, "no fabric token-ring"),
        ({"margin": 0.0}, "margin"),
        ({"confidence": 1.5}, "confidence"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make_run: MakeRun, arguments: dict[str, object], message: str):
    run = make_run(two(1.0), blocks=1)
    with pytest.raises(UsageError, match=message):
        analyse([run], **arguments)  # type: ignore[arg-type]


def test_runs_that_share_no_fabric_or_hold_nothing_are_refused(make_run: MakeRun):
    ours = make_run([SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 5e4})], "ours")
    theirs = make_run([SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"other": 5e4})], "theirs")
    with pytest.raises(UsageError, match="share no fabric"):
        analyse([ours, theirs])
    empty = make_run(
        [SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"one": 5e4})], "empty", blocks=1, missing=["b00-one"]
    )
    with pytest.raises(UsageError, match="nothing to analyse"):
        analyse([empty])


def test_the_control_is_corrected_among_itself_too_where_everything_else_differs():
    p_values = np.array([1e-6] * 34 + [0.03, 0.2, 0.5, 0.7, 0.8, 0.9])
    is_control = np.arange(40) >= 34
    adjusted = adjusted_with_control(PValues(p_values, p_values, p_values), is_control).zero
    assert adjusted[0] == pytest.approx(1e-6 * 40 / 34)
    assert adjusted[34] == pytest.approx(0.03 * 6)  # among all 40 it would be 0.034: a false alarm
    assert adjusted[35:].max() <= 1.0


def test_of_three_fabrics_those_with_the_same_work_are_said_to_be_compared(monkeypatch: pytest.MonkeyPatch):
    workload = WorkloadName(parameters=(("workload", "hpl"),), ranks=4)

    def told(**facts: set[str]) -> str:
        found = WorkDifference(
            workload, "hpl", "program sha256", {fact: frozenset(names) for fact, names in facts.items()}
        )
        monkeypatch.setattr(numbers, "differences", lambda _sides: [found])
        (caution,) = numbers.unequal_work(cast("Material", SimpleNamespace(sides=())))
        return caution.text

    assert told(a1={"A", "B"}, b2={"C"}).endswith("so only fabrics where it is the same are compared")
    assert told(a1={"A"}, b2={"B"}, c3={"C"}).endswith("so nothing of it is compared")
    assert told(a1={"A", "B"}, b2={"B", "C"}).endswith("so nothing of it is compared")  # B changed while it ran
