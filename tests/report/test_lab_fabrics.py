"""What reports say of fabrics of the lab: that some are scaled, and that some were built from what was published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.analysis import Findings, analyse
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.model import Layer, Pattern
from fabricbench.report import figures
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.terminal import render_terminal
from support.synthetic_run import SyntheticCell, write_synthetic_run


def findings_of(folder: Path, fabrics: str) -> Findings:
    """A run of a TCP ping-pong and a stream in a lab of these fabrics, the first a tenth slower than the second."""
    testbed = plan_lab("two", 2, parse_fabrics(fabrics), [0, 1]).testbed()
    factors = {fabric.name: 1.0 - 0.1 * index for index, fabric in enumerate(testbed.fabrics)}
    trips = {name: 200_000.0 * factor for name, factor in factors.items()}
    rates = {name: 90e6 / factor for name, factor in factors.items()}
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, trips, samples=20),
        SyntheticCell(Layer.TCP, Pattern.STREAM, 65536, rates, samples=20, messages_per_sample=16),
    ]
    return analyse([write_synthetic_run(folder / "run", cells=cells, testbed=testbed)])


def rendered(name: str, findings: Findings) -> str:
    if name == "terminal":
        return " ".join(render_terminal(findings, 120, color=False).split())
    form = FORMATS[name]
    assert isinstance(form, Format)
    return form.render(findings).decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_every_form_says_that_a_fabric_is_scaled_and_only_where_it_is(tmp_path: Path, name: str):
    scaled, plain = (findings_of(tmp_path / each, f"myrinet,{each}") for each in ("roce-100g", "sci"))
    assert "scaled 1:80" in rendered(name, scaled)
    assert "scaled 1:" not in rendered(name, plain)


def test_every_figure_names_the_scaled_fabrics(tmp_path: Path):
    drawn = figures.present(findings_of(tmp_path, "myrinet,roce-100g"))
    assert drawn
    for figure in drawn.values():
        assert "Scaled 1:80: roce-100g." in figure.caption, figure.name


def test_data_for_programs_have_the_scale(tmp_path: Path):
    facts = json.loads(rendered("json", findings_of(tmp_path, "myrinet,roce-100g")))["fabrics"]
    assert [fabric.get("scale") for fabric in facts] == [None, 80]


def test_a_published_figure_that_a_fabric_is_built_from_is_no_agreement(tmp_path: Path):
    built = figures.present(findings_of(tmp_path / "built", "fast-ethernet,atm-oc3"))["published"]
    assert "; atm-oc3 is built from it: no agreement." in built.caption
    assert any("atm-oc3 is built from it" in row[-1] for row in built.table.rows)
    asked = figures.present(findings_of(tmp_path / "asked", "fast-ethernet,atm-oc3:delay=50ns"))["published"]
    assert "built from" not in asked.caption
