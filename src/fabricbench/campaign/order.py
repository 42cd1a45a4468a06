"""The order of launches: blocks, balanced orders and groups within them, and when a group is run again. Pure.

A *group* is what a block sets side by side: one measurement on each fabric, its *arms*. What a comparison rests on is the ratio
within a group, and only what was the same for both arms cancels there, so the launches of a group follow one another, and where one
of them is to be run again, all of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, model_validator

from fabricbench.record.manifest import PlannedLaunch
from fabricbench.workload.adapter import WorkloadStart
from fabricbench.workload.registry import AnyStart

CLOSE_SECONDS = 600.0
"""Arms that begin within ten minutes count as measured together: the same load and the same temperature, nearly always."""

CLOSE_FACTOR = 3.0
"""And within so many times what the whole group is estimated to take: a group of long workloads is never closer than that."""


Thing = TypeVar("Thing")

LAUNCH_ID = r"^b[0-9]{2,9}-[A-Za-z0-9][A-Za-z0-9._-]*$"


def _goes_nowhere_up(launch_id: str) -> str:
    if ".." in launch_id:
        raise ValueError("found '..', which a launch's name must not hold")
    return launch_id


class LaunchPlan(PlannedLaunch):
    """One start of a program: its place in the order, its fabric, its cells in their order.

    It is the measurer that is started, and with `workload` that one. `launch_id` names its directory, and no other place.
    """

    launch_id: Annotated[str, Field(pattern=LAUNCH_ID, max_length=200), AfterValidator(_goes_nowhere_up)]
    token: int = Field(ge=0, lt=2**32)
    cells: tuple[int, ...] = Field(min_length=1)
    estimated_seconds: float = Field(ge=0, allow_inf_nan=False)
    pause_seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How long nothing is measured before it is started."""
    workload: AnyStart | None = None

    @property
    def arm(self) -> tuple[str, str]:
        """Its fabric, and its subject: what every block measures once."""
        return self.fabric, self.subject

    @property
    def slowness(self) -> float:
        """Times as long as expected it may take before a limit begins to count."""
        return 1.0 if self.workload is None else self.workload.slowness

    @model_validator(mode="before")
    @classmethod
    def _earlier_plans_had_kernels(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "kernel" in data:
            kernel = data["kernel"]
            data = {name: value for name, value in data.items() if name != "kernel"}
            return data if kernel is None else {**data, "workload": kernel}
        return data


def launch_of(
    fabric: str, cells: Iterable[int], estimated_seconds: float, workload: WorkloadStart | None = None
) -> LaunchPlan:
    """Return what every block starts once, as a launch of the first one in no order yet; `cells` are in the order of their ids."""
    subject = "" if workload is None else workload.name
    return LaunchPlan(
        launch_id="-".join(filter(None, ("b00", fabric, subject))),
        subject=subject,
        block=0,
        position=0,
        fabric=fabric,
        token=0,
        cells=tuple(cells),
        estimated_seconds=estimated_seconds,
        workload=workload,
    )


@dataclass(frozen=True)
class Group:
    """The launches of a block that are compared with one another, in their order."""

    block: int
    subject: str
    launches: tuple[LaunchPlan, ...]

    @property
    def name(self) -> str:
        """The group in messages: its subject, and the block."""
        return f"{self.subject} in block {self.block}" if self.subject else f"block {self.block}"

    @property
    def close_seconds(self) -> float:
        """The longest time from the first start to the last in which its arms count as measured together."""
        return max(CLOSE_SECONDS, CLOSE_FACTOR * sum(launch.estimated_seconds for launch in self.launches))

    def in_order(self, order: Sequence[str]) -> Group:
        """Return the group in the order of these launch ids, in the places of its block; as it is where they are not its own."""
        named = {launch.launch_id: launch for launch in self.launches}
        if sorted(named) != sorted(order):
            return self
        places = sorted(launch.position for launch in self.launches)
        placed = (named[each].model_copy(update={"position": at}) for each, at in zip(order, places, strict=True))
        return Group(self.block, self.subject, tuple(placed))


def order_blocks(
    arms: Sequence[LaunchPlan], blocks: Iterable[int], seed: int, pause: tuple[float, float] = (0.0, 0.0)
) -> Iterator[LaunchPlan]:
    """Yield the launches of blocks: groups in a balanced order, and within each the fabrics (`arms`) in a balanced order.

    Before each but the first of all is a pause, drawn evenly between the bounds of `pause`, seconds.

    Seeded by text, so that a block's order does not change when another block is added.
    """
    subjects = list(dict.fromkeys(arm.subject for arm in arms))
    # Two groups that change places as often as two fabrics do would always have the same fabric at the beginning of a block.
    period = len(subjects) if len(subjects) == len("ab") else 1
    for block in blocks:
        position = 0
        for subject in balanced(subjects, block // period, f"{seed} groups"):
            group = [arm for arm in arms if arm.subject == subject]
            for arm in balanced(group, block, f"{seed} fabrics {subject}"):
                drawn = Random(f"{seed} pause {block} {position}").uniform(*pause)  # noqa: S311
                yield _placed(arm, block, position, seed, drawn if block or position else 0.0)
                position += 1


def balanced(things: Sequence[Thing], block: int, seed: str) -> list[Thing]:
    """Return the order of some things in a block, drawn by `seed`, so that over blocks none has an advantage by its place.

    Orders that are drawn anew in each block put one of two fabrics first in all of three blocks in every fourth run, and whatever
    makes the first launch, or the one after a certain other, slower then passes for the fabric. Two things alternate, from a drawn
    start. Of more each comes as often in each place, and as often right after each other one, over all rows of a Williams design:
    Williams, "Experimental designs balanced for the estimation of residual effects of treatments", Austral. J. Sci. Res. A2 (1949).
    Which thing has which letter, and the order of the rows, is drawn for each such square.
    """
    square, place = divmod(block, rows_of_williams(len(things)))
    rows = list(range(rows_of_williams(len(things))))
    letters = list(things)
    if len(letters) == len("ab"):
        Random(seed).shuffle(letters)  # noqa: S311 - order, not secrecy
    else:
        random = Random(f"{seed} square {square}")  # noqa: S311
        random.shuffle(letters)
        random.shuffle(rows)
    return [letters[letter] for letter in williams(len(things), rows[place])]


def rows_of_williams(size: int) -> int:
    """Return how many rows a Williams design has: as many as things, and of an odd number twice as many."""
    return size if size % 2 == 0 or size == 1 else 2 * size


def williams(size: int, row: int) -> list[int]:
    """Return a row of a Williams design of so many things."""
    letters = [((place + 1) // 2 if place % 2 else size - place // 2) + row for place in range(size)]
    letters = [letter % size for letter in letters]
    return letters if row < size else letters[::-1]


def _placed(arm: LaunchPlan, block: int, position: int, seed: int, pause_seconds: float) -> LaunchPlan:
    """Return the launch of an arm in a block, with a name and a token of its own."""
    token, cells = 0, arm.cells
    if arm.workload is None:
        # Alike on all fabrics of a block: what the cell before does to one is then in both arms of its ratio.
        cells = tuple(balanced(cells, block, f"{seed} cells"))
        token = Random(f"{seed} block {block} {arm.fabric}").getrandbits(32)  # noqa: S311
    return arm.model_copy(
        update={
            "launch_id": "-".join(filter(None, (f"b{block:02d}", arm.fabric, arm.subject))),
            "block": block,
            "position": position,
            "token": token,
            "cells": cells,
            "pause_seconds": pause_seconds,
        }
    )


def arms_of(launches: Sequence[LaunchPlan], fabrics: Sequence[str]) -> list[LaunchPlan]:
    """Return what each block of a plan starts, as its last block has it: `order_blocks` makes the same blocks of it, and more.

    Blocks differ where the run went on without nodes that failed: those to come are as the last.
    """
    last = [launch for launch in launches if launch.block == launches[-1].block]
    arms = [launch_of(one.fabric, sorted(one.cells), one.estimated_seconds, one.workload) for one in last]
    # As the plan had them before any shuffling: the measurer first, then workloads by their cell; fabrics as the testbed has them.
    return sorted(
        arms, key=lambda arm: (arm.workload is not None, arm.workload and arm.cells, fabrics.index(arm.fabric))
    )


def groups_of(launches: Sequence[LaunchPlan]) -> list[list[Group]]:
    """Return the groups of each block in the order in which they begin; a plan of an earlier version may have scattered them."""
    blocks = []
    for block, of_block in groupby(launches, key=lambda launch: launch.block):
        found: dict[str, list[LaunchPlan]] = {}
        for launch in of_block:
            found.setdefault(launch.subject, []).append(launch)
        blocks.append([Group(block, subject, tuple(group)) for subject, group in found.items()])
    return blocks


def is_close(group: Group, started: Iterable[float], now: float) -> bool:
    """Tell whether launches of a group that started then (Unix seconds) can be paired with one that starts now."""
    return all(abs(now - each) <= group.close_seconds for each in started)
