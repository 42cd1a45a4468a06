"""What about a host hurts measurements, why, and what to do about it. Pure: facts in, advice out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

from fabricbench.model import Model
from fabricbench.quantity import count, format_bytes
from fabricbench.testbed.adapter import PcieLink, as_set
from fabricbench.testbed.allowance import Allowance
from fabricbench.testbed.host import HostClock, Kernel, Permissions, ProcessLimits, Processors
from fabricbench.testbed.interfaces import Interface
from fabricbench.testbed.rdma import RdmaPort

BUSY_SHARE = 0.25
"""Above this load per processor, ranks wait for others: tails grow tenfold while medians still look fine."""

FEWEST_PROCESSORS = 2

SMALL_BUFFER_BYTES = 1 << 20
"""A window of 1 MiB carries 10 Gbit/s over 0.8 ms; below that a fast fabric is measured by its buffers."""


USUAL_CONGESTION_CONTROLS = {"cubic", "reno"}


class AdviceWeight(StrEnum):
    """Whether advice is about wrong numbers, or about what to know when reading them."""

    WARNING = "warning"
    NOTE = "note"


class Advice(Model):
    """A finding about the host: what it is about, what was found and why it matters, what to do."""

    weight: AdviceWeight
    subject: str
    finding: str
    action: str

    @property
    def key(self) -> str:
        """What it is called in an inventory, which `findings_in` reads."""
        return f"{ADVICE}.{self.weight}.{self.subject}"


ADVICE = "advice"
LOAD = "load"


def findings_in(inventory: Mapping[str, str]) -> Iterator[tuple[AdviceWeight, str, str]]:
    """Yield weight, subject and finding of what an inventory keeps of advice; older ones kept no weight: those are notes."""
    for key, finding in inventory.items():
        head, _, subject = key.partition(".")
        if head == ADVICE:
            weight, _, rest = subject.partition(".")
            yield (
                (AdviceWeight(weight), rest, finding)
                if weight in set(AdviceWeight)
                else (AdviceWeight.NOTE, subject, finding)
            )


def advise_on_processors(cpu: Processors, load: float | None) -> Iterator[Advice]:
    """Yield what is wrong with frequency, threads and load."""
    slow = [governor for governor in cpu.governors if governor != "performance"]
    if slow:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="cpu.governor",
            finding=f"the frequency governor is {', '.join(slow)}: the clock rises only after the work has begun",
            action="cpupower frequency-set --governor performance",
        )
    if cpu.has_turbo:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="cpu.turbo",
            finding="turbo is on: the frequency depends on temperature and on what the other cores do",
            action="for the steadiest numbers write 0 to cpufreq/boost, on Intel 1 to intel_pstate/no_turbo",
        )
    if cpu.has_smt:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="cpu.smt",
            finding="hardware threads share cores: a busy sibling slows a rank down",
            action="bind one rank to each core, or echo off > /sys/devices/system/cpu/smt/control",
        )
    if load is not None:
        yield from advise_on_load(load, cpu.usable)
    if cpu.usable < FEWEST_PROCESSORS:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="cpu.usable",
            finding="one processor only: two ranks, or a rank and the lab's switch, take turns on it",
            action="give this process at least two processors",
        )


def advise_on_load(load: float, usable: int) -> Iterator[Advice]:
    """Yield that a machine is busy, if the processes that want to run need that many of its processors."""
    if load > BUSY_SHARE * usable:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=LOAD,
            finding=f"the machine is busy: load {load:.1f} on {count(usable, 'processor')}",
            action="measure when nothing else runs; trust medians and ratios, not tails",
        )


def with_load(inventory: Mapping[str, str], share: float) -> dict[str, str]:
    """Return a node's inventory with the load that a busy `share` of its processors is, in place of any other."""
    usable = int(inventory["cpu.usable"])
    kept = {key: text for key, text in inventory.items() if key.rpartition(".")[2] != LOAD}
    advice = {one.key: one.finding for one in advise_on_load(share * usable, usable)}
    return dict(sorted((kept | {LOAD: f"{share * usable:.2f}"} | advice).items()))


