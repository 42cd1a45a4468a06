"""Four nodes as a cluster has them, on one machine: network, processes, host name and file systems of their own, and sshd.

Everything of a node is in its PID namespace: the end of its first process ends all of it and frees its interfaces. The nodes, and a
head that is none of them, are joined by a bridge for each network in a switch's own namespace. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "node_root.sh"

NODES = ("c1", "c2", "c3", "c4")
HEAD = "head"
"""Reaches the nodes over the control network by ssh, and is on no fabric."""

CONTROL, SLOW, FAST = "ctl0", "slow0", "fast0"
NETWORKS = {CONTROL: "10.79.0", SLOW: "10.79.1", FAST: "10.79.2"}
"""Interfaces, the same on each node, and the first three numbers of their addresses; c1 ends in 1, c4 in 4, the head in 5."""

RATES_BIT_S = {SLOW: 200_000_000, FAST: 1_000_000_000}
"""What each fabric's links carry, in each direction."""

SESSIONS_DIFFER_BY = 0.25
"""Of ratios of two sessions. An interval of one session's launches does not hold the ratio of another: sessions differ by more than
their launches do (9 % were seen).
"""

BURST_SECONDS, LEAST_BURST_BYTES = 0.001, 16_384
"""What passes at once, by the rate: a timer that is late by less keeps the rate, and a message of less is not slowed down."""

QUEUE_SECONDS = 0.02
PORT_MTU = 9000
"""A switch's ports carry whatever the nodes send."""

START_SECONDS = 20.0
SSHD = "/usr/sbin/sshd"

SSHD_CONFIG = """\
Port 22
HostKey /etc/ssh/cluster/host_key
AuthorizedKeysFile /etc/ssh/cluster/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile none
MaxStartups 100
"""
"""All that is not OpenSSH's own default is there because the caller is root and the keys are the test's."""


