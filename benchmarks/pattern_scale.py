"""How patterns grow from 4 to 10,000 nodes: the schedules simulated and checked, constants measured here, and the tables of both.

    python -m benchmarks.pattern_scale [--write docs/scale.md] [--simulate-only]

The formulas are in benchmarks/scale/growth.py, each from the code that it describes; the simulations in
benchmarks/scale/schedule.py check them rank by rank. Measured are a message of the control plane, an order with its report, and the
memory of a TCP path in the kernel and in a rank. Nothing of 10,000 nodes is measured: their figures are arithmetic.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import write_between_markers
from benchmarks.scale.growth import (
    GROWTHS,
    LAUNCHES,
    Constants,
    Growth,
    control_messages,
    full_bytes,
    least_s,
    rank_bytes,
    record_bytes,
)
from benchmarks.scale.memory import kernel_memory, rank_memory
from benchmarks.scale.schedule import check_rounds, check_tree, clock_rounds

from fabricbench.campaign.venue import find_venue
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import Placement, yield_library
from fabricbench.native import build_info
from fabricbench.quantity import format_bytes, format_seconds

SIMULATED = (2, 3, 4, 5, 16, 17, 128, 511, 512, 1000, 4096, 9999, 10_000)
SIZES = (4, 64, 1024, 10_000)
STARTED = (4, 64, 1000, 10_000)
RANKS = (2, 4, 8, 16)
AGREEMENTS = 100
CONTROL_SOURCES = ("channel", "control", "control_transport", "message", "rank_list", "rdma_attachment", "report")
CHAOS_RANKS = (2, 4, 8, 12)
CHAOS_BYTES = 64 * 1024
SAMPLES = 50
"""Of a cell: windows of a flood of a second, round trips of a pair."""


def simulation() -> list[str]:
    """Check the schedules at all sizes; an AssertionError says which is wrong."""
    lines = [
        "| ranks | rounds of `pairs` | pairs at once | resting | depth of an agreement | most messages of a rank | clock rounds |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ranks in SIMULATED:
        schedule, tree, (rounds, _) = check_rounds(ranks), check_tree(ranks), clock_rounds(ranks)
        lines.append(
            f"| {ranks:,} | {schedule.rounds:,} | {schedule.most_at_once:,} | {schedule.rests // schedule.rounds} "
            f"| {tree.depth} | {tree.most_messages_of_a_rank} | {rounds} |"
        )
    return lines


def control_cost(ranks: int, program: Path) -> dict[str, float]:
    """Run control_cost over loopback and return what it prints."""
    fabric = next(fabric for fabric in find_venue("local").testbed().fabrics if fabric.has_interface)
    placement = Placement(ranks=ranks, preload=yield_library())
    tokens = find_starter().tokens(placement, fabric, [str(program), str(AGREEMENTS)])
    done = subprocess.run(tokens, capture_output=True, text=True, timeout=120, check=True)
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([0-9.]+)$", done.stdout, re.MULTILINE)}


def build_control_cost(folder: Path) -> Path:
    """Compile it with the measurer's MPI, from the measurer's own control plane."""
    import nlohmann_json  # type: ignore[import-untyped] # noqa: PLC0415 - of the group that builds

    root = Path(__file__).parents[1]
    program = folder / "control-cost"
    include = Path(nlohmann_json.__path__[0]) / "include"
    core = [root / "native/core" / f"{name}.cpp" for name in CONTROL_SOURCES]
    sources = [root / "benchmarks/scale/control_cost.cpp", *core]
    options = ["-std=c++20", "-O2", f"-I{root / 'native'}", f"-I{include}", "-o", str(program)]
    subprocess.run([build_info().mpicxx, *options, *map(str, sources)], check=True)
    return program


def measure() -> tuple[Constants, list[str]]:
    """Measure the constants here, and return them with the lines that tell of them."""
    with tempfile.TemporaryDirectory() as folder:
        program = build_control_cost(Path(folder))
        costs = {ranks: control_cost(ranks, program) for ranks in RANKS}
    kernel = kernel_memory()
    venue = find_venue("local")
    fabric = next(fabric for fabric in venue.testbed().fabrics if fabric.has_interface)
    with venue.open() as launcher:
        chaos = [rank_memory(launcher, fabric, ranks, CHAOS_BYTES) for ranks in CHAOS_RANKS]
    paths = [one.paths for one in chaos]
    resident = statistics.linear_regression(paths, [one.resident_bytes for one in chaos]).slope
    files = statistics.linear_regression(paths, [one.files for one in chaos]).slope
    first, last = costs[RANKS[0]], costs[RANKS[1]]
    constants = Constants(
        hop_s=first["agreement_ns"] / 2e9,
        order_s=max(first["orders_ns"], last["orders_ns"] / (RANKS[1] - 1)) / 1e9,
        path_kernel_bytes=kernel.idle_bytes / 2,
        path_full_bytes=kernel.full_bytes / 2,
        path_rank_bytes=max(0.0, resident),
        channel_report_bytes=int(first["channel_report_bytes"]),
    )
    starter = find_starter()
    lines = [
        f"Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f};",
        f"{starter.library.NAME} {starter.library_version} over loopback, {AGREEMENTS} agreements each, medians.",
        "",
        "| ranks | an agreement | orders to all and their reports | processor time of an agreement, all ranks |",
        "| ---: | ---: | ---: | ---: |",
        *(
            f"| {ranks} | {format_seconds(cost['agreement_ns'] / 1e9)} | {format_seconds(cost['orders_ns'] / 1e9)} "
            f"| {format_seconds(cost['agreement_processor_ns'] / 1e9)} |"
            for ranks, cost in costs.items()
        ),
        "",
        f"* A message of the control plane, from an agreement of two ranks: {format_seconds(constants.hop_s)}.",
        f"* An order and its report, at rank 0: {format_seconds(constants.order_s)} a rank.",
        f"* One end of an idle TCP connection in the kernel: {_size(constants.path_kernel_bytes)}.",
        f"* With its buffers full: {_size(constants.path_full_bytes)}, which is what `tcp_wmem` and `tcp_rmem` allow.",
        f"* What a rank itself holds for a path of a chaos over TCP, messages of {format_bytes(CHAOS_BYTES)}:",
        f"  {_size(constants.path_rank_bytes)} and {files:.1f} sockets, from ranks with {', '.join(map(str, paths))} paths.",
    ]
    return constants, lines


def growth_tables(constants: Constants) -> list[str]:
    """Return what follows from the formulas with these constants."""
    return [
        *_table(
            "Paths of the busiest rank (sockets over TCP, UDP and frames, twice as many over IP)", _paths, constants
        ),
        *_table("Logical channels in use at once", _channels, constants),
        *_table("Control messages of a cell, all ranks", _messages, constants),
        *_table("Time of a cell beside its measuring; of `pairs` all of its least time", _time, constants),
        *_table("Memory of the busiest rank over TCP, idle connections included", _rank, constants),
        *_table("The kernel's buffers on the busiest rank's host, if all of them fill", _full, constants),
        *_table(f"Reports that rank 0 holds before it writes a cell of {SAMPLES} samples", _record, constants),
        "| pattern | traffic |",
        "| --- | --- |",
        *(f"| {growth.name} | {growth.traffic} |" for growth in GROWTHS),
    ]


def launch_table(constants: Constants) -> list[str]:
    """Return what a launch takes besides its cells and its MPI's own start and end."""
    return [
        "| ranks | launch | messages at rank 0 | they take | clocks that are not shared | in all |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {ranks:,} | {launch.name} | {launch.messages(ranks):,} "
            f"| {_duration(launch.messages(ranks) * constants.order_s / 2)} "
            f"| {_duration(launch.clock_s(ranks, constants)) if launch.has_clocks else '-'} "
            f"| {_duration(launch.seconds(ranks, constants))} |"
            for ranks in STARTED
            for launch in LAUNCHES
        ),
    ]


