"""Settings of the kernel below /proc/sys: busy polling, congestion control, buffers. Written by `sysctl -w`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from pydantic import field_validator

from fabricbench.model import Model
from fabricbench.settings.setting import CannotSetError, Setting, SettingsHost, Write
from fabricbench.testbed.model import Fabric

NAME = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_:@/-]+)+\Z")

USUAL = (
    "kernel.numa_balancing",
    "kernel.sched_rt_runtime_us",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fack",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "vm.nr_hugepages",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
"""What tuning guides of networks name: a name that is near one of these is a slip. Of others the nodes tell."""


SLIP = 0.94
"""How alike a slip of one letter is to the name that was meant; true names of other things are less so, or listed as well."""


class SysctlTable(Model):
    """What a condition sets of the kernel."""

    sysctl: dict[str, bool | int | str] = {}

    @field_validator("sysctl")
    @classmethod
    def _names_are_no_slips(cls, value: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
        for name, one in value.items():
            if not NAME.match(name):
                raise ValueError(f'{name!r} is no name of a sysctl: write "net.core.busy_poll" say, in quotes')
            near = get_close_matches(name, USUAL, n=1, cutoff=SLIP)
            if name not in USUAL and near:
                raise ValueError(f"{name!r} is none of the usual names; did you mean {near[0]!r}?")
            if isinstance(one, bool) or not _normal(str(one)):
                raise ValueError(f"{name}: found {str(one).lower()!r}, needed a number or a text")
        return value


class SysctlKind:
    """A file below /proc/sys."""

    NAME = "sysctl"

    OUTLIVES_BOOT = False

    def is_of_host(self, setting: Setting) -> bool:
        """Tell whether it is the whole machine's."""
        return not setting.name.startswith("net.")  # below net a namespace has its own, or none that it may write

    def asked(self, table: SysctlTable, fabric: Fabric) -> Iterator[Setting]:
        """Yield what is asked; a fabric has no part in it."""
        del fabric
        for name, value in table.sysctl.items():
            yield Setting(kind=self.NAME, name=name, value=_normal(str(value)))

    def read(self, setting: Setting, host: SettingsHost) -> str:
        """Return the value, blanks and tabs between several numbers as one blank."""
        try:
            return _normal(host.text(f"proc/sys/{_path(setting.name)}"))
        except FileNotFoundError:
            raise CannotSetError(
                f"no sysctl {setting.name}",
                "one that this kernel has, in the node's network namespace",
                "correct its name, or leave it out",
            ) from None

    def writes(self, settings: Sequence[Setting], device: str) -> Iterator[Write]:
        """Yield a command for each."""
        del device
        for one in settings:
            yield Write(("sysctl", "-w", f"{one.name}={one.value}"))


def _path(name: str) -> str:
    """Return the path of a sysctl; a dot of an interface's name is written `/`, as sysctl(8) has it."""
    return name.translate(str.maketrans("./", "/."))


def _normal(text: str) -> str:
    return " ".join(text.split())
