"""What a host is: processors, memory, kernel, clock and the settings that bear on measurements, from /proc and /sys.

Everything is read below a root that the caller names, so that a test can put a tree of its own there. What a kernel does not tell
is None, or is left out. And what this user may do here that measuring needs: raw sockets for the frame and ip layers, namespaces
for the lab.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
from pathlib import Path

from fabricbench.model import Layer, Model

CPU = "sys/devices/system/cpu"

COMMAND_LINE_WORDS = (
    "mitigations", "isolcpus", "nohz_full", "rcu_nocbs", "idle", "processor.max_cstate", "intel_idle.max_cstate",
    "intel_pstate", "amd_pstate", "nosmt", "preempt", "transparent_hugepage", "iommu", "intel_iommu", "amd_iommu",
    "hugepages", "clocksource", "tsc", "nopti", "skew_tick",
)  # fmt: skip
"""The words of the kernel's command line that bear on measurements. The others stay out of the record: they may hold secrets."""

SYSCTLS = (
    "net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.netdev_budget",
    "net.core.netdev_max_backlog", "net.core.netdev_tstamp_prequeue", "net.core.optmem_max", "net.core.rmem_default",
    "net.core.rmem_max", "net.core.rps_sock_flow_entries", "net.core.somaxconn", "net.core.wmem_default",
    "net.core.wmem_max", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem", "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled", "kernel.sched_rt_runtime_us", "kernel.timer_migration", "vm.swappiness",
)  # fmt: skip


class Processors(Model):
    """`turbo` and `smt` are None where the system does not tell; caches are of CPU 0, `L1d` -> bytes."""

    model: str | None
    logical: int
    usable: int
    """What this process may run on, which a container or a binding may make fewer."""
    cores: int
    sockets: int
    numa_nodes: int
    governors: tuple[str, ...]
    """The frequency governors in use; empty where the kernel does not scale the frequency (virtual machines)."""
    frequency_driver: str | None
    idle_driver: str | None
    has_turbo: bool | None
    has_smt: bool | None
    isolated: str
    cache_bytes: dict[str, int]


class Kernel(Model):
    """The kernel, what it was told at boot that matters here, and how it mitigates each weakness of the processor."""

    release: str
    version: str
    distribution: str | None
    command_line: str
    mitigations: dict[str, str]
    virtualisation: str | None
    """The hypervisor or container as far as it shows, None on bare metal."""
    transparent_hugepages: str | None


class HostClock(Model):
    """The kernel's clock source; anything but tsc makes each reading a slow one."""

    source: str | None
    available: tuple[str, ...]


def read_text(path: Path) -> str | None:
    """Return a kernel file's content without its end of line; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_integer(path: Path) -> int | None:
    """Return the number in a kernel file; None where there is none."""
    text = read_text(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def read_processors(root: Path) -> Processors:
    """Return what is known of the processors."""
    folders = [path for path in (root / CPU).glob("cpu[0-9]*") if path.is_dir()]
    topology = [
        (read_text(path / "topology/physical_package_id"), read_text(path / "topology/core_id")) for path in folders
    ]
    governors = {read_text(path / "cpufreq/scaling_governor") for path in folders} - {None}
    smt = read_text(root / CPU / "smt/active")
    return Processors(
        model=_cpu_model(root),
        logical=len(folders) or os.cpu_count() or 1,
        usable=len(os.sched_getaffinity(0)),
        cores=len(set(topology)) or 1,
        sockets=len({package for package, _ in topology}) or 1,
        numa_nodes=len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
        governors=tuple(sorted(governor for governor in governors if governor)),
        frequency_driver=read_text(root / CPU / "cpu0/cpufreq/scaling_driver"),
        idle_driver=read_text(root / CPU / "cpuidle/current_driver"),
        has_turbo=_has_turbo(root),
        has_smt=None if smt is None else smt == "1",
        isolated=read_text(root / CPU / "isolated") or "",
        cache_bytes=_caches(root),
    )


def _cpu_model(root: Path) -> str | None:
    text = read_text(root / "proc/cpuinfo") or ""
    for key in ("model name", "cpu model", "Hardware", "CPU part"):  # x86, MIPS, older Arm, Arm
        found = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
        if found:
            return found.group(1).strip()
    return platform.machine() or None


def _has_turbo(root: Path) -> bool | None:
    off = read_text(root / CPU / "intel_pstate/no_turbo")
    if off is not None:
        return off == "0"
    boost = read_text(root / CPU / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _caches(root: Path) -> dict[str, int]:
    caches = {}
    for folder in sorted((root / CPU / "cpu0/cache").glob("index[0-9]*")):
        level, size = read_text(folder / "level"), read_text(folder / "size")
        kind = {"Data": "d", "Instruction": "i"}.get(read_text(folder / "type") or "", "")
        number = re.fullmatch(r"(\d+)([KMG]?)", size or "")
        if level and number:
            caches[f"L{level}{kind}"] = (
                int(number.group(1)) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[number.group(2)]
            )
    return caches


def read_board(root: Path) -> str | None:
    """Return the main board as its firmware calls it, maker and product; None where the kernel does not tell, or in a guest."""
    told = (read_text(root / "sys/class/dmi/id" / name) for name in ("board_vendor", "board_name"))
    return " ".join(filter(None, told)) or None


def read_memory_bytes(root: Path) -> int | None:
    """Return the size of the memory."""
    found = re.search(r"^MemTotal:\s*(\d+) kB", read_text(root / "proc/meminfo") or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def read_kernel(root: Path) -> Kernel:
    """Return what is known of the kernel."""
    words = (read_text(root / "proc/cmdline") or "").split()
    hugepages = re.search(r"\[(\w+)\]", read_text(root / "sys/kernel/mm/transparent_hugepage/enabled") or "")
    release = read_text(root / "etc/os-release") or ""
    distribution = re.search(r'^PRETTY_NAME="?([^"\n]+)', release, re.MULTILINE)
    folder = root / CPU / "vulnerabilities"
    return Kernel(
        release=read_text(root / "proc/sys/kernel/osrelease") or platform.release(),
        version=read_text(root / "proc/sys/kernel/version") or platform.version(),
        distribution=distribution.group(1) if distribution else None,
        command_line=" ".join(word for word in words if word.split("=")[0] in COMMAND_LINE_WORDS),
        mitigations={path.name: read_text(path) or "?" for path in sorted(folder.glob("*"))},
        virtualisation=_virtualisation(root),
        transparent_hugepages=hugepages.group(1) if hugepages else None,
    )


def _virtualisation(root: Path) -> str | None:
    container = read_text(root / "run/systemd/container")
    product = " ".join(
        filter(None, (read_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")))
    )
    hypervisor = read_text(root / "sys/hypervisor/type")
    is_guest = re.search(r"^flags\s*:.*\bhypervisor\b", read_text(root / "proc/cpuinfo") or "", re.MULTILINE)
    if hypervisor or is_guest:
        return " ".join(filter(None, (hypervisor or "virtual machine", f"({product})" if product else None, container)))
    return container or None


def read_clock(root: Path) -> HostClock:
    """Return the kernel's clock source and the ones it could use."""
    folder = root / "sys/devices/system/clocksource/clocksource0"
    available = read_text(folder / "available_clocksource") or ""
    return HostClock(source=read_text(folder / "current_clocksource"), available=tuple(available.split()))


