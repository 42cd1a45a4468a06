"""What a workload's bytes and messages let expect of a slower network: arithmetic beside the measurement. Pure.

From the runs on the faster fabric: the time T of a run, and of the busiest host the payload B that it sends and the messages m
that it sends one after the other. On a fabric whose wire carries R bit/s of payload (`testbed.wire`: line rate, MTU, headers), and
where a message takes t (half the smallest MPI round trip, where the run has it), the network takes N = 8 B / R + m t. If nothing of
it is overlapped, the run takes T + N_slow - N_fast on the slower fabric, and the ratio of times is 1 + (N_slow - N_fast) / T. What
overlaps with computing makes it less; what waits in queues, is sent again, or waits for another message that waits, makes it more.
The form is Hockney's for one message ("The communication challenge for MPP", Parallel Computing 20 (1994)), summed as BSP does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np
import polars as pl

from fabricbench.analysis.findings import CellKey, Comparison, Interval
from fabricbench.analysis.findings.loads import Agreement, LoadExpectation
from fabricbench.analysis.measured import Floats, Side, key_of, unjudged
from fabricbench.analysis.summary import geometric_mean
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import Family
from fabricbench.patterns import PATTERNS
from fabricbench.record.kernel_lines import KernelProfile, KernelRun
from fabricbench.record.lines import InterfaceBytes, RankInfo, is_rdma_port
from fabricbench.record.setup import Setup
from fabricbench.record.store import StoredLaunch
from fabricbench.record.workload_cells import LEADER_BYTES, Measures
from fabricbench.statistics.ratios import EXACT, Rounding
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.wire import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, TCP_HEADER_BYTES

OF_PROFILE, OF_INTERFACE = "the profile of its MPI calls", "what crossed rank 0's host"
OF_PASSES = "what it moved through rank 0's host, one way after the other"

LEAST_OF_THE_PROGRAM = 0.5
"""Share of a program's time below which the time that it is judged by says nothing of the bytes of the whole program."""


@dataclass(frozen=True)
class RunTraffic:
    """One launch of a workload: seconds of its runs, payload and messages of the busiest host; `messages` None: not told."""

    seconds: float
    payload_bytes: float
    messages: float | None
    bytes_from: str


@dataclass(frozen=True)
class FabricCapability:
    """What a fabric does with bytes and messages: payload that its wire carries, and what one message takes at least."""

    payload_bit_s: float
    message_seconds: float | None

    def seconds(self, payload_bytes: float, messages: float) -> float:
        """Return what so many bytes and messages take one after the other."""
        return 8 * payload_bytes / self.payload_bit_s + messages * (self.message_seconds or 0.0)


def network_of(side: Side) -> FabricCapability | None:
    """Return what is known of a side's network; None without a known wire."""
    wire = side.fabric.wire
    rate = None if wire is None else wire.payload_rate_bit_s(Layer.MPI, 0, side.fabric.mtu)
    return None if rate is None else FabricCapability(rate, _message_seconds(side))


def _message_seconds(side: Side) -> float | None:
    """Return half the median round trip of the smallest MPI message that was measured; None where none was."""
    trips = {
        key.message_bytes: float(np.nanmedian(cell.launch_values))
        for key, cell in side.cells.items()
        if key.layer is Layer.MPI and key.pattern is Pattern.PINGPONG and key.setup == Setup()
    }
    return trips[min(trips)] * 1e-9 / 2 if trips else None


def expected_log_ratios(runs: Sequence[RunTraffic], faster: FabricCapability, slower: FabricCapability) -> Floats:
    """Return for each run the logarithm of its time on the slower network over that on the faster one; NaN where it has none."""
    return np.array([_expected_log_ratio(run, faster, slower) for run in runs])


def _expected_log_ratio(run: RunTraffic, faster: FabricCapability, slower: FabricCapability) -> float:
    more = slower.seconds(run.payload_bytes, run.messages or 0) - faster.seconds(run.payload_bytes, run.messages or 0)
    ratio = 1 + more / run.seconds if run.seconds > 0 else 0.0
    return float(np.log(ratio)) if ratio > 0 else float("nan")


