"""Becomes a program, told what this node has on a fabric: `python -I -S on_subnet.py NAMES WHERE PROGRAM...`.

WHERE is the fabric's interface, or its subnet where nodes name that differently. NAMES are environment variables, with spaces
between them. The interface's name goes into NAME, into NAME=TEMPLATE what the template says of it: `{interface}`, its first IPv4
`{address}` there, its RDMA port as `{rdma}` (mlx5_0:1), `{device}` and `{port}`, or the way that is there, RDMA before TCP: `{way}`
the port or the interface, `{tls}` for UCX, `{provider}` for libfabric. Only the standard library, and every descriptor stays
open: starters talk to their ranks through one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # run by its path, without the packages of this installation
    sys.path.append(str(Path(__file__).parents[2]))

from fabricbench.testbed import own_interface

NO_INTERFACE = 78
"""EX_CONFIG of sysexits.h: this node is not what the testbed says."""

CANNOT_START = 127

ADDRESS = "{address}"

OF_RDMA = ("{rdma}", "{device}", "{port}")
"""What only an interface with an RDMA port has."""


def wrapped(variables: dict[str, str], where: str, program: list[str]) -> list[str]:
    """Return the tokens that run a program with these variables: name -> template, the interface's name alone where it is that."""
    names = (name if template == "{interface}" else f"{name}={template}" for name, template in variables.items())
    return [sys.executable, "-I", "-S", __file__, " ".join(names), where, *program]


def rdma_port(interface: str, sys_folder: Path = Path("/sys")) -> tuple[str, str] | None:
    """Return the RDMA device of an interface with its port, as native/core/traffic.cpp finds them; None: it has none.

    The card's own interface names its device, and `dev_port` its port, from 0; a VLAN or bond is known by the port's addresses.
    """
    net = sys_folder / "class/net" / interface
    for device in _names(sys_folder / "class/infiniband"):
        ports = sys_folder / "class/infiniband" / device / "ports"
        is_own, position = (net / "device/infiniband" / device).exists(), _word(net / "dev_port")
        numbers = _names(ports)
        for number in numbers:
            is_at_place = len(numbers) == 1 or (position.isdigit() and int(position) + 1 == int(number))
            ndevs = ports / number / "gid_attrs/ndevs"
            if (is_own and is_at_place) or interface in {_word(ndevs / index) for index in _names(ndevs)}:
                return device, number
    return None


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208 - names alone


def _word(path: Path) -> str:
    """Return what a file of sysfs says; nothing where it cannot be read, as entries without an address cannot."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def told(template: str, interface: str, port: tuple[str, str] | None, address: str = "") -> str:
    """Return a template with what the interface has."""
    device, number = port or ("", "")
    rdma = f"{device}:{number}"
    return template.format(
        interface=interface,
        address=address,
        rdma=rdma,
        device=device,
        port=number,
        way=rdma if port else interface,
        tls="ib" if port else "tcp",
        provider="verbs" if port else "tcp",
    )


def main(arguments: list[str]) -> int:
    """Become the program; return only where that is not possible."""
    names, where, command = arguments[0], arguments[1], arguments[2:]
    node, own = os.uname().nodename, own_interface.addresses_in(where)
    interface = own[0][0] if own else own_interface.interface_of(where)
    if interface is None:
        there = ", ".join(f"{name} ({address})" for name, address in own_interface.addresses()) or "none"
        sys.stderr.write(f"{node} has no interface in {where}; it has {there}\n")
        return NO_INTERFACE
    port = rdma_port(interface) if "=" in names else None
    if port is None and any(place in names for place in OF_RDMA):
        sys.stderr.write(f'{node}: {interface} has no RDMA port; transport = "tcp" needs none\n')
        return NO_INTERFACE
    if ADDRESS in names and not own:
        sys.stderr.write(f"{node}: {interface} has no IPv4 address\n")
        return NO_INTERFACE
    for name, _, template in (one.partition("=") for one in names.split(" ")):
        os.environ[name] = told(template or "{interface}", interface, port, str(own[0][1]) if own else "")
    try:
        os.execvp(command[0], command)  # noqa: S606 - tokens, never a shell string
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return CANNOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
