from __future__ import annotations

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.analysing import letters_of
from fabricbench.model import Layer, Pattern
from support.synthetic_run import SyntheticCell

from .conftest import MakeRun


@pytest.mark.slow
def test_the_27th_fabric_is_in_the_report_as_well(make_run: MakeRun):
    names = [f"f{index:02d}" for index in range(28)]
    medians = {name: 50e3 * (1 + index / 10) for index, name in enumerate(names)}
    run = make_run([SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, medians, samples=5)], blocks=2)
    found = analyse([run]).fabrics
    assert [fabric.name for fabric in found] == names
    assert [fabric.letter for fabric in found][-3:] == ["Z", "AA", "AB"]
    assert letters_of(26 + 26 * 26) == "AAA"
