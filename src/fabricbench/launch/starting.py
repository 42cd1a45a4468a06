"""How ranks are started: three parts that know nothing of each other, as data and tokens, never as a shell string.

* A *library* (`launch/library/`, a file each) says which variables an MPI must be given to talk over a fabric.
* A *starter* (`launch/starter/`, a file each) writes a job in its own syntax: hydra, prterun, orterun, srun, the user's template.
* A *placement* says how many ranks there are, on which hosts, bound to what, with how many threads.

`launch/mpi.py` lists libraries and starters, recognises them, and merges what the testbed sets (`mpi_environment`,
`mpi_arguments`) with what we set. One rule, whichever the library and the starter (docs/starting.md):

1. What the testbed sets wins by name. A variable that its arguments set (`--mca btl ...`, `-genv FI_PROVIDER ...`) counts as set,
   and wins over the same in `mpi_environment`. Ours is left out.
2. `LD_PRELOAD` is joined: ours first, then that of `mpi_environment`, then that of `mpi_arguments`.
3. All other arguments follow ours, in their order. One that binds or maps ranks takes the place of ours; one that says what a
   launch is (its ranks, nodes, directory, how nodes are reached) is refused: `Options`.
4. A workload's own variables are set last, in each rank (`workload/counted.py`): they win by name, and its `LD_PRELOAD` is joined
   behind all others. A measurer that notes the calls of MPI (`campaign/start.py`) begins anew with a library before all others.
5. What was in force and which of ours were left out stands in the launch's conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fabricbench.errors import UsageError
from fabricbench.native import native_file
from fabricbench.testbed.model import Fabric, Layout
from fabricbench.testbed.preflight_result import folded

MARK = "FABRICBENCH_LAUNCH_MARK"
"""The variable that all processes of a launch inherit: 128 random bits, by which `launch/watch.py` finds what a killed guard left,
and ranks that know no MPI know each other (`workload/meeting.py`). Never in the tokens of a command, which other users can read:
a starter that does not hand its environment on is told the name alone."""

WORKING_DIRECTORY = "/"
"""Where ranks on several hosts start: one that every host has. A starter would change to its own, the launch's directory, which
only rank 0's host need have; hydra starts no rank without it."""

MOST_ARGUMENT_BYTES = 120_000
"""Linux takes 131,072 bytes of one argument (MAX_ARG_STRLEN, execve(2)), which may hold more than the names of nodes."""


def node_list(nodes: Sequence[str]) -> str:
    """Return node names with commas between; so many that no argument holds them as a node set, which pdsh, clush and srun read."""
    names = ",".join(nodes)
    return names if len(names) <= MOST_ARGUMENT_BYTES else folded(nodes)


ON_INTERFACE = "{interface}"
"""The template of a variable that names a node's interface (`Selection.by_node`)."""

YIELD_LIBRARY = "libfabricbench-yield.so"
"""How ranks wait where nodes share processors. An MPI library that waits spins and calls sched_yield; two spinning ranks on one
core starve each other for milliseconds. Preloaded, this lets them sleep until data come, which costs some microseconds of MPI
latency, and is therefore recorded with each launch."""

LOOPBACK_LIBRARY = "libfabricbench-loopback.so"
"""What keeps a starter that listens at all addresses of the machine to the loopback, where all its ranks are on this machine."""

WAITING_ASLEEP = {"mpi waits": f"asleep: nodes share processors, so {YIELD_LIBRARY} lets ranks that wait sleep"}


def yield_library() -> Path:
    """Return the library to be preloaded; EnvironmentLacks where it was not built."""
    return native_file(YIELD_LIBRARY)


def loopback_library() -> Path:
    """Return the library to be preloaded into a starter; EnvironmentLacks where it was not built."""
    return native_file(LOOPBACK_LIBRARY)


