"""The plan of a run: every launch, in the order in which it is to be started, and what each measures.

Blocks hold one launch on each fabric and one of each workload on each, in balanced orders, what is compared next to each other
(`order`); the cells of a block in balanced orders too, so that drift and neighbours hit all fabrics and cells alike (Hoefler and
Belli 2015; Hunold and Carpen-Amarie 2015). All randomness comes from the seed, and no clock is read. Workloads that
fit themselves to this machine (`workloads`) look at its processors, its memory, and files that they name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from pydantic import model_validator

from fabricbench.campaign.budget import fit_budget, unscaled
from fabricbench.campaign.cells import PlannedCell, plan_cells, window_messages
from fabricbench.campaign.estimate import (
    acknowledgement_notes,
    launch_seconds,
    patience_of,
    patience_seconds,
)
from fabricbench.campaign.noise import NoiseProfile, usual_noise
from fabricbench.campaign.order import LaunchPlan, arms_of, launch_of, order_blocks
from fabricbench.campaign.specification import FEWEST_BLOCKS, Campaign
from fabricbench.campaign.workloads import plan_workloads
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.quantity import count, enumeration, format_seconds_between
from fabricbench.record.decision_table import prices_of
from fabricbench.record.launch_files import RECORDS
from fabricbench.record.manifest import MOST_BLOCKS, Extension, NodeLoss, gave_up_blocks
from fabricbench.record.probe_plan import PlanFabric, PlanProbe, ProbePlan
from fabricbench.testbed.model import Fabric, Mpi, Testbed, mpi_of

HARDWARE_COUNTERS_NOTE = (
    "hardware counters are open while ranks are measured, which slows receivers that sleep: "
    "compare with runs that have them too"
)


class RunPlan(Model):
    """Everything that a run will start. `notes` says what was left out or shortened, and why.

    A plan that `is_final` takes no more blocks, so its verdicts need not pay for looks to come (`statistics.correction`);
    `extensions` tells how it has grown, `losses` which nodes it goes on without. `ranks` is how many there were at the beginning.

    `mpis` are the testbed's; `mpi_of` tells which one a fabric is measured with.

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
    is_final: bool = False
    extensions: tuple[Extension, ...] = ()
    losses: tuple[NodeLoss, ...] = ()
    mpis: tuple[Mpi, ...] = ()
    budget_seconds: float | None = None
    pause: tuple[float, float] = (0.0, 0.0)
    """Between which seconds the pauses before its launches are drawn."""
    hardware_counters: bool = False

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> RunPlan:
        fabrics = {fabric.name for fabric in self.fabrics}
        ids = Counter(launch.launch_id for launch in self.launches)
        for launch in self.launches:
            if ids[launch.launch_id] > 1:
                raise ValueError(f"launch {launch.launch_id} is planned {ids[launch.launch_id]} times")
            if launch.fabric not in fabrics:
                raise ValueError(
                    f"launch {launch.launch_id} is on fabric {launch.fabric!r}, which the plan does not have"
                )
            if launch.block >= self.blocks:
                raise ValueError(f"launch {launch.launch_id} is in block {launch.block} of {self.blocks}")
            if any(not 0 <= cell < len(self.cells) for cell in launch.cells):
                raise ValueError(f"launch {launch.launch_id} has a cell that the plan does not have")
        return self

    @property
    def estimated_seconds(self) -> float:
        """The seconds that the whole run is expected to take, by the stopping bounds of its cells, with its pauses."""
        return sum(launch.estimated_seconds + launch.pause_seconds for launch in self.launches)

    @property
    def patient_seconds(self) -> float:
        """The seconds that operations take at most beyond that, where their ranks seldom begin together."""
        return sum(patience_of(self.cells[cell]) for launch in self.launches for cell in launch.cells)

    def fabric(self, name: str) -> Fabric:
        """Return the fabric of that name."""
        return next(fabric for fabric in self.fabrics if fabric.name == name)

    def mpi_of(self, fabric: str) -> Mpi | None:
        """Return the MPI that a fabric is measured with; None: the one that fabricbench was built with."""
        return mpi_of(self.mpis, self.fabric(fabric))

    def ranks_of(self, launch: LaunchPlan) -> int:
        """Return how many ranks a launch starts."""
        if launch.workload is not None:
            return launch.workload.ranks
        return next((loss.ranks for loss in reversed(self.losses) if launch.block not in loss.kept), self.ranks)

    @property
    def lost_nodes(self) -> tuple[str, ...]:
        """The nodes that failed and that it goes on without."""
        return tuple(node for loss in self.losses for node in loss.reasons)

    def probe_plan(self, launch: LaunchPlan) -> ProbePlan:
        """Return what the measurer is told in that launch."""
        fabric = self.fabric(launch.fabric)
        cells = [self.cells[cell] for cell in launch.cells]
        return ProbePlan(
            launch_id=launch.launch_id,
            token=launch.token,
            fabric=PlanFabric(
                name=fabric.name, interface=fabric.interface, subnet=fabric.subnet, mtu=fabric.mtu, rdma=fabric.rdma
            ),
            output=RECORDS,
            probes=tuple(
                probe.model_copy(update={"messages_per_sample": window_messages(probe, fabric)}) for probe in cells
            ),
            patience_seconds=patience_seconds(cells, fabric),
            hardware_counters=self.hardware_counters,
        )


