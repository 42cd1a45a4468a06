"""Ray tracing over shared memory as a workload: fabricbench-shared-raytrace, after Raytrace of SPLASH-2.

It is judged by its rate in Mray/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import FigureOfMerit
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import Argument, declared
from fabricbench.workload.shared_pages import PAGE, PageBytes, fetching_seconds

RATE = FigureOfMerit(name="rays", unit="Mray/s", better="higher")

MOST_SIZE, MOST_LEVELS, MOST_SAMPLES, MOST_BOUNCES = 32_768, 8, 16, 16

RAYS_S = 15e6
"""Of one processor, with those that need not be traced as they leave the scene."""
RAYS_OF_A_BOUNCE = 3
"""At most: the ray, and one to each of two lights."""
TRACED = 2
"""Times: the image, and again to verify it."""
BYTES_OF_SPHERE, BYTES_OF_PIXEL = 64, 4


class SharedRaytraceStart(KernelProgramStart):
    """One launch: an image of so many pixels of a scene."""

    program: ClassVar[str] = "fabricbench-shared-raytrace"
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["shared-raytrace"] = "shared-raytrace"
    size: Annotated[int, Field(ge=1, le=MOST_SIZE), Argument("pixels along each side of the image")] = 512
    levels: Annotated[
        int, Field(ge=1, le=MOST_LEVELS), Argument("of spheres that grow on spheres: 1, 7, 37, ... of them")
    ] = 6
    samples: Annotated[
        int, Field(ge=1, le=MOST_SAMPLES), Argument("rays from the eye along each side of a pixel, 2 x 2 for it")
    ] = 2
    bounces: Annotated[int, Field(ge=0, le=MOST_BOUNCES), Argument("how often a ray is mirrored at most")] = 4
    page: Annotated[PageBytes, PAGE] = 4096
    kept: ClassVar[tuple[str, ...]] = ("pages_fetched", "tiles_of_others")

    def rate_of(self, run: KernelRun) -> float:
        """Return what it traced in Mray/s."""
        return run.mops_total or 0.0

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: tracing, then fetching what there is once."""
        pixels = self.size**2
        rays = TRACED * pixels * self.samples**2 * (self.bounces + 1) * RAYS_OF_A_BOUNCE
        spheres = (6 * 5 ** (self.levels - 1) - 2) // 4
        pages = (spheres * BYTES_OF_SPHERE + pixels * BYTES_OF_PIXEL) / self.page + 2
        fetching = fetching_seconds(pages, self.page, self.ranks, pace)
        return self.repetitions * (rays / RAYS_S / pace.computing + fetching)


SHARED_RAYTRACE = declared(
    SharedRaytraceStart, "rays through a scene in shared memory, as SPLASH-2's Raytrace: much computing, few bytes"
)
