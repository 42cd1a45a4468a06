"""Writes a run directory whose truth is known: so many fabrics, blocks and cells, with the medians and the noise that one asks for.

Samples are the cell's median times a log-normal factor for each launch (what differs from start to start) times a log-normal
factor for each sample, so the median over many samples of many launches is the one asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.patterns import metric_of
from fabricbench.record.crossings import Crossings
from fabricbench.record.launch import CellLateness
from fabricbench.record.lines import (
    Cell,
    CellEnd,
    CellFailed,
    Clock,
    ClockInfo,
    FailureCode,
    Footer,
    Header,
    InterfaceBytes,
    Phase,
    PortState,
    Quantity,
    RankInfo,
    RdmaAttachment,
    StopReason,
)
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.reading import Batch, CellRecord, ChannelNumbers, Record
from fabricbench.record.store import LaunchFacts, Manifest, PlannedLaunch, Run, write_launch, write_manifest
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.wire import Wire
from support.counts import Counted, counters_of
from support.stamps import Stamped, stamps

START_UP_NS = 40_000_000
"""What MPI_Init takes on rank 0; a millisecond more on each further rank."""
STARTED_NS = 1_793_400_000_000_000_000
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class SyntheticCell:
    """A cell and its true median on each fabric, in the metric's unit (ns, bit/s, message/s).

    `missed` of the samples, the last ones, missed their start and are ten times as long. `channel_shares` splits what a cell
    moved between channels (source, destination, flow), `pair_medians` are the true round trips (ns) of a matrix's pairs,
    `one_way` the true times (ns) there and back; each becomes channel lines.
    """

    layer: Layer
    pattern: Pattern
    message_bytes: int
    medians: Mapping[str, float]
    receive: Receive = Receive.BLOCKING
    samples: int = 200
    warmup: int = 10
    messages_per_sample: int = 1
    lost: int = 0
    parameters: dict[str, str | int | float] = field(default_factory=dict)
    ranks: tuple[int, ...] = (0, 1)
    channels: int = 1
    congestor: PlanCongestor | None = None
    missed: int = 0
    values: Mapping[str, float] = field(default_factory=dict)
    channel_shares: Mapping[tuple[int, int, int], float] = field(default_factory=dict)
    lost_on: Mapping[tuple[int, int, int], int] = field(default_factory=dict)
    """Of the messages of each channel, as many as of the cell: how many were lost."""
    pair_medians: Mapping[tuple[int, int], float] = field(default_factory=dict)
    one_way: tuple[float, float] | None = None
    drift: float = 0.0
    """How much longer its samples take in the last block than in the first, as a share; in steps of the same factor."""
    fails_in: frozenset[int] = frozenset()
    """Blocks in which it opens and fails."""
    port_state: Mapping[str, PortState] = field(default_factory=dict)
    """By fabric, of each of its launches."""
    rdma: Mapping[str, tuple[RdmaAttachment, ...]] = field(default_factory=dict)
    """Likewise."""
    silent_in: frozenset[int] = frozenset()
    """Blocks in which nothing arrives: a rate of 0."""
    stamped: Mapping[str, Stamped] = field(default_factory=dict)
    """By fabric, the stages of its messages; a switch tells of frames where the hosts' clocks are one."""
    counted: Mapping[str, Counted] = field(default_factory=dict)
    """By fabric, what its messages cost the processors, in each launch times the factor of that launch's noise."""

    @property
    def metric(self) -> Metric:
        return metric_of(self.pattern)

    @property
    def bytes_per_sample(self) -> int:
        ways = 2 if self.metric is Metric.ROUND_TRIP_TIME else 1
        return self.message_bytes * self.messages_per_sample * ways


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the logarithms: from launch to launch, from sample to sample."""

    launch: float = 0.01
    sample: float = 0.05


def ladder_cells(
    fabrics: Mapping[str, float], *, sizes: Sequence[int] = (64, 1024, 16384), samples: int = 200
) -> list[SyntheticCell]:
    """Return ping-pong and stream cells over all six layers; `fabrics` maps a fabric's name to its line rate in bit/s."""
    cells = []
    for step, layer in enumerate(USUAL_LAYERS):
        for size in sizes:
            if layer is Layer.FRAME and size > 1500:
                continue
            trips = {name: 2e3 * (5 + 10 * step) + 2 * size * 8e9 / rate for name, rate in fabrics.items()}
            rates = {
                name: rate * (0.98 - 0.03 * step) * size / (size + 60) * (10 if layer is Layer.MEMORY else 1)
                for name, rate in fabrics.items()
            }
            cells.append(SyntheticCell(layer, Pattern.PINGPONG, size, trips, samples=samples))
            cells.append(
                SyntheticCell(layer, Pattern.STREAM, size, rates, samples=max(5, samples // 5), messages_per_sample=16)
            )
    return cells


def synthetic_testbed(fabrics: Mapping[str, float | None], *, mtu: int = 1500, nodes: int = 2) -> Testbed:
    """Return a testbed of so many nodes; `fabrics` maps names to line rates in bit/s (None: unknown)."""
    subnets = [
        IPv4Network(f"10.98.{k + 1}.0/24" if nodes < 255 else f"10.{98 + k}.0.0/16") for k in range(len(fabrics))
    ]
    return Testbed(
        name="synthetic",
        launcher=LauncherKind.LAB,
        lab="synthetic",
        nodes=tuple(
            Node(
                name=f"n{node}",
                addresses={name: subnet[node + 1] for name, subnet in zip(fabrics, subnets, strict=True)},
            )
            for node in range(nodes)
        ),
        fabrics=tuple(
            Fabric(
                name=name,
                interface=f"fb{k}",
                subnet=subnets[k],
                mtu=mtu,
                wire=None if rate is None else Wire(line_rate_bit_s=rate),
                is_emulated=True,
            )
            for k, (name, rate) in enumerate(fabrics.items())
        ),
    )


def write_synthetic_run(
    directory: Path,
    *,
    cells: Sequence[SyntheticCell],
    blocks: int = 6,
    noise: Noise = Noise(),
    seed: int = 1,
    testbed: Testbed | None = None,
    invalid: Sequence[str] = (),
    unproven: Sequence[str] = (),
    missing: Sequence[str] = (),
    failed: Sequence[CellFailed] = (),
    clocks: Sequence[Clock] = (),
    order: Sequence[str] = (),
    median_of: Callable[[PlannedLaunch, int], float] | None = None,
    factors_of: Callable[[PlannedLaunch, int], NDArray[np.float64] | None] | None = None,
    lateness_of: Callable[[PlannedLaunch], Mapping[int, CellLateness]] | None = None,
    day_of: Sequence[int] = (),
) -> Run:
    """Write a run and open it. Launches named in `invalid` fail the path proof, those in `missing` never ran.

    Nobody counted the traffic of launches on fabrics named in `unproven`. `order` has the fabric of each launch in the order of
    time, drawn where it is empty; `median_of` gives the median of a cell, by its number, in a launch, `factors_of` how many times
    that each sample is, and `lateness_of` the switch's lateness in each cell. `day_of` has the day of each block.

    Fabrics are those of the cells' medians, in the order they are met; without a `testbed` their wires are unknown.
    """
    names = list(dict.fromkeys(name for cell in cells for name in cell.medians))
    bed = testbed or synthetic_testbed(dict.fromkeys(names))
    random = np.random.default_rng(seed)
    planned = []
    for block in range(blocks):
        in_order = order[block * len(names) :][: len(names)]
        for position, fabric in enumerate(in_order or random.permutation(names)):
            planned.append(
                PlannedLaunch(launch_id=f"b{block:02d}-{fabric}", block=block, position=position, fabric=str(fabric))
            )
    directory.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        created=datetime.fromtimestamp(STARTED_NS / 1e9, UTC),
        campaign_name="synthetic",
        campaign={"name": "synthetic", "blocks": blocks},
        testbed=bed,
        seed=seed,
        planned=tuple(planned),
        versions={"fabricbench": "0.1.0", "python": "3.11", "mpi": "none", "compiler": "none"},
        inventory={node.name: {"cpu.model": "synthetic"} for node in bed.nodes},
    )
    write_manifest(directory, manifest)
    for launch in planned:
        if launch.launch_id in missing:
            continue
        folder = directory / "launches" / launch.launch_id
        folder.mkdir(parents=True)
        facts = LaunchFacts(
            block=launch.block,
            position=launch.position,
            origin=Origin.EMULATED,
            proof=Proof.REFUTED
            if launch.launch_id in invalid
            else Proof.UNKNOWN
            if launch.fabric in unproven
            else Proof.PROVEN,
            is_valid=launch.launch_id not in invalid,
            invalid_because=("the traffic went another way",) if launch.launch_id in invalid else (),
            exit_code=0,
            lateness=dict(lateness_of(launch)) if lateness_of is not None else {},
        )
        share = launch.block / max(blocks - 1, 1)
        of_launch = [_drifted(cell, share) for cell in cells]
        if median_of is not None:
            of_launch = [
                replace(cell, medians={launch.fabric: median_of(launch, row)}) for row, cell in enumerate(of_launch)
            ]
        record = synthetic_record(
            launch, of_launch, bed, noise, random, failed=failed, day=day_of[launch.block] if day_of else 0
        )
        for row, cell in enumerate(of_launch):
            if factors_of is not None and (factors := factors_of(launch, row)) is not None:
                times = np.rint(cell.medians[launch.fabric] * factors).astype(np.uint64)
                record.cells[row].batches[1].time_ns = times
        record.clocks = list(clocks)
        crossings = _stamp(record, of_launch, launch.fabric, random)
        _count(record, of_launch, launch.fabric, noise, random)
        with mock.patch("os.fsync"):  # no test of these asks what a power loss leaves
            write_launch(folder, record, facts=facts, crossings=crossings)
    return Run.open(directory)


WAY = {
    "library": 600.0,
    "queue": 300.0,
    "driver": 150.0,
    "wire": 5_000.0,
    "switch": 2_000.0,
    "emulator": 120.0,
    "waking": 3_000.0,
    "waiting": 4_000.0,
    "return": 1_700.0,
}
"""What the stages of a message take, ns."""


def stamped_run(
    directory: Path,
    stamped: Mapping[str, Stamped] | None = None,
    receive: Receive = Receive.BLOCKING,
    samples: int = 60,
    blocks: int = 8,
    **lost: Sequence[str],
) -> Run:
    """Write a run of a ping-pong over udp without stamps, and the same with some of these stages 1 us longer."""
    of_fabrics = stamped or {"net": Stamped(WAY, WAY, apart_ns=0)}
    plain = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, receive=receive, samples=samples)
    cells = stamped_cells((plain, of_fabrics))
    return write_synthetic_run(directory, cells=cells, blocks=blocks, noise=Noise(0.001, 0.01), **lost)  # type: ignore[arg-type]


