"""A rig for the emulated switch: nodes in network namespaces around one switch, without the lab.

Each namespace is held by a process of its own that dies with this one; killing it frees the namespace and all in it. Root makes
them directly, an ordinary user inside a user namespace.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fabricbench.native import native_file

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
HOLDER = (*DIES_WITH_US, "sleep", "900")
"""What keeps a namespace alive: dies with the test, and after a quarter of an hour in any case."""

NO_IPV6 = "! test -d /proc/sys/net/ipv6 || echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
"""Without it, nodes that have IPv6 announce themselves and spoil the counters."""

FABRIC: dict[str, Any] = {
    "line_rate_bit_s": 100e6,
    "delay_ns": 25_000,
    "switching": "store-and-forward",
    "switch_latency_ns": 0,
    "port_buffer_bytes": 131_072,
    "host_queue_bytes": 1 << 20,
    "mtu": 1500,
    "overhead_bytes": 24,
    "minimum_bytes": 84,
    "cell": None,
    "cpu": None,
}


def why_it_cannot_run() -> str | None:
    """Return what is missing for a rig here, or None."""
    for tool in ("ip", "ethtool", "tc", "unshare", "nsenter", "setpriv"):
        if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            return f"{tool} is not installed"
    tried = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, check=False, timeout=10)
    return None if tried.returncode == 0 else f"no network namespace for this user: {tried.stderr.strip()}"


def _unshare() -> list[str]:
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]


def mac_of(node: int) -> str:
    """Return the MAC address of a node."""
    return f"02:00:00:00:01:{node:02x}"


def address_of(node: int) -> str:
    """Return the IPv4 address of a node."""
    return f"10.97.0.{node + 1}"


class SwitchRig:
    """`nodes` nodes on one switch; `fabric` overrides FABRIC.

    `is_shaped` gives the nodes a tbf at the line rate, as the lab does. `starting` goes before the switch's program.
    """

    def __init__(
        self, folder: Path, nodes: int = 2, *, is_shaped: bool = True, starting: Sequence[str] = (), **fabric: Any
    ) -> None:
        self.folder = folder
        self.nodes = nodes
        self.is_shaped = is_shaped
        self.starting = starting
        self.fabric = FABRIC | fabric
        self.status_path = folder / "status.json"
        self._stack = ExitStack()
        self._holders: list[int] = []

    def __enter__(self) -> Self:
        with self._stack:
            self._switch_pid = self._hold(_unshare())
            self._holders = [
                self._hold([*self._enter(self._switch_pid), "unshare", "--net"]) for _ in range(self.nodes)
            ]
            self._wire_up()
            self.switch = self._start_switch()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def config(self) -> dict[str, Any]:
        """Return the switch's configuration."""
        ports = [{"interface": f"p{node}", "mac": mac_of(node)} for node in range(self.nodes)]
        return self.fabric | {"name": "rig", "ports": ports, "status": str(self.status_path)}

    def pid_of(self, node: int) -> int:
        """Return a process that lives in the node's namespace."""
        return self._holders[node]

    def in_switch(self, *command: str) -> list[str]:
        """Return tokens that run a command in the switch's namespace."""
        return [*self._enter(self._switch_pid), *command]

    def in_node(self, node: int, *command: str) -> list[str]:
        """Return tokens that run a command in a node."""
        return [*self._enter(self._holders[node]), *command]

    def run_in_node(self, node: int, *command: str, timeout: float = 30) -> str:
        """Run a command in a node and return what it printed."""
        done = subprocess.run(
            self.in_node(node, *command), capture_output=True, text=True, check=False, timeout=timeout
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def start_in_node(self, node: int, *command: str) -> subprocess.Popen[str]:
        """Start a command in a node; it ends with the rig at the latest."""
        return self._start(self.in_node(node, *DIES_WITH_US, *command))

    def status(self) -> dict[str, Any]:
        """Ask the switch for its status now."""
        before = self._written()
        os.kill(self.switch.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 5
        while self._written() == before:
            assert time.monotonic() < deadline, "the switch wrote no status"
            time.sleep(0.01)
        status: dict[str, Any] = json.loads(self.status_path.read_text())
        return status

    def _written(self) -> tuple[int, int]:
        """Tell one write of the status file from the next: two in one tick of the clock have the same time, not the same inode."""
        found = self.status_path.stat()
        return found.st_ino, found.st_mtime_ns

    def _enter(self, pid: int) -> list[str]:
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={pid}", *user, "--net"]

    def _start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self._stack.callback(_end, process)
        return process

    def _hold(self, prefix: list[str]) -> int:
        process = self._start([*prefix, *HOLDER])
        deadline = time.monotonic() + 10
        # nsenter and unshare replace themselves by the next command: once it sleeps, it is in its namespace.
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "sleep":
            assert process.poll() is None, "a namespace's holder ended"
            assert time.monotonic() < deadline, "a namespace's holder did not start"
            time.sleep(0.005)
        return process.pid

    def _wire_up(self) -> None:
        mtu = self.fabric["mtu"]
        for pid in (self._switch_pid, *self._holders):
            subprocess.run([*self._enter(pid), "sh", "-c", NO_IPV6], check=True, timeout=10)
        lines = ["link set lo up"]
        for node in range(self.nodes):
            # The nodes may send longer frames than the fabric takes, so that the switch has something to refuse.
            lines += [
                f"link add p{node} mtu {mtu + 100} type veth {self._far_end(node, mtu + 100)}",
                f"link set p{node} up",
            ]
        self._ip(self._switch_pid, lines)
        for node, pid in enumerate(self._holders):
            others = [other for other in range(self.nodes) if other != node]
            self._ip(
                pid,
                ["link set lo up", "link set fab0 up", f"address add {address_of(node)}/24 dev fab0"]
                + [f"route add {address_of(other)}/32 dev fab0 mtu {mtu}" for other in others]
                + [f"neighbour add {address_of(other)} lladdr {mac_of(other)} dev fab0" for other in others],
            )
            offloads = [word for feature in ("tx", "tso", "gso", "gro") for word in (feature, "off")]
            self.run_in_node(node, "ethtool", "-K", "fab0", *offloads)
            if self.is_shaped:
                self.run_in_node(node, *self._shaper())

    def _far_end(self, node: int, mtu: int) -> str:
        return f"peer name fab0 mtu {mtu} address {mac_of(node)} netns {self._holders[node]}"

    def _shaper(self) -> list[str]:
        rate = int(self.fabric["line_rate_bit_s"])
        # Two milliseconds: a smaller bucket means a timer for every few frames, which costs a gigabit link a tenth of its rate.
        burst = max(2 * (self.fabric["mtu"] + 100), rate // 8 // 500)
        cells = ["linklayer", "atm"] if self.fabric["cell"] else ["mpu", str(self.fabric["minimum_bytes"])]
        return [
            *("tc", "qdisc", "add", "dev", "fab0", "root", "tbf", "rate", f"{rate}bit", "burst", str(burst)),
            *("limit", "1000000", "overhead", str(self.fabric["overhead_bytes"]), *cells),
        ]

    def _ip(self, pid: int, lines: list[str]) -> None:
        command = [*self._enter(pid), "ip", "-batch", "-"]
        text = "\n".join(lines) + "\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, (lines, done.stderr)

    def _start_switch(self) -> subprocess.Popen[str]:
        config = self.folder / "switch.json"
        config.write_text(json.dumps(self.config()))
        program = (*self.starting, str(native_file("fabricbench-switch")), str(config))
        process = self._start(self.in_switch(*DIES_WITH_US, *program))
        assert process.stdout is not None
        ready = process.stdout.readline()
        if ready != "ready\n":
            process.wait(timeout=5)
            assert process.stderr is not None
            raise AssertionError(f"the switch did not start: {process.stderr.read()}")
        return process


def _end(process: subprocess.Popen[str]) -> None:
    """End a process that the rig started, and close its pipes."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
