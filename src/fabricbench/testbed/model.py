"""The testbed: nodes, how programs are launched on them, and the fabrics that join them.

A testbed comes from a TOML file, from a lab's description (`fabricbench.lab`) or from this machine alone (`local`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any

from pydantic import Field, model_validator

from fabricbench.model import Layer, Model, RdmaEnd
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.quantity import Bytes, Seconds
from fabricbench.testbed.wire import Wire


class LauncherKind(StrEnum):
    """How a program is started over the nodes: one file in `launch/` for each."""

    LAB = "lab"
    LOCAL = "local"
    SSH = "ssh"
    SLURM = "slurm"

    @property
    def is_cluster(self) -> bool:
        """Whether the nodes are machines of their own."""
        return self in (LauncherKind.SSH, LauncherKind.SLURM)


class MpiTransport(StrEnum):
    """By which of its own ways an MPI library is to reach a fabric: TCP by itself, UCX, libfabric (OFI), or verbs by itself."""

    TCP = "tcp"
    UCX = "ucx"
    OFI = "ofi"
    VERBS = "verbs"


NODE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$"
"""A host name or address, as starters take them in lists. None can be taken for an option of ssh or of an MPI starter."""

WITHOUT_NUL = r"^[^\x00]*$"
"""What the system can hand to a program as an argument or in its environment."""

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Handed = Annotated[str, Field(pattern=WITHOUT_NUL)]


STARTER_NAME = r"^[a-z][a-z0-9._-]*$"
StarterName = Annotated[str, Field(pattern=STARTER_NAME)]
StarterTokens = Annotated[tuple[Handed, ...], Field(min_length=1)]


class Binding(StrEnum):
    """What a rank is held to: nothing, a core (as many as it has threads), or a socket."""

    NONE = "none"
    CORE = "core"
    SOCKET = "socket"


class Layout(Model):
    """How ranks lie on the nodes: how many a node seats at most, what each is held to, its threads (None: nothing is said)."""

    ranks_per_node: int | None = Field(default=None, ge=1)
    binding: Binding = Binding.NONE
    threads_per_rank: int | None = Field(default=None, ge=1)


MPI_NAME = r"^[a-z0-9][a-z0-9._-]*$"


class Mpi(Model):
    """An MPI installation of a testbed, `[[mpi]]`: where it is and how it is loaded, the same on every node.

    `prefix` is the folder with its `bin`; `mpicxx` and `mpiexec` are the programs themselves, by path or by name; what is not given
    is found below `prefix`, else on the PATH once it is loaded. `load` are lines of a login shell that load it
    (`module load openmpi/5`). `inside` are tokens put before what each rank runs: a container (`apptainer exec IMAGE`).
    """

    name: str = Field(pattern=MPI_NAME)
    prefix: str = ""
    mpicxx: str = ""
    mpiexec: str = ""
    load: tuple[Handed, ...] = ()
    inside: tuple[Handed, ...] = ()


def mpi_of(mpis: Iterable[Mpi], fabric: Fabric) -> Mpi | None:
    """Return the MPI that a fabric is measured with: the one it names, else the first; None: what we were built with."""
    there = tuple(mpis)
    return next((mpi for mpi in there if mpi.name == fabric.mpi), there[0] if there else None)


WITHOUT_NEWLINE = r"^[^\x00\n\r]+$"
"""What is one line of a script."""

Line = Annotated[str, Field(pattern=WITHOUT_NEWLINE)]
SlurmWord = Annotated[str, Field(pattern=r"^[^\x00\s]+$")]
"""A value of an option of sbatch: a line of a batch script splits at spaces."""


class SlurmJob(Model):
    """How the job of a run is asked for, `[slurm]`: the options of sbatch by their names, all of them optional.

    `nodes` is how many it has (None: as many as the testbed names); `time` its limit (None: from what the plan estimates);
    `exclusive` that nobody else's job is on its nodes meanwhile, whom one would measure as well. `options` are further options as
    sbatch takes them (`--mem=0`), `lines` are run before fabricbench (`module load openmpi/5`).
    """

    nodes: int | None = Field(default=None, ge=1)
    partition: SlurmWord | None = None
    account: SlurmWord | None = None
    qos: SlurmWord | None = None
    reservation: SlurmWord | None = None
    constraint: SlurmWord | None = None
    time: Seconds | None = Field(default=None, gt=0)
    exclusive: bool = True
    options: tuple[Line, ...] = ()
    lines: tuple[Line, ...] = ()


INTERFACE_NAME = r"^[A-Za-z0-9_.][A-Za-z0-9_.:@+-]{0,126}$"


class Node(Model):
    """One machine. `addresses` maps networks to the node's address there; empty where the subnet tells."""

    name: str = Field(pattern=NODE_NAME)
    addresses: dict[str, IPv4Address] = {}

    def address_on(self, fabric: Fabric) -> IPv4Address | None:
        """Return the node's address on a fabric, where the testbed tells it."""
        return self.addresses.get(fabric.network)