def _paths(growth: Growth, ranks: int, _constants: Constants) -> str:
    return f"{growth.paths(ranks):,}"


def _channels(growth: Growth, ranks: int, _constants: Constants) -> str:
    return f"{growth.channels(ranks):,}"


def _messages(growth: Growth, ranks: int, _constants: Constants) -> str:
    return f"{control_messages(growth, ranks):,}"


def _time(growth: Growth, ranks: int, constants: Constants) -> str:
    return _duration(least_s(growth, ranks, constants))


def _rank(growth: Growth, ranks: int, constants: Constants) -> str:
    return _size(rank_bytes(growth, ranks, constants))


def _full(growth: Growth, ranks: int, constants: Constants) -> str:
    return _size(full_bytes(growth, ranks, constants))


def _record(growth: Growth, ranks: int, constants: Constants) -> str:
    return _size(record_bytes(growth, ranks, SAMPLES, constants))


def _size(size: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return format_seconds(seconds)
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _table(title: str, cell: object, constants: Constants) -> list[str]:
    assert callable(cell)
    return [
        f"**{title}**",
        "",
        f"| pattern | {' | '.join(f'{ranks:,}' for ranks in SIZES)} |",
        f"| --- |{' ---: |' * len(SIZES)}",
        *(f"| {growth.name} | {' | '.join(cell(growth, ranks, constants) for ranks in SIZES)} |" for growth in GROWTHS),
        "",
    ]


def main() -> None:
    """Simulate, measure, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page that holds the tables")
    parser.add_argument("--simulate-only", action="store_true", help="check the schedules and measure nothing")
    given = parser.parse_args()
    simulated = simulation()
    print("\n".join(simulated), "\n", flush=True)
    if given.simulate_only:
        return
    constants, told = measure()
    grown = growth_tables(constants)
    launches = launch_table(constants)
    print("\n".join([*told, "", *grown, "", *launches]))
    if given.write:
        _write(given.write, "scale-simulation", simulated)
        _write(given.write, "scale-constants", told)
        _write(given.write, "scale-growth", grown)
        _write(given.write, "scale-launch", launches)


def _write(page: Path, name: str, lines: Sequence[str]) -> None:
    write_between_markers(page, name, lines)
    sys.stderr.write(f"wrote {name} into {page}\n")


if __name__ == "__main__":
    main()
