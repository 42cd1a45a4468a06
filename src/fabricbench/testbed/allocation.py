"""The nodes of the batch job that this process runs in: `nodes = "allocation"` of a testbed.

Each batch system tells in a way of its own; `SYSTEMS` lists those that are asked, the first whose variable is set counts. A login
or launch node that a system names beside them (LSF on some machines) is a node like the others: name the nodes there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from ClusterShell.NodeSet import NodeSet, NodeSetException

from fabricbench.errors import EnvironmentLacks, UsageError

ALLOCATION = "allocation"
"""What a testbed writes in place of its nodes."""


@dataclass(frozen=True)
class BatchSystem:
    """A batch system: the variable by which its jobs are known, and how the variable's value names their nodes.

    `names` raises OSError or ValueError for a value that it cannot follow.
    """

    name: str
    variable: str
    names: Callable[[str], Iterator[str]]


def nodes_in_order(text: str) -> list[str]:
    """Return the names in a node set, each once, in the order in which they are written; NodeSetException where it is none.

    A NodeSet has them sorted. A job's first node is the one that Slurm lists first, on which its batch script and rank 0 run.
    More than MOST_NODES are refused: to write them out would take all memory.
    """
    number = sum(map(_size, _at_commas(text)))
    if number > MOST_NODES:
        raise NodeSetException(f"it names {number:,} nodes, and {MOST_NODES:,} are the most")
    whole = [str(name) for name in NodeSet(text)]
    if any(operator in text for operator in "!&^@*"):
        return whole
    return list(dict.fromkeys(name for piece in _at_commas(text) for name in _piece_in_order(piece)))


MOST_NODES = 1_000_000


def _size(piece: str) -> int:
    """Return how many names `cpu[7,3-4]` stands for, without writing them out."""
    sizes = []
    for listed in re.findall(r"\[([^][]*)\]", piece):
        ends = [one.partition("/")[0].partition("-") for one in listed.split(",")]
        sizes.append(
            sum(max(int(last) - int(first), 0) + 1 for first, _, last in ends if first.isdecimal() and last.isdecimal())
        )
    return prod(one for one in sizes if one)


def _piece_in_order(piece: str) -> Iterator[str]:
    """Yield the names of `cpu[7,3-4]`, whose brackets are no set to Slurm either."""
    listed = re.search(r"\[([^][]*,[^][]*)\]", piece)
    if listed is None:
        yield from (str(name) for name in NodeSet(piece))
        return
    for one in listed[1].split(","):
        yield from _piece_in_order(f"{piece[: listed.start()]}[{one}]{piece[listed.end() :]}")


def _at_commas(text: str) -> list[str]:
    """Return the parts of a node set between the commas that stand outside of brackets."""
    return [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def _in_set(value: str) -> Iterator[str]:
    """`node[001-004],login`."""
    try:
        yield from nodes_in_order(value)
    except NodeSetException as error:
        raise ValueError(str(error)) from None


def _in_file(value: str) -> Iterator[str]:
    """The path of a file with a line for each slot, which begins with the node's name."""
    yield from (line.split()[0] for line in Path(value).read_text().splitlines() if line.strip())


def _in_words(value: str) -> Iterator[str]:
    """A word for each slot: `a a b b`."""
    yield from value.split()


def _counted(value: str) -> Iterator[str]:
    """Each node before the number of its slots: `a 4 b 4`."""
    yield from value.split()[::2]


JOB = "SLURM_JOB_ID"
"""By this variable srun knows the job that it starts a step of, also outside of the job's own shell."""

SYSTEMS = (
    BatchSystem("Slurm", "SLURM_JOB_NODELIST", _in_set),
    BatchSystem("PBS", "PBS_NODEFILE", _in_file),
    BatchSystem("LSF", "LSB_MCPU_HOSTS", _counted),
    BatchSystem("LSF", "LSB_HOSTS", _in_words),
    BatchSystem("Grid Engine", "PE_HOSTFILE", _in_file),
    BatchSystem("OAR", "OAR_NODEFILE", _in_file),
    BatchSystem("Cobalt", "COBALT_NODEFILE", _in_file),
)


