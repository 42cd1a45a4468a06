"""The built-in campaigns, as values. They are made for any testbed, so what a fabric cannot carry is left out.

Sizes: 64 B is in every layer, because the ladder compares layers at the smallest size that all have; 1472 B is the largest payload
of a UDP datagram in one frame of MTU 1500; powers of two show the curve between and beyond.
"""

from __future__ import annotations

from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern

KIB = 1024
MIB = 1024 * KIB

DATAGRAM_LAYERS = (Layer.IP, Layer.UDP)
STREAM_LAYERS = (Layer.TCP, Layer.MPI)


LEAST_SAMPLES = {Pattern.PINGPONG: 100, Pattern.STREAM: 20}
"""A narrow interval of few samples taken within a millisecond is luck; a slow fabric ends at the time bound before."""


WARMUP_SAMPLES = {Pattern.PINGPONG: 10, Pattern.STREAM: 4}
"""A window of a stream is long: four of them are 80 ms, by which congestion control has opened up within a room."""


def _experiment(
    layers: tuple[Layer, ...], pattern: Pattern, sizes: tuple[int, ...], seconds: float, **parameters: str
) -> Experiment:
    return Experiment(
        layers=layers,
        pattern=pattern,
        message_bytes=sizes,
        maximum_seconds=seconds,
        minimum_samples=LEAST_SAMPLES[pattern],
        warmup_samples=WARMUP_SAMPLES[pattern],
        parameters=dict(parameters),
    )


def _powers(first: int, last: int, step: int = 2) -> tuple[int, ...]:
    sizes = [first]
    while sizes[-1] * step <= last:
        sizes.append(sizes[-1] * step)
    return tuple(sizes)


def _all_layers(
    *,
    pingpong_seconds: float,
    stream_seconds: float,
    memory_seconds: float,
    frame_sizes: tuple[int, ...],
    datagram_sizes: tuple[int, ...],
    stream_sizes: tuple[int, ...],
    bulk: dict[Layer, tuple[int, ...]],
    kernels: tuple[str, ...],
    memory_sizes: tuple[int, ...],
) -> tuple[Experiment, ...]:
    """Ping-pong and stream over the six layers; `bulk` holds the sizes that throughput is measured at."""
    return (
        _experiment((Layer.MEMORY,), Pattern.PINGPONG, memory_sizes, memory_seconds),
        *(
            _experiment((Layer.MEMORY,), Pattern.STREAM, memory_sizes[-1:], memory_seconds, kernel=name)
            for name in kernels
        ),
        _experiment((Layer.FRAME,), Pattern.PINGPONG, frame_sizes, pingpong_seconds),
        _experiment(DATAGRAM_LAYERS, Pattern.PINGPONG, datagram_sizes, pingpong_seconds),
        _experiment(STREAM_LAYERS, Pattern.PINGPONG, stream_sizes, pingpong_seconds),
        *(_experiment((layer,), Pattern.STREAM, sizes, stream_seconds) for layer, sizes in bulk.items()),
    )


QUICK = Campaign(
    name="quick",
    description="a first answer in five minutes: six layers, few sizes, six blocks",
    blocks=6,
    unfit="leave out",
    experiments=_all_layers(
        pingpong_seconds=0.3,
        stream_seconds=0.4,
        memory_seconds=0.05,
        frame_sizes=(64, 512, 1472),
        datagram_sizes=(64, 512, 1472, 16 * KIB),
        stream_sizes=(64, 512, 1472, 16 * KIB, 64 * KIB),
        bulk={
            Layer.FRAME: (64, 1472),
            Layer.IP: (1472, 16 * KIB),
            Layer.UDP: (1472, 16 * KIB),
            Layer.TCP: (1472, 16 * KIB, 256 * KIB),
            Layer.MPI: (1472, 16 * KIB, 256 * KIB),
        },
        kernels=("copy", "triad"),
        memory_sizes=(64, 16 * KIB, 4 * MIB),
    ),
)

STANDARD = Campaign(
    name="standard",
    description="an answer to decide by: curves over size, sixteen blocks",
    blocks=16,
    unfit="leave out",
    experiments=_all_layers(
        pingpong_seconds=0.5,
        stream_seconds=0.6,
        memory_seconds=0.1,
        frame_sizes=(64, 128, 256, 512, 1024, 1472),
        datagram_sizes=(64, 128, 256, 512, 1024, 1472, 4 * KIB, 16 * KIB, 32 * KIB),
        stream_sizes=(1, 8, 64, 128, 256, 512, 1024, 1472, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB),
        bulk={
            Layer.FRAME: (64, 256, 1024, 1472),
            Layer.IP: (64, 1472, 4 * KIB, 16 * KIB),
            Layer.UDP: (64, 1472, 4 * KIB, 16 * KIB),
            Layer.TCP: (64, 1472, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB),
            Layer.MPI: (64, 1472, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB),
        },
        kernels=("copy", "scale", "add", "triad"),
        memory_sizes=_powers(64, 16 * MIB, 8),
    ),
)

FULL = Campaign(
    name="full",
    description="the whole curve of every layer, for a publication: thirty blocks",
    blocks=30,
    unfit="leave out",
    experiments=_all_layers(
        pingpong_seconds=1.0,
        stream_seconds=1.0,
        memory_seconds=0.2,
        frame_sizes=(*_powers(8, 1024), 1472, 1500, 4 * KIB, 8 * KIB),
        datagram_sizes=(*_powers(8, 1024), 1472, *_powers(2 * KIB, 32 * KIB)),
        stream_sizes=(*_powers(1, 1024), 1472, *_powers(2 * KIB, 4 * MIB)),
        bulk={
            Layer.FRAME: (*_powers(64, 1024), 1472, 8 * KIB),
            Layer.IP: (*_powers(64, 1024), 1472, *_powers(2 * KIB, 32 * KIB)),
            Layer.UDP: (*_powers(64, 1024), 1472, *_powers(2 * KIB, 32 * KIB)),
            Layer.TCP: (*_powers(64, 1024), 1472, *_powers(2 * KIB, 4 * MIB)),
            Layer.MPI: (*_powers(64, 1024), 1472, *_powers(2 * KIB, 4 * MIB)),
        },
        kernels=("copy", "scale", "add", "triad"),
        memory_sizes=_powers(64, 64 * MIB, 4),
    ),
)

PRESETS = {campaign.name: campaign for campaign in (QUICK, STANDARD, FULL)}


def preset(name: str) -> Campaign:
    """Return the preset of that name; UsageError lists the names."""
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}", hint=f"use {', '.join(PRESETS)}, or a TOML file")
    return PRESETS[name]
