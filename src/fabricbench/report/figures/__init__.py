"""Figures from findings, for the dossier, for papers and for notebooks.

In a notebook: `figures.draw("round-trip", findings)` is an `altair` chart that shows itself; `figures.FIGURES` names them all.
A figure is added by adding a file and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fabricbench.analysis.findings import Findings
from fabricbench.errors import UsageError
from fabricbench.report.figures.congestion import congestion, incast
from fabricbench.report.figures.curves import round_trip_curves, throughput_curves
from fabricbench.report.figures.distributions import distributions
from fabricbench.report.figures.figure import Figure, Panel, Spec, compose
from fabricbench.report.figures.forest import round_trip_forest, throughput_forest, verdict_forest
from fabricbench.report.figures.heat import collectives, matrix
from fabricbench.report.figures.kernels import kernel_ratios, kernel_split, speed_up
from fabricbench.report.figures.ladder import ladder
from fabricbench.report.figures.one_way import one_way
from fabricbench.report.figures.published import published
from fabricbench.report.figures.topologies import topologies

if TYPE_CHECKING:
    import altair as alt

__all__ = ["FIGURES", "Figure", "Panel", "build", "draw", "paper_spec", "present"]


class Builder(Protocol):
    """What each figure's file offers: the figure, or None where the findings hold nothing for it."""

    def __call__(self, findings: Findings, *, is_interactive: bool = False) -> Figure | None:
        """Build the figure; interactive ones follow the page's controls and carry no legend."""


FIGURES: dict[str, Builder] = {
    "verdict": verdict_forest,
    "ladder": ladder,
    "round-trip": round_trip_curves,
    "throughput": throughput_curves,
    "round-trip-ratios": round_trip_forest,
    "throughput-ratios": throughput_forest,
    "kernel-ratios": kernel_ratios,
    "kernel-split": kernel_split,
    "speed-up": speed_up,
    "topologies": topologies,
    "congestion": congestion,
    "incast": incast,
    "collectives": collectives,
    "one-way": one_way,
    "matrix": matrix,
    "distributions": distributions,
    "published": published,
}


def build(name: str, findings: Findings, *, is_interactive: bool = False) -> Figure | None:
    """Return the named figure, None where the findings hold nothing for it. UsageError names the figures there are."""
    if name not in FIGURES:
        raise UsageError(f"there is no figure {name!r}", hint=f"choose one of {', '.join(FIGURES)}")
    return FIGURES[name](findings, is_interactive=is_interactive)


def present(findings: Findings, *, is_interactive: bool = False) -> dict[str, Figure]:
    """Return every figure that the findings hold something for, in the order of the report."""
    built = {name: build(name, findings, is_interactive=is_interactive) for name in FIGURES}
    return {name: figure for name, figure in built.items() if figure is not None}


def draw(name: str, findings: Findings) -> alt.ConcatChart:
    """Return the named figure as an altair chart, for a notebook. UsageError where there is nothing to draw."""
    import altair as alt  # noqa: PLC0415 - a second of loading that only notebooks need

    return alt.ConcatChart.from_dict(paper_spec(name, findings))


def paper_spec(name: str, findings: Findings) -> Spec:
    """Return the named figure as one Vega-Lite specification, for a paper. UsageError where there is nothing to draw."""
    figure = build(name, findings)
    if figure is None:
        held = ", ".join(present(findings)) or "none"
        raise UsageError(f"these findings hold nothing for the figure {name!r}", hint=f"figures with data: {held}")
    return compose(figure, findings)
