"""Settings of a fabric's interface: MTU, interrupt coalescing, offloads, ring sizes.

Read by /sys and ethtool's calls, written by `ip link set` and `ethtool -C`, `-K`, `-G`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pydantic import Field, field_validator

from fabricbench.configuration import did_you_mean
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.quantity import Bytes
from fabricbench.settings.setting import CannotSetError, Setting, SettingsHost, Write
from fabricbench.testbed.interfaces import OFFLOADS
from fabricbench.testbed.model import Fabric

ON, OFF = "on", "off"

COALESCING = {
    "adaptive-rx": "use_adaptive_rx_coalesce",
    "adaptive-tx": "use_adaptive_tx_coalesce",
    "rx-usecs": "rx_coalesce_usecs",
    "rx-frames": "rx_max_coalesced_frames",
    "rx-usecs-irq": "rx_coalesce_usecs_irq",
    "rx-frames-irq": "rx_max_coalesced_frames_irq",
    "tx-usecs": "tx_coalesce_usecs",
    "tx-frames": "tx_max_coalesced_frames",
    "tx-usecs-irq": "tx_coalesce_usecs_irq",
    "tx-frames-irq": "tx_max_coalesced_frames_irq",
    "stats-block-usecs": "stats_block_coalesce_usecs",
}
"""The names of `ethtool -C`, and the fields of the kernel's struct ethtool_coalesce."""

RINGS = {"rx": "rx", "rx-mini": "rx_mini", "rx-jumbo": "rx_jumbo", "tx": "tx"}
"""The names of `ethtool -G`, and the kernel's."""

OF_OFFLOAD = {short: kernel for kernel, short in OFFLOADS.items()}
"""The names that people know -> the kernel's own, of which each is one switch and can be restored exactly."""

MTU = "mtu"
NO_SUCH = "a setting that the interface's driver has"
LEAVE_OUT = "leave it out of the condition, or out of its `fabrics`"


class InterfaceTable(Model):
    """What a condition sets of a fabric's interface."""

    mtu: Bytes | None = Field(default=None, ge=68, le=65536)
    coalesce: dict[str, bool | int] = {}
    offload: dict[str, bool] = {}
    ring: dict[str, int] = {}

    @field_validator("coalesce")
    @classmethod
    def _coalescing_is_known(cls, value: dict[str, bool | int]) -> dict[str, bool | int]:
        _check_names(value, list(COALESCING), "ethtool -C")
        for name, one in value.items():
            is_switch = name.startswith("adaptive")
            if is_switch != isinstance(one, bool) or one < 0:
                needed = "true or false" if is_switch else "a whole number from 0 on"
                raise ValueError(f"{name}: found {str(one).lower()}, needed {needed}")
        return value

    @field_validator("offload")
    @classmethod
    def _offloads_are_no_slips(cls, value: dict[str, bool]) -> dict[str, bool]:
        """A name that is near a known one is a slip; of others the nodes tell."""
        known = [*OFFLOADS, *OF_OFFLOAD]
        for name in value:
            if name not in known and (guess := did_you_mean(name, known)):
                raise ValueError(f"{name!r} is none of the usual names of `ethtool -K`{guess}")
        return value

    @field_validator("ring")
    @classmethod
    def _rings_are_known(cls, value: dict[str, int]) -> dict[str, int]:
        _check_names(value, list(RINGS), "ethtool -G")
        return value


def _check_names(value: dict[str, bool | int] | dict[str, int], known: list[str], program: str) -> None:
    for name in value:
        if name not in known:
            raise ValueError(
                f"{name!r} is nothing that `{program}` sets; it sets {', '.join(known)}{did_you_mean(name, known)}"
            )


class InterfaceKind:
    """What is set of one interface."""

    NAME = "interface"

    OUTLIVES_BOOT = False

    def is_of_host(self, setting: Setting) -> bool:
        """Tell whether it is the whole machine's."""
        del setting
        return False

    def asked(self, table: InterfaceTable, fabric: Fabric) -> Iterator[Setting]:
        """Yield what is asked; UsageError where the fabric has no interface."""
        wishes = {
            **({MTU: str(table.mtu)} if table.mtu is not None else {}),
            **{f"coalesce {name}": _text(value) for name, value in table.coalesce.items()},
            **{f"offload {OF_OFFLOAD.get(name, name)}": _text(value) for name, value in table.offload.items()},
            **{f"ring {name}": _text(value) for name, value in table.ring.items()},
        }
        if wishes and not fabric.has_interface:
            raise UsageError(
                f"fabric {fabric.name} has no interface, of which the condition would set {', '.join(wishes)}",
                hint="name the fabrics that the condition is for: `fabrics = [...]`",
            )
        where = {"interface": fabric.interface} if fabric.interface is not None else {"subnet": fabric.subnet}
        for name, value in wishes.items():
            yield Setting(kind=self.NAME, name=name, value=value, **where)

    def read(self, setting: Setting, host: SettingsHost) -> str:
        """Return the value, numbers as they are, switches as on or off."""
        device = host.device(setting)
        table, _, name = setting.name.partition(" ")
        if table == MTU:
            return host.text(f"sys/class/net/{device}/mtu")
        try:
            found = self._asked_of_driver(table, name, device, host)
        except CannotSetError:
            raise
        except Exception as error:  # pyroute2 raises errors of many kinds for what a driver does not have
            reason = type(error).__name__ if not str(error) else str(error).strip(" \x00")
            raise CannotSetError(f"{device} has no {table} ({reason})", NO_SUCH, LEAVE_OUT) from error
        if found is None:
            raise CannotSetError(f"{device} has no {setting.name}", NO_SUCH, LEAVE_OUT)
        return _text(found)

    def _asked_of_driver(self, table: str, name: str, device: str, host: SettingsHost) -> bool | int | None:
        match table:
            case "coalesce":
                found = host.ethtool.get_coalesce(device).get(COALESCING[name])
                return bool(found) if name.startswith("adaptive") and found is not None else found
            case "ring":
                ring: int | None = getattr(host.ethtool.get_rings(device), RINGS[name], None)
                return ring
        features = host.ethtool.get_features(device).features
        if name not in features:
            return None
        if not features[name].available:
            raise CannotSetError(f"{name} of {device} is fixed", NO_SUCH, LEAVE_OUT)
        return bool(features[name].enable)

    def writes(self, settings: Sequence[Setting], device: str) -> Iterator[Write]:
        """Yield a command for each table: what the driver only takes together is written together."""
        by_table = sorted(settings, key=lambda one: list(_OPTIONS).index(one.name.partition(" ")[0]))
        for table, group in groupby(by_table, key=lambda one: one.name.partition(" ")[0]):
            pairs = [(one.name.partition(" ")[2], str(one.value)) for one in group]
            if table == MTU:
                yield Write(("ip", "link", "set", "dev", device, "mtu", pairs[0][1]))
            else:
                yield Write(("ethtool", _OPTIONS[table], device, *(part for pair in pairs for part in pair)))


_OPTIONS = {"ring": "-G", MTU: "", "offload": "-K", "coalesce": "-C"}
"""In the order in which they are written: a ring or an MTU that changes may reset what some drivers were told of the others."""


def _text(value: bool | int) -> str:
    return (ON if value else OFF) if isinstance(value, bool) else str(value)
