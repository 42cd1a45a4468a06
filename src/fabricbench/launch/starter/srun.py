"""srun of Slurm (22.05 and newer), within an allocation. It starts the ranks itself: no mpiexec and no ssh is needed.

A launch is a step of the job. `--overlap` lets it share the processors with the shell or the batch script that runs fabricbench,
else it would wait for them for ever. Variables go behind `env`: `--export` cannot write a value with a comma, and srun itself
should not preload what is meant for the ranks. srun orders the nodes as Slurm does, whatever the order in `--nodelist`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.launch.starting import (
    BINDING,
    DIRECTORY,
    NODES,
    RANKS,
    WORKING_DIRECTORY,
    Given,
    Job,
    Options,
    Placement,
    node_list,
)
from fabricbench.testbed.model import Binding

NAME = "srun"
PROGRAMS: tuple[str, ...] = ("srun",)
REACHES_NODES = True

EXPORT, MPI_OPTION = "--export", "--mpi="
OPTIONS = Options(
    ours={
        RANKS: ("ntasks", "n"),
        NODES: ("nodes", "N", "nodelist", "w", "nodefile", "F", "ntasks-per-node", "tasks-per-node"),
        DIRECTORY: ("chdir", "D"),
    },
    yielding={BINDING: ("cpu-bind",)},
    valued=(
        *("account", "accel-bind", "acctg-freq", "bb", "bbf", "begin", "cluster-constraint", "clusters", "comment"),
        *("constraint", "container", "context", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu"),
        *("cpus-per-task", "deadline", "delay-boot", "dependency", "distribution", "epilog", "error", "exclude"),
        *("export-file", "extra", "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node"),
        *("gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "input", "job-name", "jobid", "licenses"),
        *("mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "mpi"),
        *("msg-timeout", "network", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-socket", "open-mode", "output"),
        *("partition", "power", "prefer", "priority", "profile", "prolog", "qos", "relative", "reservation"),
        *("signal", "slurmd-debug", "sockets-per-node", "switches", "task-epilog", "task-prolog", "thread-spec"),
        *("threads", "threads-per-core", "time", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wait"),
        *("wckey", *"ABCGJLMPSTWacdeimopqrtx"),
    ),
    flags="EHOQVXhklsuv",
    abbreviates=True,
)
"""Of what is written twice it takes the last."""
BOUND_TO = {Binding.NONE: "none", Binding.CORE: "cores", Binding.SOCKET: "sockets"}


def is_it(version_text: str) -> bool:
    """Tell from the output of `srun --version`: `slurm 22.05.8`, `slurm-wlm 22.05.8`."""
    return version_text.lower().startswith("slurm")


def plugin_of(told: Sequence[str]) -> str:
    """Return by which plugin the ranks of a step speak with Slurm, from what srun is told: the last `--mpi=` counts."""
    return next((word.partition("=")[2] for word in reversed(told) if word.startswith(MPI_OPTION)), "none")


def plugins_in(said: str) -> tuple[str, ...]:
    """Return the plugins that `srun --mpi=list` names, a line each, and their versions, in a list of one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    versions = [word for line in lines if "available:" in line for word in line.partition("available:")[2].split(",")]
    return tuple(dict.fromkeys([*(line for line in lines if " " not in line), *(word.strip() for word in versions)]))


def parse(arguments: Sequence[str]) -> Given:
    """Take apart what sets variables: `--export=ALL,NAME=VALUE`, of which `--export=ALL` is left."""
    environment: dict[str, str | None] = {}
    rest: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == EXPORT and left:
            word = f"{EXPORT}={left.pop(0)}"
        if word.startswith(f"{EXPORT}="):
            words = word.removeprefix(f"{EXPORT}=").split(",")
            environment |= {name: value for name, is_set, value in (one.partition("=") for one in words) if is_set}
            if handed_on := [one for one in words if "=" not in one]:
                rest.append(f"{EXPORT}={','.join(handed_on)}")
        else:
            rest.append(word)
    return Given(environment, tuple(rest), OPTIONS.replaced_by(rest))


def tokens(program: str, job: Job) -> list[str]:
    """Return the tokens that start the job."""
    placement = job.placement
    return [
        program,
        f"{MPI_OPTION}{job.slurm_pmi}",
        *_where(placement),
        f"--ntasks={placement.ranks}",
        *([f"--cpu-bind={BOUND_TO[placement.layout.binding]}"] if BINDING not in job.replaced else []),
        *([f"--cpus-per-task={threads}"] if (threads := placement.layout.threads_per_rank) is not None else []),
        "--overlap",
        f"{EXPORT}=ALL",
        "--kill-on-bad-exit=1",
        *job.arguments,
        *job.program_in_environment,
    ]


BEHIND_NODE = (
    'stdout=$("$@"); printf "%s\\n" "$stdout" | awk -v node="$SLURMD_NODENAME" '
    '\'{ while (length > 600) { print node ":+ " substr($0, 1, 600); $0 = substr($0, 601) } print node ": " $0 }\''
)
"""A shell's line that runs its arguments and puts the node's name before each line of what they print.

srun hands on lines of up to 1,024 bytes whole, and mixes longer ones of several nodes: they go in parts, all but the last marked.
"""


def on_nodes(program: str, nodes: Sequence[str], tokens: Sequence[str]) -> list[str] | None:
    """Return the tokens that run something else, no MPI program, once on each of several nodes; None of one."""
    if len(nodes) < 2:
        return None
    where = _where(Placement(len(nodes), tuple(nodes)))
    step = (f"--ntasks={len(nodes)}", "--overlap", f"{EXPORT}=ALL", "--kill-on-bad-exit=0")
    return [program, f"{MPI_OPTION}none", *where, *step, "sh", "-c", BEHIND_NODE, "sh", *tokens]


def _where(placement: Placement) -> list[str]:
    if not placement.hosts:
        return ["--nodes=1"]
    hosts = placement.hosts
    is_even = (
        placement.ranks % len(hosts) == 0
    )  # else srun warns that it takes no notice of a number of tasks on each node
    each = [f"--ntasks-per-node={placement.ranks_on_each_host}"] if is_even else []
    # Cyclic: rank i is on host i modulo the hosts, also where there are more ranks.
    around = ["--distribution=cyclic", f"--chdir={WORKING_DIRECTORY}"]
    return [f"--nodes={len(hosts)}", f"--nodelist={node_list(hosts)}", *each, *around]