def advise_on_system(
    kernel: Kernel, clock: HostClock, sysctls: dict[str, str], *, has_irqbalance: bool = False
) -> Iterator[Advice]:
    """Yield what is wrong with kernel, clock, interrupts and socket settings."""
    if has_irqbalance:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="irqbalance",
            finding="irqbalance moves interrupts between processors: latency changes when it does",
            action="systemctl stop irqbalance, and set /proc/irq/*/smp_affinity_list once",
        )
    if clock.source not in {None, "tsc", "kvm-clock", "arch_sys_counter"}:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="clock.source",
            finding=f"the clock source is {clock.source}: each reading is a system call, 1 µs instead of 30 ns",
            action="boot with tsc=reliable, or echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
    if kernel.virtualisation:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="virtualisation",
            finding=f"this is a {kernel.virtualisation}: its neighbours' load shows in the tails",
            action="compare medians and ratios from interleaved blocks, which is what fabricbench does",
        )
    if sysctls.get("net.core.busy_poll", "0") != "0" or sysctls.get("net.core.busy_read", "0") != "0":
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="sysctl.net.core.busy_poll",
            finding="sockets busy-poll by default: blocking receives are not asleep",
            action="set net.core.busy_poll and busy_read to 0 unless that is what you want to measure",
        )
    control = sysctls.get("net.ipv4.tcp_congestion_control")
    if control is not None and control not in USUAL_CONGESTION_CONTROLS:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="sysctl.net.ipv4.tcp_congestion_control",
            finding=f"TCP's congestion control is {control}, which paces or backs off in its own way",
            action="set the same one on every node; cubic is the usual one",
        )
    for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
        largest = sysctls.get(name, "").split()[-1:]
        if largest and int(largest[0]) < SMALL_BUFFER_BYTES:
            yield Advice(
                weight=AdviceWeight.WARNING,
                subject=f"sysctl.{name}",
                finding=f"TCP buffers end at {largest[0]} bytes: a fast fabric will be measured by them",
                action=f"sysctl -w {name}='4096 131072 16777216'",
            )


def advise_on_interface(interface: Interface, usable: AbstractSet[int] = frozenset()) -> Iterator[Advice]:
    """Yield what about an interface hides or bends what is measured over it by ranks on the processors that are usable."""
    if interface.state == "down":
        return
    yield from _on_settings(interface)
    yield from _on_place(interface, usable)
    if interface.adapter.pcie is not None:
        yield from _on_pcie(interface.adapter.pcie, f"net.{interface.name}.pcie")


def _on_settings(interface: Interface) -> Iterator[Advice]:
    name = interface.name
    if any(interface.coalescing.get(f"use_adaptive_{way}_coalesce") for way in ("rx", "tx")):
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"net.{name}.coalescing",
            finding="interrupt coalescing is adaptive: the delay of a message depends on the traffic before it",
            action=f"ethtool -C {name} adaptive-rx off adaptive-tx off rx-usecs 0",
        )
    elif interface.coalescing.get("rx_coalesce_usecs", 0) > 0:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=f"net.{name}.coalescing",
            finding=f"each receive interrupt may wait {interface.coalescing['rx_coalesce_usecs']} µs: it is in every round trip",
            action=f"ethtool -C {name} rx-usecs 0 for the lowest latency",
        )
    if interface.is_physical and interface.offloads.get("lro"):
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"net.{name}.lro",
            finding="large receive offload merges packets in the card and delays them",
            action=f"ethtool -K {name} lro off",
        )
    merged = [word for word in ("tso", "gso", "gro") if interface.is_physical and interface.offloads.get(word)]
    if merged:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=f"net.{name}.offloads",
            finding=f"{', '.join(merged)} on: TCP moves up to 64 KiB as one packet through the stack",
            action="keep them for what applications get; switch them off on every fabric to compare the wires",
        )
    if interface.duplex == "half":
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"net.{name}.duplex",
            finding="the link runs half duplex: both directions share it and collide",
            action="check the cable and the switch port's negotiation",
        )


def _on_place(interface: Interface, usable: AbstractSet[int]) -> Iterator[Advice]:
    """Yield where an adapter, its interrupts and the ranks are far from each other."""
    name, adapter = interface.name, interface.adapter
    near, interrupts = as_set(adapter.near), as_set(adapter.interrupts)
    if near and usable and not near & usable:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"net.{name}.numa",
            finding=f"ranks may run on no processor next to the adapter ({adapter.near}): each message crosses sockets",
            action=f"run fabricbench with processors of NUMA node {interface.numa_node}, or move the card",
        )
    elif near and usable - near:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=f"net.{name}.numa",
            finding=f"only processors {adapter.near} are next to the adapter; ranks on others are slower",
            action='bind ranks (`binding = "core"` in the testbed), so that every launch has them in the same place',
        )
    if near and interrupts and not near & interrupts:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"net.{name}.interrupts",
            finding=f"its interrupts go to processors {adapter.interrupts}, none of which is next to the adapter ({adapter.near})",
            action=f"echo {adapter.near} > /proc/irq/N/smp_affinity_list for each of its interrupts N",
        )
    elif len(interrupts) == 1 and interface.receive_queues > 1:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=f"net.{name}.interrupts",
            finding=f"the interrupts of all {interface.receive_queues} queues go to processor {adapter.interrupts}",
            action="give each queue a processor of its own (/proc/irq/N/smp_affinity_list)",
        )
    if adapter.pause.get("rx") or adapter.pause.get("tx"):
        ways = " and ".join(f"{way}" for way in ("rx", "tx") if adapter.pause.get(way))
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=f"net.{name}.pause",
            finding=f"pause frames are on ({ways}): one full receiver can stop senders to others as well",
            action=f"ethtool -A {name} autoneg off rx off tx off, unless RDMA over this link needs no loss",
        )


