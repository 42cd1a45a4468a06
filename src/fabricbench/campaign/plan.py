"""The plan of a run: every launch, in the order in which it is to be started, and what each measures. Pure: no clock, no files.

Blocks hold one launch on each fabric and one of each kernel on each, in random order; the cells of a launch are in random
order too, so that drift and neighbours hit all fabrics and cells alike (Hoefler and Belli 2015; Hunold and Carpen-Amarie 2015).
All randomness comes from the seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from fabricbench.campaign.budget import fit_budget, unscaled
from fabricbench.campaign.cells import PlannedCell, plan_cells, window_messages
from fabricbench.campaign.estimate import START_SECONDS, launch_seconds
from fabricbench.campaign.kernels import KernelStart, PlannedKernel, plan_kernels
from fabricbench.campaign.noise import Noise, usual_noise
from fabricbench.campaign.specification import FEWEST_BLOCKS, MOST_BLOCKS, Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.decision_table import prices_of
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan
from fabricbench.testbed.model import Fabric, Testbed

RECORDS_FILE = "records.jsonl"


class LaunchPlan(PlannedLaunch):
    """One start of a program: its place in the order, its fabric, its cells in their order.

    It is the measurer that is started, and with `kernel` that kernel.
    """

    token: int
    cells: tuple[int, ...]
    estimated_seconds: float
    kernel: KernelStart | None = None


class RunPlan(Model):
    """Everything that a run will start. `notes` says what was left out or shortened, and why.

    `cells` is indexed by cell id; how many messages of a stream make a sample depends on the fabric and is set by `probe_plan`.
    """

    campaign: str
    seed: int
    blocks: int
    ranks: int
    fabrics: tuple[Fabric, ...]
    cells: tuple[PlanProbe, ...]
    launches: tuple[LaunchPlan, ...]
    notes: tuple[str, ...] = ()

    @property
    def estimated_seconds(self) -> float:
        """The seconds that the whole run takes at most, by the stopping bounds of its cells."""
        return sum(launch.estimated_seconds for launch in self.launches)

    def fabric(self, name: str) -> Fabric:
        """Return the fabric of that name."""
        return next(fabric for fabric in self.fabrics if fabric.name == name)

    def ranks_of(self, launch: LaunchPlan) -> int:
        """Return how many ranks a launch starts."""
        return self.ranks if launch.kernel is None else launch.kernel.ranks

    def probe_plan(self, launch: LaunchPlan) -> ProbePlan:
        """Return what the measurer is told in that launch."""
        fabric = self.fabric(launch.fabric)
        return ProbePlan(
            launch_id=launch.launch_id,
            token=launch.token,
            fabric=PlanFabric(name=fabric.name, interface=fabric.interface, subnet=fabric.subnet, mtu=fabric.mtu),
            output=RECORDS_FILE,
            probes=tuple(
                probe.model_copy(update={"messages_per_sample": window_messages(probe, fabric)})
                for probe in (self.cells[cell] for cell in launch.cells)
            ),
        )


def plan_run(
    campaign: Campaign,
    testbed: Testbed,
    *,
    seed: int,
    budget_seconds: float | None = None,
    blocks: int | None = None,
    noise: Noise | None = None,
) -> RunPlan:
    """Return the plan of a campaign on a testbed; UsageError where the testbed cannot carry what the campaign asks for.

    A budget changes blocks and the length of cells, but not `blocks` that are given; by which noise, `noise` says, else the
    testbed's usual one.
    """
    if blocks is not None and blocks < FEWEST_BLOCKS:
        raise UsageError(
            f"{blocks} blocks are too few", hint=f"at least {FEWEST_BLOCKS}: one block has nothing to compare with"
        )
    if blocks is not None and blocks > MOST_BLOCKS:
        raise UsageError(f"{blocks} blocks are too many", hint=f"at most {MOST_BLOCKS}")
    if campaign.decision is not None:
        prices_of(
            campaign.decision, testbed.fabrics
        )  # what cannot be weighed is to be said now, not after hours of measuring
    cell_plan = plan_cells(campaign, testbed)
    kernel_plan = plan_kernels(campaign, testbed, len(cell_plan.cells))
    kernels = kernel_plan.kernels
    asked = blocks if blocks is not None else campaign.blocks
    fixed = sum(_kernel_seconds(one, testbed.fabric(fabric)) for one in kernels for fabric in one.fabrics)
    scaling = (
        unscaled(asked)
        if budget_seconds is None
        else fit_budget(
            cell_plan.cells,
            testbed.fabrics,
            asked,
            budget_seconds,
            noise or usual_noise(testbed.launcher),
            is_blocks_fixed=blocks is not None,
            fixed_seconds=fixed,
        )
    )
    cells = tuple(scaling.scale(cell) for cell in cell_plan.cells)
    return RunPlan(
        campaign=campaign.name,
        seed=seed,
        blocks=scaling.blocks,
        ranks=1 + max(rank for probe in _probes(cells) or _probes(kernels) for rank in _ranks(probe)),
        fabrics=testbed.fabrics,
        cells=(*_probes(cells), *_probes(kernels)),
        launches=tuple(_launches(cells, kernels, testbed, scaling.blocks, seed)),
        notes=(*cell_plan.notes, *kernel_plan.notes, *scaling.notes),
    )


def _probes(planned: Iterable[PlannedCell | PlannedKernel]) -> tuple[PlanProbe, ...]:
    return tuple(one.probe for one in planned)


def _kernel_seconds(kernel: PlannedKernel, fabric: Fabric) -> float:
    return START_SECONDS + kernel.start.expected_seconds(fabric)


def _ranks(probe: PlanProbe) -> tuple[int, ...]:
    return (*probe.ranks, *(probe.congestor.ranks if probe.congestor is not None else ()))


def _launches(
    cells: tuple[PlannedCell, ...], kernels: tuple[PlannedKernel, ...], testbed: Testbed, blocks: int, seed: int
) -> Iterable[LaunchPlan]:
    # Seeded by text, so that a block's order does not change when another block is added.
    measured = [(fabric, None) for fabric in testbed.fabrics if any(fabric.name in cell.fabrics for cell in cells)]
    run = [(testbed.fabric(name), kernel) for kernel in kernels for name in kernel.fabrics]
    for block in range(blocks):
        order: list[tuple[Fabric, PlannedKernel | None]] = [*measured, *run]
        Random(f"{seed} block {block}").shuffle(order)  # noqa: S311 - order, not secrecy
        for position, (fabric, kernel) in enumerate(order):
            if kernel is None:
                yield _measuring(cells, fabric, block, position, seed)
            else:
                yield LaunchPlan(
                    launch_id=f"b{block:02d}-{fabric.name}-{kernel.start.name}",
                    block=block,
                    position=position,
                    fabric=fabric.name,
                    token=0,
                    cells=(kernel.probe.id,),
                    estimated_seconds=_kernel_seconds(kernel, fabric),
                    kernel=kernel.start,
                )


def _measuring(cells: tuple[PlannedCell, ...], fabric: Fabric, block: int, position: int, seed: int) -> LaunchPlan:
    random = Random(f"{seed} block {block} {fabric.name}")  # noqa: S311
    carried = [cell.probe for cell in cells if fabric.name in cell.fabrics]
    ids = [probe.id for probe in carried]
    random.shuffle(ids)
    return LaunchPlan(
        launch_id=f"b{block:02d}-{fabric.name}",
        block=block,
        position=position,
        fabric=fabric.name,
        token=random.getrandbits(32),
        cells=tuple(ids),
        estimated_seconds=launch_seconds(carried, fabric),
    )