@dataclass(frozen=True)
class Placement:
    """One rank on each host, in their order, and around again where there are more ranks: rank i is on host i modulo the hosts.

    No hosts: all ranks on this machine.
    `agent` replaces ssh as the program that reaches a host. `control_interface` carries the starter's own traffic. `scratch` is
    where starters keep what they name by process numbers: nodes with numbers of their own must not meet there what others left.
    `preload` is a library put before the ranks' others: nodes that share processors need one whose `sched_yield` sleeps. `loopback`
    is one for the starter alone, where there are no hosts: it listens at the loopback then. UsageError where the layout seats fewer
    ranks on a node than there would be.
    """

    ranks: int
    hosts: tuple[str, ...] = ()
    layout: Layout = field(default_factory=Layout)
    agent: Path | None = None
    control_interface: str | None = None
    scratch: Path | None = None
    preload: Path | None = None
    loopback: Path | None = None

    def __post_init__(self) -> None:
        most = self.layout.ranks_per_node
        if most is not None and self.ranks_on_each_host > most:
            where = f"{len(self.hosts)} nodes" if len(self.hosts) > 1 else "one node"
            raise UsageError(
                f"{self.ranks} ranks on {where} are {self.ranks_on_each_host} on each, and the testbed has ranks_per_node = {most}",
                hint="raise `ranks_per_node` in the testbed, name more nodes, or ask the campaign for fewer ranks",
            )

    @property
    def ranks_on_each_host(self) -> int:
        """How many ranks a host has at most."""
        return -(-self.ranks // max(1, len(self.hosts)))

    @property
    def shares_memory(self) -> bool:
        """Whether ranks of one node talk through its memory: the testbed seats several there, as applications run."""
        return bool(self.hosts) and (self.layout.ranks_per_node or 1) > 1


@dataclass(frozen=True)
class Selection:
    """What an MPI is told to talk over a fabric.

    `by_node`: variables whose value each node finds for itself on the fabric's interface, as templates: `{interface}`, `{rdma}` and
    the others of `launch/on_subnet.py`. `gives_way`: a variable of ours is left out as well where the testbed sets one of these
    others, with which it would make no sense.
    """

    environment: Mapping[str, str]
    by_node: Mapping[str, str] = field(default_factory=dict)
    gives_way: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Library(Protocol):
    """What an MPI needs. A module with these names is one.

    `WAITS_ASLEEP` are the variables with which ranks that wait call sched_yield. `SLURM_PMI` is the plugin of `srun --mpi=` that
    its ranks speak with. `CALLED` are words by which people call it, and no other. `OWN_STARTERS` are those that come with such an
    MPI: one that comes with another does not start its ranks.
    """

    NAME: str
    CALLED: tuple[str, ...]
    WAITS_ASLEEP: Mapping[str, str]
    SLURM_PMI: str
    OWN_STARTERS: tuple[str, ...]

    def is_it(self, version_text: str) -> bool:
        """Tell from what its starter or its compiler prints of its version whether it is this MPI."""

    def selection(self, fabric: Fabric, *, shares_memory: bool) -> Selection:
        """Return what it is told to talk over a fabric by its transport; `shares_memory`: but through memory among ranks of a node.

        UsageError (`no_transport`) where it has no such transport.
        """


def no_transport(library: str, fabric: Fabric, reason: str) -> UsageError:
    """Return the error for a transport that an MPI does not have."""
    return UsageError(
        f"fabric {fabric.name}: {library} has no transport {fabric.transport!s}: {reason}",
        hint="write another `transport` of the [[fabric]]; docs/starting.md has a table of what each MPI can",
    )


@dataclass(frozen=True)
class Given:
    """A testbed's `mpi_arguments`, taken apart: the variables that they set, and all others as they are.

    None: the variable is set by one of the others, with a value that is not known here (`-x NAME` hands on the caller's).
    `replaced`: which of the options that we write as well (`Options.yielding`) are among them.
    """

    environment: Mapping[str, str | None]
    arguments: tuple[str, ...]
    replaced: frozenset[str] = frozenset()


RANKS = "the campaign says how many ranks there are"
NODES = "`nodes` of the testbed say where ranks run, and rank i is on node i modulo the nodes"
REACHING = "`launcher` of the testbed says how nodes are reached"
DIRECTORY = "ranks start where every node has a directory"
BINDING, MAPPING, RANKING, CONTROL, AGENT = "binding", "mapping", "ranking", "control interface", "agent"


SHORTEST_ABBREVIATION = 3


@dataclass(frozen=True)
class Options:
    """The options of a starter that we write as well, without dashes: hyphens and underscores in them are all alike.

    `ours`: those that nobody else may write, by the reason why. `yielding`: those of which the testbed's take the place of ours,
    by what they are for. `valued`: others that take the token behind them, which is no option then; so do most of ours.
    `alone`: those of ours that do not. `flags`: letters of which several may stand in one token, before one whose value follows at
    once (`-vn4` means `-v -n 4`); None: a starter that joins none.
    """

    ours: Mapping[str, tuple[str, ...]]
    yielding: Mapping[str, tuple[str, ...]]
    valued: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    flags: str | None = None
    ignores_case: bool = False
    abbreviates: bool = False

    def replaced_by(self, arguments: Sequence[str]) -> frozenset[str]:
        """Return for what the testbed's arguments have an option of theirs; UsageError for one that only we may write."""
        written = list(self._written(arguments))
        for reason, spellings in self.ours.items():
            if strange := next((token for name, token in written if self._is_one_of(name, spellings)), None):
                raise UsageError(
                    f"mpi_arguments: {strange} is written by fabricbench itself: {reason}",
                    hint="leave it out of the testbed's `mpi_arguments` (docs/starting.md)",
                )
        return frozenset(
            what
            for what, spellings in self.yielding.items()
            if any(self._is_one_of(name, spellings) for name, _ in written)
        )

    def _written(self, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the name of each option and its token; what another one takes as its value is none."""
        known = [
            *self.valued,
            *(one for spellings in (*self.ours.values(), *self.yielding.values()) for one in spellings),
        ]
        left = iter(arguments)
        for token in left:
            if not token.startswith("-"):
                continue
            name, has_value = self._taken_apart(token)
            yield name, token
            if not has_value and name not in self.alone and self._is_one_of(name, known):
                next(left, None)

    def _taken_apart(self, token: str) -> tuple[str, bool]:
        """Return an option's name and whether its value is in the same token."""
        if self.flags is not None and not token.startswith("--"):
            letters = token[1:].lstrip(self.flags) or token[-1]
            return letters[0], len(letters) > 1
        name, is_set, _ = token.lstrip("-").partition("=")
        return name, bool(is_set)

    def _is_one_of(self, name: str, spellings: Iterable[str]) -> bool:
        plain = self._plain(name)
        is_short = len(plain) < SHORTEST_ABBREVIATION or not self.abbreviates
        return any(one == plain or (not is_short and one.startswith(plain)) for one in map(self._plain, spellings))

    def _plain(self, name: str) -> str:
        plain = name.replace("-", "").replace("_", "")
        return plain.lower() if self.ignores_case else plain


@dataclass(frozen=True)
class Job:
    """What is to be started: a program as tokens, its ranks, their variables, further arguments of the starter."""

    program: tuple[str, ...]
    placement: Placement
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    slurm_pmi: str = "none"
    replaced: frozenset[str] = frozenset()
    """What the arguments say themselves (`Given.replaced`): ours of that are left out."""

    @property
    def program_in_environment(self) -> tuple[str, ...]:
        """The program behind `env`: for starters that hand variables to nobody, or cannot write all values."""
        if not self.environment:
            return self.program
        return ("env", *(f"{name}={value}" for name, value in self.environment.items()), *self.program)


class Starter(Protocol):
    """How a program that starts ranks is told of a job. A module with these names is one.

    `PROGRAMS` are the names that it goes by, the first that is found counts: beside the MPI's compiler, then on the PATH.
    `REACHES_NODES`: it needs no ssh to reach a node, so questions to a node go through it as well.
    """

    NAME: str
    PROGRAMS: tuple[str, ...]
    REACHES_NODES: bool

    def is_it(self, version_text: str) -> bool:
        """Tell from what `PROGRAM --version` prints whether it is this one."""

    def parse(self, arguments: Sequence[str]) -> Given:
        """Take arguments of this starter apart; UsageError for one that would end every launch (`Options`)."""

    def tokens(self, program: str, job: Job) -> list[str]:
        """Return the tokens that start the job, `program` being where the starter was found."""


def version_in(text: str) -> str:
    """Return the first word that looks like a version: `5.0.2`, `v5.0.11,`."""
    words = [word.removeprefix("v").rstrip(",") for word in text.replace(")", " ").split()]
    return next((word for word in words if word[:1].isdigit() and "." in word), "unknown")