def stamped_cells(*stamped: tuple[SyntheticCell, Mapping[str, Stamped]]) -> list[SyntheticCell]:
    """Return cells without stamps, whose medians are those of their stages, and each with stamps as well, 1 us longer."""
    cells = []
    for cell, of_fabrics in stamped:
        medians = {name: 2.0 * sum(one.there.values()) for name, one in of_fabrics.items()}
        with_stamps = replace(
            cell,
            medians={name: one + 1_000.0 for name, one in medians.items()},
            parameters={**cell.parameters, "stages": "user"},
            stamped=of_fabrics,
        )
        cells += [replace(cell, medians=medians), with_stamps]
    return cells


def stamped_cells_run(directory: Path, *stamped: tuple[SyntheticCell, Mapping[str, Stamped]], blocks: int = 6) -> Run:
    """Write a run of such cells."""
    return write_synthetic_run(directory, cells=stamped_cells(*stamped), blocks=blocks, noise=Noise(0.001, 0.01))


def _stamp(
    record: Record, cells: Sequence[SyntheticCell], fabric: str, random: np.random.Generator
) -> dict[int, Crossings]:
    """Add the stamps of cells that have some to their records; return the frames of the switch."""
    crossings = {}
    for number, cell in enumerate(cells):
        if (one := cell.stamped.get(fabric)) is not None:
            record.cells[number].stages, frames = stamps(one, number, cell.samples, random)
            if one.apart_ns == 0:
                crossings[number] = frames
    return crossings


