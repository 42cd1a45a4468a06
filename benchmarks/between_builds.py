"""Is this build where another one was? Both measure the same cells over the same emulated link, A B A B.

    python -m benchmarks.between_builds FOLDER [--rounds 7] [--seconds 1] [--fabric myrinet] [--write docs/peers.md]

FOLDER has the native programs of the other build (`.venv/lib/python3*/site-packages/fabricbench/bin` of its checkout). *Measurer*:
in one lab, whose switch is of this build, the measurers take turns. *Switch*: this build's measurer in a lab of either build's
switch, the labs in turn. A ratio is this build's figure over the other's in the same round; the order changes from round to round.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.launching import Measured, launch, unsatisfied
from benchmarks.page import show

from fabricbench.campaign.start import PROBE
from fabricbench.campaign.venue import Venue, find_venue
from fabricbench.launch.launcher import Launcher
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.native import FOLDER_VARIABLE
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

RANKS = 4
SHAPES = (
    (Layer.FRAME, Pattern.PINGPONG, 64, 1, 2),
    (Layer.IP, Pattern.PINGPONG, 64, 1, 2),
    (Layer.UDP, Pattern.PINGPONG, 64, 1, 2),
    (Layer.TCP, Pattern.PINGPONG, 64, 1, 2),
    (Layer.TCP, Pattern.PINGPONG, 65536, 1, 2),
    (Layer.MPI, Pattern.PINGPONG, 8, 1, 2),
    (Layer.UDP, Pattern.STREAM, 8192, 64, 2),
    (Layer.TCP, Pattern.STREAM, 65536, 16, 2),
    (Layer.MPI, Pattern.STREAM, 65536, 16, 2),
    (Layer.MPI, Pattern.BCAST, 8, 1, 2),
    (Layer.MPI, Pattern.BCAST, 8, 1, RANKS),
    (Layer.MPI, Pattern.ALLREDUCE, 1024, 1, RANKS),
)
"""Layer, pattern, bytes of a message, messages of a sample, ranks."""

Figures = list[float]


def probes(seconds: float) -> list[PlanProbe]:
    """Return the cells."""
    return [
        PlanProbe(
            id=index,
            layer=layer,
            pattern=pattern,
            message_bytes=size,
            receive=Receive.LIBRARY if layer is Layer.MPI else Receive.BLOCKING,
            ranks=tuple(range(ranks)),
            messages_per_sample=messages,
            warmup_samples=50,
            stopping=unsatisfied(seconds),
        )
        for index, (layer, pattern, size, messages, ranks) in enumerate(SHAPES)
    ]


def figures(launcher: Launcher, fabric: Fabric, seconds: float, program: Path | None = None) -> Figures:
    """Return the median time of each cell in µs, or its rate in Mbit/s."""
    return [figure(cell) for cell in launch(launcher, fabric, probes(seconds), RANKS, program)[1]]


def figure(measured: Measured) -> float:
    """Return a cell's median in µs, for a stream all bits over all time in Mbit/s."""
    if measured.cell.metric is Metric.THROUGHPUT:
        moved = measured.cell.bytes_per_sample * len(measured.times)
        return 8e3 * moved / sum(measured.times)
    return statistics.median(measured.times) / 1e3


def in_turn(rounds: int, this: Callable[[], Figures], other: Callable[[], Figures]) -> list[tuple[Figures, Figures]]:
    """Return what both found, round by round."""
    found = []
    for number in range(rounds):
        if number % 2:
            late, early = other(), this()
            found.append((early, late))
        else:
            found.append((this(), other()))
    return found


def measurers(venue: Venue, other: Path, rounds: int, seconds: float) -> list[tuple[Figures, Figures]]:
    """Let the measurers of both builds take turns in one lab."""
    fabric = fabric_of(venue)
    with venue.open() as launcher:
        return in_turn(
            rounds,
            lambda: figures(launcher, fabric, seconds),
            lambda: figures(launcher, fabric, seconds, other / PROBE),
        )


def switches(venue: Venue, other: Path, rounds: int, seconds: float) -> list[tuple[Figures, Figures]]:
    """Let this build's measurer measure over the switches of both builds."""
    fabric = fabric_of(venue)

    def over(folder: Path | None) -> Figures:
        with ExitStack() as stack:
            with programs_of(folder):
                launcher = stack.enter_context(venue.open())
            return figures(launcher, fabric, seconds)

    return in_turn(rounds, lambda: over(None), lambda: over(other))


@contextmanager
def programs_of(folder: Path | None) -> Iterator[None]:
    """Take the native programs from a folder meanwhile; None: this build's own."""
    if folder is not None:
        os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(FOLDER_VARIABLE, None)


def fabric_of(venue: Venue) -> Fabric:
    """Return the fabric of a lab that has one."""
    return next(fabric for fabric in venue.testbed().fabrics if fabric.has_interface)


def rows(what: str, found: Sequence[tuple[Figures, Figures]]) -> list[str]:
    """Return a row of Markdown for each cell."""
    lines = []
    for index, (layer, pattern, size, _, ranks) in enumerate(SHAPES):
        ratios = [this[index] / other[index] for this, other in found]
        this_figure = statistics.median(this[index] for this, _ in found)
        other_figure = statistics.median(other[index] for _, other in found)
        unit = "Mbit/s" if pattern is Pattern.STREAM else "µs"
        lines.append(
            f"| {what} | {layer} {pattern} of {size} B, {ranks} ranks | {this_figure:.1f} {unit} | {other_figure:.1f} {unit} "
            f"| {statistics.median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f} |"
        )
    return lines


def main() -> None:
    """Measure both ways, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder of the other build's native programs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each cell")
    parser.add_argument("--fabric", default="myrinet")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    venue = find_venue(f"lab:{given.fabric}", RANKS)
    text = [
        (
            f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start; "
            f"{given.rounds} rounds, {given.seconds:g} s a cell, lab of {given.fabric}."
        ),
        "",
        "| part | cell | this build | the other | ratio (median of rounds) | range |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        *rows("measurer", measurers(venue, given.other, given.rounds, given.seconds)),
        *rows("switch", switches(venue, given.other, given.rounds, given.seconds)),
    ]
    show(text, "between-builds", given.write)


if __name__ == "__main__":
    main()
