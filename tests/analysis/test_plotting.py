"""Any tests on one pair of axes: against numbers that were computed by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings.plot import Plot, PlotSeries, PlotY
from fabricbench.analysis.plot_tests import PlotRequest
from fabricbench.analysis.plotting import find_plot, quantity_named
from fabricbench.analysis.traits import is_value
from fabricbench.chapters.operations import COEFFICIENTS
from fabricbench.chapters.workload_tables import SPEED_UPS
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.provenance import Origin
from fabricbench.record.store import Run
from support.plots import quiet_run, timed
from support.synthetic_run import Noise, SyntheticCell
from support.workload_runs import KERNELS, run_of_workloads

SIZES = (0, 1000, 4000)
BOTH = {"slow": 99_000.0, "fast": 19_000.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cells = [
        *timed(Layer.TCP, Pattern.PINGPONG, SIZES, BOTH),
        *timed(Layer.MPI, Pattern.PINGPONG, SIZES, {"slow": 199_000.0, "fast": 39_000.0}, receive=Receive.LIBRARY),
        *timed(Layer.MPI, Pattern.SENDRECV, (1000,), {"slow": 79_000.0}, receive=Receive.LIBRARY),
        *(
            SyntheticCell(
                Layer.TCP, Pattern.INCAST, 4096, {"slow": 90e6 / flows}, parameters={"flows": flows}, samples=20
            )
            for flows in (1, 4, 16)
        ),
    ]
    return quiet_run(tmp_path_factory.mktemp("plot") / "today", cells)


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_workloads(tmp_path_factory.mktemp("plot") / "loads")


def plot(run: Run, y: PlotY, x: str = "size", *series: str, baseline: str | None = None, **where: str) -> Plot:
    chosen = {name: tuple(texts.split("|")) for name, texts in where.items()}
    return find_plot([run], PlotRequest(x, y, series, chosen, baseline))


def values(series: PlotSeries) -> dict[object, float]:
    return {point.x: point.y.value for point in series.points}


def test_half_a_round_trip_is_half_of_it(run: Run):
    tcp, mpi = plot(run, PlotY.HALF_ROUND_TRIP, "size", "layer", fabric="slow").series
    assert values(tcp) == {0: 49_500.0, 1000: 50_000.0, 4000: 51_500.0}
    assert values(mpi) == {0: 99_500.0, 1000: 100_000.0, 4000: 101_500.0}


def test_the_throughput_of_a_ping_pong_is_its_bytes_over_half_the_round_trip(run: Run):
    slow, fast = plot(run, PlotY.THROUGHPUT, layer="tcp", pattern="pingpong").series
    # 8,000 bits in 50 us and in 10 us, 32,000 in 51.5 us and in 11.5 us; of 0 bytes there is none.
    assert values(slow) == pytest.approx({1000: 160e6, 4000: 32e3 / 51.5e-6})
    assert values(fast) == pytest.approx({1000: 800e6, 4000: 32e3 / 11.5e-6})


def test_send_receive_counts_what_goes_either_way(run: Run):
    (series,) = plot(run, PlotY.THROUGHPUT, pattern="sendrecv").series
    assert values(series) == pytest.approx({1000: 16_000 / 80e-6})


def test_an_interval_of_what_is_turned_over_has_its_ends_in_order(tmp_path: Path):
    cells = timed(Layer.TCP, Pattern.PINGPONG, (1000,), BOTH)
    noisy = quiet_run(tmp_path / "run", cells, noise=Noise(launch=0.05, sample=0.01))
    for series in plot(noisy, PlotY.THROUGHPUT).series:
        (point,) = series.points
        assert point.y.low is not None
        assert point.y.high is not None
        assert point.y.low < point.y.value < point.y.high
        assert (point.launches, len(point.values)) == (6, 6)


def test_too_few_launches_have_no_interval(tmp_path: Path):
    few = quiet_run(tmp_path / "run", timed(Layer.TCP, Pattern.PINGPONG, (1000,), BOTH), blocks=3)
    assert {point.y.low for point in plot(few, PlotY.ROUND_TRIP).points} == {None}


def test_a_swept_parameter_is_an_axis(run: Run):
    (series,) = plot(run, PlotY.THROUGHPUT, "flows", pattern="incast").series
    assert values(series) == pytest.approx({1: 90e6, 4: 22.5e6, 16: 5.625e6}, rel=1e-4)


def test_series_are_told_apart_by_what_differs_and_by_nothing_else(run: Run):
    found = plot(run, PlotY.ROUND_TRIP)
    assert found.told_apart_by == ("fabric", "layer")
    assert [tuple(one.traits.values()) for one in found.series] == [
        ("slow", "tcp"),
        ("slow", "mpi"),
        ("fast", "tcp"),
        ("fast", "mpi"),
    ]
    assert found.common["pattern"] == "pingpong"


def test_runs_are_configurations_on_one_pair_of_axes(run: Run, tmp_path: Path):
    other = quiet_run(tmp_path / "other", timed(Layer.TCP, Pattern.PINGPONG, SIZES, {"slow": 49_000.0}))
    asked = PlotRequest("size", PlotY.ROUND_TRIP, (), {"layer": ("tcp",), "fabric": ("slow",)})
    found = find_plot([run, other], asked)
    assert {one.traits["run"]: values(one)[1000] for one in found.series} == {"today": 100_000.0, "other": 50_000.0}
    by_date = find_plot(
        [run, other], PlotRequest("date", PlotY.ROUND_TRIP, ("run",), asked.where | {"size": ("1000",)})
    )
    assert len(by_date.points) == 2


def test_a_coefficient_is_the_difference_over_the_baseline(run: Run):
    (series,) = plot(run, PlotY.COEFFICIENT, layer="tcp").series
    assert values(series) == pytest.approx({0: 19 / 99 - 1, 1000: 20 / 100 - 1, 4000: 23 / 103 - 1}, rel=1e-6)
    (turned,) = plot(run, PlotY.COEFFICIENT, baseline="fast", layer="tcp").series
    assert values(turned)[1000] == pytest.approx(100 / 20 - 1, rel=1e-6)
    assert turned.traits == {"fabric": "slow"}


@pytest.mark.slow
def test_seconds_and_gains_of_loads_over_ranks(loads: Run):
    slow, fast = plot(loads, PlotY.SECONDS, "ranks", load="CG.W").series
    assert values(slow) == pytest.approx(
        {ranks: KERNELS["CG"].seconds("fast-ethernet", ranks) for ranks in (1, 4)}, rel=0.02
    )
    assert values(fast) == pytest.approx({ranks: KERNELS["CG"].seconds("myrinet", ranks) for ranks in (1, 4)}, rel=0.02)
    gains = plot(loads, PlotY.SPEED_UP, "ranks", load="CG.W", fabric="fast-ethernet").series[0]
    shares = plot(loads, PlotY.EFFICIENCY, "ranks", load="CG.W", fabric="fast-ethernet").series[0]
    assert values(gains)[1] == values(shares)[1] == 1.0
    assert values(gains)[4] == pytest.approx(values(slow)[1] / values(slow)[4], rel=0.02)
    assert values(shares)[4] == pytest.approx(values(gains)[4] / 4)
    assert values(plot(loads, PlotY.SECONDS, "nodes", load="CG.W").series[0]) == values(slow)


@pytest.mark.slow
def test_levels_coefficients_and_gains_are_those_of_the_report(loads: Run, tmp_path: Path):
    found = SPEED_UPS.of(analyse([loads]))
    gains = plot(loads, PlotY.SPEED_UP, "ranks", load="*.W", ranks="4")
    assert {(one.traits["fabric"], one.traits["load"]): one.points[0].y for one in gains.series} == {
        (one.fabric, one.subject): one.times for one in found if one.subject.endswith(".W")
    }
    cells = timed(Layer.MPI, Pattern.ALLREDUCE, (8, 800), BOTH, ranks=(0, 1, 2, 3))
    noisy = quiet_run(tmp_path / "run", cells, nodes=4, noise=Noise(launch=0.02, sample=0.05), blocks=8)
    findings = analyse([noisy])
    (coefficients,) = plot(noisy, PlotY.COEFFICIENT).series
    assert {point.x: point.y for point in coefficients.points} == {
        one.key.message_bytes: one.coefficient for one in COEFFICIENTS.of(findings)
    }
    levels = plot(noisy, PlotY.OPERATION_TIME)
    assert {(point.traits["fabric"], point.x): point.y for point in levels.points} == {
        (one.fabric, one.key.message_bytes): one.median for one in findings.summaries
    }


def test_a_load_by_load_has_a_series_for_each_number_of_ranks(loads: Run):
    found = plot(loads, PlotY.SECONDS, "load", fabric="myrinet", ranks="1|4")
    assert found.told_apart_by == ("ranks",)
    assert [point.x for point in found.series[0].points] == ["CG.W", "EP.W", "FT.W", "hpcg", "hpl"]


def test_what_cannot_be_true_is_left_out_and_named(tmp_path: Path):
    cells = [*timed(Layer.TCP, Pattern.PINGPONG, (1000,), BOTH)]
    cells.append(SyntheticCell(Layer.TCP, Pattern.STREAM, 1000, {"slow": 900e9}, samples=20, messages_per_sample=16))
    found = plot(quiet_run(tmp_path / "run", cells), PlotY.THROUGHPUT)
    assert {one.traits["pattern"] for one in found.points} == {"pingpong"}
    assert found.left_out == ("slow tcp stream run blocking 1000 2 2",)


def test_a_fabric_with_numbers_of_two_origins_is_marked_run_by_run(run: Run, tmp_path: Path):
    other = quiet_run(tmp_path / "other", timed(Layer.TCP, Pattern.PINGPONG, SIZES, {"slow": 49_000.0}))
    testbed = other.manifest.testbed
    hardware = testbed.fabrics[0].model_copy(update={"is_emulated": False})
    bed = testbed.model_copy(update={"fabrics": (hardware,)})
    measured = Run(other.path, other.manifest.model_copy(update={"testbed": bed}))
    asked = PlotRequest("size", PlotY.ROUND_TRIP, (), {"fabric": ("slow",), "layer": ("tcp",)})
    assert find_plot([run, other], asked).marks == {Origin.EMULATED: ("slow",)}
    found = find_plot([run, measured], asked)
    assert [one.name for one in found.fabrics] == ["slow of today", "slow of other"]
    assert found.marks == {Origin.EMULATED: ("slow of today",)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        (PlotRequest("nodez", PlotY.ROUND_TRIP), "--x nodez: no test", "size (4)"),
        (PlotRequest("size", PlotY.ROUND_TRIP, ("mode",)), "--series mode", "fabric (2)"),
        (PlotRequest("size", PlotY.ROUND_TRIP, (), {"colour": ("red",)}), "--where colour", "layer (2)"),
        (
            PlotRequest("size", PlotY.SPEED_UP),
            "has a speed-up",
            "round-trip, half-round-trip, time, throughput, coefficient",
        ),
        (PlotRequest("size", PlotY.ROUND_TRIP, (), {"layer": ("udp",)}), "nothing to draw", "layer tcp, mpi"),
        (PlotRequest("flows", PlotY.ROUND_TRIP), "no test with a round-trip has flows", "fabric, layer"),
        (PlotRequest("size", PlotY.ROUND_TRIP, ("fabric",)), "2 tests of one series stand at size 0", "--series layer"),
        (PlotRequest("size", PlotY.COEFFICIENT, (), {}, "none"), "no fabric none", "slow, fast"),
    ],
)
def test_what_cannot_be_drawn_says_what_there_is(run: Run, asked: PlotRequest, message: str, hint: str):
    with pytest.raises(UsageError) as error:
        find_plot([run], asked)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_more_series_than_can_be_told_apart_are_refused(tmp_path: Path):
    fabrics = {f"f{number}": 1000.0 * (number + 1) for number in range(17)}
    many = quiet_run(tmp_path / "run", timed(Layer.TCP, Pattern.PINGPONG, (64,), fabrics), blocks=1)
    with pytest.raises(UsageError, match="17 series cannot be told apart"):
        plot(many, PlotY.ROUND_TRIP)


def test_a_run_counts_once(run: Run):
    with pytest.raises(UsageError, match="today is given twice"):
        find_plot([run, run], PlotRequest("size", PlotY.ROUND_TRIP))


def test_an_unknown_quantity_names_those_of_the_run(run: Run):
    with pytest.raises(UsageError) as error:
        quantity_named("latency", [run])
    assert str(error.value.hint).endswith("has round-trip, half-round-trip, time, throughput, coefficient")
    assert quantity_named("throughput", [run]) is PlotY.THROUGHPUT


@pytest.mark.parametrize(
    ("value", "text", "is_it"),
    [
        ("IS.W", "IS*", True),
        ("tcp", "tc", False),
        (65536, "64KiB", True),
        (64, "64", True),
        (64, "640", False),
        (4, "4.0", False),
    ],
)
def test_values_are_named_as_people_write_them(value: str | int, text: str, is_it: bool):
    assert is_value(value, text) is is_it
