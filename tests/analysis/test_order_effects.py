"""Effects of the order in a run's own records: found, told on the first screen, and taken out of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import support.synthetic_run as synthetic
from fabricbench.analysis import analyse
from fabricbench.analysis.order_effects import without_order_effects
from fabricbench.analysis.sides import read_sides
from fabricbench.model import Layer
from fabricbench.record.manifest import PlannedLaunch
from support.synthetic_run import SyntheticCell

from .conftest import MakeRun, two

SLOWER = 1.1


@pytest.fixture
def first_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first launch of each block take a tenth longer on every fabric, or carry as much less."""
    made = synthetic.synthetic_record

    def record(launch: PlannedLaunch, cells: Sequence[SyntheticCell], *others: Any, **named: Any) -> Any:
        def by(cell: SyntheticCell) -> float:
            slower = SLOWER if cell.metric.is_time else 1.0 / SLOWER
            return 1.0 if launch.position else slower

        slower = [
            replace(cell, medians={name: value * by(cell) for name, value in cell.medians.items()}) for cell in cells
        ]
        return made(launch, slower, *others, **named)

    monkeypatch.setattr(synthetic, "synthetic_record", record)


@pytest.mark.slow
@pytest.mark.usefixtures("first_is_slower")
def test_a_first_launch_that_is_slower_is_told_and_not_in_the_ratios(make_run: MakeRun):
    run = make_run(two(1.1), blocks=12)
    plain = read_sides([run])
    sides, words = without_order_effects(plain)
    (told,) = words
    assert told.startswith("the first launch of a block is ")
    assert told.endswith(" % slower, on every fabric")
    conditions = analyse([run]).headline.conditions
    assert f"{told}: ratios are without that" in conditions
    key = next(key for key in plain[0].cells if key.layer is Layer.TCP)
    before, after = ((side[1].cells[key].log_values - side[0].cells[key].log_values).std() for side in (plain, sides))
    assert after < 0.6 * before
    assert (sides[0].cells[key].launch_values == plain[0].cells[key].launch_values).all()


@pytest.mark.slow
def test_a_run_of_which_no_effect_is_shown_is_left_as_it_is(make_run: MakeRun):
    sides = read_sides([make_run(two(1.1), blocks=12)])
    found, words = without_order_effects(sides)
    assert words == ()
    assert all(cell.order is None for side in found for cell in side.cells.values())
