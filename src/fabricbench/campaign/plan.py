"""The plan of a run: every launch, in the order in which it is to be started, and what each measures. Pure: no clock, no files.

Blocks hold one launch on each fabric in random order; the cells of a launch are in random order too, so that drift and neighbours
hit all fabrics and cells alike (Hoefler and Belli 2015; Hunold and Carpen-Amarie 2015). All randomness comes from the seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from fabricbench.campaign.budget import Scaling, fit_budget, unscaled
from fabricbench.campaign.cells import PlannedCell, plan_cells, window_messages
from fabricbench.campaign.estimate import launch_seconds
from fabricbench.campaign.specification import FEWEST_BLOCKS, MOST_BLOCKS, Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan
from fabricbench.testbed.model import Fabric, Testbed

RECORDS_FILE = "records.jsonl"


class LaunchPlan(PlannedLaunch):
    """One start of the measurer: its place in the order, its fabric, its cells in their order."""

    token: int
    cells: tuple[int, ...]
    estimated_seconds: float


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
    campaign: Campaign, testbed: Testbed, *, seed: int, budget_seconds: float | None = None, blocks: int | None = None
) -> RunPlan:
    """Return the plan of a campaign on a testbed; UsageError where the testbed cannot carry what the campaign asks for."""
    if blocks is not None and blocks < FEWEST_BLOCKS:
        raise UsageError(
            f"{blocks} blocks are too few", hint=f"at least {FEWEST_BLOCKS}: one block has nothing to compare with"
        )
    if blocks is not None and blocks > MOST_BLOCKS:
        raise UsageError(f"{blocks} blocks are too many", hint=f"at most {MOST_BLOCKS}")
    cell_plan = plan_cells(campaign, testbed)
    asked = blocks if blocks is not None else campaign.blocks
    fabrics = [fabric.name for fabric in testbed.fabrics]
    scaling = unscaled(asked) if budget_seconds is None else fit_budget(cell_plan.cells, fabrics, asked, budget_seconds)
    cells = tuple(scaling.shorten(cell) for cell in cell_plan.cells)
    return RunPlan(
        campaign=campaign.name,
        seed=seed,
        blocks=scaling.blocks,
        ranks=1 + max(rank for cell in cells for rank in _ranks(cell.probe)),
        fabrics=testbed.fabrics,
        cells=tuple(cell.probe for cell in cells),
        launches=tuple(_launches(cells, fabrics, scaling, seed)),
        notes=(*cell_plan.notes, *scaling.notes),
    )


def _ranks(probe: PlanProbe) -> tuple[int, ...]:
    return (*probe.ranks, *(probe.congestor.ranks if probe.congestor is not None else ()))


def _launches(cells: tuple[PlannedCell, ...], fabrics: list[str], scaling: Scaling, seed: int) -> Iterable[LaunchPlan]:
    # Seeded by text, so that a block's order does not change when another block is added.
    for block in range(scaling.blocks):
        order = list(fabrics)
        Random(f"{seed} block {block}").shuffle(order)  # noqa: S311 - order, not secrecy
        for position, fabric in enumerate(order):
            random = Random(f"{seed} block {block} {fabric}")  # noqa: S311
            carried = [cell.probe for cell in cells if fabric in cell.fabrics]
            ids = [probe.id for probe in carried]
            random.shuffle(ids)
            yield LaunchPlan(
                launch_id=f"b{block:02d}-{fabric}",
                block=block,
                position=position,
                fabric=fabric,
                token=random.getrandbits(32),
                cells=tuple(ids),
                estimated_seconds=launch_seconds(carried),
            )
