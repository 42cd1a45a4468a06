"""Figures from findings: valid Vega-Lite, honest about what they show, one colour for each fabric."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from xml.etree import ElementTree as ET

import altair as alt
import pytest
from pydantic.fields import FieldInfo

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import (
    CellSummary,
    Comparison,
    Crossover,
    Distribution,
    Findings,
    LadderStep,
)
from fabricbench.chapters.network_map import MAPS, PALE
from fabricbench.errors import UsageError
from fabricbench.report.drawing.figure import AHEAD_OPACITY, UNDECIDED, Panel, Spec
from fabricbench.report.figures import build, builders, draw, paper_spec, present
from fabricbench.report.formats import FORMATS, FigureFormat, Format
from fabricbench.report.palette import COLOURS, colour_range, shape_range
from fabricbench.report.words import cell_words, value_words
from support.chapter_rows import with_rows
from support.example_conditions import OF_CONDITIONS, findings_in_conditions
from support.example_curves import OF_CURVES, odd_findings
from support.example_findings import (
    before_after_findings,
    busy_findings,
    example_findings,
    hostile_findings,
    small_findings,
    three_fabric_findings,
)
from support.example_one_fabric import OF_ONE, run_of_one_fabric
from support.example_rdma import OF_RDMA, rdma_cells, rdma_findings
from support.example_stages import OF_STAGES, findings_with_stages
from support.example_trend import OF_TREND, findings_with_trend

DRAWN = ("ladder", "matrix")
"""Figures that altair makes charts of in `make test`: of points and lines, of a matrix. The others take a second each."""


EVERY_FIGURE = [
    name for name in builders() if name not in OF_CONDITIONS | OF_RDMA | OF_ONE | OF_TREND | OF_CURVES | OF_STAGES
]


@pytest.fixture(scope="module")
def conditions(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_in_conditions(tmp_path_factory.mktemp("conditions") / "run")


@pytest.fixture(scope="module")
def of_rdma(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return rdma_findings(tmp_path_factory.mktemp("rdma") / "run", rdma_cells(queue_pairs=(1, 4)))


@pytest.fixture(scope="module")
def of_one_fabric(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return analyse([run_of_one_fabric(tmp_path_factory.mktemp("one") / "run")])


@pytest.fixture(scope="module")
def of_stages(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_with_stages(tmp_path_factory.mktemp("stages") / "run")


@pytest.fixture(scope="module")
def with_trend(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_with_trend(tmp_path_factory.mktemp("nights"))


@pytest.fixture(scope="module")
def with_anomalies(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return odd_findings(tmp_path_factory.mktemp("odd") / "run")


@pytest.fixture
def findings_with(
    conditions: Findings,
    of_rdma: Findings,
    of_one_fabric: Findings,
    with_trend: Findings,
    with_anomalies: Findings,
    of_stages: Findings,
) -> Callable[[str], Findings]:
    """Small findings that hold something for a figure."""
    special = {
        OF_CONDITIONS: conditions,
        OF_RDMA: of_rdma,
        OF_ONE: of_one_fabric,
        OF_TREND: with_trend,
        OF_CURVES: with_anomalies,
        OF_STAGES: of_stages,
    }
    return lambda name: next((one for names, one in special.items() if name in names), small_findings())


@pytest.mark.slow
@pytest.mark.parametrize("name", builders())
def test_a_figure_is_valid_vega_lite(name: str, findings_with: Callable[[str], Findings]):
    spec = paper_spec(name, findings_with(name))
    assert spec["concat"]
    alt.TopLevelConcatSpec.validate(spec)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in DRAWN else pytest.mark.slow) for one in builders()]
)
def test_a_figure_is_an_altair_chart(name: str, findings_with: Callable[[str], Findings]):
    chart = draw(name, findings_with(name))
    assert isinstance(chart, alt.ConcatChart)
    assert chart.to_dict(validate=True)["concat"]


@pytest.mark.parametrize("make", [example_findings, three_fabric_findings, before_after_findings, hostile_findings])
def test_every_figure_is_there_with_its_table_and_caption(make: Callable[[], Findings]):
    findings = make()
    figures = present(findings, is_interactive=True)
    assert list(figures) == EVERY_FIGURE
    for figure in figures.values():
        assert figure.panels
        assert figure.table.rows
        assert all(len(row) == len(figure.table.columns) for row in figure.table.rows)
        assert ("mulated" in figure.caption) is findings.is_emulated


def test_an_emulated_figure_says_so_on_paper():
    subtitle = paper_spec("ladder", small_findings())["title"]["subtitle"]
    assert any("Emulated" in line for line in subtitle)
    assert not any("mulated" in line for line in paper_spec("ladder", before_after_findings())["title"]["subtitle"])


def colour_scales(spec: object) -> list[Spec]:
    """Every colour scale anywhere in a specification."""
    if isinstance(spec, dict):
        own = [spec["color"]["scale"]] if isinstance(spec.get("color"), dict) and "scale" in spec["color"] else []
        return own + [scale for value in spec.values() for scale in colour_scales(value)]
    return [scale for value in spec for scale in colour_scales(value)] if isinstance(spec, list) else []


def test_a_fabric_has_one_colour_in_every_figure():
    findings = three_fabric_findings()
    expected = dict(zip((fabric.name for fabric in findings.fabrics), COLOURS, strict=False))
    for figure in present(findings).values():
        for panel in figure.panels:
            for scale in colour_scales(panel.spec):
                if scale["domain"] in ([-1, 0, 1], ["computing", "MPI"]):
                    continue  # a heat map: between two fabrics' colours, or slow and fast; the split of a time
                colours = dict(zip(scale["domain"], scale["range"], strict=True))
                assert expected.items() <= colours.items()


def test_the_eighth_fabric_differs_from_the_first_by_its_shape():
    findings = small_findings()
    many = findings.model_copy(update={"fabrics": findings.fabrics[:1] * 9})
    looks = list(zip(colour_range(many), shape_range(many), strict=True))
    assert len(set(looks)) == 9


def test_verdicts_have_different_marks_in_the_forest():
    figure = build("verdict", example_findings())
    assert figure is not None
    points = [layer["mark"] for layer in figure.panels[0].spec["layer"] if layer["mark"]["type"] == "point"]
    assert [(mark.get("shape"), mark.get("filled")) for mark in points] == [
        ("diamond", None),
        (None, True),
        ("M-1,-1L1,1M1,-1L-1,1", None),
    ]


def panels_of(name: str, findings: Findings) -> list[Panel]:
    figure = build(name, findings, is_interactive=True)
    assert figure is not None
    return list(figure.panels)


def domains(panel: Panel, channel: str) -> set[tuple[float, ...]]:
    """The domains of one channel's scales in all layers of a panel."""
    scales = [layer["encoding"].get(channel, {}).get("scale") for layer in panel.spec["layer"]]
    return {tuple(scale["domain"]) for scale in scales if scale and "domain" in scale}


