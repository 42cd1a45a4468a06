"""Two network namespaces with a veth between them, as two hosts with one cable; and the measurer with a rank in each."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabricbench.launch.launcher import Command
from fabricbench.launch.local import LocalLauncher
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.starting import yield_library
from fabricbench.testbed.model import Fabric

INTERFACE = "fab0"
FABRIC = Fabric(name="veth", interface=INTERFACE, subnet="10.97.0.0/24", mtu=1500)
HOLDER = ("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo held; exec sleep 3600")
NO_IPV6 = "test ! -d /proc/sys/net/ipv6 || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"

LINK_SECONDS = 5.0
GO_FIRST = "echo -20 2>/dev/null >/proc/self/autogroup"
"""In a shell: a starter's session is one of its own, and has to go before others by itself."""


@contextmanager
def two_namespaces(queues: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the processes that hold the namespaces, whose interfaces have so many queues; they end with this one. Needs root."""
    holders = [subprocess.Popen(HOLDER, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for holder in holders:
            assert holder.stdout is not None
            holder.stdout.readline()
        first, second = (holder.pid for holder in holders)
        many = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        veth = ["ip", "link", "add", INTERFACE, *many, "type", "veth", "peer", "name", INTERFACE, *many]
        run([*entering(first), *veth, "netns", str(second)])
        for number, pid in enumerate((first, second)):
            run([*entering(pid), "sh", "-c", NO_IPV6])
            run([*entering(pid), "ip", "address", "add", f"10.97.0.{number + 1}/24", "dev", INTERFACE])
            for interface in ("lo", INTERFACE):
                run([*entering(pid), "ip", "link", "set", interface, "up"])
        for pid in (first, second):
            wait_for_link(pid)
        yield first, second
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def wait_for_link(pid: int) -> None:
    """Wait until the interface works: the kernel tells so a moment after it was set up, and libfabric takes none before."""
    deadline = time.monotonic() + LINK_SECONDS
    while True:
        told = subprocess.run(
            [*entering(pid), "ip", "link", "show", "dev", INTERFACE, "up"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout
        if " state UP " in told:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{INTERFACE} has no link after {LINK_SECONDS:g} s: {told}")
        time.sleep(0.05)


def run(tokens: Sequence[str]) -> None:
    """Run a command that must succeed."""
    subprocess.run(tokens, check=True, timeout=20)


def entering(pid: int) -> list[str]:
    """Return what starts a program in the network namespace of a process."""
    return ["nsenter", "--target", str(pid), "--net"]


def seat(end: int, pid: int) -> list[str]:
    """Return what starts a program at one of the two ends, on a processor of its own."""
    processors = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(processors[end % len(processors)]), *entering(pid)]


class InNamespaces(LocalLauncher):
    """Starts each of two ranks in a namespace of its own, on a processor of its own."""

    def __init__(self, script: Path, pids: Sequence[int]) -> None:
        super().__init__(find_starter(), yield_library())
        cases = " ".join(f"{rank}) at='{' '.join(seat(rank, pid))}';;" for rank, pid in enumerate(pids))
        script.write_text(
            f'#!/bin/sh\n{GO_FIRST}\ncase "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" in {cases} esac\nexec $at "$@"\n'
        )
        script.chmod(0o755)
        self._script = script

    def command(self, fabric: Fabric, program: Sequence[str], directory: Path, ranks: int) -> Command:
        """Return what runs a program there."""
        return super().command(fabric, [str(self._script), *program], directory, ranks)