@dataclass(frozen=True)
class Node:
    """A node that runs: its name, its first process as this machine numbers it, and the folder behind its /srv."""

    name: str
    pid: int
    disk: Path
    outer: subprocess.Popen[str]

    def inside(self, *namespaces: str) -> list[str]:
        """Return the tokens before a command that runs in some of the node's namespaces (`--net`), by default in all."""
        return ["nsenter", f"--target={self.pid}", *(namespaces or ("--mount", "--uts", "--ipc", "--net", "--pid"))]

    def run(
        self, *tokens: str, seconds: float = 60, namespaces: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there as a user who has logged in would, and return what it said; it may fail."""
        return subprocess.run(
            [*self.inside(*namespaces), *tokens],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd="/",
            env=self.environment,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What a user who has logged in there finds."""
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return {**os.environ, "HOME": "/root", "USER": "root", "LC_ALL": "C.UTF-8", "PATH": path}

    def said(self, *tokens: str, seconds: float = 300) -> str:
        """Return what a command says there, once it has ended well."""
        done = self.run(*tokens, seconds=seconds)
        assert done.returncode == 0, f"{tokens[0]} on {self.name} ended with {done.returncode}: {done.stderr[-3000:]}"
        return done.stdout

    def put(self, path: str, text: str) -> None:
        """Write a file there."""
        self.said("sh", "-c", 'mkdir -p "$(dirname "$2")" && printf %s "$1" > "$2"', "sh", text, path)

    def end(self) -> None:
        """Take its power away: no process of it lives on and no interface, and it says nothing more to anybody."""
        self.outer.kill()  # --kill-child: the first process of the namespaces goes with it, and the kernel ends the rest
        self.outer.wait(START_SECONDS)


@dataclass(frozen=True)
class Cluster:
    """Nodes that run, the head, and a folder that all see at the same path and none may write to: what is installed."""

    nodes: tuple[Node, ...]
    head: Node
    shared: Path

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return next(node for node in (*self.nodes, self.head) if node.name == name)


def why_none() -> str | None:
    """Return why no such nodes can be had here, None if they can; openssh-server is installed where apt and root are there."""
    if os.geteuid() != 0:
        return "nodes with sshd need root"
    missing = [tool for tool in ("unshare", "nsenter", "ip", "tc", "ssh-keygen", "ssh") if shutil.which(tool) is None]
    if missing:
        return f"not on PATH: {', '.join(missing)}"
    if not Path(SSHD).exists() and shutil.which("apt-get") is not None:
        # Where packages start services, this machine must not get an sshd of its own out of a test.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for tokens in (["update"], ["install", "-y", "--no-install-recommends", "openssh-server"]):
            done = subprocess.run(
                ["apt-get", "-q", *tokens], capture_output=True, text=True, timeout=180, check=False, env=environment
            )
            if done.returncode:
                return f"openssh-server could not be installed: {done.stderr.strip()[-300:]}"
    if not Path(SSHD).exists():
        return f"there is no {SSHD} (Debian: apt-get install openssh-server)"
    probe = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return None if probe.returncode == 0 else f"no namespaces can be had here: {probe.stderr.strip()[-300:]}"


@contextmanager
def four_nodes(folder: Path, seen: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Give nodes c1 to c4 and a head; all reach each other by ssh, the nodes also over `slow0` and `fast0`.

    `seen` are further folders that all may read; `installed_here` are those of fabricbench as it was built here.
    """
    names = (*NODES, HEAD)
    shared = folder / "shared"
    shared.mkdir()
    etc = _make_etc(folder / "etc", names)
    with ExitStack() as stack:
        switch = stack.enter_context(_switch())
        found = tuple(stack.enter_context(_node(folder, name, etc, (shared, *seen))) for name in names)
        _join(switch, found)
        for node in found:
            stack.enter_context(_sshd(node, folder / f"sshd.{node.name}.log"))
        _wait_for_ssh(found[-1], names)
        yield Cluster(found[:-1], found[-1], shared)


def set_rate(node: Node, interface: str, rate_bit_s: int) -> None:
    """Let a node send at another rate on one interface."""
    _batch(node.pid, "tc", [f"qdisc replace dev {interface} root {_shaper(rate_bit_s)}"])


def _make_etc(etc: Path, names: Sequence[str]) -> Path:
    """Make what is put over the nodes' copies of /etc: names and keys, the same on all."""
    client = etc / "ssh/cluster/client"
    client.mkdir(parents=True)
    keys = etc / "ssh/cluster"
    for path in (keys / "host_key", client / "id_ed25519"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)],
            check=True,
            timeout=20,
            capture_output=True,
        )
    shutil.copy(client / "id_ed25519.pub", keys / "authorized_keys")
    host_key = " ".join((keys / "host_key.pub").read_text().split()[:2])
    (client / "known_hosts").write_text("".join(f"{name} {host_key}\n" for name in names))
    (keys / "sshd_config").write_text(SSHD_CONFIG)
    hosts = [f"{NETWORKS[CONTROL]}.{number} {name}\n" for number, name in enumerate(names, start=1)]
    (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(hosts))
    return etc


