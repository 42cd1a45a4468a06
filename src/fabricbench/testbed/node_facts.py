"""What a preflight needs to know of a node: what is installed there, its interfaces with their addresses, how busy it is.

Interfaces are read through netlink and not from /sys, which may belong to another network namespace (a container's, a lab's).
What a first testbed file is written from stands here as well: what an interface is made of, RDMA ports, MPIs, clocks.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from fabricbench import __version__
from fabricbench.model import Model
from fabricbench.native import builds_of
from fabricbench.testbed.allowance import Allowance, read_allowance
from fabricbench.testbed.host import read_clock, read_load
from fabricbench.testbed.names import LookUp, look_up
from fabricbench.testbed.rdma import RdmaPort, read_rdma
from fabricbench.testbed.tunnels import read_carriers

IFF_LOOPBACK = 0x8
"""Of the flags of an interface (linux/if.h)."""

PROGRAM_SECONDS = 10
IPV4 = 2
"""AF_INET of netlink."""

LINKS = {1: "ethernet", 32: "infiniband"}
"""Of the link types of if_arp.h, those of fabrics."""

WITHOUT_SPEED = {"veth", "bridge", "dummy", "tun", "ifb", "macvlan", "macvtap", "ipvlan", "vxlan"}
"""Kinds of interfaces of which a speed says nothing: that of a veth is always 10 Gbit/s."""

SPEED_UNKNOWN = 0xFFFFFFFF
"""SPEED_UNKNOWN of linux/ethtool.h."""

MPI_PLACES = (
    "usr/lib64/openmpi", "usr/lib64/mpich", "usr/lib64/mvapich2", "usr/lib/x86_64-linux-gnu/openmpi", "usr/local", "usr",
    "opt/openmpi*", "opt/mpich*", "opt/mvapich*", "opt/intel/oneapi/mpi/latest", "usr/mpi/gcc/*", "usr/lib64/mpi/gcc/*",
)  # fmt: skip
"""Where distributions and vendors put an MPI; modules of a site are not loaded where a node is asked, and not seen."""


class NodeInterface(Model):
    """One interface as netlink tells of it: `state` is its operational state, `unknown` where a driver does not say.

    `kind` is what it is made of in software (`bond`, `vlan`, `bridge`, `veth`), empty for a card. `link` is `ethernet`,
    `infiniband` or empty. `below` is the interface that a VLAN lies on, `master` the bond or bridge that it is a port of.
    `speed_bit_s` is None where nobody tells. `carriers` are the interfaces through which a tunnel's packets leave, by the routes to
    its peers; `UNKNOWN_CARRIER` where the kernel does not tell its peers.
    """

    name: str
    mtu: int
    state: str
    addresses: tuple[IPv4Interface, ...] = ()
    is_loopback: bool = False
    kind: str = ""
    link: str = ""
    below: str = ""
    master: str = ""
    vlan: int | None = None
    speed_bit_s: float | None = None
    carriers: tuple[str, ...] = ()

    def address_in(self, subnet: IPv4Network | None) -> IPv4Interface | None:
        """Return the first address, of those in the subnet if there is one; None where there is none."""
        return next((one for one in self.addresses if subnet is None or one.ip in subnet), None)

    def has(self, address: IPv4Address) -> bool:
        """Tell whether the address is one of this interface's."""
        return any(one.ip == address for one in self.addresses)

    def __str__(self) -> str:
        """Return the name with its addresses, as a message names it."""
        return f"{self.name} ({', '.join(map(str, self.addresses))})" if self.addresses else self.name


class NodeFacts(Model):
    """What a node tells of itself. `programs` maps each path that was asked for to what `PATH --version` prints, or a problem.

    `builds` maps those that can be read to their SHA-256, which tells builds for one `architecture` apart. `reached_at` is the
    node's address that others arrive at. `mpis` are folders of installed MPIs.
    `unix_ns` is when it answered, by its own clock. `is_name_service_silent`: nobody told in time what its own name leads to.
    """

    host: str
    version: str
    programs: dict[str, str]
    interfaces: tuple[NodeInterface, ...]
    load: float | None
    processors: int
    builds: dict[str, str] = {}
    architecture: str = ""
    reached_at: IPv4Address | None = None
    rdma: tuple[RdmaPort, ...] = ()
    mpis: tuple[str, ...] = ()
    clock_source: str | None = None
    unix_ns: int | None = None
    is_name_service_silent: bool = False
    allowance: Allowance = Allowance()

    def names_below(self, interface: NodeInterface) -> set[str]:
        """Return the names of an interface and of what it is made of: below a VLAN, ports of a bond or bridge."""
        names = {interface.name, *([interface.below] if interface.below else [])}
        return names | {one.name for one in self.interfaces if one.master and one.master in names}

    def rdma_below(self, interface: NodeInterface) -> list[RdmaPort]:
        """Return the RDMA ports that lie below an interface, or below what that is made of."""
        names = self.names_below(interface)
        return [port for port in self.rdma if not names.isdisjoint(port.beside)]


