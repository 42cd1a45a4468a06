"""What was found of runs in order of time: for each test of a fabric its value in every run, and where that changed."""

from __future__ import annotations

from datetime import datetime

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model
from fabricbench.record.past_run import PassedOver
from fabricbench.record.provenance import Marks, Origin, mark_words, unproven_words


class TrendPoint(Model):
    """A test in one run: the geometric mean over its launches, with the interval that these give, where there are enough."""

    run: str
    created: datetime
    value: Interval
    launches: int
    is_dated_by_import: bool = False
    """Whether nobody knows when it was measured: `created` is when it was imported."""


class TrendChange(Model):
    """A change between two runs that follow each other: `index` is the place of the later one among the points.

    `ratio` is of all runs from this change to the next over all since the one before; `p_adjusted` is corrected over all tests that
    were looked at. `differences` are what the two runs tell of fabrics and machines that is not the same.
    """

    index: int
    before: TrendPoint
    after: TrendPoint
    ratio: Interval
    p_adjusted: float
    differences: tuple[str, ...] = ()


class TrendSeries(Model):
    """A test of one fabric over the runs of one campaign on one testbed, oldest first, all of one origin."""

    campaign: str
    testbed: str
    fabric: str
    key: CellKey
    origins: tuple[Origin, ...]
    unit: str
    points: tuple[TrendPoint, ...]
    levels: tuple[float, ...]
    """Of each part between changes: the geometric mean over its runs."""
    changes: tuple[TrendChange, ...] = ()
    autocorrelation: float | None = None
    """How much a run resembles the one before it, beyond the levels; None where independent runs would show as much."""
    is_unproven: bool = False
    """Whether nobody counted the traffic of some of its launches."""
    passed_over: tuple[PassedOver, ...] = ()
    """Runs that have the test and are not among the points, and why."""


class Trend(Model):
    """The trend of tests over runs. Of `tested` series enough runs are there to look for changes: two times `minimum_segment`.

    All these together show a change where nothing changed with a probability of 1 - `confidence` at most.
    """

    folder: str
    confidence: float
    minimum_segment: int
    tested: int
    series: tuple[TrendSeries, ...]
    marks: Marks
    unproven: tuple[str, ...]
    passed_over: tuple[PassedOver, ...] = ()
    """Runs of which nothing is shown, and why."""

    @property
    def notes(self) -> list[str]:
        """What the numbers are marked as, a line each: emulated, imported, of unproven path."""
        return [*mark_words(self.marks), *unproven_words(self.unproven)]