class BuiltFrom(Model):
    """A figure of a published study that an emulated fabric was built from: finding it there again is no agreement."""

    study: str
    quantity: str


@dataclass(frozen=True)
class NoSetting:
    """Marks a field of a fabric that changes nothing of what is measured on it: what it is called, or costs."""


NO_SETTING = NoSetting()


class Fabric(Model):
    """One interconnect as the nodes see it.

    `rdma` names the device, port and GID that layer rdma takes; what it leaves out is found from the interface.

    `interface` (the same name on every node) or `subnet` tells the measurer which interface belongs to the fabric; a fabric with
    neither (shared memory) carries only memory and mpi. `mpi_environment` are variables of the ranks, `mpi_arguments` further
    arguments of their starter; `launch/starting.py` says how they are merged with what we set.
    `price_per_node` is what the fabric costs for each node (adapter, cable, switch port), `price_fixed` what it costs once,
    `power_per_node_watt` what it draws for each node, switches included. `settings` tells readers what else it was set to: a
    switch's latency, a driver's version. Entries with the same `condition_of` are one thing in several conditions (before and
    after a change, say, in the order of the testbed): measured in turn within one run, they are compared by block. An emulated
    fabric has rates `scale` times lower and delays so many times longer than what it is named after. `nodes` are those that it
    joins, where it does not join all. `network` is what switches and addresses know it by: itself, or the fabric of which it is a
    side, in a `condition` or for the second time (`aa_pair_of`).
    """

    name: Annotated[str, NO_SETTING] = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    interface: str | None = Field(default=None, pattern=INTERFACE_NAME)
    subnet: IPv4Network | None = None
    nodes: tuple[str, ...] = Field(default=(), exclude_if=lambda nodes: not nodes)
    mtu: Bytes = 1500
    wire: Wire | None = None
    rdma: RdmaEnd | None = None
    layers: Annotated[tuple[Layer, ...], NO_SETTING] = USUAL_LAYERS
    mpi_environment: dict[Variable, Handed] = {}
    mpi_arguments: tuple[Handed, ...] = ()
    price_per_node: Annotated[float | None, NO_SETTING] = Field(default=None, ge=0, allow_inf_nan=False)
    price_fixed: Annotated[float, NO_SETTING] = Field(default=0.0, ge=0, allow_inf_nan=False)
    power_per_node_watt: Annotated[float, NO_SETTING] = Field(default=0.0, ge=0, allow_inf_nan=False)
    currency: Annotated[str, NO_SETTING] = "EUR"
    is_emulated: Annotated[bool, NO_SETTING] = False
    scale: Annotated[int, NO_SETTING] = Field(default=1, ge=1)
    built_from: Annotated[tuple[BuiltFrom, ...], NO_SETTING] = ()
    description: Annotated[str, NO_SETTING] = ""
    condition_of: Annotated[str, NO_SETTING] = ""
    settings: dict[str, str] = {}
    mpi: str = ""
    transport: MpiTransport = MpiTransport.TCP
    network: Annotated[str, NO_SETTING] = ""
    condition: str = ""

    @model_validator(mode="before")
    @classmethod
    def _is_its_own_network(cls, data: Any) -> Any:
        """Name the network of a fabric that is no side of another: what a testbed says, and runs of before."""
        if isinstance(data, Mapping) and not data.get("network") and "name" in data:
            return {**data, "network": data["name"]}
        return data

    @property
    def has_interface(self) -> bool:
        """Whether the fabric is reached through a network interface."""
        return self.interface is not None or self.subnet is not None

    @property
    def where(self) -> str:
        """Where a node finds its interface: the name, where all nodes have the same, else the subnet; empty without either."""
        return self.interface or (str(self.subnet) if self.subnet is not None else "")


FABRIC_SETTINGS = tuple(name for name, field in Fabric.model_fields.items() if NO_SETTING not in field.metadata)
"""What of a fabric may change what is measured on it."""


