"""How long a launch takes: beforehand from its stopping bounds, during the run from the launches that are over. Pure.

An estimate is what is expected of a machine that has nothing else to do, and no bound: where others take the processors everything
is slower, and operations whose ranks seldom begin together take `patience_of` more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.pattern_facts import LAYER_PARAMETERS, Family, Load, Parameters
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import count, format_seconds
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

START_SECONDS = 1.0
"""Starting the ranks, loading MPI and measuring the clock: 0.3 to 0.5 s on an idle machine, 1.5 s where eight
processes want its two cores."""

CELL_SECONDS = 0.02
"""Beside its measuring time a cell meets its peer, verifies and reads counters: 15 ms in the mean of 240 cells of `quick` in a lab,
half of them 10 ms and less, on two processors with little else to do (`python -m benchmarks.run_share`)."""

END_SECONDS = 0.05
"""And what counts in windows has an end that its ranks agree on: 0.06 to 0.1 s instead of 0.03 in the same run."""

USUAL_LINE_RATE_BIT_S = 1e9
"""Of a fabric whose wire is not known."""

POSTING = (Layer.RDMA, Layer.MPI)
"""Layers to which messages are handed without waiting for them."""

SLOTS, POSTED_BYTES = 64, 32 * 1024 * 1024
"""Messages that a flood has on their way where they are posted, and what they hold at most (`slots` and `memory` of the measurer):
it is over when they have arrived."""

STREAMED_BYTES, LEAST_STREAMED = 4 * 1024 * 1024, 4
"""What a stream has on its way at most where messages are posted, no more than a window, and how many messages at least
(`messages_under_way` of the measurer)."""

POSTED_MESSAGES, LEAST_POSTED = 256, 2
"""Of a flood over many links the measurer has so many messages on their way in all, and of each link at least so many."""

SLOW_BIT_S = 1e9
USUAL_TIMEOUT = int(LAYER_PARAMETERS[Layer.RDMA]["timeout"].default)
SLOW_MESSAGES, SLOW_TIMEOUT = 64, 18
"""What the queue pairs of a sender have under way together over a fabric slower than that, at least 2 each, and their timeout,
where a campaign that leaves out what is unfit tells neither: with the usual depth what many of them have under way waits longer in
queues than a sender waits for its acknowledgement, here up to a second (4.096 us x 2^18). Fewer do not keep a link busy: over one
queue pair with 8 messages of 4 KiB, 40 Mbit/s came out as 1.2 to 1.6 times 20, for a guest may sleep until a tick of its clock
(10 ms)."""

FLOOD_DRAIN_SECONDS = 0.8
"""What is posted of a flood over RDMA may take so long over the slowest fabric, or a preset leaves it out: what is not acknowledged
after a second is sent again, and then no link is measured."""

LEAST_MESSAGES = 20
"""Of a flood over RDMA in a test's time, all queue pairs together: whole messages are counted where they end. Of seven messages of
64 KiB, 20 Mbit/s came out as 24."""

WINDOW_SECONDS = 0.02
"""A window of a stream should take this long: several turns of a scheduler, so that none is only what a receiver found waiting."""

PAIR_WINDOW_SECONDS = 0.005
"""A window of a stream between one pair of many: a pair has only its share of the cell's time, which should hold several."""

PAIR_SECONDS = 0.02
"""Beside its measuring time a pair of a matrix is told its turn, meets, warms up and reports."""

LEAST_PAIR_SECONDS = 0.005
"""What the measurer gives each pair and direction at least, however many share a cell's time."""

CONNECTION_SECONDS = 0.001
"""To open one of the connections that a cell has at once."""

GUEST_CELL_SECONDS = 0.7
GUEST_CONNECTION_SECONDS = 0.01
"""What a cell over RDMA, and each of its connections, takes longer between guests of a lab, which wait for ticks of 10 ms: a launch
of the preset `rdma` on four of them took 230 s on two processors, 100 s of it in its cells."""

SETTLING_SECONDS = 0.15
"""What a congestor has to fill the queues before a cell begins (`settling_ns` of the measurer)."""

CLOCK_SECONDS = 0.5
"""To bring the clocks of all ranks together at the beginning of a launch and to look at them again at its end; the nodes of a lab
have one."""

CELL_CLOCK_SECONDS = 0.01
"""Before and after each cell that needs them: three points a millisecond apart, nothing where ranks share a clock."""

LOOK_SECONDS = 0.02
"""What an operation is looked at for before each of its loops and before its agreed start (`look_ns` of the measurer)."""

LOOK_CALLS = 3
"""But so many calls at least, of which a look, a loop and a batch consist (`first_calls`)."""

WIDE = 4.0
"""Times as long as a call are the windows of a look at the agreed start (`generous`)."""

LOOP_SHARE = 0.25
"""Of an operation's time each of its loops has (`loop_share`); the agreed start has the rest."""