def read_sysctls(root: Path) -> dict[str, str]:
    """Return the kernel settings that bear on measurements, those of them that this kernel has."""
    values = {name: read_text(root / "proc/sys" / name.replace(".", "/")) for name in SYSCTLS}
    return {name: " ".join(value.split()) for name, value in values.items() if value is not None}


def read_load(root: Path) -> float | None:
    """Return how many processes wanted to run on average over the last minute."""
    text = read_text(root / "proc/loadavg")
    return float(text.split()[0]) if text else None


class ProcessLimits(Model):
    """What a process may have here: bytes of memory that stays in place, open files, bytes of a core file. None is no limit."""

    locked_memory_bytes: int | None
    open_files: int | None
    core_bytes: int | None


LIMITS = {
    "locked_memory_bytes": "Max locked memory",
    "open_files": "Max open files",
    "core_bytes": "Max core file size",
}


def read_limits(root: Path) -> ProcessLimits | None:
    """Return the soft limits of this process, which those that it starts inherit; None where the kernel does not tell."""
    text = read_text(root / "proc/self/limits") or ""
    found = {name: re.search(rf"^{line}\s+(\S+)", text, re.MULTILINE) for name, line in LIMITS.items()}
    told = {name: one.group(1) for name, one in found.items() if one is not None}
    if len(told) < len(LIMITS):
        return None
    return ProcessLimits(**{name: None if value == "unlimited" else int(value) for name, value in told.items()})


def read_hugepages(root: Path) -> dict[str, int]:
    """Return how many huge pages of each size are set aside: `2048kB` -> 1024."""
    folders = sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB"))
    found = {folder.name.removeprefix("hugepages-"): read_integer(folder / "nr_hugepages") for folder in folders}
    return {size: pages for size, pages in found.items() if pages is not None}


def runs_irqbalance(root: Path) -> bool:
    """Whether irqbalance runs, which moves interrupts from processor to processor while somebody measures."""
    return any(read_text(path) == "irqbalance" for path in (root / "proc").glob("[0-9]*/comm"))


TRIAL_SECONDS = 5


class Permissions(Model):
    """Whether each was possible when it was tried."""

    is_root: bool
    may_open_frame_sockets: bool
    may_open_ip_sockets: bool
    may_create_user_namespaces: bool


def try_permissions() -> Permissions:
    """Try each of them, without leaving anything behind."""
    return Permissions(
        is_root=os.geteuid() == 0,
        may_open_frame_sockets=may_open_raw_socket(Layer.FRAME),
        may_open_ip_sockets=may_open_raw_socket(Layer.IP),
        may_create_user_namespaces=may_create_user_namespaces(),
    )


def may_open_raw_socket(layer: Layer) -> bool:
    """Whether this user may open the kind of socket that the frame or the ip layer needs."""
    kind = (socket.AF_PACKET, 0) if layer is Layer.FRAME else (socket.AF_INET, socket.IPPROTO_RAW)
    try:
        socket.socket(kind[0], socket.SOCK_RAW, kind[1]).close()
    except OSError:
        return False
    return True


def may_create_user_namespaces() -> bool:
    """Whether a user and a network namespace can be made here. It is tried: a dozen settings and modules can forbid it."""
    program = shutil.which("unshare", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin:/usr/sbin")
    if program is None:
        return False
    try:
        command = [program, "--user", "--map-root-user", "--net", "true"]
        return subprocess.run(command, check=False, capture_output=True, timeout=TRIAL_SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
