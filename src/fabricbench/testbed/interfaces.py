"""Network interfaces as a measurement meets them: driver, speed, MTU, offloads, interrupt coalescing, rings and queues.

/sys tells the plain facts, the ethtool calls of the kernel (through pyroute2, so the ethtool program is not needed) the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fabricbench.model import Model
from fabricbench.testbed.adapter import Adapter, read_adapter
from fabricbench.testbed.host import read_integer, read_text

Value = TypeVar("Value", bool, int)

OFFLOADS = {
    "tx-tcp-segmentation": "tso",
    "tx-generic-segmentation": "gso",
    "rx-gro": "gro",
    "rx-lro": "lro",
    "rx-gro-hw": "gro-hw",
    "tx-udp-segmentation": "uso",
    "rx-checksum": "rx-checksum",
    "tx-checksum-ip-generic": "tx-checksum",
    "tx-checksum-ipv4": "tx-checksum-ipv4",
    "tx-nocache-copy": "tx-nocache-copy",
    "rx-ntuple-filter": "ntuple",
    "rx-hashing": "rx-hashing",
}
"""The kernel's names of the offloads that matter, and the ones that people know."""


class Interface(Model):
    """One interface. `speed_bit_s` is None where the driver does not say (virtual ones); empty maps where it has no such thing."""

    name: str
    driver: str | None
    mac: str | None
    mtu: int | None
    speed_bit_s: float | None
    duplex: str | None
    state: str | None
    numa_node: int | None
    receive_queues: int
    transmit_queues: int
    has_rps: bool
    """Whether received packets are spread over processors by software."""
    offloads: dict[str, bool] = {}
    coalescing: dict[str, int] = {}
    rings: dict[str, int] = {}
    adapter: Adapter = Adapter()

    @property
    def is_physical(self) -> bool:
        """Whether it is more than loopback: an interface that could be a fabric's."""
        return self.name != "lo"


def read_interfaces(root: Path) -> tuple[Interface, ...]:
    """Return every interface of this network namespace, by name."""
    from pyroute2.ethtool import Ethtool  # noqa: PLC0415 - takes longer to import than all else; the names above are wanted alone

    calls = Ethtool()
    try:
        return tuple(
            _interface(folder, calls, root) for folder in sorted((root / "sys/class/net").iterdir()) if folder.is_dir()
        )
    except OSError:
        return ()
    finally:
        calls.close()


def _interface(folder: Path, calls: Any, root: Path) -> Interface:
    name = folder.name
    speed = read_integer(folder / "speed")
    node = read_integer(folder / "device/numa_node")
    driver = folder / "device/driver"
    receive = sorted((folder / "queues").glob("rx-*"))
    masks = [read_text(queue / "rps_cpus") or "0" for queue in receive]
    return Interface(
        name=name,
        driver=driver.resolve().name if driver.exists() else None,
        mac=read_text(folder / "address"),
        mtu=read_integer(folder / "mtu"),
        speed_bit_s=speed * 1e6 if speed is not None and speed > 0 else None,
        duplex=read_text(folder / "duplex"),
        state=read_text(folder / "operstate"),
        numa_node=node if node is not None and node >= 0 else None,
        receive_queues=len(receive),
        transmit_queues=len(list((folder / "queues").glob("tx-*"))),
        has_rps=any(mask.strip("0,") for mask in masks),
        offloads=_asked(lambda: _offloads(calls, name)),
        coalescing=_asked(lambda: _coalescing(calls, name)),
        rings=_asked(lambda: _rings(calls, name)),
        adapter=read_adapter(folder, root),
    )


def _asked(question: Callable[[], dict[str, Value]]) -> dict[str, Value]:
    """Return the answer, empty where the driver has none to give: pyroute2 raises errors of many kinds for that."""
    try:
        return question()
    except Exception:  # noqa: BLE001 - an inventory must not fail on a driver's peculiarity
        return {}


def _offloads(calls: Any, name: str) -> dict[str, bool]:
    features = calls.get_features(name).features
    return {known: bool(features[kernel].enable) for kernel, known in OFFLOADS.items() if kernel in features}


def _coalescing(calls: Any, name: str) -> dict[str, int]:
    values = calls.get_coalesce(name)
    wanted = ("rx_coalesce_usecs", "rx_max_coalesced_frames", "tx_coalesce_usecs", "tx_max_coalesced_frames")
    adaptive = ("use_adaptive_rx_coalesce", "use_adaptive_tx_coalesce")
    return {key: int(values[key]) for key in (*wanted, *adaptive) if values.get(key) is not None}


def _rings(calls: Any, name: str) -> dict[str, int]:
    rings = calls.get_rings(name)
    return {
        key: int(getattr(rings, key)) for key in ("rx", "tx", "rx_max", "tx_max") if getattr(rings, key) is not None
    }
