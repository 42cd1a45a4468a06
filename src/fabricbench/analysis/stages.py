"""From the boundaries that a message passed to the stages between them: what each took of a round trip, launch by launch.

Stages telescope: each ends where the next begins, so that those of a message add up to its round trip. Each host's part is by that
host's clock alone. What passes between hosts is what is left of the round trip, which needs no clocks that agree; only in a lab,
where the emulated switch reads the nodes' clock, it is split into driver, wire and switch. A boundary that was not seen merges the
stages on both sides of it under both names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.cell_parts import Keys
from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.stages import FABRIC, Direction, Parts, Stage, Traffic
from fabricbench.analysis.measured import Side, plain_key
from fabricbench.model import Pattern, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.launch import scan_stages
from fabricbench.record.lines import BusiestProcess
from fabricbench.record.tables import STAGES

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StagesOfLaunch:
    """The stages of the messages of a cell in one launch, ns: `values` has an array over its complete messages for each.

    `between` is all that passes between the hosts, both ways, and `round_trip` is by the clock of the samples. `missing` counts
    messages by the first boundary that they lack. `called` is when the leading rank called to send, `arrived` when the message came
    up from the driver, by way and by the receiver's clock; `released` how long before the leading rank's message was in the
    queueing discipline the peer had acknowledged something, NaN where it had not. `busiest` are the processes beside the ranks.
    """

    messages: int
    complete: int
    missing: dict[str, int]
    has_switch: bool
    values: dict[tuple[Parts, Direction], Floats]
    between: Floats
    round_trip: Floats
    called: Floats
    arrived: dict[Direction, Floats]
    released: Floats
    busiest: tuple[BusiestProcess, ...] = ()


@dataclass
class StagesOfCell:
    """The same of all launches of a side, an entry for each of its blocks with the cell, by block's index.

    `refused` has the boundaries that hosts do not show, each with the reasons.
    """

    key: CellKey
    launches: dict[int, StagesOfLaunch] = field(default_factory=dict)
    refused: dict[str, set[str]] = field(default_factory=dict)


def traffic_of(key: CellKey) -> Traffic:
    """Return how the messages of a test follow each other."""
    match key.pattern:
        case Pattern.PACED:
            return Traffic.LONE if ("intervals", "random") in key.parameters else Traffic.PACED
        case Pattern.BURST:
            return Traffic.BURST
    return Traffic.IN_TURN


OF_TRAFFIC = ("interval_us", "intervals", "messages")
"""The parameters by which traffics differ."""


def in_turn(key: CellKey) -> CellKey:
    """Return the test of the same messages in turn: a ping-pong."""
    parameters = tuple(one for one in key.parameters if one[0] not in OF_TRAFFIC)
    return key.model_copy(
        update={"pattern": Pattern.PINGPONG, "metric": metric_of(Pattern.PINGPONG), "parameters": parameters}
    )


def read_stages(side: Side) -> dict[CellKey, StagesOfCell]:
    """Return the stages of each cell of a side that were measured, by the key of the cell without stamps."""
    found: dict[CellKey, StagesOfCell] = {}
    for run in range(len(side.runs)):
        launches = [one for one in side.launches_of_run(run) if one.summary.has(STAGES)]
        cells = _keys(side, run) if launches else {}
        for launch in launches:
            for (number,), rows in scan_stages(launch.directory).collect().partition_by("cell", as_dict=True).items():
                key = cells.get((launch.launch_id, int(number)))
                if key is None or key not in side.stamped:  # not in all runs of the side
                    continue
                refused = list(launch.summary.refused_in(int(number)))
                told = stages_of_launch(rows, key, frozenset(boundary for boundary, _ in refused))
                if told is None:
                    continue
                beside = launch.summary.busiest_processes.get(int(number), {})
                one = found.setdefault(key, StagesOfCell(key))
                one.launches[side.blocks.index(launch.block)] = replace(told, busiest=tuple(beside.values()))
                for boundary, reason in refused:
                    one.refused.setdefault(boundary, set()).add(reason)
    return found


def _keys(side: Side, run: int) -> dict[tuple[str, int], CellKey]:
    """Return the cells of a run whose messages were stamped: launch and number -> the cell without stamps."""
    keys = Keys(side.runs[run])
    done = side.runs[run].cells().filter(pl.col("status") == "done", pl.col("parameters").str.contains("stages"))
    found = {(str(row["launch_id"]), int(row["cell"])): plain_key(keys.of(row)) for row in done.iter_rows(named=True)}
    return {name: key for name, key in found.items() if key is not None}


RANK_BOUNDARIES = ("before", "called", "scheduled", "departed", "arrived", "drained", "received")
SWITCH_BOUNDARIES = ("switch_first", "switch_last", "wire", "due")
TIMES = {
    "before": "before_unix_ns",
    "asked": "asked_unix_ns",
    "called": "called_unix_ns",
    "scheduled": "scheduled_unix_ns",
    "departed": "departed_unix_ns",
    "acknowledged": "acknowledged_unix_ns",
    "arrived": "arrived_unix_ns",
    "resumed": "resumed_unix_ns",
    "drained": "drained_unix_ns",
    "received": "received_unix_ns",
    "switch_first": "switch_first_unix_ns",
    "switch_last": "switch_last_unix_ns",
    "due": "due_unix_ns",
}
"""Boundaries, and the columns of `record.frames.STAGE_SCHEMA` that hold them."""
LENGTHS = {"waited": "waited_ns", "wire": "wire_ns"}
"""The same of what is a time that passes."""


@dataclass(frozen=True)
class _Messages:
    """The boundaries of the messages of a launch, of those that lead and follow, each an array over messages, NaN where unseen.

    Times are ns from `base` on: as numbers of 64 bits with a fraction they would not be told apart to the nanosecond since 1970.
    """

    leads: Mapping[str, Floats]
    follows: Mapping[str, Floats]
    round_trip: Floats

    def seen(self, name: str) -> bool:
        """Whether both ranks saw a boundary of any message."""
        return not (np.isnan(self.leads[name]).all() or np.isnan(self.follows[name]).all())


def _messages(rows: pl.DataFrame) -> _Messages | None:
    """Return the messages that the leading rank counted, beside what the other one saw of them; None without any."""
    leads = rows.filter("leads").unique("number", keep="last").sort("number")
    follows = rows.filter(~pl.col("leads")).unique("number", keep="last")
    both = leads.join(follows, on="number", how="left", suffix=" there", maintain_order="left")
    if both.is_empty() or follows.is_empty():
        return None
    base = both["before_unix_ns"].min()

    def of_rank(suffix: str) -> dict[str, Floats]:
        columns = {name: both[f"{column}{suffix}"] - base for name, column in TIMES.items()}
        columns |= {name: both[f"{column}{suffix}"] for name, column in LENGTHS.items()}
        return {name: one.cast(pl.Float64).fill_null(np.nan).to_numpy() for name, one in columns.items()}

    return _Messages(of_rank(""), of_rank(" there"), both["round_trip_ns"].cast(pl.Float64).to_numpy())


def stages_of_launch(rows: pl.DataFrame, key: CellKey, refused: frozenset[str] = frozenset()) -> StagesOfLaunch | None:
    """Return the stages of a cell's messages in one launch, of which these are the rows; None where none is complete."""
    messages = _messages(rows)
    if messages is None:
        return None
    seen = {name for name in messages.leads if name not in refused and messages.seen(name)}
    has_switch = set(SWITCH_BOUNDARIES) <= seen and "arrived" in seen and not seen.isdisjoint(("called", "departed"))
    needed = [name for name in RANK_BOUNDARIES if name in seen] + list(SWITCH_BOUNDARIES if has_switch else ())
    lacks = {
        name: np.isnan(messages.leads[name]) | np.isnan(messages.follows[name])
        for name in ("before", "received", *needed)
    }
    incomplete = np.zeros(len(messages.round_trip), dtype=np.bool_)
    missing = {}
    for name, is_lacking in lacks.items():
        if number := int(np.count_nonzero(is_lacking & ~incomplete)):
            missing[name] = number
        incomplete |= is_lacking
    if incomplete.all():
        return None
    whole = _Messages(
        {name: values[~incomplete] for name, values in messages.leads.items()},
        {name: values[~incomplete] for name, values in messages.follows.items()},
        messages.round_trip[~incomplete],
    )
    # A library of messages waits as it likes: it spins where its thread is never switched in.
    is_seen = "arrived" in seen and refused.isdisjoint(("resumed", "waited"))
    spins = key.receive is Receive.POLLING or (key.receive is Receive.LIBRARY and is_seen and "resumed" not in seen)
    if spins and is_seen:
        seen |= {"resumed", "waited"}  # where no message has them nobody took the processor of one that spins
    values, between = _stages(whole, seen, has_switch=has_switch, spins=spins)
    return StagesOfLaunch(
        messages=len(incomplete),
        complete=int(np.count_nonzero(~incomplete)),
        missing=missing,
        has_switch=has_switch,
        values=values,
        between=between,
        round_trip=whole.round_trip,
        called=whole.leads["before"],
        arrived={Direction.THERE: whole.follows["arrived"], Direction.BACK: whole.leads["arrived"]}
        if "arrived" in seen
        else {},
        released=whole.leads["scheduled"] - whole.leads["acknowledged"],
    )