def expect(
    runs: Mapping[int, RunTraffic],
    fast: FabricCapability | None,
    slow: FabricCapability | None,
    measured: Mapping[int, float],
    margin: float,
    confidence: float,
    rounding: Rounding = EXACT,
) -> LoadExpectation | None:
    """Return what runs on the faster fabric, by block, let expect of the slower one; None: nothing is known.

    `measured` has, by block, the logarithm of how many times better the faster fabric was: both ratios of a block share its run
    on the faster fabric, so that what they differ by is paired. Messages count only where both fabrics tell what one takes; where
    the wires are alike too, there is nothing to expect. Intervals are of the scatter of launches alone, and of
    the `rounding` of what was measured.
    """
    if fast is None or slow is None or not runs:
        return None
    has_messages = fast.message_seconds is not None and slow.message_seconds is not None
    has_messages = has_messages and all(run.messages is not None for run in runs.values())
    if not has_messages and fast.payload_bit_s == slow.payload_bit_s:
        return None
    if not has_messages:
        fast, slow = (FabricCapability(one.payload_bit_s, None) for one in (fast, slow))
    expected = expected_log_ratios(list(runs.values()), fast, slow)
    ratio = geometric_mean(expected, confidence)
    if ratio is None:
        return None
    payload = median(run.payload_bytes for run in runs.values())
    messages = median(run.messages or 0 for run in runs.values())
    seconds = float(np.exp(np.mean([np.log(run.seconds) for run in runs.values()])))
    over = np.array([measured.get(block, np.nan) for block in runs]) - expected
    excess = geometric_mean(over, confidence, rounding)
    # Where the faster fabric has the longer time on the wire, overlap makes more of the ratio, not less of it.
    is_turned = slow.seconds(payload, messages) < fast.seconds(payload, messages)
    return LoadExpectation(
        bytes_from=next(iter(runs.values())).bytes_from,
        payload_bytes=payload,
        messages=messages if has_messages else None,
        seconds_faster=seconds,
        network_seconds_faster=fast.seconds(payload, messages),
        network_seconds_slower=slow.seconds(payload, messages),
        expected_seconds_slower=seconds * ratio.value,
        ratio=ratio,
        measured_over_expected=excess,
        agreement=Agreement.TURNED if is_turned else agreement_of(excess, margin),
    )


def agreement_of(over: Interval | None, margin: float) -> Agreement:
    """Return on which side of 1 the measured ratio over the expected one lies, and whether by more than the margin."""
    if over is None or over.low is None or over.high is None:
        return Agreement.UNKNOWN  # too few launches
    least, most = 1 / (1 + margin), 1 + margin
    if over.high < least:
        return Agreement.LESS
    if over.low > most:
        return Agreement.MORE
    return Agreement.WITHIN if least <= over.low and over.high <= most else Agreement.NOT_TOLD_APART


@dataclass(frozen=True)
class LoadLaunch:
    """A launch of a workload whose value counts, and what was counted of interfaces while it ran."""

    launch: StoredLaunch
    interfaces: Mapping[str, InterfaceBytes]


Launches = Mapping[CellKey, Sequence[LoadLaunch]]


def launches_of(side: Side) -> Launches:
    """Return the launches of every workload on a side."""
    keys = {unjudged(key): key for key in side.cells if key.workload is not None}
    found: dict[CellKey, list[LoadLaunch]] = defaultdict(list)
    is_workload = pl.col("pattern").cast(pl.String).is_in([one.value for one in Pattern if _is_workload(one)])
    for index, run in enumerate(side.runs if keys else ()):
        launches = {one.launch_id: one for one in side.launches_of_run(index)}
        rows = run.cells().filter(is_workload, pl.col("status").cast(pl.String) == "done")
        for row in rows.iter_rows(named=True):
            launch, key = launches.get(str(row["launch_id"])), keys.get(unjudged(key_of(row)))
            if launch is not None and key is not None:
                counted = {name: InterfaceBytes(**one) for name, one in json.loads(row["interfaces"] or "{}").items()}
                found[key].append(LoadLaunch(launch, counted))
    return dict(found)


def traffic_of(launches: Sequence[LoadLaunch], fabric: Fabric) -> dict[int, RunTraffic]:
    """Return what the launch of a workload in each block sent and took; those that do not tell are left out."""
    told = ((one.launch.block, _of_launch(one, fabric)) for one in launches)
    return {block: one for block, one in told if one is not None}


def _is_workload(pattern: Pattern) -> bool:
    return PATTERNS[pattern].family is Family.WORKLOAD


def _of_launch(one: LoadLaunch, fabric: Fabric) -> RunTraffic | None:
    kernel, header = one.launch.summary.kernel, one.launch.summary.header
    ranks = () if header is None else header.ranks
    profiles = [(run, run.profile) for run in kernel.runs if run.profile is not None] if kernel is not None else []
    if kernel is not None and profiles:
        return _of_runs(profiles, ranks, fabric)
    seconds, payload = _seconds_of_most(one.launch), payload_of(one.interfaces, fabric, ranks)
    return None if seconds is None or payload is None else RunTraffic(seconds, payload, None, OF_INTERFACE)