def plan_run(
    campaign: Campaign,
    testbed: Testbed,
    *,
    seed: int,
    budget_seconds: float | None = None,
    blocks: int | None = None,
    noise: NoiseProfile | None = None,
) -> RunPlan:
    """Return the plan of a campaign on a testbed; UsageError where the testbed cannot carry what the campaign asks for.

    A budget changes blocks and the length of cells, but not `blocks` that are given; by which noise, `noise` says, else the
    testbed's usual one.
    """
    if blocks is not None and blocks < FEWEST_BLOCKS:
        raise UsageError(
            f"--blocks {blocks} is too few", hint=f"at least {FEWEST_BLOCKS}: one block has nothing to compare with"
        )
    if blocks is not None:
        _check_not_too_many(blocks)
    if campaign.decision is not None:  # what cannot be weighed is to be said now, not after hours of measuring
        prices_of(campaign.decision, testbed.fabrics)
    cell_plan = plan_cells(campaign, testbed)
    workload_plan = plan_workloads(campaign, testbed, len(cell_plan.cells))
    asked = blocks if blocks is not None else campaign.blocks
    pause_seconds = sum(campaign.pause) / 2
    fixed = sum(one.estimated_seconds + pause_seconds for one in workload_plan.arms)
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
            pause_seconds=pause_seconds,
        )
    )
    cells = tuple(scaling.scale(cell) for cell in cell_plan.cells)
    return RunPlan(
        campaign=campaign.name,
        seed=seed,
        blocks=scaling.blocks,
        ranks=_ranks_needed(cells, workload_plan.probes),
        fabrics=testbed.fabrics,
        cells=(*_probes(cells), *workload_plan.probes),
        launches=tuple(
            order_blocks([*_arms(cells, testbed), *workload_plan.arms], range(scaling.blocks), seed, campaign.pause)
        ),
        notes=(
            *campaign.notes,
            *cell_plan.notes,
            *workload_plan.notes,
            *scaling.notes,
            *_standing_by(testbed),
            *_pauses(campaign.pause),
            *((HARDWARE_COUNTERS_NOTE,) if campaign.hardware_counters else ()),
            *_too_few(scaling.blocks, len(testbed.fabrics)),
            *acknowledgement_notes(
                ((cell.probe, cell.fabrics) for cell in cells), {fabric.name: fabric for fabric in testbed.fabrics}
            ),
        ),
        mpis=testbed.mpis,
        budget_seconds=budget_seconds,
        pause=campaign.pause,
        hardware_counters=campaign.hardware_counters,
    )


