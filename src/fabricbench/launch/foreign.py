"""Variables of the caller's shell that would change how ranks start or which way they go, and are taken from a launch.

A shell has them from a batch job (JupyterHub, an editor on a compute node), from a module, or from a profile. An MPI's own starter
reads them all, and hands them on to its ranks: hydra then starts ranks on the nodes of somebody's job, or ends them after a second.
What the testbed sets (`mpi_environment`, `mpi_arguments`, the modules of an [[mpi]]) is set after that, and stays. A starter that
belongs to a batch system, or is the testbed's own, needs its job's variables: nothing is taken from it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CLEARED = "cleared of the caller's shell"
"""Among the conditions of a launch: the variables that were taken from it."""


CLEARED_NOTICE = (
    "not handed on from this shell, for it would change how ranks start or which way they go: {}; what is meant for the ranks "
    "belongs into mpi_environment of the testbed"
)


@dataclass(frozen=True)
class VariablePrefix:
    """Variables by what their names begin with, but for those that begin with one of `kept`.

    `is_told`: their values are kept with the launch. Those of a batch job may hold its keys.
    """

    prefixes: tuple[str, ...]
    kept: tuple[str, ...] = ()
    is_told: bool = True


OF_JOBS = VariablePrefix(
    prefixes=("SLURM_", "SLURMD_", "PBS_", "LSB_", "LS_JOBPID", "PE_HOSTFILE", "COBALT_", "LOADL_", "OAR_", "FLUX_"),
    kept=("SLURM_CONF",),
    is_told=False,
)
"""Nodes, tasks and processors of a batch job."""

OF_RANKS = VariablePrefix(
    prefixes=(
        "PMI_", "PMIX_", "PALS_", "ALPS_APP_", "MPI_LOCAL", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "OMPI_APP_", "MV2_COMM_WORLD_",
    ),
    kept=("PMIX_INSTALL_PREFIX", "PMIX_PREFIX", "PMIX_MCA_"),
    is_told=False,
)  # fmt: skip
"""What a starter told the process that fabricbench runs in: that it is a rank, and where its daemon listens."""

OF_STARTERS = VariablePrefix(
    prefixes=("HYDRA_", "MPIEXEC_", "I_MPI_HYDRA_", "I_MPI_PIN", "I_MPI_PERHOST", "PRTE_MCA_", "PMIX_MCA_"),
)
"""Hosts, launchers, bindings, prefixes of lines and time limits of a starter."""

OF_WAYS = VariablePrefix(
    prefixes=(
        "FI_", "UCX_", "MPIR_CVAR_", "MPICH_", "OMPI_MCA_", "MV2_", "I_MPI_FABRICS", "I_MPI_OFI_", "PSM2_", "PSM3_",
    ),
    kept=("FI_PROVIDER_PATH", "FI_LOG_", "UCX_LOG_", "UCX_MODULE", "MPICH_CC", "MPICH_CXX", "MPICH_FC", "MPICH_F90"),
)  # fmt: skip
"""By which of its ways an MPI goes, and how it is tuned for it."""

KINDS = (OF_JOBS, OF_RANKS, OF_STARTERS, OF_WAYS)


@dataclass(frozen=True)
class Foreign:
    """What is taken from a launch: the names of variables, and in words what they were."""

    names: tuple[str, ...] = ()
    told: str = ""


def foreign(
    handed_on: Iterable[str] = (), *, is_own_job: bool = False, environment: Mapping[str, str] = os.environ
) -> Foreign:
    """Return what is to be taken of an environment.

    `handed_on` are variables whose value the testbed asks for as the caller has it. `is_own_job`: the nodes are those of the batch
    job that this is, by which a starter may reach them.
    """
    stay = set(handed_on)
    names, told = [], []
    for name in sorted(environment):
        kind = next(
            (kind for kind in KINDS if name.startswith(kind.prefixes) and not name.startswith(kind.kept or ("\0",))),
            None,
        )
        if kind is None or name in stay or (is_own_job and kind is OF_JOBS):
            continue
        names.append(name)
        told.append(f"{name}={shlex.quote(environment[name])}" if kind.is_told else name)
    return Foreign(tuple(names), " ".join(told))
