"""The keeper: PID 1 of a lab, started by `Lab.up` as `python -m fabricbench.lab.keeper`.

Reads its order (JSON, one line) from stdin, makes namespaces, forks the nodes, lays the links, starts the switches, says
`{"ready": ...}` or `{"failed": ...}` on stdout, and waits. When it dies, the kernel ends every process and frees every
interface of the lab. Until it reads `stay` on stdin it dies with the process that holds the other end: so a caller that
is killed leaves nothing behind, and a lab that is owned never gets the word.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

from fabricbench.lab import guest, namespaces
from fabricbench.lab.node import NodeOrder, become_node, quieten_network, turn_offloads_off
from fabricbench.lab.process import told_exit_code
from fabricbench.lab.sender_limit import sender_limit
from fabricbench.lab.topology import CONTROL_INTERFACE, CONTROL_MTU, KEPT_FILES, STAY, KeeperOrder, LabTopology

_BRIDGE = "control"
_TIMEOUT_S = 20.0
"""That a node or a switch of a small lab has; `_patience` says what it has among many, which share the processors."""
_TIMEOUT_OF_EACH_S = 0.25
_GUEST_TIMEOUT_S = 40.0


@dataclass(frozen=True)
class HeldNode:
    """A node being made: its PID inside, and the socket to it."""

    name: str
    pid: int
    talk: socket.socket
    patience_s: float

    def expect(self, expected: bytes) -> None:
        """Wait until the node says a word. Raises RuntimeError with what it said in its place, or that it said nothing."""
        self.talk.settimeout(self.patience_s)
        try:
            said = self.talk.recv(4096)
        except TimeoutError:
            raise RuntimeError(
                f"node {self.name} was not {expected.decode()} after {self.patience_s:.0f} s: is the machine too busy for so many?"
            ) from None
        if said != expected:
            raise RuntimeError(said.decode(errors="replace") or f"node {self.name} ended early")


def main() -> None:
    """Become the keeper of a lab."""
    order = KeeperOrder.model_validate_json(_read_line())
    flags = (
        namespaces.CLONE_NEWNET
        | namespaces.CLONE_NEWNS
        | namespaces.CLONE_NEWPID
        | namespaces.CLONE_NEWUTS
        | namespaces.CLONE_NEWIPC
    )
    try:
        if order.has_root:
            namespaces.unshare(flags)
        else:
            namespaces.enter_user_namespace(flags)
    except OSError as error:
        _say({"failed": f"cannot make namespaces: {error}"})
        sys.exit(1)
    hearing, telling = os.pipe()
    pid = os.fork()
    if pid:
        os.close(telling)
        _say({"keeper": pid})
        _stay_until_it_has_said(pid, hearing)
        os._exit(0)
    os.close(hearing)
    try:
        _say({"ready": _realise(order)})
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller must hear of it
        _say({"failed": str(error) or repr(error)})
        os._exit(1)
    finally:
        os.write(telling, b".")
        os.close(telling)
    _keep()


def _stay_until_it_has_said(keeper: int, hearing: int) -> None:
    """Wait until the keeper has said how its start went, or say in its place which signal kept it from that."""
    if os.read(hearing, 1):
        return
    code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    with suppress(BrokenPipeError):  # a caller that is gone needs no word
        _say({"failed": f"its keeper ended {told_exit_code(code)}"})


def _realise(order: KeeperOrder) -> dict[str, object]:
    topology = order.topology
    namespaces.keep_mounts_private()
    namespaces.mount_fresh("proc", "/proc")
    socket.sethostname(f"lab-{topology.name}"[:63])
    os.sched_setaffinity(0, topology.node_cpus)
    # Forked before there is a thread and a netlink socket; the time unwatched until then is a few milliseconds.
    nodes = [_fork_node(order, index) for index in range(len(topology.nodes))]
    threading.Thread(target=_die_with_the_caller, daemon=True).start()
    quieten_network()
    for node in nodes:
        node.expect(b"here")
    _lay_links(topology, nodes)
    for node in nodes:
        node.talk.sendall(b"links are there")
    switches = {planned.fabric.name: _start_switch(order, index) for index, planned in enumerate(topology.fabrics)}
    for node in nodes:
        node.expect(b"done")
        node.talk.close()
    for name, switch in switches.items():
        _wait_until_ready(name, switch, order.switch_file(name, "log"), _patience(order))
    guests = {} if order.guest_kernel is None else _boot_guests(order, order.guest_kernel, nodes)
    return {
        "nodes": {node.name: node.pid for node in nodes},
        "switches": {name: switch.pid for name, switch in switches.items()},
        "guests": {name: process.pid for name, process in guests.items()},
    }


def _boot_guests(order: KeeperOrder, kernel: Path, nodes: list[HeldNode]) -> dict[str, subprocess.Popen[bytes]]:
    """Boot a guest in each node, all at once, and wait until each has its devices."""
    booted = {held.name: _boot_guest(order, kernel, index, held) for index, held in enumerate(nodes)}
    for name, process in booted.items():
        _wait_until_up(name, process, guest.folder_of(order.directory, name))
    return booted


def _boot_guest(order: KeeperOrder, kernel: Path, index: int, held: HeldNode) -> subprocess.Popen[bytes]:
    folder = guest.folder_of(order.directory, held.name)
    (folder / "init").write_text(guest.init_script(folder, held.name, order.hosts))
    (folder / "init").chmod(0o755)
    (folder / "network").write_text(guest.network_batch(order.topology, index))
    (folder / "devices").write_text(guest.device_batch(order.topology))
    (folder / "cpuinfo").write_text(Path("/proc/cpuinfo").read_text())
    inside = ("nsenter", "--target", str(held.pid), "--net", "--uts", "--ipc", "--mount", "--")
    preload = {} if order.guest_preload is None else {"LD_PRELOAD": str(order.guest_preload)}
    with (folder / "console").open("wb") as console:
        return subprocess.Popen(
            [*inside, *guest.kernel_tokens(kernel, folder, order.topology, index)],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder / "memory"), **preload},
        )


def _wait_until_up(name: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _GUEST_TIMEOUT_S
    while not (folder / guest.IS_UP).exists():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            said = (folder / "console").read_text(errors="replace").strip()[-2000:]
            how = "ended" if ended else f"is not up after {_GUEST_TIMEOUT_S:.0f} s"
            raise RuntimeError(f"the guest of {name} {how}: {said or 'it said nothing'}")
        time.sleep(0.02)
    failed = folder / guest.FAILED
    if failed.exists():
        raise RuntimeError(f"the guest of {name} did not get {failed.read_text(errors='replace').strip()}")


def _fork_node(order: KeeperOrder, index: int) -> HeldNode:
    limits = tuple(sender_limit(planned.fabric, index) for planned in order.topology.fabrics)
    ours, theirs = socket.socketpair()
    name = order.topology.nodes[index].name
    folder = None if order.guest_kernel is None else guest.folder_of(order.directory, name)
    node = NodeOrder(order.topology, index, limits, order.hosts, has_rps=order.has_root, guest=folder)
    pid = os.fork()
    if pid == 0:
        ours.close()
        become_node(node, theirs)
    theirs.close()
    return HeldNode(node.node.name, pid, ours, _patience(order))


def _lay_links(topology: LabTopology, nodes: list[HeldNode]) -> None:
    with IPRoute() as network:
        network.link("add", ifname=_BRIDGE, kind="bridge")
        bridge = socket.if_nametoindex(_BRIDGE)
        network.link("set", index=bridge, state="up")
        for index, (planned, held) in enumerate(zip(topology.nodes, nodes, strict=True)):
            port = _link(network, f"ctl-n{index}", CONTROL_INTERFACE, planned.control_mac, node=held, mtu=CONTROL_MTU)
            network.link("set", index=port, master=bridge, state="up")
            for fabric, mac in zip(topology.fabrics, planned.fabric_macs, strict=True):
                outer = fabric.switch_interfaces[index]
                port = _link(network, outer, fabric.interface, mac, node=held, mtu=fabric.fabric.mtu)
                turn_offloads_off(outer)
                network.link("set", index=port, state="up")


def _link(network: IPRoute, outer: str, inner: str, mac: str, *, node: HeldNode, mtu: int) -> int:
    peer = {"ifname": inner, "net_ns_pid": node.pid, "address": mac, "mtu": mtu}
    network.link("add", ifname=outer, kind="veth", mtu=mtu, peer=peer)
    return socket.if_nametoindex(outer)


def _start_switch(order: KeeperOrder, index: int) -> subprocess.Popen[bytes]:
    planned = order.topology.fabrics[index]
    name = planned.fabric.name
    configuration = order.switch_file(name, "json")
    files = {what: order.switch_file(name, suffix) for what, suffix in KEPT_FILES.items()}
    configuration.write_text(json.dumps(order.topology.switch_configuration(index, files), indent=1))
    with order.switch_file(name, "log").open("wb") as log:
        return subprocess.Popen(
            [str(order.switch_program), str(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Return what is known of a process that said nothing: whoever ran out of memory, or was killed, could not."""
    try:
        code = process.wait(1.0)
    except subprocess.TimeoutExpired:
        return "it said nothing, and still runs"
    return f"it said nothing, and ended {told_exit_code(code)}"