def _standing_by(testbed: Testbed) -> Iterable[str]:
    """Yield which nodes of a fabric's own set are not measured."""
    for fabric, nodes in testbed.standing_by.items():
        seats = count(testbed.seats, "node")
        yield f"{fabric} joins {enumeration(nodes)} as well, not measured: every fabric is measured over {seats}"


def _pauses(pause: tuple[float, float]) -> Iterable[str]:
    """Yield that launches wait for each other, where they do."""
    if pause[1]:
        drawn = ", drawn at random" if pause[0] < pause[1] else ""
        yield f"nothing is measured for {format_seconds_between(*pause)} between two launches{drawn}"


def _too_few(blocks: int, fabrics: int) -> Iterable[str]:
    """Yield that so few blocks give no verdict between fabrics, before any is measured."""
    from fabricbench.statistics.decision import (  # noqa: PLC0415 - SciPy is slow to import
        EQUIVALENT_LAUNCHES,
        FEWEST_PAIRS,
    )

    if blocks < FEWEST_PAIRS and fabrics > 1:
        yield (
            f"{count(blocks, 'block')} give no verdict between fabrics: it takes {FEWEST_PAIRS} at least, and "
            f"{EQUIVALENT_LAUNCHES} to call two equivalent; what each fabric does is measured all the same"
        )


def extend_plan(plan: RunPlan, extension: Extension, *, fewest: int | None = None) -> RunPlan:
    """Return the plan with more blocks, as the same seed orders them; UsageError where it cannot have them.

    With fewer down to `fewest` (None: all that it has), beyond which nothing is measured, it gives up the last blocks.
    """
    blocks = extension.blocks
    if blocks == plan.blocks:
        return plan
    if blocks < (plan.blocks if fewest is None else max(fewest, FEWEST_BLOCKS)):
        raise UsageError(
            f"--blocks {blocks} is fewer than the {count(plan.blocks, 'block')} that the run has",
            hint="--blocks says how many there are to be in all; nothing measured is ever taken away",
        )
    _check_not_too_many(blocks)
    if plan.is_final:
        raise UsageError(
            f"the run was declared final: its verdicts have spent the whole error on {count(plan.blocks, 'block')}",
            hint="measure anew, with as many blocks as you need and without --final",
        )
    if gave_up_blocks(plan.losses, plan.launches[-1].block):
        raise UsageError(
            "the run has given up its blocks without the nodes that failed, and no other can be measured",
            hint="measure anew, on a testbed without these nodes",
        )
    if blocks < plan.blocks:
        return shorten_plan(plan, extension)
    arms = arms_of(plan.launches, [fabric.name for fabric in plan.fabrics])
    added = tuple(order_blocks(arms, range(plan.blocks, blocks), plan.seed, plan.pause))
    return plan.model_copy(
        update={
            "blocks": blocks,
            "launches": (*plan.launches, *added),
            "extensions": (*plan.extensions, extension),
            "budget_seconds": None,
        }
    )


def shorten_plan(plan: RunPlan, extension: Extension) -> RunPlan:
    """Return the plan without the blocks beyond those of `extension`.

    A final plan, too, can be shortened by its budget, which decides without a look at the data; people cannot (`extend_plan`).
    """
    kept = tuple(launch for launch in plan.launches if launch.block < extension.blocks)
    return plan.model_copy(
        update={"blocks": extension.blocks, "launches": kept, "extensions": (*plan.extensions, extension)}
    )