LEAST_SAMPLES = 6
"""An operation goes on until so many of its calls began together (`least_samples`) ..."""

OPERATION_PATIENCE, OPERATION_PATIENCE_SECONDS = 4.0, 1.0
"""... for so many times the time of its agreed start, a second at least (`patience`, `least_patience_s`)."""

HANG_FACTOR = 3.0
HANG_SECONDS = 30.0
"""A launch is taken as hung after this factor of what is expected and this much more, unless its record still grows."""

SLOW_FACTOR = 10.0
"""And then after so many times as long: a machine that is busy with something else has made launches five times as long."""

ABORT_SECONDS = 5.0
"""What the measurer may take, once it has found a rank that hangs, to end the others."""

PATIENCE_FACTOR = 2.0
PATIENCE_SECONDS = 20.0
"""Likewise a rank, of its cell: sooner, so that the measurer can name it. A dead path is given up after 10 s, which is no hang."""


def line_rate_bit_s(fabric: Fabric) -> float:
    """Return the line rate of a fabric, a usual one where its wire is not known."""
    return fabric.wire.line_rate_bit_s if fabric.wire is not None else USUAL_LINE_RATE_BIT_S


def overhead_seconds(probe: PlanProbe) -> float:
    """Return the seconds that a cell takes beside its measuring time, however long that is, and however large its message."""
    seconds = CELL_SECONDS + (CELL_CLOCK_SECONDS if _needs_clock(probe) else 0.0)
    if PATTERNS[probe.pattern].family is Family.OPERATION:
        seconds += LOOK_SECONDS * (_loops(probe) + 1 + (2 if _is_overlapped(probe) else 0))
    return seconds


def cell_seconds(probe: PlanProbe, fabric: Fabric) -> float:
    """Return the seconds that a cell is expected to take on a fabric."""
    seconds = overhead_seconds(probe) + _measuring_seconds(probe, line_rate_bit_s(fabric))
    beside = 0
    if probe.congestor is not None:
        beside = _connections(probe.congestor.parameters, len(probe.congestor.ranks))
        seconds += CELL_SECONDS + SETTLING_SECONDS + CONNECTION_SECONDS * beside
    if probe.layer is Layer.RDMA and fabric.is_emulated:
        connections = beside + _connections(probe.parameters, len(probe.ranks))
        seconds += GUEST_CELL_SECONDS + GUEST_CONNECTION_SECONDS * connections
    return seconds


def _measuring_seconds(probe: PlanProbe, rate_bit_s: float) -> float:
    bound = probe.stopping.maximum_seconds
    if probe.layer is Layer.MEMORY:
        return bound
    message_seconds = 8 * probe.message_bytes / rate_bit_s
    windows = min(bound, probe.warmup_samples * max(WINDOW_SECONDS, message_seconds))
    family = PATTERNS[probe.pattern].family
    if family is Family.FLOOD:
        bound += windows + END_SECONDS + CONNECTION_SECONDS * _connections(probe.parameters, len(probe.ranks))
        bound += _left_over_seconds(probe, len(probe.ranks) - 1, rate_bit_s)
    elif family is Family.MATRIX:
        bound = max(bound, _turns(probe) * LEAST_PAIR_SECONDS) + _turns(probe) * PAIR_SECONDS
    elif family is Family.OPERATION:
        bound = _operation_seconds(probe, message_seconds)
    elif PATTERNS[probe.pattern].is_stream:
        bound += windows + END_SECONDS + _left_over_seconds(probe, 1, rate_bit_s)
    elif probe.pattern is Pattern.PINGPONG:
        bound += min(bound, 2 * probe.warmup_samples * message_seconds)
    elif probe.pattern is Pattern.PACED:
        usual = PATTERNS[probe.pattern].parameters["interval_us"].default
        bound += probe.warmup_samples * float(probe.parameters.get("interval_us", usual)) * 1e-6
    return bound


def _loops(probe: PlanProbe) -> int:
    """Return how many plain loops stand beside an operation's agreed start: back to back and, of collectives, after barriers."""
    return 2 if "mode" in PATTERNS[probe.pattern].parameters else 1


def _is_overlapped(probe: PlanProbe) -> bool:
    return probe.parameters.get("mode") == "nonblocking"


def _agreed_start_seconds(probe: PlanProbe) -> float:
    return probe.stopping.maximum_seconds * (1 - LOOP_SHARE * _loops(probe))


