"""What about a host hurts measurements, why, and what to do about it. Pure: facts in, advice out."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from fabricbench.model import Model
from fabricbench.testbed.host import Clock, Kernel, Permissions, Processors
from fabricbench.testbed.interfaces import Interface

BUSY_SHARE = 0.25
"""Above this load per processor, ranks wait for others: tails grow tenfold while medians still look fine."""

FEWEST_PROCESSORS = 2

SMALL_BUFFER_BYTES = 1 << 20
"""A window of 1 MiB carries 10 Gbit/s over 0.8 ms; below that a fast fabric is measured by its buffers."""


USUAL_CONGESTION_CONTROLS = {"cubic", "reno"}


class Weight(StrEnum):
    """Whether advice is about wrong numbers, or about what to know when reading them."""

    WARNING = "warning"
    NOTE = "note"


class Advice(Model):
    """A finding about the host: what it is about, what was found and why it matters, what to do."""

    weight: Weight
    subject: str
    finding: str
    action: str


def advise_on_processors(cpu: Processors, load: float | None) -> Iterator[Advice]:
    """Yield what is wrong with frequency, threads and load."""
    slow = [governor for governor in cpu.governors if governor != "performance"]
    if slow:
        yield Advice(
            weight=Weight.WARNING,
            subject="cpu.governor",
            finding=f"the frequency governor is {', '.join(slow)}: the clock rises only after the work has begun",
            action="cpupower frequency-set --governor performance",
        )
    if cpu.has_turbo:
        yield Advice(
            weight=Weight.NOTE,
            subject="cpu.turbo",
            finding="turbo is on: the frequency depends on temperature and on what the other cores do",
            action="for the steadiest numbers write 0 to cpufreq/boost, on Intel 1 to intel_pstate/no_turbo",
        )
    if cpu.has_smt:
        yield Advice(
            weight=Weight.NOTE,
            subject="cpu.smt",
            finding="hardware threads share cores: a busy sibling slows a rank down",
            action="bind one rank to each core, or echo off > /sys/devices/system/cpu/smt/control",
        )
    if load is not None and load > BUSY_SHARE * cpu.usable:
        yield Advice(
            weight=Weight.WARNING,
            subject="load",
            finding=f"the machine is busy: load {load:.1f} on {cpu.usable} processors",
            action="measure when nothing else runs; trust medians and ratios, not tails",
        )
    if cpu.usable < FEWEST_PROCESSORS:
        yield Advice(
            weight=Weight.WARNING,
            subject="cpu.usable",
            finding="one processor only: two ranks, or a rank and the lab's switch, take turns on it",
            action="give this process at least two processors",
        )


def advise_on_system(kernel: Kernel, clock: Clock, sysctls: dict[str, str]) -> Iterator[Advice]:
    """Yield what is wrong with kernel, clock and socket settings."""
    if clock.source not in {None, "tsc", "kvm-clock", "arch_sys_counter"}:
        yield Advice(
            weight=Weight.WARNING,
            subject="clock.source",
            finding=f"the clock source is {clock.source}: each reading is a system call, 1 µs instead of 30 ns",
            action="boot with tsc=reliable, or echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
    if kernel.virtualisation:
        yield Advice(
            weight=Weight.NOTE,
            subject="virtualisation",
            finding=f"this is a {kernel.virtualisation}: its neighbours' load shows in the tails",
            action="compare medians and ratios from interleaved blocks, which is what fabricbench does",
        )
    if sysctls.get("net.core.busy_poll", "0") != "0" or sysctls.get("net.core.busy_read", "0") != "0":
        yield Advice(
            weight=Weight.NOTE,
            subject="sysctl.net.core.busy_poll",
            finding="sockets busy-poll by default: blocking receives are not asleep",
            action="set net.core.busy_poll and busy_read to 0 unless that is what you want to measure",
        )
    control = sysctls.get("net.ipv4.tcp_congestion_control")
    if control is not None and control not in USUAL_CONGESTION_CONTROLS:
        yield Advice(
            weight=Weight.NOTE,
            subject="sysctl.net.ipv4.tcp_congestion_control",
            finding=f"TCP's congestion control is {control}, which paces or backs off in its own way",
            action="set the same one on every node; cubic is the usual one",
        )
    for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
        largest = sysctls.get(name, "").split()[-1:]
        if largest and int(largest[0]) < SMALL_BUFFER_BYTES:
            yield Advice(
                weight=Weight.WARNING,
                subject=f"sysctl.{name}",
                finding=f"TCP buffers end at {largest[0]} bytes: a fast fabric will be measured by them",
                action=f"sysctl -w {name}='4096 131072 16777216'",
            )


def advise_on_interface(interface: Interface) -> Iterator[Advice]:
    """Yield what about an interface hides or bends what is measured over it."""
    name = interface.name
    if interface.state == "down":
        return
    if any(interface.coalescing.get(f"use_adaptive_{way}_coalesce") for way in ("rx", "tx")):
        yield Advice(
            weight=Weight.WARNING,
            subject=f"net.{name}.coalescing",
            finding="interrupt coalescing is adaptive: the delay of a message depends on the traffic before it",
            action=f"ethtool -C {name} adaptive-rx off adaptive-tx off rx-usecs 0",
        )
    elif interface.coalescing.get("rx_coalesce_usecs", 0) > 0:
        yield Advice(
            weight=Weight.NOTE,
            subject=f"net.{name}.coalescing",
            finding=f"each receive interrupt may wait {interface.coalescing['rx_coalesce_usecs']} µs: it is in every round trip",
            action=f"ethtool -C {name} rx-usecs 0 for the lowest latency",
        )
    if interface.is_physical and interface.offloads.get("lro"):
        yield Advice(
            weight=Weight.WARNING,
            subject=f"net.{name}.lro",
            finding="large receive offload merges packets in the card and delays them",
            action=f"ethtool -K {name} lro off",
        )
    merged = [word for word in ("tso", "gso", "gro") if interface.is_physical and interface.offloads.get(word)]
    if merged:
        yield Advice(
            weight=Weight.NOTE,
            subject=f"net.{name}.offloads",
            finding=f"{', '.join(merged)} on: TCP moves up to 64 KiB as one packet through the stack",
            action="keep them for what applications get; switch them off on every fabric to compare the wires",
        )
    if interface.duplex == "half":
        yield Advice(
            weight=Weight.WARNING,
            subject=f"net.{name}.duplex",
            finding="the link runs half duplex: both directions share it and collide",
            action="check the cable and the switch port's negotiation",
        )


def advise_on_permissions(permissions: Permissions) -> Iterator[Advice]:
    """Yield what will be left out because this user may not do it."""
    closed = [
        layer
        for layer, is_open in (("frame", permissions.may_open_frame_sockets), ("ip", permissions.may_open_ip_sockets))
        if not is_open
    ]
    if closed:
        yield Advice(
            weight=Weight.NOTE,
            subject="permission.raw_sockets",
            finding=f"this user may not open raw sockets: the {' and '.join(closed)} layer cannot be measured outside a lab",
            action="run as root or grant CAP_NET_RAW; in a lab it needs neither",
        )
