"""The order of launches: blocks, the groups of launches within them that are compared, and when a group is run again. Pure.

A *group* is what a block sets side by side: one measurement on each fabric. What a comparison rests on is the ratio within a group,
and only what was the same for both halves cancels there, so the launches of a group follow one another, and where one of them is
to be run again, all of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fabricbench.record.manifest import PlannedLaunch
from fabricbench.workload.adapter import Start
from fabricbench.workload.registry import AnyStart

CLOSE_SECONDS = 600.0
"""Halves that begin within ten minutes count as measured together: the same load and the same temperature, nearly always."""

CLOSE_FACTOR = 3.0
"""And within so many times what the whole group is estimated to take: a group of long workloads is never closer than that."""


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
    workload: AnyStart | None = None

    @property
    def half(self) -> tuple[str, str]:
        """Its fabric, and its workload's name, empty for the measurer: what every block measures once."""
        return self.fabric, "" if self.workload is None else self.workload.name

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


@dataclass(frozen=True)
class Half:
    """What every block starts once: a measurement on a fabric. `cells` are in the order of their ids."""

    fabric: str
    cells: tuple[int, ...]
    estimated_seconds: float
    workload: Start | None = None

    @property
    def subject(self) -> str:
        """What is measured, alike on every fabric: the name of the workload; empty for the measurer."""
        return "" if self.workload is None else self.workload.name


@dataclass(frozen=True)
class Group:
    """The launches of a block that are compared with one another, in their order."""

    block: int
    subject: str
    launches: tuple[LaunchPlan, ...]

    @property
    def name(self) -> str:
        """How people are told of it."""
        return f"{self.subject} in block {self.block}" if self.subject else f"block {self.block}"

    @property
    def close_seconds(self) -> float:
        """The longest time from the first start to the last in which its halves count as measured together."""
        return max(CLOSE_SECONDS, CLOSE_FACTOR * sum(launch.estimated_seconds for launch in self.launches))

    def again(self, seed: int, number: int) -> Group:
        """Return the group in a fresh random order, the `number`-th time that it is run again, in the same places of its block."""
        launches = list(self.launches)
        Random(f"{seed} block {self.block} {self.subject} again {number}").shuffle(launches)  # noqa: S311 - order, not secrecy
        return self._placed(launches)

    def in_order(self, order: Sequence[str]) -> Group:
        """Return the group in the order of these launch ids; as it is where they are not its own."""
        named = {launch.launch_id: launch for launch in self.launches}
        return self._placed([named[each] for each in order]) if sorted(named) == sorted(order) else self

    def _placed(self, launches: Sequence[LaunchPlan]) -> Group:
        places = sorted(launch.position for launch in launches)
        placed = (one.model_copy(update={"position": place}) for one, place in zip(launches, places, strict=True))
        return Group(self.block, self.subject, tuple(placed))


def order_blocks(halves: Sequence[Half], blocks: Iterable[int], seed: int) -> Iterator[LaunchPlan]:
    """Yield the launches of blocks: groups in random order, and within each the fabrics in random order.

    Seeded by text, so that a block's order does not change when another block is added.
    """
    for block in blocks:
        random = Random(f"{seed} block {block}")  # noqa: S311
        subjects = list(dict.fromkeys(half.subject for half in halves))
        random.shuffle(subjects)
        position = 0
        for subject in subjects:
            group = [half for half in halves if half.subject == subject]
            random.shuffle(group)
            for half in group:
                yield _launch(half, block, position, seed)
                position += 1


def _launch(half: Half, block: int, position: int, seed: int) -> LaunchPlan:
    name = f"b{block:02d}-{half.fabric}"
    token, cells = 0, list(half.cells)
    if half.workload is not None:
        name += f"-{half.workload.name}"
    else:
        random = Random(f"{seed} block {block} {half.fabric}")  # noqa: S311
        random.shuffle(cells)
        token = random.getrandbits(32)
    return LaunchPlan(
        launch_id=name,
        block=block,
        position=position,
        fabric=half.fabric,
        token=token,
        cells=tuple(cells),
        estimated_seconds=half.estimated_seconds,
        workload=half.workload,
    )


def halves_of(launches: Sequence[LaunchPlan], fabrics: Sequence[str]) -> list[Half]:
    """Return what each block of a plan starts, as its last block has it: `order_blocks` makes the same blocks of it, and more.

    Blocks differ where the run went on without nodes that failed: those to come are as the last.
    """
    last = [launch for launch in launches if launch.block == launches[-1].block]
    halves = [Half(one.fabric, tuple(sorted(one.cells)), one.estimated_seconds, one.workload) for one in last]
    # As the plan had them before any shuffling: the measurer first, then workloads by their cell; fabrics as the testbed has them.
    return sorted(
        halves, key=lambda half: (half.workload is not None, half.workload and half.cells, fabrics.index(half.fabric))
    )


def groups_of(launches: Sequence[LaunchPlan]) -> list[list[Group]]:
    """Return the groups of each block in the order in which they begin; a plan of an earlier version may have scattered them."""
    blocks = []
    for block, of_block in groupby(launches, key=lambda launch: launch.block):
        found: dict[str, list[LaunchPlan]] = {}
        for launch in of_block:
            found.setdefault("" if launch.workload is None else launch.workload.name, []).append(launch)
        blocks.append([Group(block, subject, tuple(group)) for subject, group in found.items()])
    return blocks


def is_close(group: Group, started: Iterable[float], now: float) -> bool:
    """Tell whether launches of a group that started then (Unix seconds) can be paired with one that starts now."""
    return all(abs(now - each) <= group.close_seconds for each in started)