End = tuple[Parts, Floats | None]
"""A stage and when it ends; None: nobody saw that."""


def _merged(ends: Sequence[End]) -> tuple[list[tuple[Parts, Floats]], Parts]:
    """Return stages with their ends, those without one merged into the next, and what is left without an end."""
    found: list[tuple[Parts, Floats]] = []
    carried: Parts = ()
    for parts, end in ends:
        carried += parts
        if end is not None:
            found.append((carried, end))
            carried = ()
    return found, carried


def _stages(
    messages: _Messages, seen: set[str], *, has_switch: bool, spins: bool
) -> tuple[dict[tuple[Parts, Direction], Floats], Floats]:
    """Return the stages of complete messages, and what passes between the hosts both ways."""
    leads, follows = messages.leads, messages.follows
    values: dict[tuple[Parts, Direction], Floats] = {}
    departures, arrivals = [], []
    left: Parts = ()
    came: Parts = ()
    for way, sender, receiver in ((Direction.THERE, leads, follows), (Direction.BACK, follows, leads)):
        sent, left = _merged(_sending(sender, seen))
        received, _ = _merged(_receiving(receiver, seen, spins=spins))
        departure = sent[-1][1] if sent else sender["before"]
        values |= dict(_lengths(sender["before"], sent, way))
        if has_switch:
            crossing = _crossing(sender, receiver, left, departure)
            values |= dict(_lengths(departure, crossing, way))
        if "arrived" in seen:
            arrival = receiver["arrived"]
            values |= dict(_lengths(arrival, received, way))
        else:  # then all until the first boundary behind it passes between the hosts
            came, arrival = received[0]
            values |= dict(_lengths(arrival, received[1:], way))
        departures.append(departure)
        arrivals.append(arrival)
    # The way there ends and the way back begins on the other host's clock, so that only their sum is known of two clocks.
    between = (arrivals[1] - departures[0]) - (departures[1] - arrivals[0])
    if not has_switch:
        values[(*left, *FABRIC, *came), Direction.BOTH] = between
    values[(Stage.APPLICATION,), Direction.PEER] = follows["before"] - follows["received"]
    values[(Stage.REST,), Direction.BACK] = messages.round_trip - (leads["received"] - leads["before"])
    return values, between


