"""What the built-in campaigns are put together from: sizes, groups of layers, and how well a cell of each pattern is measured."""

from __future__ import annotations

from fabricbench.campaign.parameters import Value
from fabricbench.campaign.specification import NEVER_NARROW_ENOUGH, Congestor, Experiment
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family

KIB = 1024
MIB = 1024 * KIB

DATAGRAM_LAYERS = (Layer.IP, Layer.UDP)
STREAM_LAYERS = (Layer.TCP, Layer.MPI)
PACKET_LAYERS = (Layer.FRAME, *DATAGRAM_LAYERS)

LEAST_TIMES, LEAST_WINDOWS = 100, 20
"""A narrow interval of few samples taken within a millisecond is luck; a slow fabric ends at the time bound before."""

WARMUP_TIMES, WARMUP_WINDOWS, WARMUP_FLOOD_WINDOWS = 10, 2, 4
"""A window is long. Over the lab's gigabit-ethernet and myrinet (20 launches, 4 streams each) the first of a stream was 2 to 119 %
off at the median, because it found what the start had left in buffers, the second less than 1 %. Floods of many flows lose at
first: four windows are 80 ms, by which congestion control has opened up within a room."""

FEW = 3
"""Samples that warm up where each is dear: of the pairs of a matrix, which share the time, and of messages from BULK_BYTES on."""

BULK_BYTES = 64 * KIB
"""A round trip of this takes 11 ms over 100 Mbit/s, so ten of them for warming up were longer than the cell."""

SHORT_SECONDS, WINDOWS_SECONDS = 0.05, 0.1
"""What a time, and what a rate in windows of 20 ms (five of them), needs in a launch: from there on more launches tell more than
longer cells (docs/statistics.md, "How many launches, of what length")."""

USUAL_WIDTH = 0.02
"""A longer cell ends once the interval of its median is this narrow on either side."""

LEAST_ROUND_TRIPS, SLOWEST_BIT_S = 5, 100e6
"""A cell has time for so many round trips over the slowest fabric that presets are made for."""


def experiment(
    layers: tuple[Layer, ...],
    pattern: Pattern,
    sizes: tuple[int, ...],
    seconds: float,
    congestor: Congestor | None = None,
    **parameters: Value | tuple[Value, ...],
) -> Experiment:
    """Return an experiment with the numbers of samples that suit its pattern. A cell that is short already takes its whole time."""
    facts = PATTERNS[pattern]
    is_time = facts.metric.is_time
    is_dear = facts.family is Family.MATRIX or (is_time and bool(sizes) and min(sizes) >= BULK_BYTES)
    windows = WARMUP_FLOOD_WINDOWS if facts.family is Family.FLOOD else WARMUP_WINDOWS
    warmup = FEW if is_dear else WARMUP_TIMES if is_time else windows
    return Experiment(
        layers=layers,
        pattern=pattern,
        message_bytes=sizes if facts.has_size else (),
        maximum_seconds=seconds,
        relative_width=NEVER_NARROW_ENOUGH if seconds <= WINDOWS_SECONDS else USUAL_WIDTH,
        minimum_samples=LEAST_TIMES if is_time else LEAST_WINDOWS,
        warmup_samples=warmup,
        parameters=dict(parameters),
        congestor=congestor,
    )


def pingpongs(
    layers: tuple[Layer, ...], sizes: tuple[int, ...], seconds: float, most_seconds: float = 1.0
) -> tuple[Experiment, ...]:
    """Return ping-pongs over the layers: each size has `seconds`, or as many more as LEAST_ROUND_TRIPS over a slow fabric take."""
    needed = {size: LEAST_ROUND_TRIPS * 2 * 8 * size / SLOWEST_BIT_S for size in sizes}
    usual = tuple(size for size in sizes if size < BULK_BYTES)
    bulk = tuple(size for size in sizes if size >= BULK_BYTES)
    return (
        *((experiment(layers, Pattern.PINGPONG, usual, seconds),) if usual else ()),
        *(
            experiment(layers, Pattern.PINGPONG, (size,), min(max(seconds, round(needed[size], 2)), most_seconds))
            for size in bulk
        ),
    )


def powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    """Return sizes from the first to the last, each `step` times the one before."""
    sizes = [first]
    while sizes[-1] * step <= last:
        sizes.append(sizes[-1] * step)
    return tuple(sizes)
