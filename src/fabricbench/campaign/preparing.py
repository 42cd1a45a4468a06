"""What a campaign and a testbed by name and a few numbers become: the venue, the plan there, the noise that it is planned with."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fabricbench.campaign.asked_doors import refuse_unknown_doors
from fabricbench.campaign.cells import carries
from fabricbench.campaign.noise import NoiseProfile, usual_noise
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.presets import PRESETS, preset, preset_by_size
from fabricbench.campaign.specification import Campaign, read_campaign
from fabricbench.campaign.stored_noise import read_noise
from fabricbench.campaign.venue import Standing, Venue, find_venue, in_conditions
from fabricbench.errors import UsageError
from fabricbench.native import doors
from fabricbench.quantity import enumeration, parse_seconds
from fabricbench.record.store import Run
from fabricbench.testbed.model import Testbed


@dataclass(frozen=True)
class Prepared:
    """A campaign, where it is to be run, its plan there, and the noise that it is planned with."""

    campaign: Campaign
    venue: Venue
    plan: RunPlan
    noise: NoiseProfile


def prepare(
    campaign: str,
    testbed: str,
    nodes: int | None,
    budget: str | None,
    blocks: int | None,
    seed: int | None,
    noise_from: Path | None = None,
) -> Prepared:
    """Return the plan that the options ask for; UsageError says which of them cannot be."""
    return prepare_in(find_venue(testbed, nodes), campaign, budget, blocks, seed, noise_from)


def prepare_in(
    venue: Venue,
    campaign: str,
    budget: str | None,
    blocks: int | None,
    seed: int | None,
    noise_from: Path | None = None,
) -> Prepared:
    """Return the plan of a campaign in a venue; UsageError says which of the options cannot be."""
    seed = secrets.randbits(32) if seed is None else seed
    seconds = None if budget is None else budget_seconds(budget)

    def prepared(campaign: Campaign) -> Prepared:
        carriers, wanted = _carrying(venue, campaign)
        if any("door" in each.parameters or each.congestor for each in wanted.experiments):
            refuse_unknown_doors(wanted, doors())
        place = in_conditions(carriers, wanted.conditions)
        testbed = place.testbed()
        noise = _noise(noise_from, testbed)
        plan = plan_run(wanted, testbed, seed=seed, budget_seconds=seconds, blocks=blocks, noise=noise)
        return Prepared(wanted, place, plan, noise)

    *larger, least = _find_campaigns(campaign, has_budget=seconds is not None)
    for wanted in larger:
        with suppress(UsageError):  # of a budget that is too small for it, or of what the least will say as well
            found = prepared(wanted)
            if found.plan.blocks >= (wanted.blocks if blocks is None else blocks):
                return found
    return prepared(least)


def _carrying(venue: Venue, campaign: Campaign) -> tuple[Venue, Campaign]:
    """Return a venue without the fabrics that have no layer of a campaign, where that leaves out what fabrics cannot carry.

    Its notes name them. Where no fabric has any, all stay, for the plan to say so.
    """
    if not isinstance(venue, Standing) or campaign.unfit == "refuse" or campaign.workloads or campaign.conditions:
        return venue, campaign
    given = venue.given
    carriers = tuple(
        one for one in given.fabrics if any(carries(one, experiment) for experiment in campaign.experiments)
    )
    others = [one.name for one in given.fabrics if one not in carriers]
    if not others or not carriers:
        return venue, campaign
    note = f"{enumeration(others)} left out: no layer there that the campaign measures"
    return (
        Standing(given=given.model_copy(update={"fabrics": carriers})),
        campaign.model_copy(update={"notes": (*campaign.notes, note)}),
    )


def _noise(run: Path | None, testbed: Testbed) -> NoiseProfile:
    if run is None:
        return usual_noise(testbed.launcher)

    return read_noise(Run.open(run))


def _find_campaigns(text: str, *, has_budget: bool) -> tuple[Campaign, ...]:
    """Return the campaign, or where a budget may choose among sizes of it all of them, the largest first."""
    if text not in PRESETS and (text.endswith(".toml") or "/" in text or Path(text).exists()):
        return (read_campaign(Path(text)),)
    return preset_by_size(text) if has_budget else (preset(text),)


def budget_seconds(text: str) -> float:
    """Return the seconds that `--budget` was given; UsageError where that is none, or no time at all."""
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise UsageError(f"--budget: {error}", hint="write 5min, 90s or 2h") from error
    if seconds <= 0:
        raise UsageError(f"--budget {text} leaves no time", hint="write 5min, 90s or 2h")
    return seconds