def _count(
    record: Record, cells: Sequence[SyntheticCell], fabric: str, noise: Noise, random: np.random.Generator
) -> None:
    """Add the counters of cells that have some to their records."""
    for number, cell in enumerate(cells):
        if (one := cell.counted.get(fabric)) is not None:
            factor = float(np.exp(noise.launch * random.standard_normal()))
            record.cells[number].counters = counters_of(one, number, factor)


def forget_hashes(launch: Path) -> None:
    """Take the hashes out of a launch, as an earlier version wrote it, so that a test may change its files."""
    path = launch / "launch.json"
    told = json.loads(path.read_text())
    told.pop("sha256", None)
    path.write_text(json.dumps(told))


def _drifted(cell: SyntheticCell, share: float) -> SyntheticCell:
    longer = (1.0 + cell.drift) ** share
    factor = longer if cell.metric.is_time else 1.0 / longer
    return replace(cell, medians={name: median * factor for name, median in cell.medians.items()})


def synthetic_record(
    launch: PlannedLaunch,
    cells: Sequence[SyntheticCell],
    testbed: Testbed,
    noise: Noise,
    random: np.random.Generator,
    *,
    failed: Sequence[CellFailed] = (),
    day: int = 0,
) -> Record:
    """Return the record of one launch."""
    started = STARTED_NS + day * DAY_NS + launch.block * 60_000_000_000 + launch.position * 20_000_000_000
    interface = testbed.fabric(launch.fabric).interface
    ranks = tuple(
        RankInfo(
            rank=rank,
            host=node.name,
            pid=100 + rank,
            cpus=(0,),
            interface=interface,
            mtu=1500,
            address=f"10.98.1.{rank + 1}",
            start_up_ns=START_UP_NS + rank * 1_000_000,
        )
        for rank, node in enumerate(testbed.nodes)
    )
    header = Header(
        launch_id=launch.launch_id,
        fabric=launch.fabric,
        probe_version="0.1.0",
        mpi_library="none",
        started_unix_ns=started,
        ranks=ranks,
        clock=ClockInfo(name="CLOCK_MONOTONIC", resolution_ns=1.0, overhead_ns=27.0, loop_floor_ns=28.0),
    )
    records = [
        _spoilt(
            _cell_record(
                number,
                cell,
                interface,
                _batches(cell, cell.medians[launch.fabric], noise, random),
                _channels(cell, noise, random),
                cell.port_state.get(launch.fabric, {}),
                cell.rdma.get(launch.fabric, ()),
            ),
            cell,
            launch.block,
        )
        for number, cell in enumerate(cells)
        if launch.fabric in cell.medians
    ]
    records += [CellRecord(None, failed=line) for line in failed]
    footer = Footer(finished_unix_ns=started + 15_000_000_000, cells=len(records), failed=len(failed))
    return Record(header=header, footer=footer, cells=records)


