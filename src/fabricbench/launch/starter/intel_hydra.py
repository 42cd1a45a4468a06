"""hydra of Intel MPI: another line for hosts than MPICH's, and ranks are bound by variables."""

from __future__ import annotations

from fabricbench.launch.starter import hydra
from fabricbench.launch.starting import BINDING, Job, Placement
from fabricbench.testbed.model import Binding

NAME = "intel-hydra"
PROGRAMS: tuple[str, ...] = ("mpiexec.hydra", "mpiexec")
REACHES_NODES = False

parse = hydra.parse


def is_it(version_text: str) -> bool:
    """Tell from the output of `mpiexec --version` whether it is Intel's."""
    return "Intel(R) MPI Library" in version_text


def tokens(program: str, job: Job) -> list[str]:
    """Return the tokens that start the job."""
    # One rank a host and around again: rank i is on host i modulo the hosts.
    where = hydra.reaching(job, ("-hosts", ",".join(job.placement.hosts), "-ppn", "1"))
    bound = _bound(job.placement) if BINDING not in job.replaced else {}
    return hydra.whole(program, where, job, {**bound, **job.environment})


def _bound(placement: Placement) -> dict[str, str]:
    binding, threads = placement.layout.binding, placement.layout.threads_per_rank or 1
    if binding is Binding.NONE:
        return {"I_MPI_PIN": "0"}
    return {"I_MPI_PIN_DOMAIN": str(threads) if binding is Binding.CORE and threads > 1 else str(binding)}