def _operation_seconds(probe: PlanProbe, message_seconds: float) -> float:
    """Return the time of an operation's loops and agreed starts: none has fewer calls than it needs, however slow they are."""
    bound, loops = probe.stopping.maximum_seconds, _loops(probe)
    call = message_seconds * (len(probe.ranks) - 1 if PATTERNS[probe.pattern].load is Load.BLOCK_OF_EACH else 1)
    few = LOOK_CALLS * call
    slow_look = max(0.0, few - LOOK_SECONDS)
    slow_wide_look = max(0.0, WIDE * few - LOOK_SECONDS)
    seconds = few + loops * (slow_look + max(LOOP_SHARE * bound, few)) + slow_wide_look
    agreed = _agreed_start_seconds(probe)
    seconds += min(agreed, probe.warmup_samples * call) + max(agreed, LEAST_SAMPLES * call)
    if _is_overlapped(probe):
        seconds += 2 * (slow_wide_look + max(bound / 2, call))  # computing alone, and both
    return seconds


def patience_of(probe: PlanProbe) -> float:
    """Return the seconds that a cell takes at most beyond what is expected where its ranks seldom begin together."""
    if PATTERNS[probe.pattern].family is not Family.OPERATION:
        return 0.0
    agreed = _agreed_start_seconds(probe)
    return max(OPERATION_PATIENCE * agreed, OPERATION_PATIENCE_SECONDS) - agreed


