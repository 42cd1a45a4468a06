"""hpcc's b_eff beside our pairs and exchange, both on one Open MPI: ping-pong of all pairs, natural and random rings.

b_eff (bench_lat_bw in hpcc's sources) measures a ping-pong of 8 bytes in 5 trials of 8 round trips for each pair of ranks, one
of 2,000,000 bytes in 2 trials of one, and prints half the best trial's mean, averaged over pairs. On a ring each rank sends to
and receives from both neighbours, by two MPI_Sendrecv or by MPI_Isend and MPI_Irecv, whichever was faster: 5 trials of 8 turns of
8 bytes, 3 of 2 turns of 2,000,000; it prints half the best trial's turn on the slowest rank. Our samples go through the same,
and the faster of two ways is taken here as well: `exchange`, which posts everything at once, or `sendrecv` one way around and
then the other.
"""

from __future__ import annotations

import math
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.hpcc import hpcc_input
from benchmarks.launching import Measured, launch, unsatisfied
from benchmarks.peers.link import Link
from benchmarks.peers.programs import library_path
from benchmarks.peers.theirs import checked

from fabricbench.launch.lab import LabLauncher
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.probe_plan import PlanProbe

RANKS = 4
SMALL_BYTES = 8
LARGE_BYTES = 2_000_000
SMALL = (8, 5)
"""Turns in a trial, and trials, of small messages."""
LARGE_PAIR = (1, 2)
LARGE_RING = (2, 3)

WAYS = 3
"""Cells of a ring: exchange, sendrecv, sendrecv the other way around."""

NATURAL = (0, 1, 2, 3)
RINGS = (NATURAL, (0, 2, 1, 3), (0, 1, 3, 2))
"""All rings of four ranks there are: b_eff draws some of them at random, again and again."""

FIGURES = (
    "mpi ping-pong, all pairs, 8 B / hpcc, same Open MPI",
    "mpi ring of 4, 8 B / hpcc",
    "mpi random rings of 4, 8 B / hpcc",
    "mpi ping-pong, all pairs, 2 MB / hpcc",
    "mpi ring of 4, 2 MB / hpcc",
    "mpi random rings of 4, 2 MB / hpcc",
)
"""The first three are times, the others rates."""
TIMES = 3

NAMES = (
    "AvgPingPongLatency_usec",
    "NaturallyOrderedRingLatency_usec",
    "RandomlyOrderedRingLatency_usec",
    "AvgPingPongBandwidth_GBytes",
    "NaturallyOrderedRingBandwidth_GBytes",
    "RandomlyOrderedRingBandwidth_GBytes",
)

# HPL and the other parts of hpcc are made as small as they get: they cannot be left out.
HPCC_INPUT = hpcc_input(64, 16, 2, 2)


def best_trial_ns(times: Sequence[int], trial: tuple[int, int]) -> float:
    """Return the best of b_eff's trials, averaged over as many sets of trials as our samples make."""
    turns, trials = trial
    means = [statistics.fmean(times[at : at + turns]) for at in range(0, len(times) - turns + 1, turns)]
    sets = [min(means[at : at + trials]) for at in range(0, len(means) - trials + 1, trials)]
    return statistics.fmean(sets)


def rate_bit_s(turn_ns: float) -> float:
    """Return what b_eff calls a bandwidth: a message in half a turn."""
    return LARGE_BYTES * 8e9 / (turn_ns / 2)


def ours_beside_hpcc(link: Link, launcher: LabLauncher, probe: Path, seconds: float) -> list[tuple[float, float]]:
    """Return our figures by b_eff's statistics, and by the median of the same samples."""
    shapes: list[tuple[Pattern, int, tuple[int, ...], float]] = []
    for size in (SMALL_BYTES, LARGE_BYTES):
        shapes.append((Pattern.PAIRS, size, NATURAL, 3 * seconds))
        for ring in RINGS:
            ways = ((Pattern.EXCHANGE, ring), (Pattern.SENDRECV, ring), (Pattern.SENDRECV, ring[::-1]))
            shapes += [(pattern, size, ranks, seconds) for pattern, ranks in ways]
    probes = [
        PlanProbe(
            id=index,
            layer=Layer.MPI,
            pattern=pattern,
            message_bytes=message_bytes,
            receive=Receive.LIBRARY,
            ranks=ranks,
            warmup_samples=1,
            stopping=unsatisfied(time),
        )
        for index, (pattern, message_bytes, ranks, time) in enumerate(shapes)
    ]
    _, cells = launch(launcher, link.fabric, probes, RANKS, program=probe)
    small, large = cells[: len(cells) // 2], cells[len(cells) // 2 :]
    times = [_pairs(small[0], SMALL), *_rings(small[1:], SMALL)]
    rates = [_pairs(large[0], LARGE_PAIR), *_rings(large[1:], LARGE_RING)]
    return [(best / 2, median / 2) for best, median in times] + [
        (rate_bit_s(best), rate_bit_s(median)) for best, median in rates
    ]


def hpcc(link: Link, program: Path, launcher: LabLauncher) -> list[float]:
    """Return what hpcc prints, in ns and bit/s, started exactly as our measurer is."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hpccinf.txt").write_text(HPCC_INPUT)
        # Ranks start in a folder that every host has; hpcc reads and writes where it is.
        tokens = ["env", f"--chdir={folder}", f"LD_LIBRARY_PATH={library_path()}", str(program)]
        checked(list(launcher.command(link.fabric, tokens, Path(folder), RANKS).tokens), folder)
        text = (Path(folder) / "hpccoutf.txt").read_text()
    found = dict(re.findall(r"^(\w+)=([0-9.eE+-]+)$", text, re.MULTILINE))
    figures = [float(found[name]) for name in NAMES]
    return [value * 1e3 for value in figures[:TIMES]] + [value * 8e9 for value in figures[TIMES:]]


def _pairs(cell: Measured, trial: tuple[int, int]) -> tuple[float, float]:
    pairs = [channel.time_ns for channel in cell.channels]
    return (
        statistics.fmean(best_trial_ns(times, trial) for times in pairs),
        statistics.fmean(statistics.median(times) for times in pairs),
    )


def _rings(cells: Sequence[Measured], trial: tuple[int, int]) -> list[tuple[float, float]]:
    """Return the natural ring, and the geometric mean over all rings: of each the faster way."""
    by_ring = [cells[at : at + WAYS] for at in range(0, len(cells), WAYS)]
    each = [
        tuple(
            min(of(exchange.times), of(forth.times) + of(back.times))
            for of in (lambda times: best_trial_ns(times, trial), statistics.median)
        )
        for exchange, forth, back in by_ring
    ]
    best, median = ([math.log(value) for value in side] for side in zip(*each, strict=True))
    return [each[0], (math.exp(statistics.fmean(best)), math.exp(statistics.fmean(median)))]
