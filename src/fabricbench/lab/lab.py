"""A lab as its users see it: started, opened, entered, looked at, ended.

Entering a node is a chain of small programs of util-linux and coreutils, each of which becomes the next; the kernel's own
permission checks apply, and no daemon of ours takes commands.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.interpreter import python
from fabricbench.lab import guest, ledger
from fabricbench.lab.agent import agent_of_guests, agent_of_nodes, cpu_list
from fabricbench.lab.fabric import EmulatedFabric
from fabricbench.lab.ledger import LedgerEntry
from fabricbench.lab.process import (
    ProcessIdentity,
    identify,
    inner_pids,
    members_of_namespaces,
    namespace_of,
    told_exit_code,
    wait_for_all,
)
from fabricbench.lab.rdma import needed_rdma
from fabricbench.lab.status import LabStatus, LatenessDuring, Span, read_crossings, read_lateness, read_status
from fabricbench.lab.support import needed_support
from fabricbench.lab.topology import (
    CONTROL_INTERFACE,
    CROSSINGS_FILE,
    LATENESS_FILE,
    STAY,
    KeeperOrder,
    LabTopology,
    plan_lab,
    switch_file,
)
from fabricbench.native import native_file
from fabricbench.testbed.model import Lost, Testbed

_START_TIMEOUT_S = 60.0
_START_TIMEOUT_OF_A_NODE_S = 0.5
_END_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Lab:
    """A running lab. `dropped` names the stale entries that its start found and removed."""

    name: str
    entry: LedgerEntry
    lifeline: int | None = None
    dropped: tuple[str, ...] = ()

    @classmethod
    def up(
        cls,
        name: str,
        nodes: int,
        fabrics: Sequence[EmulatedFabric],
        *,
        owned: bool,
        rdma: bool = False,
        rdma_kernel: Path | None = None,
        own_cpus: bool | None = None,
    ) -> Self:
        """Start a lab of `nodes` nodes joined by `fabrics`; with `owned` it dies with this process.

        With `rdma` its nodes have RDMA devices over each fabric; `rdma_kernel` is that of the guests that they are then.
        `own_cpus`: whether each node has processors of its own; None: where there are enough.

        Raises UsageError where the name is taken or the request cannot be, EnvironmentLacks where the machine does not allow it.
        """
        ledger.check_name(name)
        cpus = sorted(os.sched_getaffinity(0))
        plan_lab(
            name, nodes, fabrics, cpus, own_cpus=own_cpus
        )  # what cannot be is refused before anything is looked at
        support = needed_support()
        switch = native_file("fabricbench-switch")
        means = needed_rdma(rdma_kernel, has_root=support.mode == "root") if rdma else None
        with ledger.locked():
            dropped = ledger.drop_stale()
            directory = ledger.directory_of(name)
            if directory.exists():
                raise UsageError(
                    f"a lab {name!r} runs already",
                    hint=f"end it (`fabricbench lab down {name}`) or choose another name",
                )
            directory.mkdir(mode=0o700)
            taken = {cpu: len(labs) for cpu, labs in _switch_cpus().items()}
            topology = plan_lab(name, nodes, fabrics, cpus, taken, means.by if means else None, own_cpus)
            order = KeeperOrder(
                topology=topology,
                has_root=support.mode == "root",
                directory=directory,
                switch_program=switch,
                guest_kernel=means.kernel if means else None,
                guest_preload=_guest_preload() if means and means.kernel else None,
            )
            entry, lifeline = _start(order, owned=owned)
        return cls(name, entry, lifeline, tuple(dropped))

    @classmethod
    def open(cls, name: str) -> Self:
        """Return the running lab of that name; UsageError names the ones that run."""
        ledger.check_name(name)
        entry = ledger.read(name)
        if entry is None or not entry.nodes or not entry.keeper.is_alive:
            running = running_labs()
            known = (
                f"running: {', '.join(running)}" if running else "none is running; start one with `fabricbench lab up`"
            )
            raise UsageError(f"no lab {name!r}", hint=known)
        return cls(name, entry)

    @property
    def topology(self) -> LabTopology:
        """The plan that the lab was made from."""
        return self.entry.topology

    @property
    def directory(self) -> Path:
        """Where the ledger keeps the lab's files and logs; seen inside the nodes at the same path."""
        return ledger.directory_of(self.name)

    @property
    def keeper(self) -> ProcessIdentity:
        """The process that the lab ends with."""
        return self.entry.keeper

    @property
    def agent(self) -> Path:
        """The ssh-like program that MPI's starters use inside the lab to reach the other nodes."""
        return self.directory / "agent"

    @property
    def control_interface(self) -> str:
        """The interface of the control network on each node."""
        return CONTROL_INTERFACE

    def testbed(self) -> Testbed:
        """Return the testbed that the lab is; its fabrics are marked as emulated."""
        return self.topology.testbed()

    def command_in(
        self, node: str, command: Sequence[str], *, working_directory: Path, environment: Mapping[str, str]
    ) -> list[str]:
        """Return the tokens that, run outside, execute `command` inside a node, on the nodes' processors.

        `environment` is added to the caller's. The command ends with TERM when its starter dies. In a lab of guests it runs in the
        node's guest, without a stdin. UsageError: no such node.
        """
        holder = self.entry.nodes.get(node)
        if holder is None:
            raise UsageError(f"lab {self.name} has no node {node!r}", hint=f"there are {', '.join(self.entry.nodes)}")
        if node in self.entry.guests:
            folder = guest.folder_of(self.directory, node)
            return guest.entry_tokens(command, folder, self.entry.guests[node].pid, working_directory, environment)
        return command_from_outside(
            holder.pid,
            command,
            has_root=self.entry.has_root,
            cpus=self.topology.cpus_of(node),
            working_directory=working_directory,
            environment=environment,
        )

    def command_in_each(self, nodes: Sequence[str], module: str, arguments: Sequence[str]) -> list[str] | None:
        """Return the tokens that, run outside, run a module of ours in each of these nodes, whose lines come behind `NODE: `.

        None in a lab of guests, whose kernels share nothing.
        """
        from fabricbench.lab.each_node import Order, Seat  # noqa: PLC0415 - a program is not imported before it is run

        if self.entry.guests or not nodes:
            return None
        seats = {node: Seat(pid=self.entry.inner_pids[node], cpus=self.topology.cpus_of(node)) for node in nodes}
        order = Order(module=module, arguments=tuple(arguments), nodes=seats)
        program = python(Order.__module__, order.model_dump_json())
        return self.command_in(nodes[0], program, working_directory=Path("/"), environment={})

    def status(self) -> LabStatus:
        """Return nodes, addresses and what each switch has counted so far."""
        return read_status(self.entry, self.directory)

    def processes(self, needed: str | None = None) -> dict[int, str]:
        """Return the keeper, the guests, and the switches, or that of the `needed` fabric alone: PID -> what it is."""
        switches = {
            one.pid: f"the switch of {fabric} in lab {self.name}"
            for fabric, one in self.entry.switches.items()
            if needed in (None, fabric)
        }
        guests = {one.pid: f"the guest of {node} in lab {self.name}" for node, one in self.entry.guests.items()}
        return {self.entry.keeper.pid: f"the keeper of lab {self.name}", **switches, **guests}

    def lost(self, needed: str | None = None) -> Lost | None:
        """Return which process of the lab has ended though nobody ended the lab; None while all live.

        Of the switches only that of the fabric that is `needed` counts, where one is named.
        """
        up = f"`fabricbench lab up {self.name}` with the same nodes and fabrics"
        if not self.entry.keeper.is_alive:
            what = f"the keeper of lab {self.name} (process {self.entry.keeper.pid}) has ended, and the lab with it"
            return Lost(what=what, action="" if self.entry.is_owned else up)
        parts = (
            *((f"node {node} of lab {self.name}", one, "") for node, one in self.entry.nodes.items()),
            *((f"the guest of {node} in lab {self.name}", one, "") for node, one in self.entry.guests.items()),
            *((f"the switch of {name} in lab {self.name}", one, name) for name, one in self.entry.switches.items()),
        )
        for part, process, fabric in parts:
            if not process.is_alive and needed in (None, fabric or needed):
                what = f"{part} (process {process.pid}) has ended"
                action = "" if self.entry.is_owned else f"`fabricbench lab down {self.name}`, then {up}"
                return Lost(what=what, action=action, fabric=fabric)
        return None

    def stopped(self) -> Lost | None:
        """Return which process of the lab stands still, so that a launch would stand still with it; None while all go on."""
        for process in (self.entry.keeper, *self.entry.switches.values(), *self.entry.guests.values()):
            if process.is_stopped:
                what = f"{self.processes()[process.pid]} (process {process.pid}) is stopped"
                return Lost(what=what, action=f"let it go on: `kill -CONT {process.pid}`")
        return None

    def lateness(self, interface: str, spans: Mapping[int, Span]) -> dict[int, LatenessDuring]:
        """Return, for each span of time, how late the switch behind that interface released frames during it.

        A span that the switch cannot tell of is left out. What has left is on the disk once `status` has been asked.
        """
        path = self._switch_file(interface, LATENESS_FILE)
        return {} if path is None else read_lateness(path, spans)

    def crossings(self, interface: str, spans: Mapping[int, Span]) -> dict[int, list[list[int]]]:
        """Return, for each span of time, the frames of measured stages that crossed the switch behind that interface.

        As of lateness, what has left is on the disk once `status` has been asked; `read_crossings` tells the columns.
        """
        path = self._switch_file(interface, CROSSINGS_FILE)
        return {} if path is None else read_crossings(path, spans)

    def _switch_file(self, interface: str, suffix: str) -> Path | None:
        planned = next((one for one in self.topology.fabrics if one.interface == interface), None)
        return None if planned is None else switch_file(self.directory, planned.fabric.name, suffix)

    def down(self) -> None:
        """End the lab and wait until its processes and namespaces are gone. Ending one that is gone already is no error."""
        with ledger.locked():
            _end(self.entry)
            current = ledger.read(self.name)
            if current is None or current.keeper == self.entry.keeper:
                ledger.remove(self.name)
        if self.lifeline is not None:
            os.close(self.lifeline)
            object.__setattr__(self, "lifeline", None)


