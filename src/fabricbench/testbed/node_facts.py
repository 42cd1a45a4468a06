"""What a preflight needs to know of a node: what is installed there, its interfaces with their addresses, how busy it is.

Interfaces are read through netlink and not from /sys, which may belong to another network namespace (a container's, a lab's).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from pyroute2 import IPRoute

from fabricbench import __version__
from fabricbench.model import Model
from fabricbench.native import builds_of
from fabricbench.testbed.host import read_load

IFF_LOOPBACK = 0x8
"""Of the flags of an interface (linux/if.h)."""

PROGRAM_SECONDS = 10
IPV4 = 2
"""AF_INET of netlink."""


class NodeInterface(Model):
    """One interface as netlink tells of it: `state` is its operational state, `unknown` where a driver does not say."""

    name: str
    mtu: int
    state: str
    addresses: tuple[IPv4Interface, ...] = ()
    is_loopback: bool = False

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

    `builds` maps those that can be read to their SHA-256, which tells builds for one `architecture` apart.
    """

    host: str
    version: str
    programs: dict[str, str]
    interfaces: tuple[NodeInterface, ...]
    load: float | None
    processors: int
    builds: dict[str, str] = {}
    architecture: str = ""


def read_node(programs: Iterable[str], root: Path = Path("/")) -> NodeFacts:
    """Return the facts of this host; the programs are given by their paths."""
    paths = tuple(programs)
    return NodeFacts(
        host=os.uname().nodename,
        version=__version__,
        programs={path: _version_of(path) for path in paths},
        interfaces=read_node_interfaces(),
        load=read_load(root),
        processors=len(os.sched_getaffinity(0)),
        builds=builds_of(paths),
        architecture=os.uname().machine,
    )


def read_node_interfaces() -> tuple[NodeInterface, ...]:
    """Return the interfaces of this network namespace in the kernel's order, with their IPv4 addresses."""
    with IPRoute() as route:
        addresses: dict[int, list[IPv4Interface]] = {}
        for entry in route.get_addr(family=IPV4):
            address = entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS")
            addresses.setdefault(entry["index"], []).append(IPv4Interface(f"{address}/{entry['prefixlen']}"))
        return tuple(
            NodeInterface(
                name=link.get_attr("IFLA_IFNAME"),
                mtu=link.get_attr("IFLA_MTU"),
                state=str(link.get_attr("IFLA_OPERSTATE") or "unknown").lower(),
                addresses=tuple(addresses.get(link["index"], ())),
                is_loopback=bool(link["flags"] & IFF_LOOPBACK),
            )
            for link in route.get_links()
        )


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