def read_node(programs: Iterable[str], root: Path = Path("/")) -> NodeFacts:
    """Return the facts of this host; the programs are given by their paths."""
    paths, interfaces = tuple(programs), read_node_interfaces()
    own_name = look_up(os.uname().nodename)
    return NodeFacts(
        host=os.uname().nodename,
        version=__version__,
        programs={path: _version_of(path) for path in paths},
        interfaces=interfaces,
        load=read_load(root),
        processors=len(os.sched_getaffinity(0)),
        builds=builds_of(paths),
        architecture=os.uname().machine,
        reached_at=read_reached_at(interfaces, own_name),
        rdma=read_rdma(root),
        mpis=find_mpis(root),
        clock_source=read_clock(root).source,
        unix_ns=time.time_ns(),
        is_name_service_silent=own_name.is_silent,
        allowance=read_allowance(root),
    )


def read_reached_at(
    interfaces: Iterable[NodeInterface], own_name: LookUp, environment: Mapping[str, str] = os.environ
) -> IPv4Address | None:
    """Return the address of this host that others arrive at: that of `SSH_CONNECTION`, else what its own name leads to.

    None where neither is an address of an interface: a starter hands on the variables of the login node.
    """
    mine = {address.ip for one in interfaces if not one.is_loopback for address in one.addresses}
    words = environment.get("SSH_CONNECTION", "").split()  # the client, its port, this host, its port
    with suppress(IndexError, ValueError):
        if (address := IPv4Address(words[2])) in mine:
            return address
    return own_name.address if own_name.address in mine else None


def find_mpis(root: Path) -> tuple[str, ...]:
    """Return the folders of the MPIs in the usual places, those with a compiler and a starter."""
    folders = [folder for place in MPI_PLACES for folder in sorted(root.glob(place))]
    return tuple(
        str(folder)
        for folder in folders
        if (folder / "bin/mpicxx").exists() and ((folder / "bin/mpiexec").exists() or (folder / "bin/mpirun").exists())
    )


def read_node_interfaces() -> tuple[NodeInterface, ...]:
    """Return the interfaces of this network namespace in the kernel's order, with their IPv4 addresses."""
    from pyroute2 import IPRoute  # noqa: PLC0415 - takes a quarter of a second, which every command would take
    from pyroute2.ethtool import Ethtool  # noqa: PLC0415

    calls = Ethtool()
    try:
        with IPRoute() as route:
            addresses: dict[int, list[IPv4Interface]] = {}
            for entry in route.get_addr(family=IPV4):
                address = entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS")
                addresses.setdefault(entry["index"], []).append(IPv4Interface(f"{address}/{entry['prefixlen']}"))
            links = list(route.get_links())
            carriers = read_carriers(route, links)
        names = {link["index"]: str(link.get_attr("IFLA_IFNAME")) for link in links}
        return tuple(
            _interface(link, names, tuple(addresses.get(link["index"], ())), calls).model_copy(
                update={"carriers": carriers.get(link["index"], ())}
            )
            for link in links
        )
    finally:
        calls.close()


def _interface(link: Any, names: Mapping[int, str], addresses: tuple[IPv4Interface, ...], calls: Any) -> NodeInterface:
    name, info = names[link["index"]], link.get_attr("IFLA_LINKINFO")
    kind = str(info.get_attr("IFLA_INFO_KIND") or "") if info is not None else ""
    data = info.get_attr("IFLA_INFO_DATA") if kind == "vlan" else None
    is_here = link.get_attr("IFLA_LINK_NETNSID") is None  # else the number is one of another network namespace
    return NodeInterface(
        name=name,
        mtu=link.get_attr("IFLA_MTU"),
        state=str(link.get_attr("IFLA_OPERSTATE") or "unknown").lower(),
        addresses=addresses,
        is_loopback=bool(link["flags"] & IFF_LOOPBACK),
        kind=kind,
        link=LINKS.get(link["ifi_type"], ""),
        below=names.get(link.get_attr("IFLA_LINK") or 0, "") if is_here and kind != "veth" else "",
        master=names.get(link.get_attr("IFLA_MASTER") or 0, ""),
        vlan=data.get_attr("IFLA_VLAN_ID") if data is not None else None,
        speed_bit_s=None if kind in WITHOUT_SPEED else _speed_bit_s(calls, name),
    )


def _speed_bit_s(calls: Any, name: str) -> float | None:
    """Return what the driver tells, in Mbit/s there; unknown is told as None, 0 or SPEED_UNKNOWN."""
    try:
        speed = calls.get_link_mode(name).speed
    except Exception:  # noqa: BLE001 - pyroute2 raises errors of many kinds where a driver has nothing to tell
        return None
    return speed * 1e6 if isinstance(speed, int) and 0 < speed < SPEED_UNKNOWN else None


def _version_of(path: str) -> str:
    try:
        shown = subprocess.run(
            [path, "--version"], check=False, capture_output=True, text=True, errors="replace", timeout=PROGRAM_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {PROGRAM_SECONDS} s"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if shown.returncode != 0:
        last = (shown.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"ended with {shown.returncode}: {last}"
    return (shown.stdout.strip().splitlines() or [""])[0]
