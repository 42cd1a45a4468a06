"""The starters of Open MPI: prterun of PRRTE (Open MPI 5 and newer), orterun (4).

Ranks that share processors must not be bound, or all of them land on the first core: both bind where they are not told otherwise.
Variables that are Open MPI's parameters are written as such: `-x OMPI_MCA_...` is not meant for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricbench.launch.starting import (
    BINDING,
    DIRECTORY,
    MAPPING,
    MARK,
    NODES,
    RANKING,
    RANKS,
    WORKING_DIRECTORY,
    Given,
    Job,
    Options,
    Placement,
    version_in,
)
from fabricbench.testbed.model import Binding

FIRST_WITH_PRRTE = 5
SETTING, OF_ALL = "-x", "--gmca"
OPTIONS = Options(
    ours={
        RANKS: ("n", "np", "c"),
        NODES: (
            *("host", "H", "hostfile", "machinefile", "rankfile", "rf"),
            *("N", "npernode", "pernode"),
        ),
        DIRECTORY: ("wdir", "wd"),
    },
    yielding={
        BINDING: ("bind-to", "bind-to-core", "bind-to-socket", "bind-to-none"),
        MAPPING: (
            "map-by",
            "bynode",
            "byslot",
            "npersocket",
            "ppr",
            "cpus-per-proc",
            "cpus-per-rank",
            "cpu-set",
            "cpu-list",
        ),
        RANKING: ("rank-by",),
    },
    valued=("tune", "display", "output", "timeout", "prefix", "path", "report-pid", "report-uri", "dvm", "app"),
    alone=("bind-to-core", "bind-to-socket", "bind-to-none", "bynode", "byslot", "pernode"),
    abbreviates=True,
)
"""prterun takes none of the yielding ones twice."""


@dataclass(eq=False)
class OpenMpiStarter:
    """One of the two. `PARAMETERS` are its options for parameters, with the prefix that each has as a variable."""

    NAME: str
    PROGRAMS: tuple[str, ...]
    PARAMETERS: Mapping[str, str]
    AGENT: tuple[str, str]
    CONTROL_INTERFACE: tuple[str, str]
    SCRATCH: tuple[str, str]
    REACHES_NODES: bool = False

    def is_it(self, version_text: str) -> bool:
        """Tell from the output of `mpiexec --version` whether it is this one."""
        if "PRRTE" in version_text:
            return self is PRTERUN
        if "Open MPI" not in version_text and "OpenRTE" not in version_text:
            return False
        major = version_in(version_text).partition(".")[0]
        return (int(major) >= FIRST_WITH_PRRTE if major.isdigit() else True) is (self is PRTERUN)

    def parse(self, arguments: Sequence[str]) -> Given:
        """Take apart what sets variables and parameters: `--mca NAME VALUE`, `-x NAME=VALUE`, `-x NAME`."""
        environment: dict[str, str | None] = {}
        rest: list[str] = []
        left = list(arguments)
        options = {**self.PARAMETERS, OF_ALL: self.PARAMETERS["--mca"]}
        while left:
            word = left.pop(0)
            prefix = options.get(f"--{word.lstrip('-')}") if word.startswith("-") else None
            if prefix is not None and len(left) > 1:
                name = prefix + left.pop(0)
                environment[name] = left.pop(0)
            elif word == SETTING and left and "=" in left[0]:
                name, _, value = left.pop(0).partition("=")
                environment[name] = value
            else:
                rest.append(word)
                if word == SETTING and left:
                    environment[left[0]] = None
        return Given(environment, tuple(rest), OPTIONS.replaced_by(rest))

    def tokens(self, program: str, job: Job) -> list[str]:
        """Return the tokens that start the job."""
        return [
            program,
            "--allow-run-as-root",
            *self._where(job.placement),
            *("-n", str(job.placement.ranks)),
            *_placing(job.placement, job.replaced),
            *(token for name, value in job.environment.items() for token in self._setting(name, value)),
            *(SETTING, MARK),
            *job.arguments,
            *job.program,
        ]

    def _setting(self, name: str, value: str) -> list[str]:
        for option, prefix in self.PARAMETERS.items():
            if name.startswith(prefix):
                return [option, name.removeprefix(prefix), value]
        return [SETTING, f"{name}={value}"]

    def _where(self, placement: Placement) -> list[str]:
        if not placement.hosts:
            return []
        slots = placement.ranks_on_each_host
        where = ["--wdir", WORKING_DIRECTORY, "--host", ",".join(f"{host}:{slots}" for host in placement.hosts)]
        if placement.agent is not None:
            where += [*self.AGENT, str(placement.agent)]
        if placement.control_interface is not None:
            where += [*self.CONTROL_INTERFACE, placement.control_interface]
        if placement.scratch is not None:
            where += [*self.SCRATCH, str(placement.scratch)]
        return where


def _placing(placement: Placement, replaced: frozenset[str]) -> list[str]:
    """Return how ranks are mapped, ranked and bound, but for what the testbed's arguments say."""
    ours = {MAPPING: ("--map-by", _mapped(placement, "")), BINDING: ("--bind-to", str(placement.layout.binding))}
    if not placement.hosts:
        ours[MAPPING] = ("--map-by", f"{_mapped(placement, '')}:OVERSUBSCRIBE")
    elif placement.ranks_on_each_host > 1:  # else the first host is filled before the next one gets a rank
        ours[MAPPING] = ("--map-by", _mapped(placement, "node"))
        ours[RANKING] = ("--rank-by", "node")
    return [token for what, option in ours.items() if what not in replaced and option[1] for token in option]


def _mapped(placement: Placement, by: str) -> str:
    """Return what ranks are mapped by, each with as many cores as it has threads, where it is bound to cores."""
    threads = placement.layout.threads_per_rank or 1
    if placement.layout.binding is not Binding.CORE or threads == 1:
        return by
    return f"{by or 'slot'}:PE={threads}"


PRTERUN = OpenMpiStarter(
    "prterun",
    ("prterun", "mpiexec"),
    {"--mca": "OMPI_MCA_", "--prtemca": "PRTE_MCA_", "--pmixmca": "PMIX_MCA_"},
    AGENT=("--prtemca", "plm_ssh_agent"),
    CONTROL_INTERFACE=("--prtemca", "prte_if_include"),
    SCRATCH=("--prtemca", "prte_tmpdir_base"),
)
ORTERUN = OpenMpiStarter(
    "orterun",
    ("orterun", "mpiexec"),
    {"--mca": "OMPI_MCA_"},
    AGENT=("--mca", "plm_rsh_agent"),
    CONTROL_INTERFACE=("--mca", "oob_tcp_if_include"),
    SCRATCH=("--mca", "orte_tmpdir_base"),
)