@pytest.mark.parametrize(
    ("name", "channel"),
    [
        ("verdict", "x"),
        ("round-trip-ratios", "x"),
        ("topologies", "x"),
        ("one-way", "x"),
        ("speed-up", "y"),
        ("workload-ratios", "x"),
        ("incast", "y"),
    ],
)
def test_the_panels_of_one_figure_share_their_axis(name: str, channel: str):
    assert len(set.union(*(domains(panel, channel) for panel in panels_of(name, example_findings())))) == 1


@pytest.mark.parametrize("name", ["round-trip", "throughput"])
def test_the_curves_that_users_meet_share_both_axes(name: str):
    met = [panel for panel in panels_of(name, example_findings()) if panel.tags["layer"] in ("tcp", "mpi")]
    for channel in ("x", "y"):
        assert len(met) == 2
        assert len(set.union(*(domains(panel, channel) for panel in met))) == 1


def test_two_sizes_are_not_joined_by_a_straight_line():
    for panel in panels_of("round-trip", small_findings()):
        lines = [layer for layer in panel.spec["layer"] if layer["mark"]["type"] == "line"]
        assert {row["is course"] for row in panel.spec["data"]["values"]} == {False}
        (loose,) = [layer for layer in lines if "!datum['is course']" in str(layer["transform"])]
        assert loose["mark"]["strokeDash"] == [1, 4]


