"""The adapter behind a network interface: driver and firmware, its PCIe link, where its interrupts go, pause frames.

/sys and /proc tell most of it, below a root that the caller names; the ethtool calls of the kernel (an ioctl, so the ethtool
program is not needed) tell the versions and the pause frames of this network namespace. What nobody tells is None, or empty.
"""

from __future__ import annotations

import ctypes
import fcntl
import re
import socket
import struct
from pathlib import Path

from fabricbench.model import Model
from fabricbench.testbed.host import read_integer, read_text

SIOCETHTOOL = 0x8946
GET_DRIVER, GET_PAUSE = 0x3, 0x12
"""ETHTOOL_GDRVINFO and ETHTOOL_GPAUSEPARAM (linux/ethtool.h)."""
DRIVER_FORMAT = "I32s32s32s32s32s12s5I"
PAUSE_FORMAT = "4I"
INTERFACE_REQUEST = "16sP8x"
"""struct ifreq with a pointer in its union, which is 24 bytes long."""

UNTOLD = {"", "N/A", "n/a"}
"""What drivers write that have no version, or no firmware."""


class PcieLink(Model):
    """A link of PCI Express: transfers a second and lanes as they are, and the most that card and slot both can do."""

    address: str
    transfers_s: float | None
    lanes: int | None
    most_transfers_s: float | None
    most_lanes: int | None

    @property
    def is_narrow(self) -> bool:
        """Whether the link runs with fewer lanes, or slower, than card and slot could."""
        pairs = ((self.lanes, self.most_lanes), (self.transfers_s, self.most_transfers_s))
        return any(now is not None and most is not None and now < most for now, most in pairs)

    def words(self, *, at_most: bool) -> str:
        """Return `8 GT/s x4`, of the link as it is or as it could be."""
        transfers = self.most_transfers_s if at_most else self.transfers_s
        lanes = self.most_lanes if at_most else self.lanes
        return " ".join(filter(None, (f"{transfers / 1e9:g} GT/s" if transfers else "", f"x{lanes}" if lanes else "")))


class Adapter(Model):
    """What carries an interface, `pcie` None where that is no PCI Express.

    `near` are the processors next to it, `interrupts` those that its interrupts go to, in the kernel's lists (`0-3,8`); `pause` has
    `autoneg`, `rx` and `tx` where the driver tells of pause frames.
    """

    driver_version: str | None = None
    firmware: str | None = None
    pcie: PcieLink | None = None
    near: str = ""
    interrupt_count: int = 0
    interrupts: str = ""
    pause: dict[str, bool] = {}


def read_adapter(folder: Path, root: Path) -> Adapter:
    """Return the adapter of an interface, whose folder in /sys/class/net is given."""
    device = folder / "device"
    versions = _driver(folder.name)
    numbers, processors = _interrupts(device, root)
    return Adapter(
        driver_version=versions.get("version") or read_text(device / "driver/module/version"),
        firmware=versions.get("firmware"),
        pcie=read_pcie(device),
        near=read_text(device / "local_cpulist") or "",
        interrupt_count=numbers,
        interrupts=as_list(processors),
        pause=_pause(folder.name),
    )


def read_pcie(device: Path) -> PcieLink | None:
    """Return the PCI Express link of a device, its most what both the card and the slot above it can do."""
    place = device.resolve()
    if read_text(place / "current_link_width") is None:
        return None
    most_transfers, most_lanes = [], []
    for end in (place, place.parent):
        most_transfers.append(_transfers_s(read_text(end / "max_link_speed")))
        most_lanes.append(_lanes(end / "max_link_width"))
    return PcieLink(
        address=place.name,
        transfers_s=_transfers_s(read_text(place / "current_link_speed")),
        lanes=_lanes(place / "current_link_width"),
        most_transfers_s=min((one for one in most_transfers if one is not None), default=None),
        most_lanes=min((one for one in most_lanes if one is not None), default=None),
    )


def _transfers_s(text: str | None) -> float | None:
    """Return the transfers a second of `8.0 GT/s PCIe`."""
    found = re.match(r"([\d.]+) ?GT/s", text or "")
    return float(found.group(1)) * 1e9 if found else None


NO_LANES = (0, 255)
"""What the kernel writes for a link that is down, or of a virtual function."""


def _lanes(path: Path) -> int | None:
    lanes = read_integer(path)
    return None if lanes in NO_LANES else lanes


def _interrupts(device: Path, root: Path) -> tuple[int, set[int]]:
    """Return how many interrupts a device has, and the processors that they go to; a virtual one's are its parent's."""
    place = device.resolve()
    folder = next((one / "msi_irqs" for one in (place, place.parent) if (one / "msi_irqs").is_dir()), None)
    numbers = [path.name for path in folder.iterdir()] if folder is not None else []
    if not numbers and (legacy := read_integer(place / "irq")):
        numbers = [str(legacy)]
    processors: set[int] = set()
    for number in numbers:
        told = (root / "proc/irq" / number / name for name in ("effective_affinity_list", "smp_affinity_list"))
        processors |= as_set(next(filter(None, map(read_text, told)), ""))
    return len(numbers), processors


def as_set(text: str) -> set[int]:
    """Return the processors of one of the kernel's lists, `0-3,8`; those that cannot be read are none."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def as_list(processors: set[int]) -> str:
    """Return processors as the kernel lists them."""
    runs: list[list[int]] = []
    for one in sorted(processors):
        if runs and one == runs[-1][-1] + 1:
            runs[-1][1:] = [one]
        else:
            runs.append([one])
    return ",".join("-".join(map(str, run)) for run in runs)


def _driver(interface: str) -> dict[str, str]:
    """Return the versions of driver and firmware; empty where nobody tells."""
    answer = _asked(interface, GET_DRIVER, DRIVER_FORMAT)
    if not answer:
        return {}
    version, firmware = (bytes(answer[place]).split(b"\0", 1)[0].decode(errors="replace").strip() for place in (2, 3))
    return {name: text for name, text in (("version", version), ("firmware", firmware)) if text not in UNTOLD}


def _pause(interface: str) -> dict[str, bool]:
    answer = _asked(interface, GET_PAUSE, PAUSE_FORMAT)
    return {name: bool(value) for name, value in zip(("autoneg", "rx", "tx"), answer[1:], strict=False)}


def _asked(interface: str, command: int, form: str) -> tuple[int, ...]:
    """Return what the kernel answers to an ethtool command; nothing where it or the driver has no answer."""
    request = ctypes.create_string_buffer(struct.pack("I", command), struct.calcsize(form))
    name = interface.encode()[:15]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked, SIOCETHTOOL, struct.pack(INTERFACE_REQUEST, name, ctypes.addressof(request)))
    except OSError:
        return ()
    return struct.unpack(form, request.raw)
