"""What an emulated fabric is, and how people write one: `myrinet:delay=5us,mtu=9000`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field, ValidationError, model_validator

from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.quantity import BitPerSecond, Bytes, Seconds, format_bit_s, format_bytes, format_seconds
from fabricbench.testbed.model import BuiltFrom
from fabricbench.testbed.wire import ETHERNET_HEADER_BYTES, CellTax, Wire

FIGURES = (
    "line_rate_bit_s",
    "delay_s",
    "switching",
    "switch_latency_s",
    "port_buffer_bytes",
    "mtu",
    "overhead_bytes",
    "minimum_bytes",
    "cell",
)
"""The fields that say how every fabric behaves: a preset names the source of each."""

TORUS_FIGURES = ("segment_rate_bit_s", "columns")
"""Those that a torus of rings has beside."""

KEYS = {
    "rate": "line_rate_bit_s",
    "delay": "delay_s",
    "switching": "switching",
    "latency": "switch_latency_s",
    "buffer": "port_buffer_bytes",
    "mtu": "mtu",
    "overhead": "overhead_bytes",
    "minimum": "minimum_bytes",
    "cell": "cell",
    "coalesce": "coalesce_s",
    "interrupt-period": "interrupt_period_s",
    "hold": "hold_s",
    "hold-bytes": "hold_bytes",
    "segment-rate": "segment_rate_bit_s",
    "columns": "columns",
    "name": "name",
}
"""What can be written after a preset's name, and the field that it overrides."""

ASKED_FOR = "asked for when the lab was started"
"""The source of a figure that overrides the preset's."""


CUT_THROUGH_HEADER_BYTES = 64
"""What a cut-through switch reads before it forwards, where there are no cells: native/switch/timing.hpp."""


class Switching(StrEnum):
    """When a switch begins to pass a frame on: after its last byte came in, or after its header. NONE: there is only a cable."""

    STORE_AND_FORWARD = "store-and-forward"
    CUT_THROUGH = "cut-through"
    NONE = "none"


class LinkChange(Model):
    """What one node's link has instead of the fabric's figures; None leaves the fabric's.

    `delay_up_s` goes from the node to the switch, `delay_down_s` back.
    """

    line_rate_bit_s: BitPerSecond | None = Field(default=None, ge=1e6, le=400e9)
    delay_up_s: Seconds | None = Field(default=None, ge=0, le=1)
    delay_down_s: Seconds | None = Field(default=None, ge=0, le=1)

    @property
    def words(self) -> str:
        """The change as people say it: `80 Mbit/s, 20 µs up`."""
        parts = []
        if self.line_rate_bit_s is not None:
            parts.append(format_bit_s(self.line_rate_bit_s))
        if self.delay_up_s is not None:
            parts.append(f"{format_seconds(self.delay_up_s)} up")
        if self.delay_down_s is not None:
            parts.append(f"{format_seconds(self.delay_down_s)} down")
        return ", ".join(parts)


LINK_KEYS = {
    "rate": ("line_rate_bit_s",),
    "delay": ("delay_up_s", "delay_down_s"),
    "delay-up": ("delay_up_s",),
    "delay-down": ("delay_down_s",),
}
"""What can be written of one node's link, `n2.rate=80Mbit/s` say, and the fields that it sets."""


