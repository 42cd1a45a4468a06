"""What a path costs in memory: in the kernel by its own counters, on a rank by looking at real ranks while they measure."""

from __future__ import annotations

import re
import resource
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.launching import plan_of, unsatisfied

from fabricbench.campaign.start import PROBE
from fabricbench.launch.launcher import Launcher
from fabricbench.model import Layer, Pattern
from fabricbench.native import native_file
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric

CONNECTIONS = 2000
FULL_CONNECTIONS = 20
REPETITIONS = 5
MOST_TO_SEND = 64 << 20


@dataclass(frozen=True)
class KernelMemory:
    """Bytes of one TCP connection with both its ends, idle, and with all its buffers full, on the loopback."""

    idle_bytes: float
    full_bytes: float


def kernel_memory() -> KernelMemory:
    """Measure by opening many connections: the growth of the kernel's slabs, and of the pages that TCP counts as its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * CONNECTIONS + 100)), hard))
    count = min(CONNECTIONS, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100) // 2)
    idle, full = [], []
    for _ in range(REPETITIONS):
        before = _slab_bytes()
        with _connections(count):
            idle.append((_slab_bytes() - before) / count)
        before = _tcp_pages_bytes()
        with _connections(FULL_CONNECTIONS) as pairs:
            for one, other in pairs:
                _fill(one)
                _fill(other)
            full.append((_tcp_pages_bytes() - before) / FULL_CONNECTIONS)
    return KernelMemory(statistics.median(idle), statistics.median(full))


@dataclass(frozen=True)
class RankMemory:
    """One rank of a chaos over TCP while it measures, the one with the most of each: its paths, open files, resident bytes."""

    paths: int
    files: int
    resident_bytes: int


def rank_memory(launcher: Launcher, fabric: Fabric, ranks: int, message_bytes: int) -> RankMemory:
    """Start a chaos and look at its ranks in /proc until it ends."""
    probe = PlanProbe(
        id=0,
        layer=Layer.TCP,
        pattern=Pattern.CHAOS,
        message_bytes=message_bytes,
        ranks=tuple(range(ranks)),
        stopping=unsatisfied(1.0),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = plan_of(Path(folder), fabric, [probe])
        command = launcher.command(fabric, [str(native_file(PROBE)), str(path)], Path(folder), ranks)
        files, resident = [0], [0]
        with subprocess.Popen(command.tokens, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            limit = threading.Timer(60, run.terminate)
            limit.start()
            while run.poll() is None:
                for process in _measurers(str(path)):
                    files.append(_open_sockets(process))
                    resident.append(_resident_bytes(process))
                time.sleep(0.1)
            limit.cancel()
            if run.returncode:
                raise RuntimeError(f"a chaos of {ranks} ranks ended with {run.returncode}")
    return RankMemory(ranks - 1, max(files), max(resident))


@contextmanager
def _connections(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        address = server.getsockname()
        pairs: list[tuple[socket.socket, socket.socket]] = []
        try:
            for _ in range(count):
                one = socket.create_connection(address)
                pairs.append((one, server.accept()[0]))
            yield pairs
        finally:
            for pair in pairs:
                for end in pair:
                    # No waiting in TIME_WAIT: that would be memory as well.
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    end.close()


def _fill(end: socket.socket) -> None:
    """Send until nothing more is taken: the sender's and the receiver's buffers are full then."""
    end.setblocking(False)
    piece = bytes(1 << 16)
    sent, quiet = 0, 0
    while sent < MOST_TO_SEND and quiet < 3:
        try:
            sent, quiet = sent + end.send(piece), 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.01)


def _slab_bytes() -> int:
    found = re.search(r"^Slab:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found
    return int(found.group(1)) * 1024


def _tcp_pages_bytes() -> int:
    found = re.search(r"^TCP:.* mem (\d+)", Path("/proc/net/sockstat").read_text(), re.MULTILINE)
    assert found
    return int(found.group(1)) * resource.getpagesize()


def _measurers(plan: str) -> Iterator[Path]:
    """Yield the measurers that follow our plan, and nobody else's."""
    program = str(native_file(PROBE))
    for process in Path("/proc").glob("[0-9]*"):
        try:
            tokens: Sequence[str] = (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if tokens[:2] == [program, plan]:
            yield process


def _open_sockets(process: Path) -> int:
    """Count the sockets that the measurer holds; those of MPI are among them."""
    try:
        return sum(1 for entry in (process / "fd").iterdir() if str(entry.readlink()).startswith("socket:"))
    except OSError:
        return 0


def _resident_bytes(process: Path) -> int:
    try:
        found = re.search(r"^RssAnon:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0
