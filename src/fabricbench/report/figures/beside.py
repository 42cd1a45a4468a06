"""Which published values stand beside a plot: of the same fabric, layer, pattern, load and ranks, in the same quantity, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricbench.analysis.findings.plot import (
    ALONE,
    BESIDE,
    FABRIC,
    LAYER,
    LOAD,
    NODES,
    PATTERN,
    RANKS,
    SIZE,
    Plot,
    PlotSeries,
    PlotY,
    Trait,
    Traits,
)
from fabricbench.model import Pattern
from fabricbench.patterns import PATTERNS
from fabricbench.published.figures import PublishedFigure, PublishedQuantity, published_figures

QUANTITIES = {
    PlotY.THROUGHPUT: PublishedQuantity.THROUGHPUT,
    PlotY.HALF_ROUND_TRIP: PublishedQuantity.LATENCY,
    PlotY.OPERATION_TIME: PublishedQuantity.LATENCY,
    PlotY.SECONDS: PublishedQuantity.RUN_TIME,
}
"""A study's latency is one way: half the round trip of a ping-pong, the time of an operation of others."""
MOST_CONDITIONS = 4
"""That a note names."""


@dataclass(frozen=True)
class Beside:
    """A published value beside the series of its kind, at `x`; None where its study tells a range of sizes, or none."""

    figure: PublishedFigure
    series: tuple[int, ...]
    x: Trait | None


def published_beside(plot: Plot) -> Iterator[Beside]:
    """Yield the published values of the kind of a plot's points, each once."""
    quantity = QUANTITIES.get(plot.y)
    for figure in published_figures(quantity=quantity) if quantity is not None else ():
        places = {index: place for index, one in enumerate(plot.series) if (place := _place(plot, one, figure))}
        if places:
            yield Beside(figure, tuple(places), next(iter(places.values()))[0])


def _place(plot: Plot, series: PlotSeries, figure: PublishedFigure) -> tuple[Trait | None] | None:
    """Return where a published value stands in a series, None where it is of another kind."""
    for point in series.points:
        traits = point.traits
        if (traits[FABRIC], traits[LAYER]) != (figure.fabric, figure.layer):
            continue
        if figure.load is not None and traits.get(LOAD) == figure.load:
            if plot.x in (RANKS, NODES):
                return (figure.ranks,)
            if traits[RANKS] == figure.ranks and plot.x == LOAD:
                return (point.x,)
        if (
            plot.x == SIZE
            and figure.pattern is not None
            and traits[PATTERN] == figure.pattern.value
            and _is_plain(traits)
        ):
            return (None,)
    return None


def _is_plain(traits: Traits) -> bool:
    """Whether a test is the pattern as it comes, and nothing goes on beside it."""
    known = PATTERNS[Pattern(str(traits[PATTERN]))].parameters
    is_usual = all(traits.get(name, parameter.default) == parameter.default for name, parameter in known.items())
    return traits.get(BESIDE) == ALONE and is_usual


def beside_note(found: Sequence[Beside]) -> str:
    """Return whose values these are, and under which conditions; empty where there are none."""
    studies: dict[str, dict[str, None]] = {}
    for one in found:
        figure = one.figure
        of_load = f"{figure.load} {figure.as_published} on {figure.fabric}"
        what = of_load if figure.load is not None else f"{figure.as_published}, {figure.condition_words}"
        studies.setdefault(figure.study_name, {})[what] = None
    told = []
    for name, conditions in studies.items():
        more = f"; {len(conditions) - MOST_CONDITIONS} more in the data" if len(conditions) > MOST_CONDITIONS else ""
        told.append(f"{name} ({'; '.join(list(conditions)[:MOST_CONDITIONS])}{more})")
    return f"Hollow diamonds, published: {', '.join(told)}." if told else ""