def running_labs() -> list[str]:
    """Return the names of the labs that run."""
    return list(ledger.living())


def crowding() -> list[str]:
    """Say which processors serve the switches of several running labs of this user; empty where each has its own."""
    return [
        f"processor {cpu} serves the switches of labs {' and '.join(sorted(labs))}, as this machine has too few for each to have "
        "its own: while several of them have traffic their frames are late"
        for cpu, labs in sorted(_switch_cpus().items())
        if len(labs) > 1
    ]


def _switch_cpus() -> dict[int, set[str]]:
    """Return the processors that switches of running labs are pinned to, with the labs' names."""
    labs: dict[int, set[str]] = {}
    for name, entry in ledger.living().items():
        for planned in entry.topology.fabrics:
            if planned.cpu is not None:
                labs.setdefault(planned.cpu, set()).add(name)
    return labs


def drop_stale_labs() -> list[str]:
    """Remove what killed processes left in the ledger and return the names."""
    with ledger.locked():
        return ledger.drop_stale()


def _start(order: KeeperOrder, *, owned: bool) -> tuple[LedgerEntry, int | None]:
    name = order.topology.name
    order.hosts.write_text(order.topology.hosts())
    if order.guest_kernel is not None:
        for node in order.topology.nodes:
            for part in (guest.COMMANDS, "memory"):
                (guest.folder_of(order.directory, node.name) / part).mkdir(parents=True)
    reading, lifeline = os.pipe()
    try:
        with (order.directory / "keeper.log").open("wb") as log:
            keeper = subprocess.Popen(
                python("fabricbench.lab.keeper"),
                cwd="/",
                stdin=reading,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        os.close(reading)
        with keeper:
            try:
                with suppress(BrokenPipeError):  # it has ended: what it said, or did not, is told next
                    os.write(lifeline, order.model_dump_json().encode() + b"\n")
                entry = _follow(keeper, order, owned=owned)
            except BaseException:
                keeper.kill()  # else it would be waited for, and one that hangs for ever
                raise
        if not owned:
            try:
                os.write(lifeline, STAY)
            except BrokenPipeError:
                raise EnvironmentLacks(f"lab {name} ended while it was started: {_log_tail(order)}") from None
            os.close(lifeline)
    except BaseException:
        os.close(lifeline)
        ledger.drop_stale()
        if ledger.directory_of(name).exists():
            ledger.remove(name)
        raise
    return entry, lifeline if owned else None


def _follow(keeper: subprocess.Popen[bytes], order: KeeperOrder, *, owned: bool) -> LedgerEntry:
    """Follow the keeper's start and write it down step by step; raises EnvironmentLacks with what it said."""
    said = _hear(keeper, order, "keeper")
    identity = _identity(int(str(said["keeper"])), order)
    entry = LedgerEntry(
        keeper=identity,
        has_root=order.has_root,
        is_owned=owned,
        owner_pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        topology=order.topology,
    )
    name = order.topology.name
    ledger.write(name, entry)
    ready = _hear(keeper, order, "ready")["ready"]
    if not isinstance(ready, dict):
        raise EnvironmentLacks(f"lab {name}: the keeper said {ready!r}")
    outer = inner_pids(identity.pid)
    agent = order.directory / "agent"
    addresses = {node.name: (node.control_address, *node.fabric_addresses) for node in order.topology.nodes}
    agent.write_text(
        agent_of_guests(addresses, order.directory)
        if ready["guests"]
        else agent_of_nodes(ready["nodes"], addresses, {node: order.topology.cpus_of(node) for node in ready["nodes"]})
    )
    agent.chmod(0o755)
    entry = entry.model_copy(
        update={
            "nodes": {
                node: _identity_inside(pid, outer, f"node {node}", order) for node, pid in ready["nodes"].items()
            },
            "inner_pids": ready["nodes"],
            "switches": {
                fabric: _identity_inside(pid, outer, f"the switch of {fabric}", order)
                for fabric, pid in ready["switches"].items()
            },
            "guests": {
                node: _identity_inside(pid, outer, f"the guest of {node}", order)
                for node, pid in ready["guests"].items()
            },
        }
    )
    ledger.write(name, entry)
    return entry


def _guest_preload() -> Path | None:
    """Return the library that guests need on processors with much vector state; it is built where there are guests."""
    try:
        return native_file("libfabricbench-guest.so")
    except EnvironmentLacks:
        return None


def _identity(pid: int, order: KeeperOrder) -> ProcessIdentity:
    identity = identify(pid)
    if identity is None:
        raise EnvironmentLacks(f"lab {order.topology.name} ended while it was started: {_log_tail(order)}")
    return identity


def _identity_inside(pid: int, outer: Mapping[int, int], what: str, order: KeeperOrder) -> ProcessIdentity:
    """Return a process of the lab by its PID inside; EnvironmentLacks where it is gone already."""
    if pid not in outer:
        raise EnvironmentLacks(f"lab {order.topology.name} did not start: {what} ended meanwhile: {_log_tail(order)}")
    return _identity(outer[pid], order)


def _hear(keeper: subprocess.Popen[bytes], order: KeeperOrder, expected: str) -> dict[str, object]:
    if keeper.stdout is None:
        raise EnvironmentLacks("the keeper has no output")
    line = b""
    patience_s = _START_TIMEOUT_S + _START_TIMEOUT_OF_A_NODE_S * len(order.topology.nodes)
    deadline = time.monotonic() + patience_s
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([keeper.stdout], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(keeper.stdout.fileno(), 1) if readable else b""
        if not piece:
            ended = f"its keeper ended {told_exit_code(keeper.wait(patience_s))}" if readable else ""
            reason = ended or f"nothing came within {patience_s:.0f} s"
            raise EnvironmentLacks(f"lab {order.topology.name} did not start: {reason}: {_log_tail(order)}")
        line += piece
    said: dict[str, object] = json.loads(line)
    if expected not in said:
        raise EnvironmentLacks(
            f"lab {order.topology.name} did not start: {said.get('failed', said)}",
            hint="see `fabricbench lab presets` for what can be asked for, and docs/lab.md for what a machine must allow",
        )
    return said


TRACEBACK = "Traceback (most recent call last)"


def _log_tail(order: KeeperOrder) -> str:
    try:
        text = (order.directory / "keeper.log").read_text(errors="replace").strip()
    except OSError:
        text = ""
    if TRACEBACK in text:  # its last line says what the system refused: descriptors, memory
        return text.splitlines()[-1]
    return text[-2000:] or "the keeper's log is empty"


def _end(entry: LedgerEntry) -> None:
    # Those that entered a node from outside are not in the keeper's PID namespace, but hold the network namespaces.
    homes = {
        home
        for process in (entry.keeper, *entry.nodes.values())
        if process.is_alive and (home := namespace_of(process.pid, "net"))
    }
    members = members_of_namespaces("net", homes)
    entry.keeper.kill()
    left = wait_for_all([entry.keeper, *members], _END_TIMEOUT_S)
    if left:
        raise EnvironmentLacks(
            f"processes of the lab did not end within {_END_TIMEOUT_S:.0f} s: {', '.join(str(one.pid) for one in left)}",
            hint="run the command again; a process stuck in the kernel ends when its device answers",
        )


_DIES_WITH_ITS_STARTER = ["setpriv", "--pdeathsig", "TERM"]
"""nsenter stays outside and waits; without this the command would outlive a killed nsenter."""


def command_from_outside(
    holder_pid: int,
    command: Sequence[str],
    *,
    has_root: bool,
    cpus: Sequence[int],
    working_directory: Path,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the tokens that run `command` inside the node held by `holder_pid`, on the nodes' processors.

    `environment` is added to the caller's. Ctrl-C reaches the command and only it: nsenter must live to pass its exit code on.
    """
    user = [] if has_root else ["--user", "--preserve-credentials"]
    return [
        *("env", "--ignore-signal=INT", "--ignore-signal=QUIT"),
        *("nsenter", "--target", str(holder_pid), *user, "--net", "--uts", "--ipc", "--mount", "--pid", "--"),
        *_DIES_WITH_ITS_STARTER,
        *("taskset", "--cpu-list", cpu_list(cpus)),
        *("env", "--default-signal=INT", "--default-signal=QUIT", f"--chdir={working_directory}"),
        *(f"{name}={value}" for name, value in environment.items()),
        *command,
    ]