@contextmanager
def _node(folder: Path, name: str, etc: Path, seen: Sequence[Path]) -> Iterator[Node]:
    root, disk = folder / name / "root", folder / name / "disk"
    root.mkdir(parents=True)
    disk.mkdir()
    outer = subprocess.Popen(
        [
            *("unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"),
            *("sh", "-c", 'hostname "$1" && shift && exec sh "$@"', "sh", name),
            *(str(SCRIPT), str(root), str(disk), str(etc), *(str(path) for path in seen)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert outer.stdout is not None
        if outer.stdout.readline() != "ready\n":
            outer.wait(START_SECONDS)
            raise RuntimeError(f"node {name} did not start: {outer.stderr.read() if outer.stderr else ''}")
        yield Node(name, _first_process(outer.pid), disk, outer)
    finally:
        outer.kill()
        outer.wait(START_SECONDS)
        for stream in (outer.stdout, outer.stderr):
            if stream is not None:
                stream.close()
        # An environment with all packages is large; what was mounted in there is gone with the node.
        shutil.rmtree(folder / name, ignore_errors=True)


def _first_process(outer: int) -> int:
    (child,) = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    return int(child)


@contextmanager
def _switch() -> Iterator[int]:
    """Give the first process of a network namespace with a bridge for each network, as this machine numbers it."""
    outer = subprocess.Popen(
        ["unshare", "--net", "--fork", "--kill-child", "sh", "-c", "echo ready; sleep 3600"], stdout=-1
    )
    try:
        assert outer.stdout is not None
        assert outer.stdout.readline() == b"ready\n"
        pid = _first_process(outer.pid)
        _batch(
            pid,
            "ip",
            [
                line
                for network in NETWORKS
                for line in (f"link add {network} type bridge mcast_snooping 0", f"link set {network} up")
            ],
        )
        yield pid
    finally:
        outer.kill()
        outer.wait(START_SECONDS)
        if outer.stdout is not None:
            outer.stdout.close()


def _join(switch: int, nodes: Sequence[Node]) -> None:
    """Give each node a link to the bridge of each network, the head to the control network's alone."""
    wires = [
        (number, node, interface)
        for number, node in enumerate(nodes, start=1)
        for interface in (NETWORKS if node.name != HEAD else (CONTROL,))
    ]
    _batch(
        switch,
        "ip",
        [
            line
            for _, node, interface in wires
            for line in (
                f"link add {interface}.{node.name} type veth peer name {interface} netns {node.pid}",
                f"link set {interface}.{node.name} mtu {PORT_MTU} master {interface} up",
            )
        ],
    )
    shaped = [(node, interface) for _, node, interface in wires if interface in RATES_BIT_S]
    _batch(
        switch,
        "tc",
        [f"qdisc add dev {interface}.{node.name} root {_shaper(RATES_BIT_S[interface])}" for node, interface in shaped],
    )
    for number, node in enumerate(nodes, start=1):
        mine = [interface for _, other, interface in wires if other is node]
        _batch(
            node.pid,
            "ip",
            [
                *(f"addr add {NETWORKS[interface]}.{number}/24 dev {interface}" for interface in mine),
                *(f"link set {interface} up" for interface in ("lo", *mine)),
            ],
        )
        rates = [interface for interface in mine if interface in RATES_BIT_S]
        _batch(
            node.pid,
            "tc",
            [f"qdisc add dev {one} root {_shaper(RATES_BIT_S[one])}" for one in rates],
        )


def _shaper(rate_bit_s: int) -> str:
    burst = max(LEAST_BURST_BYTES, int(rate_bit_s / 8 * BURST_SECONDS))
    return f"tbf rate {rate_bit_s} burst {burst} latency {QUEUE_SECONDS * 1000:g}ms"


def _batch(pid: int, program: str, lines: Sequence[str]) -> None:
    # This machine's PID numbers are those of its own PID namespace, which `netns PID` reads: so only the network is entered.
    done = subprocess.run(
        ["nsenter", f"--target={pid}", "--net", program, "-batch", "-"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{program}: {done.stderr}"


@contextmanager
def _sshd(node: Node, log: Path) -> Iterator[None]:
    with log.open("w") as out:
        # sshd asks for its full path, and re-executes itself for each connection.
        server = subprocess.Popen(
            [*node.inside(), SSHD, "-D", "-e", "-f", "/etc/ssh/cluster/sshd_config"], stdout=out, stderr=out, cwd="/"
        )
    try:
        yield
    finally:
        server.terminate()
        server.wait(START_SECONDS)


def _wait_for_ssh(node: Node, names: Sequence[str]) -> None:
    until = time.monotonic() + START_SECONDS

    def wait(name: str) -> None:
        while (done := node.run("ssh", "-o", "BatchMode=yes", name, "hostname")).stdout.strip() != name:
            if time.monotonic() > until:
                raise RuntimeError(f"no ssh to {name}: {done.stderr}")
            time.sleep(0.2)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(wait, names))


def python_folders() -> list[Path]:
    """Return what a node must see besides the system's programs so that this Python runs there."""
    base = Path(sys.base_prefix)
    return [] if base.is_relative_to("/usr") else [base]


def installed_here() -> list[Path]:
    """Return what a node must see so that fabricbench runs there as it was built here, from `sys.prefix`: nothing to install."""
    environment = Path(sys.prefix)
    return [*python_folders(), REPOSITORY, *([] if environment.is_relative_to(REPOSITORY) else [environment])]