def _spoilt(record: CellRecord, cell: SyntheticCell, block: int) -> CellRecord:
    if block in cell.silent_in:
        for batch in record.batches:
            batch.bytes = np.zeros(len(batch.time_ns), dtype=np.uint64)
    if block in cell.fails_in:
        record.end = None
        record.failed = CellFailed(
            cell=record.id,
            layer=cell.layer,
            pattern=cell.pattern,
            message_bytes=cell.message_bytes,
            code=FailureCode.TIMEOUT,
            reason="no answer",
        )
    return record


def _batches(cell: SyntheticCell, median: float, noise: Noise, random: np.random.Generator) -> list[Batch]:
    time_ns = median
    if not cell.metric.is_time:
        per_sample = cell.messages_per_sample if cell.metric is Metric.MESSAGE_RATE else cell.bytes_per_sample * 8
        time_ns = per_sample * 1e9 / median
    of_launch = float(np.exp(noise.launch * random.standard_normal()))
    batches = []
    for phase, count in ((Phase.WARMUP, cell.warmup), (Phase.MEASURED, cell.samples)):
        factors = np.exp(noise.sample * random.standard_normal(count))
        times = np.maximum(1, np.rint(time_ns * of_launch * factors)).astype(np.uint64)
        late = range(count - cell.missed, count) if phase is Phase.MEASURED else range(0)
        times[list(late)] *= np.uint64(10)
        batches.append(Batch(phase, 0, times, None, tuple(late)))
    return batches


