"""The campaign `applications`: what the networks are worth to real loads, as many of them as there are on this machine.

Our own loads need nothing and run everywhere: kernels of NPB with few large messages (FT, IS), many small ones (CG, MG) and
next to none (EP), the control, Linpack, HPCG, a convolution by Fourier transforms, an elliptic equation, LU and ray tracing over
shared memory, and steps of training. Of the applications that come with fabricbench those are taken whose programs and input are
here and built for the MPI that starts them; what is missing, the plan says, with where to get it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricbench.campaign.pattern_presets import SHORT_SECONDS, experiment
from fabricbench.campaign.specification import Campaign
from fabricbench.launch.linked import why_of_other_mpi
from fabricbench.launch.mpi import find_starter
from fabricbench.model import Layer, Pattern
from fabricbench.workload.application import shipped
from fabricbench.workload.command import CommandTable, shipped_table
from fabricbench.workload.npb_adapter import NpbTable
from fabricbench.workload.registry import WORKLOADS
from fabricbench.workload.training_step import USUAL_FLOP_S

NAME = "applications"

KERNELS = ("ep", "is", "ft", "cg", "mg")

PROCESSOR_FLOP_S = 1e11
"""What a node without an accelerator does, about. With an accelerator the small model's steps are communication alone, with this
hardly any: a real model's lie between."""

SMALLEST_BYTES = 8
"""Of the round trip that tells what a message takes, without which loads' messages could not be reckoned with."""


@dataclass(frozen=True)
class Size:
    """How large our own loads are. A launch over a lab's fast-ethernet took 0.3 to 11 s at the usual size."""

    name: str
    kernels: Literal["S", "W", "A"]
    equations: int
    hpcg_points: int
    fft_points: int
    elliptic_points: int
    shared_order: int
    image: int
    steps: int

    @property
    def note(self) -> str:
        """What a plan says of it where a budget chose it."""
        return (
            f"loads of {self.name} size, for the budget: NPB class {self.kernels}, HPL n = {self.equations}, "
            f"HPCG {self.hpcg_points}^3 on a rank, the others alike; without a budget they are of {USUAL.name} size"
        )

    @property
    def kernel_keys(self) -> dict[str, dict[str, object]]:
        """What the tables of our own programs say, by their kind."""
        return {
            "hpl": {"n": self.equations},
            "hpcg": {"nx": self.hpcg_points},
            "fft-convolution": {"nx": self.fft_points},
            "elliptic": {"nx": self.elliptic_points},
            "shared-lu": {"n": self.shared_order},
            "shared-raytrace": {"size": self.image},
            "training-step": {"steps": self.steps, "accelerator": [USUAL_FLOP_S, PROCESSOR_FLOP_S]},
        }


SMALL = Size("small", "S", 1000, 16, 32, 64, 256, 256, 1)
USUAL = Size("usual", "W", 2000, 32, 64, 160, 512, 512, 5)
LARGE = Size("large", "A", 4000, 64, 128, 256, 1024, 1024, 10)


@dataclass(frozen=True)
class FoundApplications:
    """The applications that can be run here, and in words those that cannot."""

    tables: tuple[CommandTable, ...] = ()
    missing: tuple[str, ...] = ()


def applications_campaign(found: FoundApplications | None = None, size: Size = USUAL) -> Campaign:
    """Return the campaign for what was found; of None it has our own loads alone."""
    found = FoundApplications() if found is None else found
    return Campaign(
        name=NAME,
        description="real loads: kernels of NPB and of our own, Linpack, HPCG, and the applications that are on this machine",
        blocks=6,
        unfit="leave out",
        experiments=(experiment((Layer.MPI,), Pattern.PINGPONG, (SMALLEST_BYTES,), SHORT_SECONDS),),
        notes=found.missing if size is USUAL else (size.note, *found.missing),
        workloads=(
            NpbTable(benchmarks=KERNELS, classes=(size.kernels,)),
            *(WORKLOADS[kind].table.model_validate(keys) for kind, keys in size.kernel_keys.items()),
            *found.tables,
        ),
    )


def applications_by_size(found: FoundApplications) -> tuple[Campaign, ...]:
    """Return the campaign for what was found in each size, the largest first."""
    return tuple(applications_campaign(found, size) for size in (LARGE, USUAL, SMALL))


def find_applications(
    names: Iterable[str] | None = None, library: Callable[[], str] | None = None
) -> FoundApplications:
    """Return which of the applications that come with fabricbench are here; `library` names the MPI that starts them."""
    tables, missing = [], []
    for name in shipped() if names is None else names:
        one = shipped_table(name)
        lacking = one.lacking({key: values[0] for key, values in one.parameters.items()})
        program = shutil.which(one.first_program)
        if lacking or program is None:
            missing.append(
                f"application {name} is left out: {', '.join(each.what for each in lacking)} is not here; {one.get}"
            )
        elif why := why_of_other_mpi(Path(program), (library or _usual_library)()):
            missing.append(f"application {name} is left out: {why}")
        else:
            tables.append(one)
    return FoundApplications(tuple(tables), tuple(missing))


def _usual_library() -> str:
    return find_starter().library.NAME