def test_one_that_is_ahead_is_paler_than_one_that_is_faster():
    findings = before_after_findings()
    ahead = [cell for cell in findings.cells if cell.verdict.is_ahead]
    assert ahead
    points = [
        layer["mark"]
        for name in ("round-trip-ratios", "throughput-ratios")
        for panel in panels_of(name, findings)
        for layer in panel.spec["layer"]
        if layer["mark"]["type"] == "point"
    ]
    assert any(point.get("fillOpacity") == AHEAD_OPACITY for point in points)


def test_a_kernel_without_a_leader_is_grey_and_hollow():
    (panel,) = panels_of("workload-ratios", example_findings())
    rows = {row["workload"][:2]: row for row in panel.spec["data"]["values"]}
    assert (rows["IS"]["fabric"], rows["IS"]["strength"]) == ("myrinet", 1.0)
    assert (rows["EP"]["fabric"], rows["EP"]["strength"]) == ("", 0.0)
    point = panel.spec["layer"][-1]["encoding"]
    assert point["fill"]["value"] == point["stroke"]["value"] == UNDECIDED


def test_an_undecided_operation_has_no_fabrics_colour():
    (panel,) = panels_of("collectives", example_findings())
    for row in panel.spec["data"]["values"]:
        assert (row["heat"] == 0) == ("faster" not in row["verdict"] and "ahead" not in row["verdict"])


def test_few_samples_are_dots_and_no_size_is_offered_for_what_has_none():
    figure = build("distributions", example_findings(), is_interactive=True)
    assert figure is not None
    assert 0 not in figure.sizes
    (few,) = [panel for panel in figure.panels if "npb" in panel.title]
    assert "sizes" not in few.tags
    assert {layer["mark"]["type"] for layer in few.spec["layer"]} == {"rule", "point"}
    dots = next(layer for layer in few.spec["layer"] if layer["mark"]["type"] == "point")["data"]["values"]
    assert len(dots) == 6
    whole = [panel for panel in figure.panels if "npb" not in panel.title]
    assert all("area" in {layer["mark"]["type"] for layer in panel.spec["layer"]} for panel in whole)


def test_only_fabrics_under_test_stand_beside_the_studies():
    (panel,) = panels_of("published", before_after_findings())
    drawn = {row["fabric"] for layer in panel.spec["layer"] for row in layer["data"]["values"] if "fabric" in row}
    assert drawn == {"gigabit (before)", "gigabit (after)"}
    figure = build("published", before_after_findings())
    assert figure is not None
    assert any("fast-ethernet" in row for row in figure.table.rows)


def test_a_share_that_no_wire_can_carry_is_told_in_words_and_is_no_point():
    share = panels_of("ladder", busy_findings())[2]
    assert all(row["value"] <= 1.005 for row in share.spec["data"]["values"])
    (words,) = [layer for layer in share.spec["layer"] if layer["mark"]["type"] == "text"]
    assert [row["share of line rate"] for row in words["data"]["values"]] == ["949.5 %, impossible"]


def test_an_unknown_figure_and_one_without_data_are_refused_with_what_there_is():
    with pytest.raises(UsageError, match="no figure 'pie'") as refused:
        draw("pie", small_findings())
    assert "ladder" in str(refused.value.hint)
    bare = small_findings().model_copy(update={"distributions": ()})
    assert "distributions" not in present(bare)
    with pytest.raises(UsageError, match="hold nothing"):
        draw("distributions", bare)


def is_of_findings(field: FieldInfo) -> bool:
    """Whether a field holds what was found, not who, where and how."""
    return field.default == () or field.annotation in (
        tuple[CellSummary, ...],
        tuple[Comparison, ...],
        tuple[Crossover, ...],
        tuple[LadderStep, ...],
        tuple[Distribution, ...],
    )


def test_findings_without_any_cell_have_no_figures_and_still_a_report():
    bare = small_findings().model_copy(
        update=dict.fromkeys((name for name, field in Findings.model_fields.items() if is_of_findings(field)), ())
        | {"chapters": {}}
        | {"headline": small_findings().headline.model_copy(update={"effects": (), "more_effects": ()})}
    )
    assert present(bare) == {}
    for name in ("html", "markdown", "json", "text"):
        form = FORMATS[name]
        assert isinstance(form, Format)
        assert bare.headline.sentence.split()[0] in form.render(bare).decode()