def plan_without(
    plan: RunPlan,
    campaign: Campaign,
    testbed: Testbed,
    failed: Mapping[str, str],
    finished: Collection[str],
    *,
    unix_ns: int,
) -> RunPlan:
    """Return the plan where nodes have `failed` (each with the reason): what is not `finished` (launch ids) is on the rest.

    `testbed` is the one of the beginning. A block is on the same nodes as a whole, so one that is half done is begun again. The
    campaign is asked for anew on the rest: its cells are others (ids of their own), each as long as before; what the rest cannot
    carry is left out. UsageError where nothing can be measured on it any more.
    """
    lost = {*plan.lost_nodes, *failed}
    if len(lost) >= len(testbed.nodes):
        raise UsageError("no node is left")
    rest = testbed.without(lost)
    if bare := [fabric.name for fabric in rest.fabrics if not rest.joined_by(fabric)]:
        raise UsageError(f"no node of fabric {', '.join(bare)} is left")
    blocks = {launch.block for launch in plan.launches}
    kept = blocks - {launch.block for launch in plan.launches if launch.launch_id not in finished}
    asked = campaign.model_copy(update={"unfit": "leave out"})
    cell_plan = plan_cells(asked, rest)
    first = len(plan.cells)
    cells = tuple(_renumbered(cell, first + cell.probe.id, plan.cells) for cell in cell_plan.cells)
    workload_plan = plan_workloads(asked, rest, first + len(cells))
    if not cells and not workload_plan.probes:
        raise UsageError(f"the rest of the nodes can carry nothing of campaign {campaign.name}")
    arms = [*_arms(cells, rest), *workload_plan.arms]
    again = order_blocks(arms, sorted(blocks - kept), plan.seed, plan.pause)
    launches = [*(launch for launch in plan.launches if launch.block in kept), *again]
    loss = NodeLoss(
        reasons=dict(failed),
        kept=tuple(sorted(kept)),
        ranks=_ranks_needed(cells, workload_plan.probes),
        left_out=tuple(note for note in (*cell_plan.notes, *workload_plan.notes) if note not in plan.notes),
        unix_ns=unix_ns,
    )
    return plan.model_copy(
        update={
            "cells": (*plan.cells, *_probes(cells), *workload_plan.probes),
            "launches": tuple(sorted(launches, key=lambda launch: launch.block)),
            "losses": (*plan.losses, loss),
        }
    )


def _renumbered(cell: PlannedCell, number: int, before: Iterable[PlanProbe]) -> PlannedCell:
    """Return a cell of the same campaign on fewer nodes with an id of its own, measured as long as the plan's budget had it."""
    like = (probe.stopping for probe in before if _asked_for(probe) == _asked_for(cell.probe))
    stopping = next(like, cell.probe.stopping)
    return cell.model_copy(update={"probe": cell.probe.model_copy(update={"id": number, "stopping": stopping})})


def _asked_for(probe: PlanProbe) -> object:
    """Return what a cell is whichever ranks it is among."""
    one = probe.congestor
    beside = None if one is None else (one.layer, one.pattern, one.message_bytes, one.parameters, one.is_idle)
    return probe.layer, probe.pattern, probe.message_bytes, probe.receive, probe.parameters, beside


def _ranks_needed(cells: tuple[PlannedCell, ...], workloads: tuple[PlanProbe, ...]) -> int:
    return 1 + max(rank for probe in _probes(cells) or workloads for rank in _ranks(probe))


def _check_not_too_many(blocks: int) -> None:
    if blocks > MOST_BLOCKS:
        raise UsageError(f"{blocks} blocks are too many", hint=f"at most {MOST_BLOCKS}")


def _probes(planned: Iterable[PlannedCell]) -> tuple[PlanProbe, ...]:
    return tuple(one.probe for one in planned)


def _ranks(probe: PlanProbe) -> tuple[int, ...]:
    return (*probe.ranks, *(probe.congestor.ranks if probe.congestor is not None else ()))


def _arms(cells: tuple[PlannedCell, ...], testbed: Testbed) -> Iterator[LaunchPlan]:
    for fabric in testbed.fabrics:
        carried = [cell.probe for cell in cells if fabric.name in cell.fabrics]
        if carried:
            yield launch_of(fabric.name, (probe.id for probe in carried), launch_seconds(carried, fabric))