def _channels(cell: SyntheticCell, noise: Noise, random: np.random.Generator) -> list[ChannelNumbers]:
    def scattered(median: float) -> NDArray[np.int64]:
        return np.rint(median * np.exp(noise.sample * random.standard_normal(cell.samples))).astype(np.int64)

    def channel(source: int, destination: int, quantity: Quantity, times: NDArray[np.int64]) -> ChannelNumbers:
        return ChannelNumbers(source, destination, 0, 0, quantity, times, None, len(times), 0)

    found = []
    moved = cell.samples * cell.bytes_per_sample
    for (source, destination, flow), share in cell.channel_shares.items():
        transfer = channel(source, destination, Quantity.TRANSFER, np.array([cell.samples * 1_000_000]))
        transfer.flow, transfer.bytes = flow, np.array([round(moved * share)], dtype=np.uint64)
        transfer.sent = cell.samples * cell.messages_per_sample
        transfer.lost = cell.lost_on.get((source, destination, flow), 0)
        found.append(transfer)
    for (source, destination), median in cell.pair_medians.items():
        found.append(channel(source, destination, Quantity.ROUND_TRIP, scattered(median)))
    if cell.one_way is not None:
        found += [
            channel(source, 1 - source, Quantity.ONE_WAY, scattered(median))
            for source, median in enumerate(cell.one_way)
        ]
    return found


def _cell_record(
    number: int,
    cell: SyntheticCell,
    interface: str | None,
    batches: list[Batch],
    channels: list[ChannelNumbers],
    port_state: PortState,
    rdma: tuple[RdmaAttachment, ...],
) -> CellRecord:
    opening = Cell(
        id=number,
        layer=cell.layer,
        pattern=cell.pattern,
        message_bytes=cell.message_bytes,
        receive=cell.receive,
        metric=cell.metric,
        ranks=cell.ranks,
        messages_per_sample=cell.messages_per_sample,
        bytes_per_sample=cell.bytes_per_sample,
        parameters=cell.parameters,
        channels=cell.channels,
        congestor=cell.congestor,
    )
    sent = cell.samples * cell.messages_per_sample
    carried = sent * (cell.message_bytes + 60)
    end = CellEnd(
        cell=number,
        stop=StopReason.COUNT,
        warmup=cell.warmup,
        measured=cell.samples,
        seconds=float(batches[1].time_ns.sum()) / 1e9,
        sent=sent,
        lost=cell.lost,
        verified=4,
        missed=cell.missed,
        values=dict(cell.values),
        interfaces={interface: InterfaceBytes(sent=carried, received=carried)} if interface else {},
        port_state=port_state,
        rdma=rdma,
    )
    return CellRecord(opening, batches, end, channels=channels)
