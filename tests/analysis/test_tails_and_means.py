"""What a median does not show: stalls, a mean for the other side, a median between two modes, launches with tails of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.analysis.findings import Effect, Grade, Headline
from fabricbench.analysis.measured import Side
from fabricbench.analysis.phrases import MOST_WORDS
from fabricbench.analysis.sides import read_sides
from fabricbench.model import Layer, Metric
from support.simulated_sides import first_screen, keys_of, sides_of

from .conftest import MakeRun, two

Floats = NDArray[np.float64]
KEYS = keys_of((Layer.TCP, Layer.MPI), (64,), ())
BLOCKS = 18


def two_sides(faster: float = 0.05, noise: float = 0.002) -> list[Side]:
    """Round trips of a and b, b that much faster (log) in the median."""
    values = 10.8 + np.random.default_rng(3).normal(0.0, noise, (2, len(KEYS), BLOCKS))
    values[1] -= faster
    return sides_of(KEYS, values, ["a", "b"])


def with_samples(
    sides: Sequence[Side], *, tails: dict[float, Sequence[float]], means: Sequence[float], slow: Sequence[int] = ()
) -> Headline:
    """The screen of sides whose tails and means are so many times the launches' values; of b's `slow` ones 5 to 13 times more."""
    random = np.random.default_rng(5)
    for index, side in enumerate(sides):
        for cell in side.cells.values():
            noise = np.exp(random.normal(0.0, 0.01, BLOCKS))
            cell.tails = {tail: cell.launch_values * times[index] * noise for tail, times in tails.items()}
            cell.means = cell.launch_values * means[index] * noise
            cell.pooled = np.ones(BLOCKS * 1000)
            if index == 1 and slow:
                cell.tails[0.99][list(slow)] *= np.linspace(5.0, 13.0, len(slow))
    return first_screen(sides)[0]


def test_a_fabric_that_stalls_is_not_faster_without_a_word():
    headline = with_samples(two_sides(), tails={0.99: (1.1, 1.1), 0.999: (1.2, 50.0)}, means=(1.0, 1.0))
    assert headline.sentence.startswith("b is faster, but less steady: small MPI messages 5.0 % less time (")
    assert len(headline.sentence.split()) <= MOST_WORDS
    assert headline.exceptions[0].startswith("p99.9 of MPI round trip, 64 B, 39.")
    assert "times slower" in headline.exceptions[0]
    steady = with_samples(two_sides(), tails={0.99: (1.1, 1.1), 0.999: (1.2, 1.2)}, means=(1.0, 1.0))
    assert (steady.sentence.partition(":")[0], steady.exceptions) == ("b is faster", ())


def test_a_mean_that_speaks_for_the_other_fabric_is_named_first():
    headline = with_samples(two_sides(), tails={0.99: (1.1, 1.1), 0.999: (1.2, 50.0)}, means=(1.0, 1.3))
    assert headline.sentence.startswith("b is faster in the median alone: small MPI messages 5.0 % less time (")
    assert headline.exceptions[0].startswith("mean of MPI round trip, 64 B, 2")
    assert headline.exceptions[1].startswith("p99.9 of MPI round trip, 64 B, 39.")


def test_of_several_fabrics_the_fastest_is_told_with_its_stalls_too():
    values = 10.8 + np.random.default_rng(3).normal(0.0, 0.002, (3, len(KEYS), BLOCKS))
    values[1] -= 0.05
    sides = sides_of(KEYS, values, ["a", "b", "c"])
    headline = with_samples(sides, tails={0.99: (1.1, 1.1, 1.1), 0.999: (1.2, 50.0, 1.2)}, means=(1.0, 1.0, 1.0))
    assert headline.sentence.startswith("b is fastest of 3, but less steady, against the next best: ")
    assert headline.exceptions[0].endswith(" than a")


def typical(headline: Headline) -> list[Effect]:
    return [one for one in headline.effects if one.is_typical]


@pytest.mark.parametrize(
    ("faster", "means", "grade"), [(0.18, (1.1, 1.31), Grade.DOUBTFUL), (1.0, (1.1, 1.1), Grade.CLEAR)]
)
def test_a_median_between_two_modes_is_doubtful_unless_the_mean_bears_it_out(
    faster: float, means: Sequence[float], grade: Grade
):
    random = np.random.default_rng(4)
    sides = two_sides(faster)
    modes = [np.where(random.random(20_000) < share, 60e3, 50e3) for share in (0.52, 0.48)]
    for side, samples, mean in zip(sides, modes, means, strict=True):
        for cell in side.cells.values():
            cell.means = cell.launch_values * mean * np.exp(random.normal(0.0, 0.0005, BLOCKS))
            cell.pooled = np.sort(samples * np.exp(random.normal(0.0, 0.01, samples.size)))
    headline = first_screen(sides)[0]
    assert {one.grade for one in typical(headline)} == {grade}
    told = [str(doubt) for one in typical(headline) for doubt in one.doubts]
    assert bool(told) is (grade is Grade.DOUBTFUL)
    assert all(text.startswith("the median on a and b lies between two modes of the samples") for text in told)
    assert headline.sentence.startswith("b seems faster: " if told else "b is faster: ")


def test_the_tail_of_a_row_is_the_median_of_the_launches_and_says_which_are_far_off():
    slow = (1, 4, 8, 11, 15)
    headline = with_samples(two_sides(), tails={0.99: (2.0, 1.1)}, means=(1.0, 1.0), slow=slow)
    (of_mpi, _) = [one for one in headline.effects if not one.is_typical]
    _, of_b = of_mpi.readings
    assert of_b.value == pytest.approx(np.median([one for one in of_b.launches if one is not None]))
    (pair,) = of_mpi.pairs
    assert (pair.value_a, pair.value_b) == pytest.approx([one.value for one in of_mpi.readings])
    assert pair.low is not None
    assert 1.4 < pair.low < 1.7 < pair.times < 2.1, "by the launches that are more, not by a mean over both groups"
    told = [str(doubt) for doubt in of_mpi.doubts]
    assert told[0].startswith("5 of 18 launches on b are 4.9")
    assert " to 12." in told[0]
    assert " times worse than its others: 0." in told[0]


def test_the_means_of_launches_are_those_of_their_samples(make_run: MakeRun):
    one, other = read_sides([make_run(two(1.5), blocks=5)])
    for side in (one, other):
        for key, cell in side.cells.items():
            if key.metric is Metric.ROUND_TRIP_TIME:
                assert cell.means is not None
                assert cell.means.mean() == pytest.approx(cell.pooled.mean())
            else:
                assert cell.means is None
