"""What a fabric's switch is, as measurements tell it, and what another one would make of a round trip (predicted)."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.analysis.findings.stages import Stage
from fabricbench.model import Model
from fabricbench.record.provenance import Origin


class Forwarding(StrEnum):
    """When frames are passed on: once they are stored, so that each link's serialisation counts, or at once."""

    STORED = "store-and-forward"
    AT_ONCE = "cut-through or a cable"


class Seen(StrEnum):
    """What times the path of frames were found from."""

    BETWEEN_HOSTS = "between the hosts, by stamps"
    ROUND_TRIPS = "half of round trips, hosts included"


class Buffer(Model):
    """How much waits at the port of a slower link before it drops: from bursts of frames of so many bytes on the wire.

    Bursts of `lossless` frames came whole in all launches, those of `lossy` did not in some: the buffer has from `low_bytes` to
    `high_bytes`, which is room for `frames_low` to `frames_high` frames, the one on the link among them. `ratio` is the rate of the
    receiver's link over that of the sender's.
    """

    frame_bytes: int
    lossless: int
    lossy: int
    low_bytes: float
    high_bytes: float
    frames_low: int
    frames_high: int
    ratio: float


class SwitchUnknown(StrEnum):
    """Why something is not told of a switch."""

    RATE = "no stream was measured"
    SIZES = "too few sizes that one frame holds"
    UNDECIDED = "the interval holds both"
    LAUNCHES = "too few launches for an interval"
    FASTER_SENDER = "no sender has a faster link than its receiver"
    NO_BURSTS = "no bursts were measured"
    NO_LOSS = "no burst lost anything"
    ALL_LOST = "every burst lost something"


class FabricSwitch(Model):
    """The switch of a fabric and its links, from measurements alone; the framing (bytes on the wire) is what the testbed says.

    `key` is that of the curve of ping-pongs, `sizes` those of its messages that one frame holds. `line_rate_bit_s` is that of the
    fastest stream, with what its frames take on the wire, or by messages of several frames where hosts bound streams; `rate_key` is
    the cell or the curve that told it. `serialisations` is how many times a frame is serialised on its way:
    the slope of times over bytes on the wire, against that rate. `delay_ns` is what a frame takes one way beside: propagation and
    the switch's latency, and of a switch that passes frames on at once what it reads before; where `seen` is round trips, the
    hosts too. `to_measure` are bursts that would narrow the buffer. What is not told is in `lacking`.
    """

    fabric: str
    key: CellKey | None
    seen: Seen | None
    launches: int
    sizes: tuple[int, ...]
    line_rate_bit_s: Interval | None
    rate_key: CellKey | None
    serialisations: Interval | None
    forwarding: Forwarding | None
    delay_ns: Interval | None
    buffer: Buffer | None = None
    to_measure: tuple[int, ...] = ()
    lacking: dict[str, SwitchUnknown] = {}


class FrameDifference(Model):
    """How much longer a frame takes one way on fabric B than on A, ns, where both have the same line rate: by shared blocks."""

    fabric_a: str
    fabric_b: str
    key: CellKey
    seen: Seen
    difference: Interval


class Change(StrEnum):
    """What would be another."""

    NO_WAKING = "a receiver that spins"
    BYPASS = "kernel bypass"
    FORWARDING = "a switch that forwards otherwise"
    LINE_RATE = "another line rate"
    FABRIC = "another fabric between the same hosts"


class PredictionAssumption(StrEnum):
    """What a prediction takes for granted."""

    MERGED = "softirq and protocol end with the wake-up, of which they are not told apart: at least this is left"
    OWN_PROCESSOR = "each rank has a processor of its own"
    STAGES_STAY = "the other stages take what they took"
    HOSTS_STAY = "hosts take what they took"
    NOTHING_INSTEAD = "library, socket, driver, wake-up and return take nothing in the bypass: at least this is left"
    DELAY_STAYS = "propagation and the switch's latency stay"
    IDLE_LINKS = "nothing else is on the links"


class WhatIf(Model):
    """What a round trip would take if something were another, ns: `predicted`, beside what it takes `now` by the same launches.

    `line_rate_bit_s` and `forwarding` are those of the other link, `other` the fabric that has them. `measured` is what the run
    measured of that, where it did; `off` how far the prediction is from it (0.05: 5 % too long). `is_bound`: no less than that.
    """

    fabric: str
    key: CellKey
    change: Change
    now: Interval
    predicted: Interval
    is_bound: bool
    assumptions: tuple[PredictionAssumption, ...]
    gone: tuple[Stage, ...] = ()
    line_rate_bit_s: float | None = None
    forwarding: Forwarding | None = None
    other: str = ""
    measured: Interval | None = None
    off: float | None = None
    predicted_origin: Origin = Origin.PREDICTED
