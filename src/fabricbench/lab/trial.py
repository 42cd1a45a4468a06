"""The first steps of a keeper, tried: `python -m fabricbench.lab.trial root|user-namespace`. Exit code 0 says that they work."""

from __future__ import annotations

import os
import socket
import sys

from pyroute2 import IPRoute

from fabricbench.lab import namespaces


def take_first_steps(mode: str) -> None:
    """Make namespaces, and in them /proc, /sys, a veth pair and a packet socket. Raises what fails."""
    flags = namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS | namespaces.CLONE_NEWPID
    if mode == "root":
        namespaces.unshare(flags)
    else:
        namespaces.enter_user_namespace(flags)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    namespaces.keep_mounts_private()
    namespaces.mount_fresh("proc", "/proc")
    namespaces.mount_fresh("sysfs", "/sys")
    with IPRoute() as network:
        network.link("add", ifname="trial", kind="veth", peer={"ifname": "trial-peer"})
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


if __name__ == "__main__":
    try:
        take_first_steps(sys.argv[1])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