@pytest.mark.parametrize(("name", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_figure_is_written_for_papers(name: str, start: bytes):
    form = FORMATS[name]
    assert isinstance(form, FigureFormat)
    content = form.render(small_findings(), "ladder")
    assert content.startswith(start)
    assert len(content) > 5_000


@pytest.mark.parametrize("name", ["ladder", "first-screen"])
def test_an_svg_carries_the_fonts_of_its_text(name: str):
    form = FORMATS["svg"]
    assert isinstance(form, FigureFormat)
    root = ET.fromstring(form.render(small_findings(), name))
    style = next(one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}style"))
    faces = dict(re.findall(r"font-family:Arimo;font-weight:(\d+);src:url\(data:font/woff2;base64,([\w+/=]+)\)", style))
    assert set(faces) == {"400", "700"}
    assert all(b64decode(face).startswith(b"wOF2") for face in faces.values())
    assert sum(map(len, faces.values())) < 40_000
    drawn = ET.tostring(root, encoding="unicode")
    assert "Arimo, Liberation Sans, Arial" in drawn
    assert not re.search(r"url\((?!data:|#)", drawn)


def width_mm(drawn: str) -> float:
    return float(drawn.partition('width="')[2].partition('"')[0]) / 96 * 25.4


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("round-trip", 85.0),
        ("verdict", 85.0),
        ("collectives", 85.0),
        ("topologies", 175.0),
        *(pytest.param(name, width, marks=pytest.mark.slow) for name in EVERY_FIGURE for width in (85.0, 175.0)),
    ],
)
def test_a_figure_fits_a_column_of_a_paper_or_two_and_its_text_stays_8_points(name: str, width: float):
    form = FORMATS["svg"]
    assert isinstance(form, FigureFormat)
    drawn = form.render(example_findings(), name, width).decode()
    assert width_mm(drawn) == pytest.approx(width, abs=0.7)
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', drawn)) / 96 * 72 >= 8


@pytest.mark.parametrize("name", ["incast", "speed-up", "condition-gains"])
def test_a_figure_for_a_paper_says_whose_a_colour_is(name: str, findings_with: Callable[[str], Findings]):
    form = FORMATS["svg"]
    assert isinstance(form, FigureFormat)
    findings = findings_with(name)
    drawn = form.render(findings, name, 85.0).decode()
    assert drawn.count("role-legend-symbol") == len(findings.fabrics)
    assert all(f">{fabric.name}</text>" in drawn for fabric in findings.fabrics)
    assert width_mm(drawn) == pytest.approx(85.0, abs=0.7)


def test_a_pdf_is_as_wide_as_was_asked_for():
    form = FORMATS["pdf"]
    assert isinstance(form, FigureFormat)
    (box,) = re.findall(rb"MediaBox \[0 0 ([\d.]+)", form.render(small_findings(), "verdict", 85.0))
    assert float(box) / 72 * 25.4 == pytest.approx(85.0, abs=0.5)


def layers_of(spec: Spec) -> list[Spec]:
    return [layer for one in spec.get("layer", []) for layer in (layers_of(one) or [one])]


def test_a_fabric_has_one_shape_in_every_figure():
    findings = three_fabric_findings()
    expected = dict(zip((fabric.name for fabric in findings.fabrics), shape_range(findings), strict=True))
    seen = 0
    for figure in present(findings).values():
        for panel in figure.panels:
            for layer in layers_of(panel.spec):
                if layer["mark"]["type"] != "point" or layer["mark"].get("color"):
                    continue
                if layer["mark"].get("size", 30) <= 5:
                    continue  # single launches: dots too small for a shape
                shape = layer["encoding"]["shape"]
                scale = shape.get("condition", shape)["scale"]
                assert expected.items() <= dict(zip(scale["domain"], scale["range"], strict=True)).items(), figure.name
                seen += 1
    assert seen > 50


def test_marks_that_carry_a_fabric_are_not_pale():
    for figure in present(example_findings()).values():
        for panel in figure.panels:
            for layer in layers_of(panel.spec):
                if layer["mark"]["type"] in ("point", "bar") and figure.name != "distributions":
                    assert layer["mark"].get("opacity", 1 if layer["mark"]["type"] == "bar" else 0.7) >= 0.9, (
                        figure.name
                    )