class EmulatedFabric(Model):
    """One emulated interconnect: a switch with a link to each node, a torus of rings, or a cable between two nodes.

    `delay_s` is the propagation delay of one link; a path has two, a cable is one. `switch_latency_s` is what the switch adds to
    every frame beside storing it. `overhead_bytes`, `minimum_bytes` and `cell` are those of `Wire`. With `segment_rate_bit_s` the
    nodes are in a torus (`lab/torus.py`) whose rings carry that between two neighbours; `switch_latency_s` is then what each such
    hop adds, and `columns` None stands for the most square torus. `sources` says for each of `figures` where it comes from.
    `links` are the nodes (by number) whose link differs: a lab with a known fault. Fabrics with the same `condition_of` are one
    thing before and after a change. A node's interface holds the first frame after an interrupt for `coalesce_s`, for others to
    come, or has interrupts at multiples of `interrupt_period_s` alone. With a known fault, the last segment of a TCP message of
    about `hold_bytes`, give or take a packet, is held by the switch for `hold_s`. `scale` is by what rates are lower and delays
    longer than those of the fabric it stands for. `built_from` has the published figures that one of the `figures` was chosen by.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=40)
    preset: str
    description: str
    interface_stem: str = Field(pattern=r"^[a-z]{2,4}$")
    line_rate_bit_s: BitPerSecond = Field(ge=1e6, le=400e9)
    delay_s: Seconds = Field(ge=0, le=1)
    switching: Switching
    switch_latency_s: Seconds = Field(ge=0, le=1)
    port_buffer_bytes: Bytes = Field(gt=0, le=2**31)
    mtu: Bytes = Field(ge=256, le=65521)
    overhead_bytes: int = Field(ge=-14, le=1000)
    minimum_bytes: Bytes = Field(ge=0, le=1000)
    cell: CellTax | None = None
    coalesce_s: Seconds = Field(default=0.0, ge=0, le=1)
    interrupt_period_s: Seconds = Field(default=0.0, ge=0, le=1)
    hold_s: Seconds = Field(default=0.0, ge=0, le=1)
    hold_bytes: Bytes = Field(default=0, ge=0, le=2**31)
    segment_rate_bit_s: BitPerSecond | None = Field(default=None, ge=1e6, le=400e9)
    columns: int | None = Field(default=None, ge=1)
    sources: dict[str, str]
    links: dict[int, LinkChange] = {}
    condition_of: str = ""
    scale: int = Field(default=1, ge=1)
    built_from: dict[str, tuple[BuiltFrom, ...]] = {}

    @model_validator(mode="after")
    def _buffer_holds_a_frame(self) -> EmulatedFabric:
        if self.port_buffer_bytes < self.wire.wire_bytes(self.mtu + ETHERNET_HEADER_BYTES):
            raise ValueError(f"a port buffer of {self.port_buffer_bytes} B does not hold one frame of MTU {self.mtu}")
        return self

    @model_validator(mode="after")
    def _holds_frames_in_one_way(self) -> EmulatedFabric:
        if self.coalesce_s and self.interrupt_period_s:
            raise ValueError(
                "interrupts wait for more frames or for their period: write coalesce= or interrupt-period="
            )
        return self

    @model_validator(mode="after")
    def _is_a_switch_a_cable_or_a_torus(self) -> EmulatedFabric:
        if self.is_cable and self.switch_latency_s:
            raise ValueError("a cable has no switch: with switching=none write latency=0s")
        if self.is_cable and self.links:
            raise ValueError(
                "a cable is one link for both nodes: write rate= and delay= of the fabric, not of a node's link"
            )
        if self.columns is not None and not self.is_torus:
            raise ValueError("columns are those of a torus: take sci-torus, or say segment-rate= as well")
        if self.is_torus and self.switching is not Switching.CUT_THROUGH:
            raise ValueError("the rings of a torus pass frames on at once: write switching=cut-through")
        return self

    @model_validator(mode="after")
    def _holds_messages_of_some_size_for_some_time(self) -> EmulatedFabric:
        if bool(self.hold_s) != bool(self.hold_bytes):
            raise ValueError("hold= and hold-bytes= are told together: hold=200us,hold-bytes=31744 say")
        return self

    @property
    def is_cable(self) -> bool:
        """Whether it is a cable between two nodes."""
        return self.switching is Switching.NONE

    @property
    def is_torus(self) -> bool:
        """Whether its nodes are in a torus of rings."""
        return self.segment_rate_bit_s is not None

    @property
    def figures(self) -> tuple[str, ...]:
        """The fields that say how this fabric behaves."""
        return (*FIGURES, *TORUS_FIGURES) if self.is_torus else FIGURES

    @property
    def wire(self) -> Wire:
        """The arithmetic of one link."""
        return Wire(
            line_rate_bit_s=self.line_rate_bit_s,
            overhead_bytes=self.overhead_bytes,
            minimum_bytes=self.minimum_bytes,
            cell=self.cell,
        )

    @property
    def switching_words(self) -> str:
        """How frames get from link to link: `cut-through`, `a cable` or `torus of rings of 6.4 Gbit/s`."""
        if self.is_cable:
            return "a cable"
        if self.segment_rate_bit_s is not None:
            return f"torus of rings of {format_bit_s(self.segment_rate_bit_s)}"
        return self.switching.value

    @property
    def scale_words(self) -> str:
        """By what it is slower than the fabric that it stands for; empty where it is not."""
        if self.scale == 1:
            return ""
        rate, real = (format_bit_s(each) for each in (self.line_rate_bit_s, self.scale * self.line_rate_bit_s))
        return f"scaled 1:{self.scale}: {rate} of {real}, delays {self.scale} times as long"

    @property
    def words(self) -> str:
        """What it is, and how it is scaled."""
        return "; ".join(filter(None, (self.description, self.scale_words)))

    @property
    def hold_words(self) -> str:
        """The known fault that the last segment of some messages is held; empty where there is none."""
        if not self.hold_s:
            return ""
        size = format_bytes(self.hold_bytes)
        return f"last segments of TCP messages of {size} held for {format_seconds(self.hold_s)}"

    @property
    def link_words(self) -> str:
        """What interfaces do, and what differs on single links, as a part of the description; empty where nothing does."""
        coalesced = f"; interrupts coalesced over {format_seconds(self.coalesce_s)}" if self.coalesce_s else ""
        if self.interrupt_period_s:
            coalesced += f"; interrupts every {format_seconds(self.interrupt_period_s)}"
        held = f"; {self.hold_words}" if self.hold_words else ""
        links = "".join(f"; link of n{node}: {change.words}" for node, change in sorted(self.links.items()))
        return coalesced + held + links

    @property
    def settings(self) -> dict[str, str]:
        """What the switch and its links were told beside the wire's figures, for reports that set two runs side by side."""
        links = {f"link of n{node}": change.words for node, change in sorted(self.links.items())}
        torus = {} if self.columns is None else {"columns": str(self.columns)}
        coalescing = {"interrupts coalesced": format_seconds(self.coalesce_s)} if self.coalesce_s else {}
        if self.interrupt_period_s:
            coalescing["interrupts every"] = format_seconds(self.interrupt_period_s)
        scale = {} if self.scale == 1 else {"scale": f"1:{self.scale}"}
        return {
            "link delay": format_seconds(self.delay_s),
            "switching": self.switching_words,
            "latency of a hop" if self.is_torus else "switch latency": format_seconds(self.switch_latency_s),
            "port buffer": format_bytes(self.port_buffer_bytes),
            **coalescing,
            **({"known fault": self.hold_words} if self.hold_words else {}),
            **torus,
            **scale,
            **links,
        }

    def line_rate_of(self, node: int) -> float:
        """Return the line rate of a node's link in bit/s."""
        change = self.links.get(node)
        return self.line_rate_bit_s if change is None or change.line_rate_bit_s is None else change.line_rate_bit_s

    def added_delay_s(self, frame_bytes: int, hops: int = 1) -> float:
        """Return the time from a frame's leaving the sender's driver to its last bit's reaching the receiver, on idle links.

        Of interrupts in a period it is that of a frame that comes as one is due.

        Store-and-forward serialises a frame twice. Cut-through overlaps the two links but for what the switch must read first. In
        a torus a frame makes `hops`; the slowest link on its way is the one whose serialisation counts.
        """
        serialisation_s = self.wire.serialisation_s(frame_bytes)
        if self.is_cable:
            return serialisation_s + self.delay_s + self.coalesce_s
        before_forwarding_s = serialisation_s
        if self.switching is Switching.CUT_THROUGH:
            read_bytes = CUT_THROUGH_HEADER_BYTES if self.cell is None else self.cell.cell_bytes
            before_forwarding_s = min(serialisation_s, read_bytes * 8 / self.line_rate_bit_s)
        rates_bit_s = (self.line_rate_bit_s, self.segment_rate_bit_s or self.line_rate_bit_s)
        slowest_s = serialisation_s * self.line_rate_bit_s / min(rates_bit_s)
        return before_forwarding_s + slowest_s + 2 * self.delay_s + hops * self.switch_latency_s + self.coalesce_s


