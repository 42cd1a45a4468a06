"""Two nodes as a cluster has them, on one machine: network, processes, host name and file systems of their own, and sshd.

Everything of a node is in its PID namespace: the end of its first process ends all of it and frees its interfaces. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parent / "node_root.sh"
CONTROL = "ctl0"
NETWORKS = {CONTROL: "10.79.0", "slow0": "10.79.1", "fast0": "10.79.2"}
"""Interfaces, the same on both nodes, and the first three numbers of their addresses; each joins the two directly."""

SLOW = ("rate", "200mbit", "burst", "20kb", "latency", "20ms")
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
"""
"""All that is not OpenSSH's own default is there because the caller is root and the keys are the test's."""


@dataclass(frozen=True)
class Node:
    """A node that runs: its name, its first process as this machine numbers it, and the folder behind its /srv."""

    name: str
    pid: int
    disk: Path

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
            env={
                **os.environ,
                "HOME": "/root",
                "USER": "root",
                "LC_ALL": "C.UTF-8",
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            },
        )


def why_none() -> str | None:
    """Return why no such nodes can be had here, None if they can; openssh-server is installed where apt and root are there."""
    if os.geteuid() != 0:
        return "two nodes with sshd need root"
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
def two_nodes(folder: Path, seen: Sequence[Path]) -> Iterator[tuple[Node, Node]]:
    """Give nodes c1 and c2 that reach each other by ssh and over `slow0` and `fast0`; `seen` are folders that both may read."""
    names = ("c1", "c2")
    etc = _make_etc(folder / "etc", names)
    with ExitStack() as stack:
        nodes = tuple(stack.enter_context(_node(folder, name, etc, seen)) for name in names)
        _join(nodes[0], nodes[1])
        for node in nodes:
            stack.enter_context(_sshd(node, folder / f"sshd.{node.name}.log"))
        _wait_for_ssh(nodes[0], names)
        yield nodes[0], nodes[1]


def _make_etc(etc: Path, names: Sequence[str]) -> Path:
    """Make what is put over the nodes' copies of /etc: names and keys, the same on both."""
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
        (child,) = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        yield Node(name, int(child), disk)
    finally:
        outer.kill()  # --kill-child: the first process of the namespaces goes with it, and the kernel ends the rest
        outer.wait(START_SECONDS)
        for stream in (outer.stdout, outer.stderr):
            if stream is not None:
                stream.close()
        # An environment with all packages is large; what was mounted in there is gone with the node.
        shutil.rmtree(folder / name, ignore_errors=True)


def _join(one: Node, other: Node) -> None:
    for interface, network in NETWORKS.items():
        _ip(one, "link", "add", interface, "type", "veth", "peer", "name", interface, "netns", str(other.pid))
        for number, node in enumerate((one, other), start=1):
            _ip(node, "addr", "add", f"{network}.{number}/24", "dev", interface)
            _ip(node, "link", "set", interface, "up")
    for node in (one, other):
        _ip(node, "link", "set", "lo", "up")
        done = node.run("tc", "qdisc", "add", "dev", "slow0", "root", "tbf", *SLOW)
        assert done.returncode == 0, done.stderr


def _ip(node: Node, *tokens: str) -> None:
    # This machine's PID numbers are those of its own PID namespace, which `netns PID` reads: so only the network is entered.
    done = node.run("ip", *tokens, namespaces=("--net",))
    assert done.returncode == 0, f"ip {' '.join(tokens)}: {done.stderr}"


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
    for name in names:
        while (done := node.run("ssh", "-o", "BatchMode=yes", name, "hostname")).stdout.strip() != name:
            if time.monotonic() > until:
                raise RuntimeError(f"no ssh to {name}: {done.stderr}")
            time.sleep(0.2)


def python_folders() -> list[Path]:
    """Return what a node must see besides the system's programs so that this Python runs there."""
    base = Path(sys.base_prefix)
    return [] if base.is_relative_to("/usr") else [base]
