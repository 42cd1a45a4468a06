"""Reads a testbed from TOML: `[testbed]`, a `[[fabric]]` for each interconnect, `[[node]]` where addresses differ.

Or takes the testbed that every machine has: its loopback and its shared memory as two fabrics, for where no lab is possible.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSetException
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from fabricbench.configuration import check_expanded, read_table, usage_error, validated
from fabricbench.errors import UsageError
from fabricbench.model import LAST_GID_INDEX, Layer, Model, Receive
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.quantity import BitPerSecond
from fabricbench.testbed.allocation import ALLOCATION, allocated_nodes, nodes_in_order, other_groups
from fabricbench.testbed.host import may_open_raw_socket
from fabricbench.testbed.model import (
    NODE_NAME,
    STARTER_NAME,
    Fabric,
    LauncherKind,
    Layout,
    Mpi,
    Node,
    SlurmJob,
    StarterName,
    StarterTokens,
    Testbed,
)
from fabricbench.testbed.wire import Wire

SRUN = "srun"
"""The starter of `launcher = "slurm"`."""

LAYERS_WITHOUT_INTERFACE = (Layer.MEMORY, Layer.MPI)
"""What a fabric that is no network interface (shared memory) can carry."""


class TestbedTable(Layout):
    """`[testbed]`: `nodes` is a node set (`node[001-004]`), a list of them, or `allocation`: those of the batch job."""

    name: str
    launcher: LauncherKind = LauncherKind.SSH
    nodes: tuple[str, ...] = Field(min_length=1)
    lab: str | None = None
    starter: StarterName | StarterTokens | None = None
    reach: StarterTokens | None = None
    fan_out: StarterTokens | None = None
    default_receive: Receive = Receive.BLOCKING
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _is_of_a_job(cls, value: Any) -> Any:
        is_slurm = isinstance(value, dict) and value.get("launcher") == LauncherKind.SLURM
        return {"nodes": ALLOCATION, "starter": SRUN, **value} if is_slurm else value

    @model_validator(mode="after")
    def _slurm_starts_ranks(self) -> TestbedTable:
        if self.launcher is LauncherKind.SLURM and isinstance(self.starter, str) and self.starter != SRUN:
            raise ValueError(
                f'launcher = "slurm" starts ranks with srun, and starter is {self.starter!r}: leave `starter` out, write its '
                'tokens, or take launcher = "ssh", which starts them so within a job as well'
            )
        return self

    @field_validator("nodes", mode="before")
    @classmethod
    def _expand(cls, value: Any, info: ValidationInfo) -> Any:
        if value == ALLOCATION:
            return (info.context or {}).get(ALLOCATION) or allocated_nodes()
        return _names_in(value)

    @field_validator("starter", mode="before")
    @classmethod
    def _is_name_or_tokens(cls, value: Any) -> Any:
        is_name = isinstance(value, str) and re.match(STARTER_NAME, value)
        if not is_name and not (isinstance(value, list) and value and all(isinstance(one, str) for one in value)):
            raise ValueError(
                f'found {value!r}, needed the name of a starter, "srun" say, or its tokens: ["aprun", ...]'
            )
        return value


def _names_in(value: Any) -> tuple[str, ...]:
    """Return the names that a node set or a list of them stands for. Raises ValueError."""
    sets = [value] if isinstance(value, str) else value
    if not isinstance(sets, (list, tuple)) or not all(isinstance(one, str) for one in sets):
        raise ValueError(f'found {value!r}, needed a node set such as "node[001-004]" or a list of names')
    names = tuple(name for one in sets for name in expand_nodes(one))
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise ValueError(f"{', '.join(twice)} is named twice: name each node once")
    return names


class FabricTable(Fabric):
    """`[[fabric]]`: a fabric, whose wire may be given by its `line_rate` alone (Ethernet's framing is then taken).

    `nodes` is a node set or a list of them, as in `[testbed]`.
    """

    line_rate: BitPerSecond | None = Field(default=None, gt=0)

    @field_validator("nodes", mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return _names_in(value)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> FabricTable:
        if self.line_rate is not None and self.wire is not None:
            raise ValueError("line_rate and wire are both given: write the rate in wire.line_rate_bit_s only")
        check_expanded("mpi_environment", self.mpi_environment)
        wrong = [layer for layer in self.layers if layer not in LAYERS_WITHOUT_INTERFACE]
        if "layers" in self.model_fields_set and not self.has_interface and wrong:
            raise ValueError(f"layer {', '.join(wrong)} needs an interface or a subnet, and neither is given")
        if self.rdma is not None and (self.rdma.gid_index or 0) > LAST_GID_INDEX:
            raise ValueError(f"rdma.gid_index is {self.rdma.gid_index}, and libibverbs takes 0 to {LAST_GID_INDEX}")
        return self

    def fabric(self, *, is_in_lab: bool) -> Fabric:
        """Return the fabric as the rest of the program knows it; what a lab has is emulated, whatever the file says."""
        given = {name: getattr(self, name) for name in self.model_fields_set if name != "line_rate"}
        if is_in_lab:
            given["is_emulated"] = True
        if self.line_rate is not None:
            given["wire"] = Wire(line_rate_bit_s=self.line_rate)
        if not self.has_interface:
            given.setdefault("layers", LAYERS_WITHOUT_INTERFACE)
        return Fabric(**given)


class NodeTable(Model):
    """`[[node]]`: the addresses of a node by fabric, where neither an interface nor a subnet tells."""

    name: str = Field(pattern=NODE_NAME)
    addresses: dict[str, IPv4Address]


class TestbedFile(Model):
    """A testbed file."""

    testbed: TestbedTable
    fabric: tuple[FabricTable, ...] = Field(min_length=1)
    node: tuple[NodeTable, ...] = ()
    mpi: tuple[Mpi, ...] = ()
    slurm: SlurmJob | None = None

    @field_validator("fabric")
    @classmethod
    def _fabrics_are_told_apart(cls, value: tuple[FabricTable, ...]) -> tuple[FabricTable, ...]:
        names = [one.name for one in value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} is named twice: give each [[fabric]] a `name` of its own")
        return value

    @model_validator(mode="after")
    def _names_are_known(self) -> TestbedFile:
        fabrics = {fabric.name for fabric in self.fabric}
        for table in self.node:
            if table.name not in self.testbed.nodes:
                raise ValueError(f"[[node]] {table.name!r} is not one of testbed.nodes")
            strange = sorted(set(table.addresses) - fabrics)
            if strange:
                raise ValueError(f"[[node]] {table.name!r} has an address on {', '.join(strange)}, which is no fabric")
        if (self.testbed.launcher is LauncherKind.LAB) != (self.testbed.lab is not None):
            raise ValueError('testbed.launcher = "lab" and testbed.lab = NAME go together')
        if self.slurm is not None and self.testbed.launcher is not LauncherKind.SLURM:
            raise ValueError('[slurm] says how jobs are asked for, and needs testbed.launcher = "slurm"')
        return self

    @model_validator(mode="after")
    def _nodes_of_fabrics_are_known(self) -> TestbedFile:
        for table in self.fabric:
            if "nodes" in table.model_fields_set and not table.nodes:
                raise ValueError(f"[[fabric]] {table.name!r} joins no node: leave `nodes` out where it joins all")
            if strange := [name for name in table.nodes if name not in self.testbed.nodes]:
                raise ValueError(
                    f"[[fabric]] {table.name!r} joins {', '.join(strange)}, which testbed.nodes does not name: "
                    "name every node there"
                )
            if table.nodes and self.testbed.launcher is LauncherKind.LOCAL:
                raise ValueError(
                    f'[[fabric]] {table.name!r} joins some nodes, and with launcher = "local" all are this machine'
                )
        return self

    @model_validator(mode="after")
    def _installations_are_known(self) -> TestbedFile:
        names = [one.name for one in self.mpi]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"[[mpi]] {', '.join(twice)} is named twice: give each a `name` of its own")
        for table in self.fabric:
            if table.mpi and table.mpi not in names:
                there = f"there are {', '.join(names)}" if names else "there is no [[mpi]]"
                raise ValueError(f"[[fabric]] {table.name!r} is measured with mpi = {table.mpi!r}, and {there}")
        return self

    @model_validator(mode="after")
    def _conditions_have_company(self) -> TestbedFile:
        conditions = [fabric.condition_of for fabric in self.fabric if fabric.condition_of]
        for table in self.fabric:
            if conditions.count(table.condition_of) == 1:
                raise ValueError(
                    f"[[fabric]] {table.name!r} is the only condition_of = {table.condition_of!r}: "
                    "there is nothing to compare it with; give the other [[fabric]] the same condition_of"
                )
        return self


def read_testbed(path: Path, *, is_for_job: bool = False) -> Testbed:
    """Return the testbed that the file describes; UsageError lists what is wrong, EnvironmentLacks: no allocation is here.

    `is_for_job`: as a job that is yet to be submitted will find it, for estimates: for nodes that only the job knows stand others,
    as many as `[slurm]` asks for; UsageError where it is none of Slurm, or nobody says how many.
    """
    data = read_table(path)
    context = {ALLOCATION: _nodes_of_job(data, path)} if is_for_job else None
    file = validated(data, TestbedFile, str(path), context)
    addresses = {table.name: table.addresses for table in file.node}
    table = file.testbed
    is_allocated = data["testbed"].get("nodes", ALLOCATION) == ALLOCATION
    asked = None if file.slurm is None else file.slurm.nodes
    if not is_allocated and asked not in (None, len(table.nodes)):
        raise UsageError(
            f"{path}: slurm.nodes is {asked}, and testbed.nodes names {len(table.nodes)}",
            hint="leave one of the two out",
        )
    try:
        return Testbed(
            name=table.name,
            launcher=table.launcher,
            nodes=tuple(Node(name=name, addresses=addresses.get(name, {})) for name in table.nodes),
            fabrics=tuple(one.fabric(is_in_lab=table.launcher is LauncherKind.LAB) for one in file.fabric),
            lab=table.lab,
            starter=table.starter,
            mpis=file.mpi,
            reach=table.reach,
            fan_out=table.fan_out,
            slurm=file.slurm,
            layout=Layout(**{name: getattr(table, name) for name in Layout.model_fields}),
            is_allocated=is_allocated,
            default_receive=table.default_receive,
            notes=(*table.notes, *filter(None, [other_groups() if is_allocated and not is_for_job else ""])),
        )
    except ValidationError as error:
        raise usage_error(error, Testbed, str(path)) from error


def _nodes_of_job(data: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    """Return names that stand for the nodes of a job: `node1`, `node2`. UsageError where the file asks for no such job."""
    testbed, slurm = data.get("testbed"), data.get("slurm", {})
    if not isinstance(testbed, Mapping) or not isinstance(slurm, Mapping):
        return ()  # which is told when all of it is validated
    if testbed.get("launcher") != LauncherKind.SLURM:
        raise UsageError(
            f'{path}: what is submitted runs in a job of Slurm, and launcher is not "slurm"',
            hint='write launcher = "slurm" into [testbed], and [slurm] with `nodes`, `partition`, ... (docs/slurm.md)',
        )
    nodes = slurm.get("nodes")
    if testbed.get("nodes", ALLOCATION) != ALLOCATION:
        return ()
    if not isinstance(nodes, int) or nodes < 1:
        raise UsageError(
            f"{path}: nobody says how many nodes the job is to have: slurm.nodes is {nodes!r}",
            hint="write `nodes = 4` into [slurm], or name them in [testbed]",
        )
    return tuple(f"node{number}" for number in range(1, nodes + 1))


def expand_nodes(text: str) -> list[str]:
    """Return the names in a node set, in its order: `n[0-3]` is n0, n1, n2, n3. Raises ValueError.

    Groups (`@rack7`) are refused: they are read from files of the machine at hand, and a testbed means the same everywhere.
    """
    user, at, _ = text.partition("@")
    if user and at:
        raise ValueError(
            f"{text!r} names a user: write the node alone, and its user into ~/.ssh/config (`Host NODE`, then `User {user}`)"
        )
    if at or "*" in text:
        raise ValueError(f"{text!r} names a node group: write the nodes themselves, node[001-004] say")
    try:
        names = nodes_in_order(text)
    except NodeSetException as error:
        raise ValueError(f"{text!r} is not a node set: {error}; write node[001-004] or n0,n1") from None
    if not names:
        raise ValueError("an empty node set: write node[001-004] or n0,n1")
    strange = next((name for name in names if not re.match(NODE_NAME, name)), None)
    if strange is not None:
        raise ValueError(f"{strange!r} is no host name: needed letters, digits, '.', '_', '-', and no '-' before them")
    return names


LOOPBACK = "lo"
LOOPBACK_SUBNET = IPv4Network("127.0.0.0/8")
USUAL_LOOPBACK_MTU = 65536

NOTES = (
    "No network was measured: both fabrics are inside this machine, its loopback interface and its shared memory.",
    "The numbers show what this machine's software costs, and that fabricbench works here; they say nothing of any interconnect.",
)


def local_testbed() -> Testbed:
    """Return this machine as a testbed of one node with the fabrics `loopback` and `shared-memory`.

    The frame and ip layers are left out of the loopback where this user may not open raw sockets.
    """
    name = platform.node()
    name = name if re.match(NODE_NAME, name) else "localhost"
    layers = [layer for layer in USUAL_LAYERS if layer not in (Layer.FRAME, Layer.IP) or may_open_raw_socket(layer)]
    loopback = Fabric(
        name="loopback",
        interface=LOOPBACK,
        subnet=LOOPBACK_SUBNET,
        mtu=loopback_mtu(),
        layers=tuple(layers),
        description="this machine's loopback interface: the network stack without a network",
    )
    memory = Fabric(
        name="shared-memory",
        layers=(Layer.MEMORY, Layer.MPI),
        description="this machine's memory: MPI between processes of one node",
    )
    missing = [layer for layer in USUAL_LAYERS if layer not in layers]
    notes = list(NOTES)
    if missing:
        notes.append(f"Layer {', '.join(missing)} is left out: this user may not open raw sockets (CAP_NET_RAW).")
    return Testbed(
        name=f"local-{name}",
        launcher=LauncherKind.LOCAL,
        nodes=(Node(name=name),),
        fabrics=(loopback, memory),
        notes=tuple(notes),
    )


def loopback_mtu() -> int:
    """Return the MTU of the loopback interface."""
    try:
        return int(Path(f"/sys/class/net/{LOOPBACK}/mtu").read_text())
    except (OSError, ValueError):
        return USUAL_LOOPBACK_MTU
