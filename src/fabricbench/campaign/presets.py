"""The built-in campaigns, as values. They are made for any testbed, so what a fabric cannot carry is left out.

Sizes: 64 B is in every layer, because the ladder compares layers at the smallest size that all have; 1472 B is the largest payload
of a UDP datagram in one frame of MTU 1500; powers of two show the curve between and beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fabricbench.campaign.applications_preset import NAME as APPLICATIONS
from fabricbench.campaign.applications_preset import applications_by_size, applications_campaign, find_applications
from fabricbench.campaign.pattern_presets import (
    COLLECTIVES,
    CONGESTION,
    DATAGRAM_LAYERS,
    EVERY_PATTERN,
    KIB,
    MAP,
    MIB,
    ONE_WAY,
    SHORT_SECONDS,
    STREAM_LAYERS,
    WINDOWS_SECONDS,
    experiment,
    pingpongs,
    powers,
)
from fabricbench.campaign.rdma_preset import NAME as RDMA
from fabricbench.campaign.rdma_preset import rdma_campaign
from fabricbench.campaign.specification import Campaign, Congestor, Experiment
from fabricbench.configuration import did_you_mean
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.native import doors
from fabricbench.workload.npb_adapter import NpbTable

MEMORY_SECONDS = 0.02
"""Of the control, which no fabric touches: a copy of 4 MiB takes a millisecond."""


STAGED_SECONDS = 0.2
"""Of a cell whose messages are stamped, and of the same without stamps: 2,000 round trips of 100 us, as many as are kept."""


def _all_layers(
    *,
    pingpong_seconds: float = SHORT_SECONDS,
    stream_seconds: float = WINDOWS_SECONDS,
    memory_seconds: float = MEMORY_SECONDS,
    frame_sizes: tuple[int, ...],
    datagram_sizes: tuple[int, ...],
    stream_sizes: tuple[int, ...],
    bulk: dict[Layer, tuple[int, ...]],
    kernels: tuple[str, ...],
    memory_sizes: tuple[int, ...],
    staged: tuple[Layer, ...] = (),
) -> tuple[Experiment, ...]:
    """Ping-pong and stream over the six layers; `bulk` holds the sizes that throughput is measured at.

    Of the layers `staged` the stages of 64 B are measured as well.
    """
    return (
        experiment((Layer.MEMORY,), Pattern.PINGPONG, memory_sizes, memory_seconds),
        *(
            experiment((Layer.MEMORY,), Pattern.STREAM, memory_sizes[-1:], memory_seconds, kernel=name)
            for name in kernels
        ),
        *pingpongs((Layer.FRAME,), frame_sizes, pingpong_seconds),
        *_staged_pingpongs(DATAGRAM_LAYERS, datagram_sizes, pingpong_seconds, staged),
        *_staged_pingpongs(STREAM_LAYERS, stream_sizes, pingpong_seconds, staged),
        *(experiment((layer,), Pattern.STREAM, sizes, stream_seconds) for layer, sizes in bulk.items()),
    )


SMALLEST_OF_ALL = 64
"""Bytes: the smallest message that every layer has."""


def _staged_pingpongs(
    layers: tuple[Layer, ...], sizes: tuple[int, ...], seconds: float, staged: tuple[Layer, ...]
) -> Iterator[Experiment]:
    """Yield ping-pongs over layers, of some of which the stages of the smallest message are measured as well."""
    for one in pingpongs(layers, sizes, seconds):
        those = tuple(layer for layer in one.layers if layer in staged)
        if not those or SMALLEST_OF_ALL not in one.message_bytes:
            yield one
            continue
        others = tuple(layer for layer in one.layers if layer not in those)
        larger = tuple(size for size in one.message_bytes if size != SMALLEST_OF_ALL)
        yield one.model_copy(update={"layers": those, "message_bytes": (SMALLEST_OF_ALL,), "stages": True})
        if larger:
            yield one.model_copy(update={"layers": those, "message_bytes": larger})
        if others:
            yield one.model_copy(update={"layers": others})


TOPOLOGIES = (Pattern.STAR, Pattern.RING, Pattern.CHAOS)


def _share(
    sizes: tuple[int, ...],
    flows: tuple[int, ...],
    *,
    time_seconds: float = SHORT_SECONDS,
    flood_seconds: float = WINDOWS_SECONDS,
    incast_seconds: float,
) -> tuple[Experiment, ...]:
    """Topologies, incast, collectives, one-way latencies and a congested ping-pong: what of each a campaign for all needs.

    `incast_seconds` is of what loses messages and waits for timers of 200 ms.
    """
    incast = Congestor(pattern=Pattern.INCAST, message_bytes=(64 * KIB,))
    # Of 64 KiB a channel of a star or of everyone with everyone carries one in 16 ms over fast-ethernet: all windows of 0.1 s came
    # out as one. Of 16 KiB there were four or five, and what MPI has posted when the time is over drains in a quarter of it.
    return (
        experiment((Layer.UDP, Layer.TCP, Layer.MPI), Pattern.ONEWAY, (64,), time_seconds),
        *(experiment(STREAM_LAYERS, pattern, (16 * KIB,), flood_seconds) for pattern in TOPOLOGIES),
        *(experiment((Layer.UDP,), pattern, (1472,), flood_seconds) for pattern in TOPOLOGIES),
        experiment((Layer.TCP,), Pattern.INCAST, (64 * KIB,), incast_seconds, flows=flows),
        experiment((Layer.UDP,), Pattern.INCAST, (1472,), flood_seconds),
        experiment((Layer.TCP,), Pattern.PINGPONG, (64,), incast_seconds, incast),
        experiment((Layer.MPI,), Pattern.BARRIER, (), time_seconds),
        *(
            experiment((Layer.MPI,), operation, sizes, time_seconds)
            for operation in (Pattern.ALLREDUCE, Pattern.ALLTOALL)
        ),
    )


QUICK = Campaign(
    name="quick",
    description="a first answer in five minutes: six layers, few sizes, eighteen blocks",
    blocks=18,
    unfit="leave out",
    experiments=(
        *_all_layers(
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
            staged=(Layer.UDP, Layer.TCP),
        ),
        experiment((Layer.TCP,), Pattern.ONEWAY, (64,), SHORT_SECONDS),
        experiment((Layer.TCP,), Pattern.CHAOS, (16 * KIB,), WINDOWS_SECONDS),
        experiment((Layer.MPI,), Pattern.ALLREDUCE, (KIB,), SHORT_SECONDS),
    ),
)

STANDARD = Campaign(
    name="standard",
    description="an answer to decide by: curves over size, forty-four blocks",
    blocks=44,
    unfit="leave out",
    experiments=(
        *_all_layers(
            frame_sizes=(64, 128, 256, 512, 1024, 1472),
            datagram_sizes=(64, 128, 256, 512, 1024, 1472, 4 * KIB, 16 * KIB, 32 * KIB),
            stream_sizes=(1, 8, 64, 128, 256, 512, 1024, 1472, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB),
            bulk={
                Layer.FRAME: (64, 256, 1024, 1472),
                Layer.IP: (64, 1472, 4 * KIB, 16 * KIB),
                Layer.UDP: (64, 1472, 4 * KIB, 16 * KIB),
                Layer.TCP: (64, 1472, 4 * KIB, 16 * KIB, 256 * KIB),
                Layer.MPI: (64, 1472, 4 * KIB, 16 * KIB, 256 * KIB),
            },
            kernels=("copy", "triad"),
            memory_sizes=(64, 4 * KIB, 256 * KIB, 4 * MIB),
        ),
        *_share(sizes=(8, KIB, 64 * KIB), flows=(1, 16), incast_seconds=0.3),
    ),
)

FULL = Campaign(
    name="full",
    description="the whole curve of every layer, for a publication: ninety blocks",
    blocks=90,
    unfit="leave out",
    experiments=(
        *_all_layers(
            pingpong_seconds=0.1,
            stream_seconds=0.2,
            memory_seconds=0.05,
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
        *_share(sizes=powers(8, MIB, 8), flows=(1, 4, 16, 64), time_seconds=0.1, flood_seconds=0.2, incast_seconds=1.0),
    ),
)

NPB = Campaign(
    name="npb",
    description="the eight kernels of the NAS Parallel Benchmarks, class W, on as many nodes as each takes",
    blocks=6,
    unfit="leave out",
    workloads=(NpbTable(classes=("W",)),),
)

_STAGED: Mapping[str, Any] = {
    "stages": True,
    "maximum_seconds": STAGED_SECONDS,
    "minimum_seconds": STAGED_SECONDS,
    "warmup_samples": 20,
}
_STAGED_WITH_PAUSES: Mapping[str, Any] = {**_STAGED, "warmup_samples": 5}

EXPLAIN = Campaign(
    name="explain",
    description="where the time of a message passes, alone, in turn and in bursts: its stages over udp, tcp, mpi, ip and frame",
    blocks=8,
    unfit="leave out",
    experiments=(
        Experiment(layers=(Layer.FRAME, Layer.IP), pattern=Pattern.PINGPONG, message_bytes=(64,), **_STAGED),
        Experiment(
            layers=(Layer.UDP, Layer.TCP, Layer.MPI), pattern=Pattern.PINGPONG, message_bytes=(64, 8 * KIB), **_STAGED
        ),
        Experiment(
            layers=(Layer.UDP, Layer.TCP, Layer.MPI),
            pattern=Pattern.PACED,
            message_bytes=(64,),
            parameters={"intervals": "random"},
            **_STAGED_WITH_PAUSES,
        ),
        Experiment(layers=(Layer.UDP,), pattern=Pattern.PACED, message_bytes=(64,), **_STAGED_WITH_PAUSES),
        Experiment(layers=(Layer.UDP, Layer.TCP), pattern=Pattern.BURST, message_bytes=(64,), **_STAGED),
    ),
)
"""Messages of 8 KiB are stamped in turn alone: of several frames each, bursts would be of mere frames. So are frames and raw IP,
beside which udp says what its sockets add."""

SWITCH = Campaign(
    name="switch",
    description="what the switch is: line rate, store-and-forward or cut-through, delay: stamped messages, and streams",
    blocks=8,
    unfit="leave out",
    experiments=(
        Experiment(
            layers=(Layer.UDP,),
            pattern=Pattern.PINGPONG,
            message_bytes=(64, 256, 512, 1024, 1472, 4000, 16 * KIB, 48 * KIB),
            stages=True,
            maximum_seconds=STAGED_SECONDS,
            minimum_seconds=STAGED_SECONDS,
            warmup_samples=20,
        ),
        experiment((Layer.UDP,), Pattern.STREAM, (1472, 4000), WINDOWS_SECONDS),
        experiment((Layer.TCP,), Pattern.STREAM, (64 * KIB,), WINDOWS_SECONDS),
    ),
)
"""4000 B are one frame wherever the MTU is 4092 or more, and in fragments elsewhere; the two largest are everywhere."""

PRESETS = {
    campaign.name: campaign
    for campaign in (
        QUICK,
        STANDARD,
        FULL,
        EVERY_PATTERN,
        COLLECTIVES,
        CONGESTION,
        MAP,
        ONE_WAY,
        EXPLAIN,
        SWITCH,
        rdma_campaign(),
        NPB,
        applications_campaign(),
    )
}


def preset(name: str, doors: Callable[[], Mapping[str, tuple[str, ...]]] = doors) -> Campaign:
    """Return the preset of that name; UsageError lists the names. `doors` tells which the measurer has into each layer."""
    if name not in PRESETS:
        raise UsageError(
            f"no preset {name!r}{did_you_mean(name, list(PRESETS))}", hint=f"use {', '.join(PRESETS)}, or a TOML file"
        )
    if name == APPLICATIONS:
        return applications_campaign(find_applications())
    return rdma_campaign(doors().get(Layer.RDMA, ())) if name == RDMA else PRESETS[name]


def preset_by_size(name: str) -> tuple[Campaign, ...]:
    """Return a preset in the sizes that a budget may choose from, the largest first; UsageError lists the names."""
    return applications_by_size(find_applications()) if name == APPLICATIONS else (preset(name),)