def override(fabric: EmulatedFabric, text: str) -> EmulatedFabric:
    """Return `fabric` with what `text` says (`delay=5us,mtu=9000`); UsageError names the keys that there are."""
    changed: dict[str, object] = {}
    links: dict[int, dict[str, object]] = {
        node: change.model_dump(exclude_none=True) for node, change in fabric.links.items()
    }
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        node, link_key = _of_link(key)
        if equals and node is not None and link_key in LINK_KEYS:
            links.setdefault(node, {}).update(dict.fromkeys(LINK_KEYS[link_key], value))
            continue
        if not equals or key not in KEYS:
            raise UsageError(
                f"fabric {fabric.name}: {part!r} is not something that can be set",
                hint=f"write KEY=VALUE with one of the keys {', '.join(KEYS)}, such as delay=5us or rate=100Mbit/s; "
                f"of one node's link {', '.join(LINK_KEYS)}, such as n2.rate=80Mbit/s",
            )
        changed[KEYS[key]] = _cell(fabric.name, value) if key == "cell" else value
    sources = {**fabric.sources, **{field: ASKED_FOR for field in changed if field != "name"}}
    built_from = {field: figures for field, figures in fabric.built_from.items() if field not in changed}
    given = {"sources": sources, "links": links, "built_from": built_from}
    try:
        return EmulatedFabric.model_validate({**fabric.model_dump(), **changed, **given})
    except ValidationError as error:
        raise UsageError(
            f"fabric {fabric.name}: {_first_problem(error)}", hint="see `fabricbench lab presets`"
        ) from None


