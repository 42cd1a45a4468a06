"""The published fabrics as emulated ones, each figure with its source, and reading what people ask for. Pure.

"Published" are the five studies of `fabricbench.published`. A figure that no source gives is called an assumption, with
its reason; one that was chosen so that a published result comes out is "built from" it. A whole path cannot be faster than the
emulation's floor of about 3 µs (docs/lab-truth.md), so no preset asks for less, but for short frames of `gigabit-crossover`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.errors import UsageError
from fabricbench.lab.fabric import KEYS, EmulatedFabric, Switching, override, refuse_twins
from fabricbench.testbed.model import BuiltFrom
from fabricbench.testbed.wire import CellTax

_ETHERNET_COST = {
    "mtu": "RFC 894",
    "overhead_bytes": "IEEE 802.3: preamble 8, frame check 4, gap 12",
    "minimum_bytes": "IEEE 802.3: smallest frame 64, preamble 8, gap 12",
    "cell": "none: whole frames",
}

_KORKHOV, _NIST, _ABRAMOV = "korkhov-2000", "salamon-mink-nist", "abramov-2002"


def _of(study: str, *quantities: str) -> tuple[BuiltFrom, ...]:
    """Return figures of a study that a fabric is built from, by their quantities in `fabricbench.published`."""
    return tuple(BuiltFrom(study=study, quantity=quantity) for quantity in quantities)


_NO_SWITCH = {"switching": Switching.NONE, "switch_latency_s": 0.0}


def _crossover(switched: EmulatedFabric, name: str, stem: str, measured: str) -> EmulatedFabric:
    """Return the cable that joins two nodes where a fabric has a switch; `measured` is the study that did."""
    return switched.model_copy(
        update={
            **_NO_SWITCH,
            "name": name,
            "preset": name,
            "description": f"a crossover cable between two nodes, without a switch, at the rate of {switched.name}",
            "interface_stem": stem,
            "built_from": {},
            "sources": {
                **switched.sources,
                "switching": f"published: {measured}, a crossover cable",
                "switch_latency_s": "none: no switch",
                "port_buffer_bytes": "no switch: nothing waits beside the sender's own queue",
            },
        }
    )


SCALE = 80
"""What modern fabrics are scaled by, all of them alike, so that their ratios stay what they are: the fastest, 200 Gbit/s, comes to
2.5 Gbit/s, which the lab carries (docs/lab-truth.md)."""


def _scaled(real: EmulatedFabric) -> EmulatedFabric:
    """Return a fabric whose rate is SCALE times lower and whose delays are SCALE times longer: the same one in slow motion.

    So message sizes at which latency and rate matter alike stay what they are.
    """
    slower: dict[str, float] = {"line_rate_bit_s": real.line_rate_bit_s / SCALE}
    slower |= {key: SCALE * getattr(real, key) for key in ("delay_s", "switch_latency_s")}
    sources = {key: f"{real.sources[key]}; scaled 1:{SCALE}" for key in slower}
    return real.model_copy(update={**slower, "scale": SCALE, "sources": {**real.sources, **sources}})


_SCI_WIRE = "assumption: none beside the line rate, which is effective already"

_RDMA_ADAPTERS = "assumption: two adapters and their cable take 0.6 µs, as data sheets of such adapters say of messages"

FAST_ETHERNET = EmulatedFabric(
    name="fast-ethernet",
    preset="fast-ethernet",
    description="switched Fast Ethernet, 100 Mbit/s, store-and-forward",
    interface_stem="fe",
    line_rate_bit_s=100e6,
    delay_s=50e-9,
    switching=Switching.STORE_AND_FORWARD,
    switch_latency_s=5e-6,
    port_buffer_bytes=256 * 1024,
    mtu=1500,
    overhead_bytes=24,
    minimum_bytes=84,
    sources={
        "line_rate_bit_s": "published: korkhov-2000, salamon-mink-nist",
        "delay_s": "10 m of twisted pair at 5 ns/m",
        "switching": "published: salamon-mink-nist",
        "switch_latency_s": "published: salamon-mink-nist, 123 to 131 µs for a full frame, of which storing it is 122 µs",
        "port_buffer_bytes": "assumption: switches of that time had 100 to 500 KiB a port",
        **_ETHERNET_COST,
    },
    built_from={
        "line_rate_bit_s": (*_of(_KORKHOV, "line_rate"), *_of(_NIST, "line_rate")),
        "switch_latency_s": _of(_NIST, "switch_added_latency"),
    },
)

FAST_ETHERNET_CROSSOVER = _crossover(FAST_ETHERNET, "fast-ethernet-crossover", "fx", "salamon-mink-nist")

ATM_OC3 = EmulatedFabric(
    name="atm-oc3",
    preset="atm-oc3",
    description="ATM over OC-3c, 155.52 Mbit/s, classical IP over AAL5",
    interface_stem="atm",
    line_rate_bit_s=149.76e6,
    delay_s=250e-6,
    switching=Switching.CUT_THROUGH,
    switch_latency_s=15e-6,
    port_buffer_bytes=256 * 1024,
    mtu=9180,
    overhead_bytes=2,
    minimum_bytes=0,
    cell=CellTax(payload_bytes=48, cell_bytes=53),
    sources={
        "line_rate_bit_s": "ITU-T I.432: 155.52 Mbit/s less the SONET overhead leaves 149.76 Mbit/s for cells",
        "delay_s": "built from salamon-mink-nist: what adapter and classical IP of that time took longer than Fast Ethernet's, "
        "chosen so that TCP ping-pong crosses fast-ethernet at its 16 KiB; of it 50 ns are 10 m of fibre",
        "switching": "published: salamon-mink-nist, added latency constant in message size: cells pass on at once",
        "switch_latency_s": "assumption, bounded by salamon-mink-nist: more than Fast Ethernet's for small messages",
        "port_buffer_bytes": "assumption: about 5,000 cells a port",
        "mtu": "RFC 2225",
        "overhead_bytes": "RFC 2684 and ITU-T I.363.5: LLC/SNAP 8 and AAL5 trailer 8 in place of the 14-byte Ethernet header",
        "minimum_bytes": "none: at least one cell",
        "cell": "ITU-T I.361: 48 bytes in 53",
    },
    built_from={"delay_s": _of(_NIST, "crossover")},
)

GIGABIT_ETHERNET = EmulatedFabric(
    name="gigabit-ethernet",
    preset="gigabit-ethernet",
    description="switched Gigabit Ethernet, store-and-forward",
    interface_stem="ge",
    line_rate_bit_s=1e9,
    delay_s=50e-9,
    switching=Switching.STORE_AND_FORWARD,
    switch_latency_s=3e-6,
    port_buffer_bytes=512 * 1024,
    mtu=1500,
    overhead_bytes=24,
    minimum_bytes=84,
    sources={
        "line_rate_bit_s": "published: pisarczyk-2006",
        "delay_s": "10 m of twisted pair at 5 ns/m",
        "switching": "IEEE 802.1D bridges forward whole frames",
        "switch_latency_s": "assumption: forwarding in hardware, 2 to 5 µs (pisarczyk-2006 had a crossover cable)",
        "port_buffer_bytes": "assumption: switches of that time had 0.1 to 1 MiB a port",
        **_ETHERNET_COST,
    },
)

GIGABIT_CROSSOVER = _crossover(GIGABIT_ETHERNET, "gigabit-crossover", "gx", "pisarczyk-2006")

MYRINET = EmulatedFabric(
    name="myrinet",
    preset="myrinet",
    description="Myrinet, 1.28+1.28 Gbit/s, cut-through",
    interface_stem="myr",
    line_rate_bit_s=1.28e9,
    delay_s=1.5e-6,
    switching=Switching.CUT_THROUGH,
    switch_latency_s=0.5e-6,
    port_buffer_bytes=4 * 1024 * 1024,
    mtu=9000,
    overhead_bytes=8,
    minimum_bytes=0,
    sources={
        "line_rate_bit_s": "published: korkhov-2000",
        "delay_s": "assumption: 10 m of cable and the adapter's processor; keeps a path above the emulation's floor",
        "switching": "ANSI/VITA 26-1998: packets pass a switch at once (korkhov-2000 does not tell)",
        "switch_latency_s": "assumption: a 16-port crossbar passes a header on in under 0.5 µs",
        "port_buffer_bytes": "published: korkhov-2000, flow control on each link: large enough that nothing is dropped",
        "mtu": "GM's IP driver: 9000",
        "overhead_bytes": "ANSI/VITA 26-1998: source route, packet type, CRC-8 and gap, rounded up to 8",
        "minimum_bytes": "ANSI/VITA 26-1998: packets of any length",
        "cell": "none: packets of any length",
    },
    built_from={"line_rate_bit_s": _of(_KORKHOV, "line_rate")},
)

SCI = EmulatedFabric(
    name="sci",
    preset="sci",
    description="Dolphin SCI D330 on 64-bit, 66-MHz PCI: what the adapter carried, 276 MB/s (the raw link is 800 MB/s)",
    interface_stem="sci",
    line_rate_bit_s=2.208e9,
    delay_s=1.5e-6,
    switching=Switching.CUT_THROUGH,
    switch_latency_s=0.3e-6,
    port_buffer_bytes=4 * 1024 * 1024,
    mtu=9000,
    overhead_bytes=0,
    minimum_bytes=64,
    sources={
        "line_rate_bit_s": "published: abramov-2002, ping-ping 276 MB/s: effective, limited by PCI; the raw link is 800 MB/s",
        "delay_s": "assumption: cable and adapter, so that a path stays within the 3.5 to 4.6 µs of abramov-2002",
        "switching": "IEEE 1596: packets pass through a node's bypass queue at once",
        "switch_latency_s": "assumption: a few nodes of a ring passed through, 0.1 µs each",
        "port_buffer_bytes": "IEEE 1596: retry on a full queue: large enough that nothing is dropped",
        "mtu": "assumption: as Myrinet's; SCI itself moves blocks of 64 bytes",
        "overhead_bytes": _SCI_WIRE,
        "minimum_bytes": "IEEE 1596: blocks of 64 bytes",
        "cell": _SCI_WIRE,
    },
    built_from={"line_rate_bit_s": _of(_ABRAMOV, "throughput"), "delay_s": _of(_ABRAMOV, "latency")},
)

SCI_TORUS = EmulatedFabric(
    name="sci-torus",
    preset="sci-torus",
    description="SCI in a torus of one-way rings, as in the first SKIF cluster: 120 MB/s a node, rings of 800 MB/s",
    interface_stem="sct",
    line_rate_bit_s=0.96e9,
    delay_s=1.5e-6,
    switching=Switching.CUT_THROUGH,
    switch_latency_s=0.1e-6,
    port_buffer_bytes=4 * 1024 * 1024,
    mtu=9000,
    overhead_bytes=0,
    minimum_bytes=64,
    segment_rate_bit_s=6.4e9,
    sources={
        "line_rate_bit_s": "published: abramov-2002, up to 120 MB/s from node to node: effective, of adapter and PCI",
        "delay_s": "assumption: cable and adapter, so that a path stays below the 6 µs of abramov-2002",
        "switching": SCI.sources["switching"],
        "switch_latency_s": "assumption: 0.1 µs for each node that a frame passes or turns at, as for sci",
        "port_buffer_bytes": SCI.sources["port_buffer_bytes"],
        "mtu": SCI.sources["mtu"],
        "overhead_bytes": _SCI_WIRE,
        "minimum_bytes": SCI.sources["minimum_bytes"],
        "cell": _SCI_WIRE,
        "segment_rate_bit_s": "published: abramov-2002, links of up to 800 MB/s; what headers and echoes take of it is not counted",
        "columns": "published: abramov-2002, 4 x 4 for 16 nodes; other numbers of nodes as square",
    },
    built_from=SCI.built_from,
)

ROCE_100G = _scaled(
    EmulatedFabric(
        name="roce-100g",
        preset="roce-100g",
        description="RoCE v2 over 100-Gbit/s Ethernet, cut-through",
        interface_stem="roce",
        line_rate_bit_s=100e9,
        delay_s=0.3e-6,
        switching=Switching.CUT_THROUGH,
        switch_latency_s=0.3e-6,
        port_buffer_bytes=4 * 1024 * 1024,
        mtu=4200,
        overhead_bytes=24,
        minimum_bytes=84,
        sources={
            "line_rate_bit_s": "published: xu-2024",
            "delay_s": _RDMA_ADAPTERS,
            "switching": "assumption: switches of that class pass frames on at once",
            "switch_latency_s": "assumption: 0.3 µs, as data sheets of 100-Gbit/s Ethernet switches say",
            "port_buffer_bytes": "assumption: pauses by priority (IEEE 802.1Qbb): large enough that nothing is dropped",
            **_ETHERNET_COST,
            "mtu": "assumption: holds RDMA's largest packet, 4096 bytes and headers",
        },
    )
)

_INFINIBAND = EmulatedFabric(
    name="infiniband-100g",
    preset="infiniband-100g",
    description="InfiniBand, 100 Gbit/s, cut-through",
    interface_stem="ib",
    line_rate_bit_s=100e9,
    delay_s=0.3e-6,
    switching=Switching.CUT_THROUGH,
    switch_latency_s=0.09e-6,
    port_buffer_bytes=4 * 1024 * 1024,
    mtu=4092,
    overhead_bytes=24,
    minimum_bytes=0,
    sources={
        "line_rate_bit_s": "published: xu-2024",
        "delay_s": _RDMA_ADAPTERS,
        "switching": "InfiniBand Architecture Specification: switches forward by the header",
        "switch_latency_s": "assumption: 0.09 µs, as data sheets of 100-Gbit/s InfiniBand switches say",
        "port_buffer_bytes": "InfiniBand Architecture Specification: credits for each link: large enough that nothing is dropped",
        "mtu": "RFC 4391: 4096 less the header of 4",
        "overhead_bytes": "RFC 4391 and the InfiniBand Architecture Specification: LRH 8, BTH 12, DETH 8, header of IP 4 and "
        "checks of 4 and 2 in place of the 14-byte Ethernet header",
        "minimum_bytes": "InfiniBand Architecture Specification: packets of any length",
        "cell": "none: packets of any length",
    },
)

INFINIBAND_100G = _scaled(_INFINIBAND)

INFINIBAND_HDR = _scaled(
    _INFINIBAND.model_copy(
        update={
            "name": "infiniband-hdr",
            "preset": "infiniband-hdr",
            "description": "InfiniBand HDR, 200 Gbit/s, cut-through",
            "interface_stem": "hdr",
            "line_rate_bit_s": 200e9,
            "switch_latency_s": 0.13e-6,
            "sources": {
                **_INFINIBAND.sources,
                "line_rate_bit_s": "InfiniBand Architecture Specification: HDR, four lanes of 50 Gbit/s",
                "switch_latency_s": "assumption: 0.13 µs, as data sheets of HDR switches say",
            },
        }
    )
)

PRESETS = {
    fabric.name: fabric
    for fabric in (
        FAST_ETHERNET,
        FAST_ETHERNET_CROSSOVER,
        ATM_OC3,
        GIGABIT_ETHERNET,
        GIGABIT_CROSSOVER,
        MYRINET,
        SCI,
        SCI_TORUS,
        ROCE_100G,
        INFINIBAND_100G,
        INFINIBAND_HDR,
    )
}
"""The presets by name: one line for each."""


def parse_fabric(text: str) -> EmulatedFabric:
    """Return the fabric that `text` asks for: `PRESET`, `NAME=PRESET`, then perhaps `:KEY=VALUE,...`. Raises UsageError."""
    asked, _, changes = text.strip().partition(":")
    own_name, _, name = (piece.strip() for piece in asked.rpartition("="))
    preset = PRESETS.get(name)
    if preset is None:
        raise UsageError(
            f"no fabric preset {name!r}", hint=f"there are {', '.join(PRESETS)}; see `fabricbench lab presets`"
        )
    changes = ",".join(filter(None, (own_name and f"name={own_name}", changes)))
    return override(preset, changes) if changes else preset


def starts_fabric(part: str) -> bool:
    """Whether a part of a list is a fabric of its own, `PRESET...` or `NAME=PRESET...`, and no change to the one before it."""
    name, equals, value = part.partition(":")[0].partition("=")
    return not equals or (name.strip() not in KEYS and value.strip() in PRESETS)


def parse_fabrics(text: str) -> list[EmulatedFabric]:
    """Return the fabrics of a comma-separated list; a part `KEY=VALUE` belongs to the fabric before it.

    One preset under two names of their own, `old=myrinet,new=myrinet:delay=5us`, is one thing in two conditions.
    """
    asked: list[str] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if not starts_fabric(part) and asked:
            asked[-1] += f"{',' if ':' in asked[-1] else ':'}{part}"
        else:
            asked.append(part)
    if not asked:
        raise UsageError("no fabric is named", hint="write fast-ethernet,myrinet say")
    return parse_each(asked)


def parse_each(asked: Sequence[str]) -> list[EmulatedFabric]:
    """Return the fabric of each text, in conditions where one preset is given several names; UsageError where two bear one name."""
    fabrics = [parse_fabric(part) for part in asked]
    refuse_twins(fabrics)
    is_named = ["=" in part.partition(":")[0] for part in asked]
    named = [fabric.preset for fabric, has_name in zip(fabrics, is_named, strict=True) if has_name]
    return [
        fabric.model_copy(update={"condition_of": fabric.preset})
        if has_name and named.count(fabric.preset) > 1
        else fabric
        for fabric, has_name in zip(fabrics, is_named, strict=True)
    ]