def _lengths(
    begin: Floats, ends: Sequence[tuple[Parts, Floats]], way: Direction
) -> Iterator[tuple[tuple[Parts, Direction], Floats]]:
    for parts, end in ends:
        yield (parts, way), end - begin
        begin = end


LEAST_HANDSHAKES = 0.5
"""Of messages: so many ask the peer before, where that is the way of the library: the median shows no fewer."""


def _sending(sender: Mapping[str, Floats], seen: set[str]) -> list[End]:
    """Return the stages of sending. A library of messages may ask the peer first, and sends the message upon its answer."""
    called = sender["called"] if "called" in seen else None
    asks = called is not None and np.mean(~np.isnan(sender["asked"])) >= LEAST_HANDSHAKES
    first = np.where(np.isnan(sender["asked"]), called, sender["asked"]) if called is not None and asks else called
    return [
        ((Stage.LIBRARY,), first),
        *([((Stage.HANDSHAKE,), called)] if asks else []),
        ((Stage.SOCKET,), sender["scheduled"] if "scheduled" in seen else None),
        ((Stage.QUEUEING,), sender["departed"] if "departed" in seen else None),
    ]


def _crossing(
    sender: Mapping[str, Floats], receiver: Mapping[str, Floats], left: Parts, departure: Floats
) -> list[tuple[Parts, Floats]]:
    """Return the stages between the hosts of a lab. Of a message in several frames the last one decides when it arrives.

    `left` are the sender's stages whose end nobody saw, from `departure` on: they end with the driver's.

    The kernel stamps the first fragment of a datagram and the last segment of what is sent of a stream: the driver's stage ends
    with the first frame that the switch has from then on.
    """
    first, last = sender["switch_first"], sender["switch_last"]
    handed_over = np.where(first >= departure, first, last)
    return [
        ((*left, Stage.DRIVER), handed_over),
        ((Stage.WIRE,), last + sender["wire"]),
        ((Stage.SWITCH,), sender["due"]),
        ((Stage.EMULATOR,), receiver["arrived"]),
    ]


