"""What `fabricbench explain --confirm` measures: each cause of a run taken away, beside the same as it was, in the same blocks."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.stages import (
    CauseConfirmation,
    HeldByAcknowledgement,
    InterruptGrid,
    ProcessorWait,
    StageCause,
    Varied,
)
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.stage_rows import stage_effect
from fabricbench.analysis.stages import read_stages
from fabricbench.campaign.condition import Condition
from fabricbench.campaign.noise import usual_noise
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preparing import Prepared
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.trust import check_trust
from fabricbench.campaign.venue import OwnLab, Standing, Venue, in_conditions
from fabricbench.cli.run import measure
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record.store import Run

SECONDS = 1.0
"""Of a test: some 20 messages of a delayed acknowledgement."""
BLOCKS = 6
"""The fewest launches whose median has an interval of 95 %."""
CONFIDENCE = 0.95

AS_IT_WAS = Condition(name="as-it-was")
UNCOALESCED = Condition(name="uncoalesced", coalesce={"adaptive-rx": False, "rx-usecs": 0})


def confirm(causes: Iterable[StageCause], run: Path, folder: Path, blocks: int | None) -> list[CauseConfirmation]:
    """Measure what would confirm each cause of a run, where the run took place, and return what came out.

    Each kind of cause has a run of its own in `folder`. What a host does not let be varied is said, not raised.
    """
    known = list(causes)
    if not known:
        return []
    directory = RunDirectory(run)
    stored = directory.read_plan()
    check_trust(directory, stored)
    venue = stored.place
    if not isinstance(venue, OwnLab | Standing):
        raise UsageError(
            f"{run} varies conditions of its fabrics, or compares one with itself: a cause is confirmed on fabrics as they are",
            hint="measure the testbed alone: `fabricbench explain RUNDIR --testbed WHERE --confirm DIR`",
        )
    found: list[CauseConfirmation] = []
    found += _vary_nodelay(
        [one for one in known if isinstance(one.subject, HeldByAcknowledgement)], venue, folder, blocks
    )
    found += _vary_coalescing([one for one in known if isinstance(one.subject, InterruptGrid)], venue, folder, blocks)
    found += [CauseConfirmation(cause=one, varied=None) for one in known if isinstance(one.subject, ProcessorWait)]
    return sorted(found, key=lambda one: known.index(one.cause))


def _experiment(key: CellKey, **parameters: tuple[str, ...]) -> Experiment:
    return Experiment(
        layers=(key.layer,),
        pattern=key.pattern,
        message_bytes=(key.message_bytes,),
        receive=(key.receive,),
        parameters={**dict(key.parameters), **parameters},
        stages=True,
        minimum_seconds=SECONDS,
        maximum_seconds=SECONDS,
        warmup_samples=5,
    )


def _measured(
    keys: Iterable[CellKey], venue: Venue, directory: Path, blocks: int | None, **parameters: tuple[str, ...]
) -> Run:
    experiments = tuple(_experiment(key, **parameters) for key in dict.fromkeys(keys))
    campaign = Campaign(name="confirm", blocks=blocks or BLOCKS, unfit="leave out", experiments=experiments)
    plan = plan_run(campaign, venue.testbed(), seed=secrets.randbits(32))
    measure(Prepared(campaign, venue, plan, usual_noise(venue.testbed().launcher)), directory)
    return Run.open(directory)


def _vary_nodelay(
    causes: list[StageCause], venue: Venue, folder: Path, blocks: int | None
) -> Iterator[CauseConfirmation]:
    if not causes:
        return
    directory = folder / "delayed-acknowledgement"
    run = _measured((one.key for one in causes), venue, directory, blocks, nodelay=("off", "on"))
    sides = {side.name: (side, read_stages(side)) for side in read_sides([run])}
    for cause in causes:
        side, cells = sides[cause.fabric]
        # A key has no parameter that is at its default.
        on = cells.get(_without_nodelay(cause.key))
        off = cells.get(cause.key)
        effect = None if off is None or on is None else stage_effect((side, off), (side, on), cause.parts, CONFIDENCE)
        yield CauseConfirmation(cause=cause, varied=Varied.NODELAY, difference=effect)


def _without_nodelay(key: CellKey) -> CellKey:
    return key.model_copy(update={"parameters": tuple(one for one in key.parameters if one[0] != "nodelay")})


def _vary_coalescing(
    causes: list[StageCause], venue: OwnLab | Standing, folder: Path, blocks: int | None
) -> Iterator[CauseConfirmation]:
    if not causes:
        return
    fabrics = tuple(one.fabric for one in causes)
    conditions = tuple(one.model_copy(update={"fabrics": fabrics}) for one in (AS_IT_WAS, UNCOALESCED))
    try:
        run = _measured(
            (one.key for one in causes), in_conditions(venue, conditions), folder / "interrupt-coalescing", blocks
        )
    except (EnvironmentLacks, UsageError) as error:
        for cause in causes:
            yield CauseConfirmation(cause=cause, varied=Varied.COALESCING, why_not=error.message)
        return
    sides = {side.name: (side, read_stages(side)) for side in read_sides([run])}
    for cause in causes:
        (plain, of_plain), (other, of_other) = (sides[f"{cause.fabric}-{one.name}"] for one in conditions)
        effect = None
        if cause.key in of_plain and cause.key in of_other:
            effect = stage_effect((plain, of_plain[cause.key]), (other, of_other[cause.key]), cause.parts, CONFIDENCE)
        yield CauseConfirmation(cause=cause, varied=Varied.COALESCING, difference=effect)
