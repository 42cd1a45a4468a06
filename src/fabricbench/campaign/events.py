"""What a run tells while it goes on; whoever wants to show progress takes these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fabricbench.campaign.order import Group, LaunchPlan


@dataclass(frozen=True)
class NodesAsked:
    """The preflight goes on: so many of the nodes have answered, or will not."""

    answered: int
    nodes: int


@dataclass(frozen=True)
class RunStarted:
    """The first event of the measuring: how many launches there are and how many are already finished."""

    launches: int
    finished: int
    blocks: int
    seconds_left: float


@dataclass(frozen=True)
class LaunchStarted:
    """A launch begins; `attempt` counts from 1."""

    launch: LaunchPlan
    attempt: int
    seconds_left: float


@dataclass(frozen=True)
class Tick:
    """Time passes while a launch goes on."""

    seconds_left: float


@dataclass(frozen=True)
class LaunchFinished:
    """A launch is measured and stored. `violations` is not empty where its path proof failed and it is not believed."""

    launch: LaunchPlan
    seconds: float
    cells: int
    failed: int
    violations: tuple[str, ...]


@dataclass(frozen=True)
class LaunchFailed:
    """A launch did not come to its end."""

    launch: LaunchPlan
    reason: str
    is_retried: bool


@dataclass(frozen=True)
class GroupAgain:
    """The launches that are compared within a block are run again, all of them; `set_aside` of them were finished already."""

    group: Group
    set_aside: int
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something to be told loudly, once."""

    text: str


Event = NodesAsked | RunStarted | LaunchStarted | Tick | LaunchFinished | LaunchFailed | GroupAgain | Notice

Notify = Callable[[Event], None]
"""Takes the events of a run, one after the other."""
