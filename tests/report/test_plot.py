"""One pair of axes with any series: what is drawn of a plot, in which looks and words, and what stands beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.analysis.findings.plot import Plot, PlotY
from fabricbench.analysis.plot_tests import PlotRequest
from fabricbench.analysis.plotting import find_plot
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.quantity import RateUnit, rate_units, rates_in
from fabricbench.record.store import Run
from fabricbench.report.drawing.axes import EMPTY_PLACE, even_channel, logarithmic_channel, rate_labels
from fabricbench.report.drawing.drawn import ORIGIN, drawn_csv
from fabricbench.report.drawing.figure import UNDECIDED, Figure, Spec
from fabricbench.report.figures import spec_of
from fabricbench.report.figures.beside import published_beside
from fabricbench.report.figures.plot import plot_figure
from fabricbench.report.formats import FORMATS, FigureFormat
from fabricbench.report.palette import COLOURS
from support.plots import quiet_run, timed
from support.synthetic_run import SyntheticCell
from support.workload_runs import run_of_workloads

SIZES = (1000, 2000, 4000, 8000)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    ns = {"fast-ethernet": 99_000.0, "atm-oc3": 19_000.0}
    cells = [
        *timed(Layer.TCP, Pattern.PINGPONG, SIZES, ns),
        *timed(Layer.MPI, Pattern.PINGPONG, SIZES, ns),
        *(SyntheticCell(Layer.TCP, Pattern.STREAM, size, dict.fromkeys(ns, 90e6), samples=20) for size in SIZES),
    ]
    return quiet_run(tmp_path_factory.mktemp("plot") / "run", cells)


@pytest.fixture(scope="module")
def class_a(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_workloads(tmp_path_factory.mktemp("plot") / "a", problem_class="A")


def plot(run: Run, y: PlotY, x: str = "size", *series: str, **where: str) -> Plot:
    return find_plot([run], PlotRequest(x, y, series, {name: tuple(text.split("|")) for name, text in where.items()}))


def figure(of: Plot, **options: Any) -> Figure:
    return plot_figure(of, **({"width": 560.0} | options))


def rows(of: Plot, **options: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(drawn_csv(figure(of, **options), of))))


def channels(of: Figure, name: str) -> list[dict[str, Any]]:
    return [layer["encoding"][name] for layer in of.panels[0].spec["layer"] if name in layer["encoding"]]


def test_the_numbers_beside_it_are_the_medians_in_the_units_of_the_axes(run: Run):
    drawn = [row for row in rows(plot(run, PlotY.THROUGHPUT, layer="tcp", pattern="pingpong")) if row["interval"]]
    of_one = {row["fabric"]: row for row in drawn if row["size"] == "1000.0"}
    assert len(drawn) == 8
    # 8,000 bits in half of 100 us, and in half of 20 us.
    assert {name: float(row["value"]) for name, row in of_one.items()} == pytest.approx(
        {"fast-ethernet": 160e6, "atm-oc3": 800e6}
    )
    row = of_one["atm-oc3"]
    assert (row["size in"], row["value in"], row["launches"], row["series"]) == ("B", "bit/s", "6", "atm-oc3")
    assert (row["layer"], row["pattern"], row["run"], row[ORIGIN]) == ("tcp", "pingpong", "run", "emulated")


def test_a_fabric_has_its_colour_and_what_else_differs_a_dash(run: Run):
    colour = channels(figure(plot(run, PlotY.ROUND_TRIP, fabric="atm-oc3", layer="tcp")), "color")[0]
    assert colour["scale"] == {"domain": ["atm-oc3"], "range": [COLOURS[1]]}
    assert colour["legend"] is None
    both = figure(plot(run, PlotY.ROUND_TRIP))
    named = ["fast-ethernet, tcp", "fast-ethernet, mpi", "atm-oc3, tcp", "atm-oc3, mpi"]
    assert channels(both, "color")[0]["scale"] == {"domain": named, "range": [COLOURS[0]] * 2 + [COLOURS[1]] * 2}
    assert {row["dash"] for row in both.panels[0].spec["data"]["values"]} == {"0", "1"}
    layers = figure(plot(run, PlotY.ROUND_TRIP, fabric="atm-oc3"))
    assert channels(layers, "color")[0]["scale"] == {"domain": ["tcp", "mpi"], "range": [*COLOURS[:2]]}


def test_what_all_series_share_stands_above_them_and_in_no_name(run: Run):
    drawn = figure(plot(run, PlotY.ROUND_TRIP, "size", "fabric", "layer", layer="tcp"))
    assert channels(drawn, "color")[0]["scale"]["domain"] == ["fast-ethernet", "atm-oc3"]
    assert drawn.panels[0].title == "tcp ping-pong"


def test_the_picture_names_series_units_and_where_numbers_come_from(run: Run):
    of = plot(run, PlotY.THROUGHPUT, pattern="pingpong")
    written = FORMATS["svg"]
    assert isinstance(written, FigureFormat)
    svg = written.render_spec(spec_of(figure(of), of, None, panel_width=560)).decode()
    for text in ("fast-ethernet, mpi", "atm-oc3, tcp", "Mbit/s", "message size", "Emulated fabrics"):
        assert text in svg


def test_the_caption_says_what_points_are(run: Run):
    pingpong = figure(plot(run, PlotY.THROUGHPUT, layer="tcp", pattern="pingpong"))
    assert pingpong.title == "Throughput over message size"
    assert pingpong.panels[0].title == "tcp ping-pong"
    assert pingpong.rests_on == (
        "Medians of n = 6 launches, with 95 % nonparametric intervals. Throughput of a ping-pong: bytes over half the round trip."
    )
    coefficient = figure(plot(run, PlotY.COEFFICIENT, layer="tcp"))
    assert "A being fast-ethernet" in (coefficient.rests_on or "")
    assert coefficient.panels[0].title == "tcp ping-pong, atm-oc3"


@pytest.mark.parametrize(
    ("y", "log", "scales"),
    [
        (PlotY.THROUGHPUT, None, ("log", "log")),
        (PlotY.THROUGHPUT, (True, False), ("log", None)),
        (PlotY.ROUND_TRIP, (False, False), (None, None)),
        (PlotY.COEFFICIENT, None, ("log", None)),
    ],
)
def test_axes_are_logarithmic_as_suits_them_or_as_asked(
    run: Run, y: PlotY, log: tuple[bool, bool] | None, scales: tuple[str | None, str | None]
):
    drawn = figure(plot(run, y, layer="tcp"), log=log)
    assert tuple(channels(drawn, axis)[-1]["scale"].get("type") for axis in ("x", "y")) == scales


@pytest.mark.slow
def test_bars_begin_at_0_and_have_their_intervals(class_a: Run):
    of = plot(class_a, PlotY.SECONDS, "load", ranks="4", pattern="npb")
    drawn = figure(of, has_bars=True)
    kinds = [layer["mark"]["type"] for layer in drawn.panels[0].spec["layer"]]
    assert kinds == ["bar", "point", "rule"]
    assert channels(drawn, "y")[0]["scale"]["domain"][0] == 0
    assert channels(drawn, "x")[0]["sort"] == ["CG.A", "EP.A", "FT.A"]
    bars = [row for row in rows(of, has_bars=True) if row["interval"]]
    assert {row["drawn as"] for row in bars} == {"bar+rule"}
    assert {row["value in"] for row in bars} == {"s"}


def test_ideal_speed_up_is_a_line_from_the_fewest_ranks(class_a: Run):
    drawn = figure(plot(class_a, PlotY.SPEED_UP, "ranks", load="CG.A"))
    lines = [layer for layer in drawn.panels[0].spec["layer"] if layer["mark"]["type"] == "line"]
    (line,) = [layer for layer in lines if layer["mark"].get("color") == UNDECIDED]
    assert line["data"]["values"] == [{"ranks": 1, "value": 1.0}, {"ranks": 4, "value": 4.0}]
    assert "as many times as there are more ranks" in (drawn.rests_on or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"has_bars": True, "log": (False, True)}, "bars begin at 0"),
        ({"log": (True, False)}, "names have no logarithm"),
    ],
)
def test_axes_that_cannot_be_are_refused(class_a: Run, options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        figure(plot(class_a, PlotY.SECONDS, "load", ranks="4"), **options)


def test_a_coefficient_has_no_logarithm(run: Run):
    with pytest.raises(UsageError, match="may be negative"):
        figure(plot(run, PlotY.COEFFICIENT, layer="tcp"), log=(False, True))


def test_published_streams_stand_beside_streams_right_of_all_sizes(run: Run):
    of = plot(run, PlotY.THROUGHPUT, layer="tcp")
    found = list(published_beside(of))
    assert {one.figure.as_published: [of.series[at].traits for at in one.series] for one in found} == {
        "94.85 Mbit/s": [{"fabric": "fast-ethernet", "pattern": "stream"}],
        "133.88 Mbit/s": [{"fabric": "atm-oc3", "pattern": "stream"}],
    }
    drawn = [row for row in rows(of, published=found) if row["source"]]
    assert {(row["series"], row["value"], row["size"]) for row in drawn} == {
        ("fast-ethernet, stream", "94850000.0", ""),
        ("atm-oc3, stream", "133880000.0", ""),
    }
    assert all(float(row["right of all sizes"]) > max(SIZES) for row in drawn)
    assert "Salamon and Mink, 1999 (94.85 Mbit/s" in (figure(of, published=found).rests_on or "")


@pytest.mark.parametrize(
    ("y", "where"),
    [
        (PlotY.THROUGHPUT, {"pattern": "pingpong"}),
        (PlotY.THROUGHPUT, {"layer": "mpi"}),
        (PlotY.ROUND_TRIP, {"layer": "tcp"}),
        (PlotY.HALF_ROUND_TRIP, {"layer": "mpi"}),
    ],
)
def test_nothing_published_stands_beside_what_is_of_another_kind(run: Run, y: PlotY, where: dict[str, str]):
    assert list(published_beside(plot(run, y, **where))) == []


@pytest.mark.slow
def test_published_kernels_stand_beside_the_same_class_on_as_many_ranks(class_a: Run, tmp_path: Path):
    bars = list(published_beside(plot(class_a, PlotY.SECONDS, "load", ranks="4")))
    assert {(one.figure.fabric, one.x): one.figure.value for one in bars} == {
        ("fast-ethernet", "CG.A"): 33.54,
        ("fast-ethernet", "EP.A"): 93.52,
        ("myrinet", "CG.A"): 21.15,
        ("myrinet", "EP.A"): 94.26,
    }
    assert list(published_beside(plot(class_a, PlotY.SECONDS, "load", ranks="1"))) == []
    over_ranks = list(published_beside(plot(class_a, PlotY.SECONDS, "ranks", load="CG.A")))
    assert {one.x for one in over_ranks} == {4}
    smaller = run_of_workloads(tmp_path / "w")
    assert list(published_beside(plot(smaller, PlotY.SECONDS, "load", ranks="4"))) == []


def test_a_published_range_of_sizes_is_drawn_over_them(tmp_path: Path):
    sci = quiet_run(tmp_path / "run", timed(Layer.MPI, Pattern.PINGPONG, (1, 32, 1000), {"sci": 8_000.0}))
    of = plot(sci, PlotY.HALF_ROUND_TRIP)
    drawn = [row for row in rows(of, published=list(published_beside(of))) if row["source"]]
    assert {(row["value"], row["from size"], row["to size"]) for row in drawn} == {
        ("3500.0", "0.0", "32.0"),
        ("4600.0", "0.0", "32.0"),
    }


def test_an_empty_message_has_a_place_of_its_own_and_is_0_bytes_in_the_numbers(tmp_path: Path):
    sizes = quiet_run(tmp_path / "run", timed(Layer.MPI, Pattern.PINGPONG, (0, 1, 32), {"sci": 8_000.0}))
    of = plot(sizes, PlotY.HALF_ROUND_TRIP)
    points = [row for row in rows(of) if row["message"]]
    assert [(row["size"], row["message"]) for row in points] == [("0.0", "0 B"), ("1.0", "1 B"), ("32.0", "32 B")]
    (axis, *_) = [channel["axis"] for channel in channels(figure(of), "x") if "axis" in channel]
    assert axis["values"][0] == EMPTY_PLACE
    assert "datum.value < 1 ? '0 B'" in axis["labelExpr"]


@pytest.mark.parametrize("unit", list(RateUnit))
@pytest.mark.parametrize("channel", [even_channel, logarithmic_channel])
@pytest.mark.parametrize("highest", [3e4, 1.25e9])
def test_throughputs_have_round_ticks_in_whatever_unit(channel: Callable[..., Spec], unit: RateUnit, highest: float):
    with rates_in(unit):
        scale = next((one for _, one in rate_units() if highest >= one), 1.0)
        ticks = channel([highest / 2, highest], rate_labels(), "throughput")["axis"]["values"]
    assert len(ticks) > 1
    assert all(round(tick / scale, 3) == pytest.approx(tick / scale) for tick in ticks)
