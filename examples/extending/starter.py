"""gforker, which MPICH brings along: it starts all ranks on this machine, as children of its own."""

from __future__ import annotations

from fabricbench.errors import UsageError
from fabricbench.launch.starter import hydra
from fabricbench.launch.starting import Job

NAME = "gforker"
PROGRAMS: tuple[str, ...] = ("mpiexec.gforker",)
REACHES_NODES = False

parse = hydra.parse  # it takes variables as hydra does


def is_it(version_text: str) -> bool:
    """Tell it by the usage that it prints: it knows no `--version`."""
    return "-usize <universesize>" in version_text


def tokens(program: str, job: Job) -> list[str]:
    """Return the tokens that start the job; UsageError where its ranks belong on several nodes."""
    if job.placement.hosts:
        raise UsageError(f"{NAME} starts ranks on this machine only", hint='write launcher = "local" into the testbed')
    variables = [token for name, value in job.environment.items() for token in ("-genv", name, value)]
    return [program, "-n", str(job.placement.ranks), *variables, *job.arguments, *job.program]
