"""Ray tracing over shared memory as a workload: fabricbench-shared-raytrace, after Raytrace of SPLASH-2.

[[workload]]
kind = "shared-raytrace"
size = [512, 1024]           # pixels along each side of the image; default 512; all of these but repetitions may be lists
levels = 6                   # of spheres that grow on spheres: 1, 7, 37, ... of them; default 6, at most 8
samples = 2                  # rays from the eye along each side of a pixel, 2 x 2 for it; default 2
bounces = 4                  # how often a ray is mirrored at most; default 4
page = "4KiB"                # what is fetched at once, a power of two; default 4 KiB
ranks = [4]                  # default "all": one on each node; any number
repetitions = 3              # runs in one start

It is judged by its rate in Mray/s. A wrong result is no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from statistics import median
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import Figure, FigureFound
from fabricbench.workload.adapter import Kind, LeftOut, Place, Ranks, Seats, Start, WorkloadTable, seated
from fabricbench.workload.kernel_program import EACH_ONCE, ONE_OR_MORE, KernelProgramStart
from fabricbench.workload.pace import Pace
from fabricbench.workload.shared_pages import USUAL_PAGE_BYTES, PageBytes, Pages, fetching_seconds

RATE = Figure(name="rays", unit="Mray/s", better="higher")
TIME = Figure(name="time", unit="s", better="lower")

USUAL_SIZE, MOST_SIZE = 512, 32_768
USUAL_LEVELS, MOST_LEVELS = 6, 8
USUAL_SAMPLES, MOST_SAMPLES = 2, 16
USUAL_BOUNCES, MOST_BOUNCES = 4, 16

RAYS_S = 15e6
"""Of one processor, with those that need not be traced as they leave the scene."""
RAYS_OF_A_BOUNCE = 3
"""At most: the ray, and one to each of two lights."""
TRACED = 2
"""Times: the image, and again to verify it."""
BYTES_OF_SPHERE, BYTES_OF_PIXEL = 64, 4

Size = Annotated[int, Field(ge=1, le=MOST_SIZE)]
Levels = Annotated[int, Field(ge=1, le=MOST_LEVELS)]
Samples = Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
Bounces = Annotated[int, Field(ge=0, le=MOST_BOUNCES)]


class SharedRaytraceStart(KernelProgramStart):
    """One launch: an image of so many pixels of a scene."""

    program: ClassVar[str] = "fabricbench-shared-raytrace"
    rate: ClassVar[Figure] = RATE
    kind: Literal["shared-raytrace"] = "shared-raytrace"
    size: Size = USUAL_SIZE
    levels: Levels = USUAL_LEVELS
    samples: Samples = USUAL_SAMPLES
    bounces: Bounces = USUAL_BOUNCES
    page: PageBytes = USUAL_PAGE_BYTES

    @property
    def values(self) -> dict[str, str | int | float]:
        """The image, the scene and the pages."""
        return {name: getattr(self, name) for name in ("size", "levels", "samples", "bounces", "page")}

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters."""
        del place
        return self.values

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs."""
        yield RATE.found(median(run.mops_total or 0.0 for run in runs))
        yield TIME.found(median(run.seconds for run in runs))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield the most pages that ranks fetched, and the most tiles that they took from queues of others."""
        for name in ("pages_fetched", "tiles_of_others"):
            yield name, max(run.values.get(name) or 0.0 for run in runs)

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: tracing, then fetching what there is once."""
        pixels = self.size**2
        rays = TRACED * pixels * self.samples**2 * (self.bounces + 1) * RAYS_OF_A_BOUNCE
        spheres = (6 * 5 ** (self.levels - 1) - 2) // 4
        pages = (spheres * BYTES_OF_SPHERE + pixels * BYTES_OF_PIXEL) / self.page + 2
        fetching = fetching_seconds(pages, self.page, self.ranks, pace)
        return self.repetitions * (rays / RAYS_S / pace.computing + fetching)


class SharedRaytraceTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric."""

    kind: Literal["shared-raytrace"] = "shared-raytrace"
    size: Annotated[tuple[Size, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_SIZE,)
    levels: Annotated[tuple[Levels, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_LEVELS,)
    samples: Annotated[tuple[Samples, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_SAMPLES,)
    bounces: Annotated[tuple[Bounces, ...], ONE_OR_MORE, EACH_ONCE] = (USUAL_BOUNCES,)
    page: Pages = (USUAL_PAGE_BYTES,)
    ranks: Ranks = "all"
    repetitions: int = Field(default=1, ge=1, le=1000)

    def plan(self, seats: Seats) -> Iterator[Start | LeftOut]:
        """Yield a start for each number of ranks that the testbed seats and each combination of parameters."""
        counts, left_out = seated(self.kind, self.ranks, seats, lambda _: True, "any number")
        yield from left_out
        pictures = product(self.size, self.levels, self.samples, self.bounces, self.page)
        for ranks, (size, levels, samples, bounces, page) in product(counts, pictures):
            yield SharedRaytraceStart(
                size=size,
                levels=levels,
                samples=samples,
                bounces=bounces,
                page=page,
                ranks=ranks,
                repetitions=self.repetitions,
            )


SHARED_RAYTRACE = Kind(
    "shared-raytrace",
    "rays through a scene in shared memory, as SPLASH-2's Raytrace: much computing, few bytes",
    SharedRaytraceTable,
    SharedRaytraceStart,
)