def _receiving(receiver: Mapping[str, Floats], seen: set[str], *, spins: bool) -> list[End]:
    """Return the stages of receiving. A message that nobody had to be woken for has no wake-up and no wait for a processor.

    One that spins is woken by nobody, and waits where it was without a processor as the message came.
    """
    before_waking = (Stage.SOFTIRQ, Stage.PROTOCOL)
    resumed = waited = None
    if "arrived" in seen and "resumed" in seen:
        arrived = receiver["arrived"]
        resumed = np.fmax(receiver["resumed"], arrived)
        if "waited" in seen:
            waited = np.clip(np.nan_to_num(receiver["waited"]), 0.0, resumed - arrived)
    is_drained = "drained" in seen
    has_come = receiver["drained"] if is_drained else receiver["received"]
    delivery: list[End] = [((Stage.DELIVERY,), receiver["received"])] if is_drained else []
    if spins:
        waits: list[End] = [] if waited is None else [((Stage.SCHEDULER,), receiver["arrived"] + waited)]
        return [*waits, ((*before_waking, Stage.RETURN), has_come), *delivery]
    woken = None if resumed is None or waited is None else resumed - waited
    return [
        ((*before_waking, Stage.WAKE_UP), woken),
        ((Stage.SCHEDULER,), resumed),
        ((Stage.RETURN,), has_come),
        *delivery,
    ]


def both_ways(launch: StagesOfLaunch) -> dict[Parts, Floats]:
    """Return each stage of a launch over the whole round trip, in the order of the way."""
    found: dict[Parts, Floats] = {}
    for (parts, _), values in launch.values.items():
        found[parts] = found[parts] + values if parts in found else values
    return dict(sorted(found.items(), key=lambda one: list(Stage).index(one[0][0])))
