"""The built-in campaigns, as values. They are made for any testbed, so what a fabric cannot carry is left out.

Sizes: 64 B is in every layer, because the ladder compares layers at the smallest size that all have; 1472 B is the largest payload
of a UDP datagram in one frame of MTU 1500; powers of two show the curve between and beyond.
"""

from __future__ import annotations

from fabricbench.campaign.npb_table import NpbTable
from fabricbench.campaign.pattern_presets import COLLECTIVES, CONGESTION, EVERY_PATTERN, MAP, ONE_WAY
from fabricbench.campaign.preset_parts import DATAGRAM_LAYERS, KIB, MIB, STREAM_LAYERS, experiment, powers
from fabricbench.campaign.specification import Campaign, Congestor, Experiment
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern


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
        experiment((Layer.MEMORY,), Pattern.PINGPONG, memory_sizes, memory_seconds),
        *(
            experiment((Layer.MEMORY,), Pattern.STREAM, memory_sizes[-1:], memory_seconds, kernel=name)
            for name in kernels
        ),
        experiment((Layer.FRAME,), Pattern.PINGPONG, frame_sizes, pingpong_seconds),
        experiment(DATAGRAM_LAYERS, Pattern.PINGPONG, datagram_sizes, pingpong_seconds),
        experiment(STREAM_LAYERS, Pattern.PINGPONG, stream_sizes, pingpong_seconds),
        *(experiment((layer,), Pattern.STREAM, sizes, stream_seconds) for layer, sizes in bulk.items()),
    )


TOPOLOGIES = (Pattern.STAR, Pattern.RING, Pattern.CHAOS)


def _share(sizes: tuple[int, ...], flows: tuple[int, ...], seconds: float) -> tuple[Experiment, ...]:
    """Topologies, incast, collectives, one-way latencies and a congested ping-pong: what of each a campaign for all needs."""
    incast = Congestor(pattern=Pattern.INCAST, message_bytes=(64 * KIB,))
    return (
        experiment((Layer.UDP, Layer.TCP, Layer.MPI), Pattern.ONEWAY, (64,), seconds),
        *(experiment(STREAM_LAYERS, pattern, (64 * KIB,), seconds) for pattern in TOPOLOGIES),
        *(experiment((Layer.UDP,), pattern, (1472,), seconds) for pattern in TOPOLOGIES),
        experiment((Layer.TCP,), Pattern.INCAST, (64 * KIB,), seconds, flows=flows),
        experiment((Layer.UDP,), Pattern.INCAST, (1472,), seconds),
        experiment((Layer.TCP,), Pattern.PINGPONG, (64,), seconds, incast),
        experiment((Layer.MPI,), Pattern.BARRIER, (), seconds / 2),
        *(
            experiment((Layer.MPI,), operation, sizes, seconds / 2)
            for operation in (Pattern.ALLREDUCE, Pattern.ALLTOALL)
        ),
    )


QUICK = Campaign(
    name="quick",
    description="a first answer in five minutes: six layers, few sizes, six blocks",
    blocks=6,
    unfit="leave out",
    experiments=(
        *_all_layers(
            pingpong_seconds=0.25,
            stream_seconds=0.35,
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
        experiment((Layer.TCP,), Pattern.ONEWAY, (64,), 0.15),
        experiment((Layer.TCP,), Pattern.CHAOS, (64 * KIB,), 0.25),
        experiment((Layer.MPI,), Pattern.ALLREDUCE, (KIB,), 0.15),
    ),
)

STANDARD = Campaign(
    name="standard",
    description="an answer to decide by: curves over size, sixteen blocks",
    blocks=16,
    unfit="leave out",
    experiments=(
        *_all_layers(
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
            memory_sizes=powers(64, 16 * MIB, 8),
        ),
        *_share(sizes=(8, KIB, 64 * KIB), flows=(1, 16), seconds=0.5),
    ),
)

FULL = Campaign(
    name="full",
    description="the whole curve of every layer, for a publication: thirty blocks",
    blocks=30,
    unfit="leave out",
    experiments=(
        *_all_layers(
            pingpong_seconds=1.0,
            stream_seconds=1.0,
            memory_seconds=0.2,
            frame_sizes=(*powers(8, 1024), 1472, 1500, 4 * KIB, 8 * KIB),
            datagram_sizes=(*powers(8, 1024), 1472, *powers(2 * KIB, 32 * KIB)),
            stream_sizes=(*powers(1, 1024), 1472, *powers(2 * KIB, 4 * MIB)),
            bulk={
                Layer.FRAME: (*powers(64, 1024), 1472, 8 * KIB),
                Layer.IP: (*powers(64, 1024), 1472, *powers(2 * KIB, 32 * KIB)),
                Layer.UDP: (*powers(64, 1024), 1472, *powers(2 * KIB, 32 * KIB)),
                Layer.TCP: (*powers(64, 1024), 1472, *powers(2 * KIB, 4 * MIB)),
                Layer.MPI: (*powers(64, 1024), 1472, *powers(2 * KIB, 4 * MIB)),
            },
            kernels=("copy", "scale", "add", "triad"),
            memory_sizes=powers(64, 64 * MIB, 4),
        ),
        *_share(sizes=powers(8, MIB, 8), flows=(1, 4, 16, 64), seconds=1.0),
    ),
)

NPB = Campaign(
    name="npb",
    description="the eight kernels of the NAS Parallel Benchmarks, class W, on as many nodes as each takes",
    blocks=6,
    unfit="leave out",
    npb=(NpbTable(classes=("W",)),),
)

PRESETS = {
    campaign.name: campaign
    for campaign in (QUICK, STANDARD, FULL, EVERY_PATTERN, COLLECTIVES, CONGESTION, MAP, ONE_WAY, NPB)
}


def preset(name: str) -> Campaign:
    """Return the preset of that name; UsageError lists the names."""
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}", hint=f"use {', '.join(PRESETS)}, or a TOML file")
    return PRESETS[name]
