"""Whether the ranks that a launch had are those of its plan: one check for the measurer, kernels, farms, programs of others. Pure.

A starter and a program's MPI that do not understand each other start so many copies of rank 0 that know nothing of each other, each
of which ends well and prints a plausible figure. What gives them away is what they say of themselves: how many ranks a program of
ours found in MPI_COMM_WORLD; which number each process of another's was given (`workload.counted`); and the MPI that a program
loads, beside the one whose starter started it. A launch of other ranks than planned is void.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from fabricbench.launch.mpi import LIBRARIES
from fabricbench.launch.starting import Library
from fabricbench.quantity import count
from fabricbench.record.workload_cells import RanksFound

MPI, STARTER = "mpi", "starter"
"""Of a launch's conditions: the MPI that its fabric is told to, and what starts its ranks."""

OF_MPICH = frozenset({"MPICH", "Intel MPI", "MVAPICH", "MVAPICH2"})
"""MPIs made of MPICH, whose ranks speak one PMI: each starts those of the others."""

ADVICE = (
    "each process takes itself for the only one where the starter and the program's MPI do not speak the same PMI: start it by the "
    "mpiexec of its own MPI, or name the plugin that it speaks (srun --mpi=pmix or pmi2; `srun --mpi=list` has them)"
)


def rank_violations(found: RanksFound, planned: int, conditions: Mapping[str, str]) -> Iterator[str]:
    """Yield why these cannot be the `planned` ranks of one launch; nothing where they can, or where nobody tells."""
    who = f"started by {conditions.get(STARTER) or 'its starter'} of {conditions.get(MPI) or 'an MPI that is not told'}"
    if (foreign := _other_mpi(found, conditions.get(MPI, ""))) is not None:
        yield f"the program loads {found.mpi_library}, and was {who}: {foreign}"
    if (why := _why_not(found, planned)) is not None:
        yield f"{why}, {who}: {ADVICE}"


def _why_not(found: RanksFound, planned: int) -> str | None:
    if found.count is not None and found.count != planned:
        return f"the program found {count(found.count, 'rank')} in MPI_COMM_WORLD, and {planned} were asked for"
    told = Counter(found.numbers)
    twice = next((rank for rank, times in told.items() if times > 1), None)
    if twice is not None:
        return f"{told[twice]} processes say that they are rank {twice} of {planned}: copies that know nothing of each other"
    other = next((size for size in found.sizes if size != planned), None)
    if other is not None:
        return f"a process was told that it is one of {other}, and {planned} were asked for"
    lacking = [rank for rank in range(planned) if rank not in told]
    if any(rank >= planned for rank in told) or (lacking and not found.may_lack and found.count is None):
        ranks = f"rank{'' if len(told) == 1 else 's'} {', '.join(map(str, told))}" if told else "no rank at all"
        return (
            f"{ranks} told that it runs, needed 0 to {planned - 1}; the starter must start so many ranks and pass on what each "
            "writes to stdout"
        )
    return None


def _other_mpi(found: RanksFound, starting: str) -> str | None:
    """Return what follows where a program loads another MPI than the one that starts it; None elsewhere, or if nobody knows."""
    if not found.is_over_mpi or not found.mpi_library:
        return None
    program, starter = _library(found.mpi_library), _library(starting)
    if program is None or starter is None or program.NAME == starter.NAME or {program.NAME, starter.NAME} <= OF_MPICH:
        return None
    return (
        f"{starter.NAME} starts no ranks of {program.NAME}, and is told the fabric in variables that {program.NAME} does not read; "
        f"build the program with {starter.NAME}, or name a {program.NAME} in [[mpi]] of the testbed"
    )


def _library(text: str) -> Library | None:
    """Return whose a text is: what a library says of its version, or the name that stands in a launch's conditions."""
    return next((one for one in LIBRARIES if one.is_it(text) or text.startswith(f"{one.NAME} ")), None)