def test_a_matrix_in_which_nobody_is_slow_has_no_full_colour():
    findings = example_findings()
    calm = tuple(one.model_copy(update={"slow": (), "unexplained": ()}) for one in MAPS.of(findings))
    (panel, *_) = panels_of("matrix", with_rows(findings, maps=calm))
    assert max(abs(row["heat"]) for row in panel.spec["data"]["values"]) <= PALE
    one = calm[0]
    even = one.model_copy(
        update={"matrix": tuple(tuple(v and 100.0 + 0.5 * i for i, v in enumerate(row)) for row in one.matrix)}
    )
    (panel,) = panels_of("matrix", with_rows(findings, maps=[even]))
    assert {row["heat"] for row in panel.spec["data"]["values"]} == {0.0}


def test_throughputs_that_all_fill_their_wire_are_told_in_a_sentence():
    findings = example_findings()
    full = tuple(step.model_copy(update={"share_of_line_rate": 0.96}) for step in findings.ladder)
    figure = build("ladder", findings.model_copy(update={"ladder": full}))
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["Round trip of a small message"]
    assert "every layer reaches 96 to 96 % of the line rate" in figure.caption


def test_panels_of_three_fabrics_stand_metric_by_metric_and_pair_by_pair():
    panels = panels_of("verdict", three_fabric_findings())
    seen = [(panel.tags["metric"], panel.sides) for panel in panels]
    assert [metric for metric, _ in seen] == sorted((metric for metric, _ in seen), key=[m for m, _ in seen].index)
    assert [sides for _, sides in seen[:3]] == [sides for _, sides in seen[3:]]


def test_launches_stand_in_order_of_time_with_one_place_for_each_block():
    findings = example_findings()
    panels = panels_of("order", findings)
    assert [panel.title for panel in panels] == [effect.what for effect in findings.headline.effects]
    for panel, effect in zip(panels, findings.headline.effects, strict=True):
        drawn = {(row["fabric"], row["block"]): row["value"] for row in panel.spec["data"]["values"]}
        for reading in effect.readings:
            assert [drawn.get((reading.fabric, block)) for block in range(1, len(reading.launches) + 1)] == list(
                reading.launches
            )


def test_launches_of_a_slower_group_are_hollow_and_named_in_the_table():
    findings = example_findings()
    effect = findings.headline.effects[0]
    grouped = effect.model_copy(
        update={"readings": (effect.readings[0].model_copy(update={"slow": (1,)}), *effect.readings[1:])}
    )
    headline = findings.headline.model_copy(update={"effects": (grouped,)})
    figure = build("order", findings.model_copy(update={"headline": headline}))
    assert figure is not None
    (panel,) = figure.panels
    slow = [(row["fabric"], row["block"]) for row in panel.spec["data"]["values"] if row["slow"]]
    assert slow == [(effect.readings[0].fabric, 2)]
    points = [layer for layer in panel.spec["layer"] if layer["mark"]["type"] == "point"]
    assert [(layer["mark"]["filled"], layer["transform"][-1]["filter"]) for layer in points] == [
        (True, "!datum.slow"),
        (False, "datum.slow"),
    ]
    assert "Hollow points are the slower of two groups" in figure.caption
    marked = [row for row in figure.table.rows if "slower group" in str(row)]
    assert len(marked) == 1


def test_a_tail_reaches_from_the_median_to_the_slowest_sample():
    findings = example_findings()
    figure = build("tails", findings, is_interactive=True)
    assert figure is not None
    summaries = {(one.fabric, cell_words(one.key)): one for one in findings.summaries}
    for test, fabric, median, *_, slowest, samples in figure.table.rows:
        summary = summaries[str(fabric), str(test)]
        assert str(median) == value_words(summary.key.metric, summary.quantiles["0.5"])
        assert str(slowest) == value_words(summary.key.metric, summary.maximum)
        assert str(samples) == f"{summary.samples:,}"
    for panel in figure.panels:
        line, point = panel.spec["layer"]
        assert line["data"] == point["data"]
        lines: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for row in line["data"]["values"]:
            lines.setdefault((row["fabric"], row["bytes"]), []).append((row["slower"], row["value"]))
        for places in lines.values():
            assert places == sorted(places)
            assert places[0][0] == 2
    assert figure.rests_on == ""
    assert "intervals" not in str(paper_spec("tails", findings)["title"])