def _of_link(key: str) -> tuple[int | None, str]:
    """Return the node and the rest of `n2.rate`; no node where the key is none of a link's."""
    found = re.fullmatch(r"n(\d+)\.([a-z-]+)", key)
    return (int(found.group(1)), found.group(2)) if found else (None, "")


def refuse_twins(fabrics: Sequence[EmulatedFabric]) -> None:
    """Raise UsageError where two fabrics bear one name."""
    names = [fabric.name for fabric in fabrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"fabric {', '.join(twice)} is asked for twice",
            hint=f"give one of them a name of its own: {twice[0]}-b={twice[0]}; "
            f"or, to compare before and after a change, both: before={twice[0]},after={twice[0]}:delay=20us say",
        )


def _cell(fabric: str, value: str) -> dict[str, str] | None:
    if value == "none":
        return None
    payload, slash, cell = value.partition("/")
    if not slash:
        raise UsageError(f"fabric {fabric}: cell={value} is not understood", hint="write cell=48/53 or cell=none")
    return {"payload_bytes": payload, "cell_bytes": cell}


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    field = str(problem["loc"][0]) if problem["loc"] else ""
    key = next((key for key, name in KEYS.items() if name == field), field)
    message = (
        problem["msg"].removeprefix("Value error, ").replace("Input should be", f"found {problem['input']}, needed")
    )
    return f"{key}: {message}" if key else message