def _of_runs(
    runs: Sequence[tuple[KernelRun, KernelProfile]], placed: Sequence[RankInfo], fabric: Fabric
) -> RunTraffic | None:
    """Return the mean run of a kernel. What a profile counts cannot tell which bytes stay within a host, the interface can.

    A collective operation counts with what it means; an algorithm may move more, which the interface shows.
    """
    seconds = float(np.mean([run.seconds for run, _ in runs]))
    ranks = len(runs[0][1].bytes_sent)
    by_interface = [payload_of(profile.interfaces, fabric, placed) for _, profile in runs]
    counted = [one for one in by_interface if one is not None]
    crossed = float(np.mean(counted)) if len(counted) == len(runs) else None
    messages = float(np.mean([sum(one.number for one in profile.message_sizes) for _, profile in runs])) / max(ranks, 1)
    if len({info.host for info in placed}) < ranks:  # several ranks on a host, or nobody tells where they are
        return None if crossed is None else RunTraffic(seconds, crossed, None, OF_INTERFACE)
    sent = float(np.mean([max(profile.bytes_sent, default=0) for _, profile in runs]))
    # What a program tells of itself that is more than went the busier way: passes there and back, which follow each other.
    passes = float(np.mean([run.values.get(LEADER_BYTES) or 0.0 for run, _ in runs]))
    if passes > max(sent, crossed or 0.0):
        return RunTraffic(seconds, passes, messages, OF_PASSES)
    return RunTraffic(seconds, max(sent, crossed or 0.0), messages, OF_PROFILE)


def payload_of(interfaces: Mapping[str, InterfaceBytes], fabric: Fabric, ranks: Iterable[RankInfo]) -> float | None:
    """Return the payload that crossed rank 0's interface in the fabric, or its RDMA port, the busier way.

    None where it was not counted. Where a subnet tells the interface, rank 0 of `ranks` has found it.

    Headers are taken off as those of full TCP segments: of small ones more is left than was payload.
    """
    found = fabric.interface or next((info.interface for info in ranks if info.rank == 0), None)
    own = [one for name, one in interfaces.items() if name == found and one.is_counted]
    ports = [one for name, one in interfaces.items() if is_rdma_port(name) and one.is_counted]
    carried = [max(one.sent, one.received) for one in chain(own, ports if fabric.rdma is not None else ())]
    if not carried:
        return None
    headers = IP_HEADER_BYTES + TCP_HEADER_BYTES
    return max(carried) * (fabric.mtu - headers) / (fabric.mtu + ETHERNET_HEADER_BYTES)


def _seconds_of_most(launch: StoredLaunch) -> float | None:
    """Return the time that a program is judged by, if that is most of the whole program's, around which bytes were counted.

    None of a rate: of which part of the program it is, and so of which bytes, nobody tells.
    """
    told, whole = _told_seconds(launch), _whole_seconds(launch)
    return told if told and whole and told >= LEAST_OF_THE_PROGRAM * whole else None


def _told_seconds(launch: StoredLaunch) -> float | None:
    """Return the time that a program told of one run; None where it is judged by anything else."""
    part, kernel = launch.summary.workload, launch.summary.kernel
    if kernel is not None and kernel.runs:
        return float(np.mean([run.seconds for run in kernel.runs]))
    first = part.figures[0] if part is not None and part.figures else None
    return first.value if first is not None and first.kind is Measures.RUN_TIME else None


def _whole_seconds(launch: StoredLaunch) -> float | None:
    header, footer = launch.summary.header, launch.summary.footer
    if header is None or footer is None:
        return None
    return (footer.finished_unix_ns - header.started_unix_ns) * 1e-9


def seconds_of(launches: Iterable[LoadLaunch]) -> list[float]:
    """Return how long one run of a workload took in each launch that tells: of a rate, the whole program."""
    told = (_told_seconds(one.launch) or _whole_seconds(one.launch) for one in launches)
    return [one for one in told if one]


def ratio_interval(cell: Comparison, *, is_turned: bool) -> Interval:
    """Return the ratio of a comparison of a workload as its inverse where that is `is_turned`."""
    if not is_turned:
        return Interval(value=cell.ratio, low=cell.ratio_low, high=cell.ratio_high)
    low, high = (None if end is None else 1 / end for end in (cell.ratio_high, cell.ratio_low))
    return Interval(value=1 / cell.ratio, low=low, high=high)
