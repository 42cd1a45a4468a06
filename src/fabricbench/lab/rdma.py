"""How a lab can have RDMA on this machine: by its own kernel's soft RoCE in each node, else by guests. Tries, and makes nothing.

A soft-RoCE device works in a node only where the kernel opens RoCE's UDP port in the node's network namespace, which most do not:
it is tried in a namespace of its own. `FABRICBENCH_UML` or `--rdma-kernel` name the kernel of guests (docs/rdma.md).
"""

from __future__ import annotations

import ctypes
import hashlib
import lzma
import os
import stat
import subprocess
import tempfile
from pathlib import Path
from shutil import which

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab.ledger import own_directory
from fabricbench.lab.topology import Rdma
from fabricbench.model import Model

KERNEL_VARIABLE = "FABRICBENCH_UML"
VERBS_LIBRARY = "libibverbs.so.1"
PROGRAMS = ("bash", "ip", "rdma", "chrt", "setsid", "mount")
BUILD_HINT = "docs/rdma.md says how to build a kernel for guests; name it with --rdma-kernel or FABRICBENCH_UML"
_TRIAL_TIMEOUT_S = 20

TRIAL = """modprobe rdma_rxe 2>/dev/null
ip link add trial type veth peer name trial-peer && ip link set trial up || exit 1
rdma link add fabricbench-trial type rxe netdev trial || exit 1
grep -qi ':12B7 ' /proc/net/udp; code=$?
rdma link delete fabricbench-trial
exit $code
"""
"""Run in a network namespace of its own. 12B7 is RoCE's UDP port, 4791."""


class RdmaSupport(Model):
    """How the nodes of a lab get their RDMA devices, and the kernel of guests where it is by those."""

    by: Rdma
    kernel: Path | None = None


def needed_rdma(asked: Path | None, *, has_root: bool) -> RdmaSupport:
    """Return how a lab can have RDMA. A kernel that is `asked` for comes first, then this machine's own, then FABRICBENCH_UML's.

    UsageError where the kernel that is named is not there or damaged, EnvironmentLacks where something else is missing.
    """
    missing = [name for name in PROGRAMS if which(name) is None and which(name, path="/usr/sbin:/sbin") is None]
    if missing:
        raise EnvironmentLacks(
            f"no RDMA lab can be had: programs are missing: {', '.join(missing)}",
            hint="install them (Debian: iproute2, util-linux)",
        )
    try:
        ctypes.CDLL(VERBS_LIBRARY)
    except OSError as error:
        raise EnvironmentLacks(
            f"no RDMA lab can be had: {VERBS_LIBRARY} cannot be loaded ({error})",
            hint="install it (Debian: libibverbs1 and ibverbs-providers), or name its folder in LD_LIBRARY_PATH and its "
            "providers in IBV_DRIVERS",
        ) from None
    if asked is None and has_root and has_namespaced_rxe():
        return RdmaSupport(by=Rdma.KERNEL)
    named = asked or (Path(given) if (given := os.environ.get(KERNEL_VARIABLE)) else None)
    if named is None:
        raise EnvironmentLacks(
            "no RDMA lab can be had: this machine's kernel has no soft RoCE (rdma_rxe) that works in network namespaces, "
            "and no kernel for guests is named",
            hint=BUILD_HINT,
        )
    return RdmaSupport(by=Rdma.GUESTS, kernel=guest_kernel(named))


def has_namespaced_rxe() -> bool:
    """Tell whether a soft-RoCE device of this machine's kernel works in a network namespace. Needs root."""
    trial = ["unshare", "--net", "sh", "-c", TRIAL]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=_TRIAL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def guest_kernel(path: Path) -> Path:
    """Return the program that a kernel for guests is, unpacked once if it is an .xz; checked where a .sha256 lies beside it.

    Raises UsageError.
    """
    if not path.is_file():
        raise UsageError(f"there is no kernel for guests at {path}", hint=BUILD_HINT)
    path = path.resolve()
    packed = path.read_bytes()
    _check(path, packed)
    if path.suffix != ".xz":
        if not os.access(path, os.X_OK):
            raise UsageError(f"{path} cannot be executed", hint=f"chmod +x {path}")
        return path
    folder = own_directory("kernels")
    kernel = folder / hashlib.sha256(packed).hexdigest()[:16]
    if not _is_ours(kernel):
        try:
            content = lzma.decompress(packed)
        except lzma.LZMAError as error:
            raise UsageError(f"{path} cannot be unpacked: {error}", hint=BUILD_HINT) from None
        descriptor, draft = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(draft).chmod(0o755)
        Path(draft).replace(kernel)
    return kernel


def _is_ours(kernel: Path) -> bool:
    """Tell whether an unpacked kernel is there that only this user can have written: it is a program."""
    try:
        found = kernel.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _check(path: Path, content: bytes) -> None:
    """Compare a kernel, packed or not, with the SHA-256 beside it."""
    sums = path.with_suffix(".sha256") if path.suffix == ".xz" else path.with_name(f"{path.name}.sha256")
    if not sums.is_file():
        return
    wanted = {line.split()[1].lstrip("*"): line.split()[0] for line in sums.read_text().splitlines() if line.strip()}
    plain = path.name.removesuffix(".xz")
    try:
        checked = content if path.name in wanted or path.suffix != ".xz" else lzma.decompress(content)
    except lzma.LZMAError as error:
        raise UsageError(f"{path} cannot be unpacked: {error}", hint=BUILD_HINT) from None
    expected = wanted.get(path.name) or wanted.get(plain)
    found = hashlib.sha256(checked).hexdigest()
    if expected is not None and expected != found:
        raise UsageError(
            f"{path} is not the kernel that {sums.name} names: its SHA-256 is {found}, and {expected} is told there",
            hint="fetch or build it again, or correct the file",
        )
