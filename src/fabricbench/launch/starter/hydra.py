"""hydra, the starter of MPICH."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fabricbench.launch.starting import (
    AGENT,
    BINDING,
    CONTROL,
    DIRECTORY,
    NODES,
    RANKS,
    REACHING,
    WORKING_DIRECTORY,
    Given,
    Job,
    Options,
    Placement,
)
from fabricbench.preload import PRELOAD, joined
from fabricbench.testbed.model import Binding

NAME = "hydra"
PROGRAMS: tuple[str, ...] = ("mpiexec.hydra", "mpiexec")
REACHES_NODES = False

LOOPBACK = "127.0.0.1"

SETTING = ("genv", "env")
HANDING_ON = ("genvlist", "envlist")
OPTIONS = Options(
    ours={
        RANKS: ("n", "np"),
        NODES: (
            *("hosts", "host", "hostlist", "machine", "machines", "machinelist"),
            *("f", "hostfile", "machinefile", "ppn", "rankmap"),
        ),
        REACHING: ("launcher", "bootstrap"),
        DIRECTORY: ("wdir",),
    },
    yielding={
        BINDING: ("bind-to", "binding"),
        CONTROL: ("iface", "localhost"),
        AGENT: ("launcher-exec", "bootstrap-exec"),
    },
    valued=(
        *("genvlist", "envlist", "configfile", "rmk", "topolib", "map-by", "membind", "demux", "gpus-per-proc"),
        *("nameserver", "order-nodes", "usize", "memory-alloc-kinds", "prepend-pattern"),
        *("outfile-pattern", "outfile", "errfile-pattern", "errfile"),
    ),
    ignores_case=True,
)
"""It takes none of them twice."""


def is_it(version_text: str) -> bool:
    """Tell from the output of `mpiexec --version` whether it is hydra."""
    return "HYDRA" in version_text


def parse(arguments: Sequence[str]) -> Given:
    """Take apart what sets variables: `-genv NAME VALUE`, `-genv NAME=VALUE`, `-genvlist NAME,NAME`."""
    environment: dict[str, str | None] = {}
    rest: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        option = word.lstrip("-").lower() if word.startswith("-") else ""
        if option in SETTING and left and "=" in left[0]:
            name, _, environment_value = left.pop(0).partition("=")
            environment[name] = environment_value
        elif option in SETTING and len(left) > 1:
            name = left.pop(0)
            environment[name] = left.pop(0)
        else:
            rest.append(word)
            if option in HANDING_ON and left:
                environment |= dict.fromkeys(left[0].split(","))
    return Given(environment, tuple(rest), OPTIONS.replaced_by(rest))


def tokens(program: str, job: Job) -> list[str]:
    """Return the tokens that start the job."""
    # With one slot a host, hydra goes around the hosts again where there are more ranks: rank i on host i modulo the hosts.
    where = reaching(job, ("-hosts", ",".join(f"{host}:1" for host in job.placement.hosts)))
    bound = ("-bind-to", _bound_to(job.placement)) if BINDING not in job.replaced else ()
    if job.placement.hosts or job.placement.loopback is None or CONTROL in job.replaced:
        return whole(program, (*where, *bound), job, job.environment)
    # It has no option for where it listens, only for the address that its proxies are told.
    preload = joined(job.placement.loopback, os.environ.get(PRELOAD))
    on_loopback = (*where, "-localhost", LOOPBACK, *bound)
    return ["env", f"{PRELOAD}={preload}", *whole(program, on_loopback, job, job.environment)]


def reaching(job: Job, hosts: Sequence[str]) -> tuple[str, ...]:
    """Return how any hydra reaches the nodes of a job, `hosts` being the options that name them."""
    placement, replaced = job.placement, job.replaced
    if not placement.hosts:
        return ("-launcher", "fork")
    where = ["-launcher", "ssh"]
    if placement.agent is not None and AGENT not in replaced:
        where += ["-launcher-exec", str(placement.agent)]
    if placement.control_interface is not None and CONTROL not in replaced:
        where += ["-iface", placement.control_interface]
    return (*where, "-wdir", WORKING_DIRECTORY, *hosts)


def whole(program: str, options: Sequence[str], job: Job, environment: Mapping[str, str]) -> list[str]:
    """Return the whole command of any hydra: options, ranks, variables, the testbed's arguments, the program."""
    variables = [token for name, value in environment.items() for token in ("-genv", name, value)]
    return [program, *options, "-n", str(job.placement.ranks), *variables, *job.arguments, *job.program]


def _bound_to(placement: Placement) -> str:
    binding, threads = placement.layout.binding, placement.layout.threads_per_rank or 1
    return f"{binding}:{threads}" if binding is Binding.CORE and threads > 1 else str(binding)