def allocated_nodes(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the nodes of the job that this process runs in, each once, in the job's order.

    EnvironmentLacks outside of a job, and where what a batch system says cannot be followed.
    """
    system = next((one for one in SYSTEMS if environment.get(one.variable)), None)
    if system is None:
        raise EnvironmentLacks(
            f'testbed.nodes = "{ALLOCATION}" takes the nodes of a batch job, and this runs in none: '
            f"{', '.join(one.variable for one in SYSTEMS)} are not set",
            hint="run it within a job (`salloc`, `sbatch`, `qsub -I`, `bsub -Is`), let `run --submit` or `plan --submit` "
            "make a job of Slurm of it (docs/slurm.md), or name the nodes in the testbed",
        )
    value = environment[system.variable]
    try:
        names = tuple(dict.fromkeys(system.names(value)))
    except (OSError, ValueError) as error:
        raise EnvironmentLacks(
            f"{system.variable}={value!r} of {system.name} names no nodes: {error}",
            hint="name the nodes in the testbed",
        ) from error
    if not names:
        raise EnvironmentLacks(
            f"{system.variable}={value!r} of {system.name} names no nodes", hint="name the nodes in the testbed"
        )
    return names


HET_GROUPS = "SLURM_HET_SIZE"
"""How many groups of nodes a heterogeneous job of Slurm has; that of group N are in SLURM_JOB_NODELIST_HET_GROUP_N."""


def other_groups(environment: Mapping[str, str] = os.environ) -> str:
    """Return in words which nodes of a heterogeneous job of Slurm are not among its allocated ones; empty where there are none."""
    size = environment.get(HET_GROUPS, "")
    lists = {
        number: environment.get(f"SLURM_JOB_NODELIST_HET_GROUP_{number}", "nodes that nobody tells")
        for number in range(int(size) if size.isdecimal() else 0)
    }
    own = environment.get("SLURM_JOB_NODELIST", "")
    others = [f"{nodes} of group {number}" for number, nodes in lists.items() if nodes != own]
    if len(lists) < 2 or not others:
        return ""
    return (
        f'this job is heterogeneous, of {len(lists)} groups: nodes = "{ALLOCATION}" are {own}, without {" and ".join(others)}. '
        "srun starts steps in group 0 unless `--het-group` says otherwise; name the nodes in the testbed to take others"
    )


def is_in_job(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process runs in a batch job."""
    return any(environment.get(name) for name in (JOB, *(one.variable for one in SYSTEMS)))


def check_in_job(starter: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise EnvironmentLacks outside of a batch job, for a starter whose every start would then become a job of its own.

    srun is one: "If necessary, srun will first create a resource allocation in which to run the parallel job" (srun(1)). Each
    question to a node and each launch would wait in the queue, count as hung there, and be measured on nodes that others had
    meanwhile.
    """
    if not is_in_job(environment):
        raise EnvironmentLacks(
            f'testbed.starter = "{starter}" starts ranks within a batch job, and this runs in none: every launch would wait for '
            "nodes of its own",
            hint="run it within a job that has the nodes: `salloc --nodelist=NODES fabricbench run ...`, or `sbatch`; "
            f"add `--submit` (docs/slurm.md); or set {JOB} to a job of yours that has them",
        )


def are_allocated(nodes: Sequence[str], environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether nodes are all of the batch job that this process runs in, by their names or the first words of these."""
    try:
        job = {name.partition(".")[0] for name in allocated_nodes(environment)}
    except EnvironmentLacks:
        return False
    return bool(nodes) and all(name.partition(".")[0] in job for name in nodes)


def check_allocated(nodes: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError where nodes that came from an allocation are not in the present one: a run goes on on the same nodes."""
    here = set(allocated_nodes(environment))
    missing = [name for name in nodes if name not in here]
    if missing:
        raise UsageError(
            f"the run has nodes of another batch job, which this one does not have: {NodeSet.fromlist(missing)}",
            hint=f"ask for the same nodes, `salloc --nodelist={NodeSet.fromlist(nodes)}` say, or measure anew in this job",
        )
