"""How much of a sample is the harness itself: reading the clock and going around the loop, against what is measured.

    python -m benchmarks.harness_share [--seconds 1] [--fabric sci] [--write docs/harness.md]

Each launch of the measurer times an empty loop before its first cell, exactly as samples are timed (`header.clock.loop_floor_ns`):
what it finds is in every sample too. The share is that over the median sample. It is largest where samples are shortest, so the
table has the smallest messages and the shortest paths there are: the emulated link with the least latency, and this machine's
loopback without any link. With --write the table replaces the one between the markers of a page.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.launching import Measured, launch, unsatisfied
from benchmarks.page import show

from fabricbench.campaign.venue import find_venue
from fabricbench.launch.launcher import Launcher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.lines import ClockInfo
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

SIZES = (8, 64, 512)
NETWORK = (Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP)
LEAST_TO_HOLD = 0.01
"""The target, for TCP at 8 bytes."""

Row = tuple[str, Measured, ClockInfo]


def measure(
    where: str, launcher: Launcher, fabric: Fabric, layers: Sequence[Layer], ways: Sequence[Receive], seconds: float
) -> list[Row]:
    """Return a row for each layer, way to wait and size."""
    shapes = [
        (layer, receive, size)
        for layer in layers
        for receive in ((Receive.LIBRARY,) if layer is Layer.MPI else ways)
        for size in SIZES
    ]
    probes = [
        PlanProbe(
            id=index,
            layer=layer,
            pattern=Pattern.PINGPONG,
            message_bytes=size,
            receive=receive,
            ranks=(0, 1),
            warmup_samples=50,
            stopping=unsatisfied(seconds),
        )
        for index, (layer, receive, size) in enumerate(shapes)
    ]
    header, cells = launch(launcher, fabric, probes, 2)
    return [(where, cell, header.clock) for cell in cells]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as Markdown."""
    lines = [
        "| path | layer | wait | message | median sample | empty loop | share |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for where, measured, clock in rows:
        cell, median = measured.cell, statistics.median(measured.times)
        operations = f" of {cell.operations_per_sample} operations" if cell.operations_per_sample > 1 else ""
        lines.append(
            f"| {where} | {cell.layer} | {cell.receive} | {cell.message_bytes} B | {median / 1e3:.2f} µs{operations} "
            f"| {clock.loop_floor_ns:.0f} ns | {clock.loop_floor_ns / median:.2%} |"
        )
    return lines


def verdict(rows: Sequence[Row]) -> str:
    """Say whether the target is held by every way of measuring TCP at 8 bytes."""
    shares = [
        clock.loop_floor_ns / statistics.median(measured.times)
        for _, measured, clock in rows
        if measured.cell.layer is Layer.TCP and measured.cell.message_bytes == SIZES[0]
    ]
    held = "held" if max(shares) < LEAST_TO_HOLD else "**not held**"
    return f"tcp at {SIZES[0]} bytes: at most {max(shares):.2%} of a sample, target under {LEAST_TO_HOLD:.0%}: {held}."


def main() -> None:
    """Measure on a lab's link and on the loopback, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each cell")
    parser.add_argument("--fabric", default="sci", help="the lab's link")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    rows: list[Row] = []
    # The nodes of a lab share processors: two ranks that spin there measure each other's turns.
    in_lab, here = (Receive.BLOCKING,), (Receive.BLOCKING, Receive.POLLING)
    for where, venue, layers, ways in (
        (f"lab, {given.fabric}", find_venue(f"lab:{given.fabric}", 2), (*NETWORK, Layer.MPI), in_lab),
        ("loopback", find_venue("local"), (Layer.UDP, Layer.TCP), here),
    ):
        fabric = next(fabric for fabric in venue.testbed().fabrics if fabric.has_interface)
        with venue.open() as launcher:
            rows += measure(where, launcher, fabric, layers, ways, given.seconds)
    clock = rows[0][2]
    text = [
        f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {given.seconds:g} s a cell;",
        f"clock {clock.name}, resolution {clock.resolution_ns:.0f} ns, one reading {clock.overhead_ns:.0f} ns.",
        "",
        *table(rows),
        "",
        verdict(rows),
    ]
    show(text, "harness-share", given.write)


if __name__ == "__main__":
    main()