def _patience(order: KeeperOrder) -> float:
    return _TIMEOUT_S + _TIMEOUT_OF_EACH_S * len(order.topology.nodes)


def _wait_until_ready(name: str, switch: subprocess.Popen[bytes], log: Path, patience_s: float) -> None:
    if switch.stdout is None:
        raise RuntimeError(f"the switch of {name} has no output")
    deadline = time.monotonic() + patience_s
    said = b""
    while b"ready" not in said:
        readable, _, _ = select.select([switch.stdout], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(switch.stdout.fileno(), 4096) if readable else b""
        if not piece:
            tail = log.read_text(errors="replace")[-2000:].strip()
            raise RuntimeError(f"the switch of {name} did not start: {tail or _how_it_ended(switch)}")
        said += piece


def _die_with_the_caller() -> None:
    with suppress(MemoryError):  # whoever cannot listen to the caller ends as if he were gone
        said = b"\n"
        while said:
            said = _read_line()
            if said == STAY:
                return
    os._exit(1)  # the end of PID 1 is the end of everything in the lab


def _keep() -> None:
    """Reap whatever dies in the lab, for ever. The nodes' holders never end, so there is always a child to wait for."""
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, sys.stdout.fileno())
    while True:
        try:
            os.wait()
        except ChildProcessError:
            os._exit(1)


def _read_line() -> bytes:
    """Read stdin up to a line's end, unbuffered: what follows is for another reader. Empty when the other end is gone."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return line


def _say(message: dict[str, object]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