class Lost(Model):
    """A part of a testbed that has ended though it should be there: what, in words, and the fabric that needs it.

    `action` is what brings it back, empty for a lab that belongs to a run: that one is built anew by itself.
    """

    what: str
    action: str
    fabric: str = ""


class Testbed(Model):
    """Nodes, the launcher and the fabrics. `lab` names the lab that a lab testbed lives in.

    `starter` is what starts ranks, by name or as tokens with placeholders; None: what belongs to the MPI that we were built with.
    `is_allocated`: the nodes are those of the batch job that the testbed was read in. `mpis` are its MPI installations; none: the
    one that fabricbench was built with. `reach` are tokens with placeholders by which a program that is no MPI program is run on a
    node, in place of ssh (`["kubectl", "exec", "{node}", "--", "{program}"]`).
    `fan_out` are such tokens by which one is run on many nodes at once, which hand on what each prints behind `NODE: `
    (`["pdsh", "-w", "{nodes}", "{line}"]`). `slurm` says how the job of a run is asked for.
    """

    name: str
    launcher: LauncherKind
    nodes: tuple[Node, ...] = Field(min_length=1)
    fabrics: tuple[Fabric, ...] = Field(min_length=1)
    lab: str | None = None
    starter: StarterName | StarterTokens | None = None
    layout: Layout = Layout()
    is_allocated: bool = False
    mpis: tuple[Mpi, ...] = ()
    reach: StarterTokens | None = None
    fan_out: StarterTokens | None = Field(default=None, exclude_if=lambda tokens: tokens is None)
    slurm: SlurmJob | None = None
    default_receive: str = "blocking"
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Testbed:
        for what, names in (
            ("node", [node.name for node in self.nodes]),
            ("fabric", [fabric.name for fabric in self.fabrics]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} {', '.join(twice)} is named twice")
        return self

    def fabric(self, name: str) -> Fabric:
        """Return the fabric of that name; KeyError names the ones there are."""
        for fabric in self.fabrics:
            if fabric.name == name:
                return fabric
        raise KeyError(f"no fabric {name!r}; there are {', '.join(fabric.name for fabric in self.fabrics)}")

    def joined_by(self, fabric: Fabric) -> tuple[Node, ...]:
        """Return the nodes that a fabric joins."""
        own = set(fabric.nodes)
        return tuple(node for node in self.nodes if not own or node.name in own)

    @property
    def seats(self) -> int:
        """How many nodes each fabric is measured over: as many as the one joins that joins the fewest."""
        return min(len(self.joined_by(fabric)) for fabric in self.fabrics)

    def nodes_of(self, fabric: Fabric) -> tuple[Node, ...]:
        """Return the nodes that a fabric is measured over, rank 0 on the first: as many of each fabric.

        Those that all fabrics join come before others, so that no more than the fabric changes where that can be.
        """
        own = self.joined_by(fabric)
        others = [set(one.nodes) for one in self.fabrics if one.nodes]
        by_all = [node.name for node in own if all(node.name in names for names in others)]
        rest = [node.name for node in own if node.name not in set(by_all)]
        chosen = set([*by_all, *rest][: self.seats])
        return tuple(node for node in own if node.name in chosen)

    @property
    def standing_by(self) -> dict[str, tuple[str, ...]]:
        """By fabric the nodes of its own set that it is not measured over, as another fabric joins fewer."""
        found = {}
        for fabric in self.fabrics:
            used = {node.name for node in self.nodes_of(fabric)}
            found[fabric.name] = tuple(name for name in fabric.nodes if name not in used)
        return {name: nodes for name, nodes in found.items() if nodes}

    @property
    def node_sets(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The nodes that fabrics are measured over, each set with the names of its fabrics."""
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for fabric in self.fabrics:
            nodes = tuple(node.name for node in self.nodes_of(fabric))
            found[nodes] = (*found.get(nodes, ()), fabric.name)
        return found

    def without(self, nodes: Collection[str]) -> Testbed:
        """Return the testbed without these nodes; ValueError where none is left."""
        return Testbed.model_validate({**dict(self), "nodes": [node for node in self.nodes if node.name not in nodes]})

    def aa_pair_of(self, name: str) -> Testbed:
        """Return the testbed with that fabric alone, listed twice under two names: what a self-check compares. Raises KeyError."""
        fabric = self.fabric(name)
        fabric = fabric.model_copy(update={"condition_of": ""})  # nothing differs, so that neither is a condition
        again = fabric.model_copy(update={"name": f"{name}-again"})
        return self.model_copy(update={"fabrics": (fabric, again)})
