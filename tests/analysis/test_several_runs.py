"""Reading several runs as one side: whose launch is whose, what is left out, what gave nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis.channels import read_sharing
from fabricbench.analysis.sides import read_sides
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from support.synthetic_run import SyntheticCell, ladder_cells, write_synthetic_run

from .conftest import MakeRun, two


@pytest.mark.slow
def test_launches_of_several_runs_stand_one_run_after_the_other(make_run: MakeRun):
    runs = [make_run(two(1.1), f"r{seed}", seed=seed, blocks=2 + seed) for seed in range(4)]
    single = [read_sides([run]) for run in runs]
    sides = read_sides(before=runs[:2], after=runs[2:])
    assert [side.name for side in sides] == ["one (before)", "one (after)", "other (before)", "other (after)"]
    before = sides[0]
    assert {launch.subject for side in sides for launch in side.launches} == {""}  # whatever their blocks are now
    assert (before.blocks, before.run_of) == ([0, 1, 2, 3, 4], (0, 0, 1, 1, 1))
    assert (before.run, before.runs) == (runs[0], tuple(runs[:2]))
    key, cell = next(iter(before.cells.items()))
    of_first, of_second = (sides_of_run[0].cells[key] for sides_of_run in single[:2])
    assert cell.launch_values.tolist() == [*of_first.launch_values, *of_second.launch_values]
    assert cell.tails[0.99].tolist() == [*of_first.tails[0.99], *of_second.tails[0.99]]
    assert cell.pooled.size == of_first.pooled.size + of_second.pooled.size
    assert np.all(np.diff(cell.pooled) >= 0)
    assert cell.counts["sent"] == of_first.counts["sent"] + of_second.counts["sent"]
    assert [len(before.launches_of_run(run)) for run in (0, 1)] == [2, 3]
    assert single[0][0].run_of == (0, 0)


def test_a_cell_that_one_run_of_a_side_lacks_is_left_out_and_named(make_run: MakeRun):
    whole = [make_run(two(1.0), f"r{seed}", seed=seed, blocks=3) for seed in range(3)]
    fewer = make_run([cell for cell in two(1.0) if cell.layer is not Layer.MPI], "fewer", blocks=3)
    before, after = read_sides(before=[whole[0], fewer], after=whole[1:])[:2]
    assert {key.layer for key in after.cells} - {key.layer for key in before.cells} == {Layer.MPI}
    assert len(before.left_out) == 6
    assert all("mpi" in text and str(fewer.path) in text for text in before.left_out)
    assert after.left_out == ()


def test_no_run_counts_twice_and_both_sides_are_needed(make_run: MakeRun):
    one, other = (make_run(two(1.0), f"r{seed}", seed=seed, blocks=2) for seed in range(2))
    with pytest.raises(UsageError, match="given twice"):
        read_sides(before=[one, other], after=[one])
    for before, after in (([one], []), ([], [one])):
        with pytest.raises(UsageError) as caught:
            read_sides(before=before, after=after)
        assert "--before and --after" in str(caught.value.hint)
    with pytest.raises(UsageError):
        read_sides([one], before=[one], after=[other])


def test_channels_of_each_run_fall_into_its_own_launches(tmp_path: Path):
    shares = {(1, 0, 0): 0.5, (2, 0, 0): 0.5}
    uneven = {(1, 0, 0): 0.9, (2, 0, 0): 0.1}
    runs = [
        write_synthetic_run(
            tmp_path / f"r{number}",
            cells=[
                SyntheticCell(
                    Layer.TCP, Pattern.INCAST, 1024, {"one": 50e6}, ranks=(0, 1, 2), channels=2, channel_shares=given
                )
            ],
            blocks=2,
            seed=number + 1,
        )
        for number, given in enumerate((shares, uneven, shares))
    ]
    before, _ = read_sides(before=runs[:2], after=runs[2:])
    (sharing,) = read_sharing(before).values()
    assert sharing.fairness == pytest.approx([1.0, 1.0, 1 / (2 * (0.81 + 0.01)), 1 / (2 * (0.81 + 0.01))], rel=1e-3)


def test_launches_that_failed_or_found_a_rate_of_0_are_counted_as_having_given_nothing(make_run: MakeRun):
    network = [cell for cell in ladder_cells({"one": 100e6}, sizes=(64,)) if cell.layer is Layer.TCP]
    cells = [
        replace(cell, fails_in=frozenset({1, 4}), silent_in=frozenset({5} if cell.pattern is Pattern.STREAM else ()))
        for cell in network
    ]
    found = {key.pattern: cell for key, cell in read_sides([make_run(cells, blocks=6)])[0].cells.items()}
    assert (found[Pattern.PINGPONG].gave_nothing, found[Pattern.PINGPONG].expected) == (2, 6)
    assert (found[Pattern.STREAM].gave_nothing, found[Pattern.STREAM].expected) == (3, 6)


@pytest.mark.slow
def test_launches_that_were_not_to_measure_a_cell_or_are_invalid_are_not_counted(make_run: MakeRun):
    run = make_run(two(1.0), invalid=["b00-one"], missing=["b01-one"])
    one, other = read_sides([run])
    assert {cell.expected for cell in one.cells.values()} == {6}
    assert {cell.expected for cell in other.cells.values()} == {8}
    assert {cell.gave_nothing for side in (one, other) for cell in side.cells.values()} == {0}
    runs = [make_run(two(1.0), f"r{seed}", seed=seed, blocks=3) for seed in range(3)]
    joined = read_sides(before=runs[:2], after=runs[2:])[0]
    assert {cell.expected for cell in joined.cells.values()} == {6}