def _on_pcie(link: PcieLink, subject: str) -> Iterator[Advice]:
    if link.is_narrow:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=subject,
            finding=f"the card at {link.address} runs at {link.words(at_most=False)}; it and its slot could do "
            f"{link.words(at_most=True)}",
            action="reseat the card, look for dirt or a riser; some cards slow the link down while idle: look again under load",
        )


def advise_on_rdma(port: RdmaPort) -> Iterator[Advice]:
    """Yield why an RDMA port cannot be used, or is slower than it could be."""
    subject = f"rdma.{port.name}"
    if port.state == "INIT":
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=subject,
            finding="the link is up and the port waits for a subnet manager",
            action="start opensm on one node, or the subnet manager of a switch",
        )
    elif port.state != "ACTIVE":
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject=subject,
            finding=f"the port is {port.state or 'in no state that is told'} ({port.physical_state or 'link untold'})",
            action="check the cable and the switch port, or leave it out of the testbed",
        )
    if port.state == "ACTIVE" and port.link_layer == "Ethernet" and port.gids == 0:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"{subject}.gids",
            finding="the port has no address (GID): RoCE reaches nobody",
            action=f"give {port.netdev or 'its interface'} an IP address and set it up",
        )
    if port.is_allowed is False:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject=f"permission.rdma.{port.device}",
            finding=f"this user may not open {port.device}: MPI falls back to TCP without a word",
            action="chmod 666 /dev/infiniband/uverbs* by a udev rule, as rdma-core does, or add the user to the group `rdma`",
        )
    if port.pcie is not None and port.netdev is None:  # else its interface tells
        yield from _on_pcie(port.pcie, f"{subject}.pcie")


FEWEST_FILES = 4096
"""Rank 0 of a star or chaos over a thousand nodes holds a few sockets for each."""

FEWEST_LOCKED_BYTES = 1 << 30


def advise_on_limits(limits: ProcessLimits | None, *, has_rdma: bool) -> Iterator[Advice]:
    """Yield which limits of processes end measuring at scale."""
    if limits is None:
        return
    locked = limits.locked_memory_bytes
    if has_rdma and locked is not None and locked < FEWEST_LOCKED_BYTES:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="limits.locked_memory",
            finding=f"a process may lock {locked} bytes only: RDMA registers its buffers by locking them",
            action="memlock unlimited in /etc/security/limits.conf, LimitMEMLOCK=infinity for slurmd and sshd",
        )
    if limits.open_files is not None and limits.open_files < FEWEST_FILES:
        yield Advice(
            weight=AdviceWeight.NOTE,
            subject="limits.open_files",
            finding=f"a process may open {limits.open_files} files: a rank has a socket for each of its paths",
            action=f"ulimit -n {FEWEST_FILES * 4}, or nofile in /etc/security/limits.conf, before hundreds of nodes",
        )


SHARED_BYTES_A_RANK = 8 << 20
"""Of /dev/shm, for each rank of a node: MPICH 5.0 was seen to take 5.4 MB with 2, 4 and 8 ranks, Open MPI takes 4 MB by default."""
FEWEST_SHARED_BYTES = 64 << 20
"""What Docker gives a container: enough for eight ranks, and too little for the usual node."""
FEWEST_PROCESSES = 256


def advise_on_allowance(allowance: Allowance, usable: int) -> Iterator[Advice]:
    """Yield what a container or a job withholds that measuring needs."""
    if allowance.processors is not None and allowance.processors < usable:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="quota.processors",
            finding=f"a quota of {allowance.processors:g} processors holds for the {usable} that are visible: when it is used up, "
            "all ranks stand still until its next period begins",
            action="give the container whole processors (--cpuset-cpus) in place of a share of time (--cpus, cpu.max)",
        )
    if allowance.shared_memory_bytes is not None and allowance.shared_memory_bytes < FEWEST_SHARED_BYTES:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="shared_memory",
            finding=f"{format_bytes(allowance.shared_memory_bytes)} are free in /dev/shm: ranks of a node speak through it, "
            f"{format_bytes(SHARED_BYTES_A_RANK)} each",
            action="mount it larger: --shm-size 1g of a container, `mount -o remount,size=1g /dev/shm`",
        )
    if allowance.processes is not None and allowance.processes < FEWEST_PROCESSES:
        yield Advice(
            weight=AdviceWeight.WARNING,
            subject="quota.processes",
            finding=f"{allowance.processes} more processes and threads may be started here",
            action="raise pids.max of the control group (--pids-limit of a container, TasksMax= of systemd)",
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
            weight=AdviceWeight.NOTE,
            subject="permission.raw_sockets",
            finding=f"this user may not open raw sockets: the {' and '.join(closed)} layer cannot be measured outside a lab",
            action="run as root or grant CAP_NET_RAW; in a lab it needs neither",
        )
