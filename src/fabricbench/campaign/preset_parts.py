"""What the built-in campaigns are put together from: sizes, groups of layers, and how well a cell of each pattern is measured."""

from __future__ import annotations

from fabricbench.campaign.parameters import Value
from fabricbench.campaign.specification import Congestor, Experiment
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, Family

KIB = 1024
MIB = 1024 * KIB

DATAGRAM_LAYERS = (Layer.IP, Layer.UDP)
STREAM_LAYERS = (Layer.TCP, Layer.MPI)
PACKET_LAYERS = (Layer.FRAME, *DATAGRAM_LAYERS)

LEAST_TIMES, LEAST_WINDOWS = 100, 20
"""A narrow interval of few samples taken within a millisecond is luck; a slow fabric ends at the time bound before."""

WARMUP_TIMES, WARMUP_WINDOWS = 10, 4
"""A window of a stream or a flood is long: four of them are 80 ms, by which congestion control has opened up within a room."""

FEW = 3
"""Samples of each pair of a matrix that warm up: its share of the time is short."""


def experiment(
    layers: tuple[Layer, ...],
    pattern: Pattern,
    sizes: tuple[int, ...],
    seconds: float,
    congestor: Congestor | None = None,
    **parameters: Value | tuple[Value, ...],
) -> Experiment:
    """Return an experiment with the numbers of samples that suit its pattern."""
    facts = PATTERNS[pattern]
    is_time = facts.metric.is_time
    warmup = FEW if facts.family is Family.MATRIX else WARMUP_TIMES if is_time else WARMUP_WINDOWS
    return Experiment(
        layers=layers,
        pattern=pattern,
        message_bytes=sizes if facts.has_size else (),
        maximum_seconds=seconds,
        minimum_samples=LEAST_TIMES if is_time else LEAST_WINDOWS,
        warmup_samples=warmup,
        parameters=dict(parameters),
        congestor=congestor,
    )


def powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    """Return sizes from the first to the last, each `step` times the one before."""
    sizes = [first]
    while sizes[-1] * step <= last:
        sizes.append(sizes[-1] * step)
    return tuple(sizes)
