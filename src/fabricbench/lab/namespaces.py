"""The system calls of namespaces that Python 3.11 lacks: unshare, mount, and the maps of a user namespace.

`python -m fabricbench.lab.namespaces root|user-namespace` tries the first steps of a keeper; exit code 0 says that they work.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from pathlib import Path

from pyroute2 import IPRoute

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones. Raises OSError."""
    _check(_libc.unshare(flags), "unshare")


def enter_user_namespace(flags: int) -> None:
    """Become root of a new user namespace, and leave the namespaces named by `flags` in the same step. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def enter_node(pid: int) -> None:
    """Go where the process that holds a node is: its network, mounts, host name and IPC. Raises OSError."""
    opened = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "uts", "ipc", "mnt")]
    for namespace in opened:  # all opened before the last, which may show another /proc
        _check(_libc.setns(namespace, 0), "setns")
        os.close(namespace)


def keep_mounts_private() -> None:
    """Let no mount made from here on be seen outside this mount namespace, nor the other way. Raises OSError."""
    _mount("none", "/", None, MS_REC | MS_PRIVATE)


def mount_fresh(kind: str, target: str, options: str | None = None) -> None:
    """Mount a new file system of a kind (`proc`, `sysfs`, `tmpfs`) over `target`. Raises OSError."""
    _mount(kind, target, kind, MS_NOSUID | MS_NODEV | MS_NOEXEC, options)


def mount_memory(target: Path) -> None:
    """Mount a new tmpfs from which programs may be mapped. Raises OSError."""
    _mount("tmpfs", str(target), "tmpfs", MS_NOSUID | MS_NODEV)


def bind(source: Path, target: Path) -> None:
    """Show `source` at the path `target` too. Raises OSError."""
    _mount(str(source), str(target), None, MS_BIND)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    result = _libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, options and options.encode())
    _check(result, f"mount {kind or source} on {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def take_first_steps(mode: str) -> None:
    """Make namespaces, and in them /proc, /sys, a veth pair and a packet socket. Raises what fails."""
    flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID
    if mode == "root":
        unshare(flags)
    else:
        enter_user_namespace(flags)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    keep_mounts_private()
    mount_fresh("proc", "/proc")
    mount_fresh("sysfs", "/sys")
    with IPRoute() as network:
        network.link("add", ifname="trial", kind="veth", peer={"ifname": "trial-peer"})
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


if __name__ == "__main__":
    try:
        take_first_steps(sys.argv[1])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