def _left_over_seconds(probe: PlanProbe, channels: int, rate_bit_s: float) -> float:
    """Return how long what is on its way at the end of a stream or a flood takes over a link that so many channels share."""
    if probe.layer is Layer.RDMA and PATTERNS[probe.pattern].family is Family.FLOOD:
        return 8 * _posted_bytes(probe) / rate_bit_s
    if probe.layer not in POSTING:  # over TCP nothing is drained, its connections are closed
        return 0.0
    if PATTERNS[probe.pattern].is_stream:
        window_bytes = min(STREAMED_BYTES, rate_bit_s / 8 * WINDOW_SECONDS)
        enough = max(window_bytes // max(probe.message_bytes, 1), LEAST_STREAMED)
        return 8 * min(enough, _depth(probe)) * probe.message_bytes / rate_bit_s
    return 8 * min(channels * _depth(probe) * probe.message_bytes, POSTED_BYTES) / rate_bit_s


def _depth(probe: PlanProbe) -> int:
    """Return how many messages a path has under way."""
    return max(int(probe.parameters.get("depth", SLOTS)), LEAST_POSTED)


def _posted_bytes(probe: PlanProbe) -> int:
    """Return what a flood has under way towards its busiest rank."""
    flows = int(probe.parameters.get("flows", 1))
    senders = _senders(probe)
    fair = min(max(POSTED_MESSAGES // flows, LEAST_POSTED), _depth(probe))
    under_way = min(max(POSTED_BYTES // (probe.message_bytes * flows), LEAST_POSTED), fair)
    return senders * flows * under_way * probe.message_bytes


def _senders(probe: PlanProbe) -> int:
    return len(probe.ranks) - 1 if PATTERNS[probe.pattern].load is Load.CHANNEL_OF_EACH else 1


def slow_parameters(pattern: Pattern, fabrics: Iterable[Fabric], flows: int) -> Parameters:
    """Return the parameters that so many queue pairs need on the slowest of the fabrics, other than the usual ones."""
    if min(map(line_rate_bit_s, fabrics)) >= SLOW_BIT_S:
        return {}
    depth = max(SLOW_MESSAGES // flows, LEAST_POSTED)
    return (
        {"depth": depth, "timeout": SLOW_TIMEOUT}
        if PATTERNS[pattern].family is Family.FLOOD
        else {"timeout": SLOW_TIMEOUT}
    )


def round_seconds(probe: PlanProbe, fabric: Fabric) -> float:
    """Return how long a message in each channel of a flood takes over the busiest link: before, none may have arrived whole."""
    channels = _senders(probe) * int(probe.parameters.get("flows", 1))
    return 8 * channels * probe.message_bytes / line_rate_bit_s(fabric)


def why_too_slow(probe: PlanProbe, fabrics: Iterable[Fabric]) -> str | None:
    """Return why a flood over RDMA makes no sense on the slowest of the fabrics; None where it does."""
    if probe.layer is not Layer.RDMA or PATTERNS[probe.pattern].family is not Family.FLOOD:
        return None
    slowest = min(fabrics, key=line_rate_bit_s)
    drain = _left_over_seconds(probe, 1, line_rate_bit_s(slowest))
    if drain > FLOOD_DRAIN_SECONDS:
        return f"what is under way would take more than {FLOOD_DRAIN_SECONDS:g} s over {slowest.name}"
    if round_seconds(probe, slowest) > probe.stopping.maximum_seconds:
        return f"no message would arrive in a test's time over {slowest.name}"
    if LEAST_MESSAGES * 8 * probe.message_bytes / line_rate_bit_s(slowest) > probe.stopping.maximum_seconds:
        return f"fewer than {LEAST_MESSAGES} messages would arrive in a test's time over {slowest.name}"
    return None


def acknowledgement_notes(
    cells: Iterable[tuple[PlanProbe, Iterable[str]]], fabrics: Mapping[str, Fabric]
) -> Iterator[str]:
    """Yield what a reader of such cells over RDMA should know of their time-outs; each cell with the fabrics it is measured on.

    A lost packet may cost a sender its whole time-out: a cell that is shorter has nothing left then. And what is under way for
    longer than a time-out is sent again though nothing is lost.
    """
    short: dict[int, list[float]] = {}
    queued: dict[str, list[float]] = {}
    for probe, names in cells:
        if probe.layer is not Layer.RDMA or probe.parameters.get("door") == RdmaDoor.DATAGRAM:
            continue
        power = int(probe.parameters.get("timeout", USUAL_TIMEOUT))
        if acknowledgement_seconds(power) > probe.stopping.maximum_seconds:
            short.setdefault(power, []).append(probe.stopping.maximum_seconds)
        slowest = min((fabrics[name] for name in names), key=line_rate_bit_s)
        if PATTERNS[probe.pattern].family is Family.FLOOD:
            drain = _left_over_seconds(probe, 1, line_rate_bit_s(slowest))
            if drain > acknowledgement_seconds(power) > 0:
                queued.setdefault(slowest.name, []).append(drain)
    for power, seconds in sorted(short.items()):
        tests, wait = count(len(seconds), "test"), format_seconds(acknowledgement_seconds(power), 2)
        yield (
            f"rdma: {tests} of {format_seconds(min(seconds), 2)} may lose all of their time to one lost packet: `timeout` {power} "
            f"lets a sender wait {wait} for an acknowledgement"
        )
    for name, drains in queued.items():
        tests, longest = count(len(drains), "test"), format_seconds(max(drains), 2)
        yield (
            f"rdma: in {tests} what is under way takes up to {longest} over {name}, longer than senders wait for an "
            "acknowledgement: it is sent again though nothing is lost; set a smaller `depth`, a larger `timeout`, or "
            'unfit = "leave out"'
        )


def acknowledgement_seconds(power: int) -> float:
    """Return how long a queue pair waits for an acknowledgement before it sends again: 4.096 us times 2 to the power.

    A power of 0 is none, it waits for ever.
    """
    return 4.096e-6 * 2**power if power else 0.0


def _turns(probe: PlanProbe) -> int:
    """Return how many pairs and directions of a matrix take their turn one after the other."""
    ranks = len(probe.ranks)
    turns = {"rounds": ranks - 1 + ranks % 2, "halves": 1}
    pairs = turns.get(str(probe.parameters.get("schedule")), ranks * (ranks - 1) // 2)
    return pairs * (2 if probe.pattern is Pattern.PAIRS_STREAM else 1)


def _connections(parameters: Parameters, ranks: int) -> int:
    """Return how many connections a flood opens at most on the busiest rank: they are opened side by side."""
    return 2 * (ranks - 1) * int(parameters.get("flows", 1))


def launch_seconds(probes: Iterable[PlanProbe], fabric: Fabric) -> float:
    """Return the seconds that a launch on a fabric is expected to take."""
    cells = list(probes)
    clock = CLOCK_SECONDS if not fabric.is_emulated and any(_needs_clock(probe) for probe in cells) else 0.0
    return START_SECONDS + clock + sum(cell_seconds(probe, fabric) for probe in cells)


def _needs_clock(probe: PlanProbe) -> bool:
    facts = PATTERNS[probe.pattern]
    return facts.stamps_both_ends or facts.family in (Family.FLOOD, Family.OPERATION)


def limit_seconds(expected_seconds: float) -> float:
    """Return the seconds after which a launch is taken as hung and ended, unless its record still grows."""
    return HANG_SECONDS + HANG_FACTOR * expected_seconds


def patience_seconds(probes: Iterable[PlanProbe], fabric: Fabric) -> float:
    """Return the seconds after which a rank that is silent within a cell of a launch is taken as hung."""
    return PATIENCE_SECONDS + PATIENCE_FACTOR * max(
        cell_seconds(probe, fabric) + patience_of(probe) for probe in probes
    )


def seconds_left(
    remaining: Iterable[tuple[Hashable, float]], observed: Sequence[tuple[Hashable, float, float]]
) -> float:
    """Return the seconds that `remaining` launches (arm, estimate) need, given those over (arm, estimate, actual).

    Launches of the same arm of a block tell best: the same thing on the same fabric. Before there is one, the ratio of actual to
    estimate over all; at the start the estimate.
    """
    ratio = median([actual / estimate for _, estimate, actual in observed]) if observed else 1.0
    own: dict[Hashable, list[float]] = {}
    for arm, estimate, actual in observed:
        own.setdefault(arm, []).append(actual / estimate)
    return sum(estimate * (median(own[arm]) if arm in own else ratio) for arm, estimate in remaining)
