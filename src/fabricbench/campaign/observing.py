"""What is looked at around every launch beside what its ranks measure: emulated switches, settings of hosts, quotas of processors.

An observer begins before a launch is started and ends once it is over; what the ranks' hosts count around each cell the measurer
reads itself (native/core/counters.hpp). How long each looks is measured and kept with the launch, of which it is no part.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from fabricbench.campaign.order import LaunchPlan
from fabricbench.campaign.plan import RunPlan
from fabricbench.launch.launcher import Launcher, OnThisMachine
from fabricbench.launch.watch import ProgramEnd
from fabricbench.record.reading import Record
from fabricbench.settings.session import SettingsSession
from fabricbench.testbed.allowance import throttled_seconds

MOST_THROTTLED = 0.05
"""Of a launch's time: where a quota withheld the processors for more of it, its times are the quota's and not the fabric's."""


@dataclass(frozen=True)
class Observed:
    """What an observer found of a launch: fields of `LaunchFacts`, and why the launch does not count, if it does not."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    invalid_because: tuple[str, ...] = ()


class Observation(Protocol):
    """A launch that an observer has begun to look at."""

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        """Look once more and return what was found; `ended` is None where nobody saw the launch's end."""


class Observer(Protocol):
    """Something that is looked at before every launch and after it. `name` is what its cost is kept under."""

    name: str

    def begin(self, launch: LaunchPlan) -> Observation:
        """Look before a launch is started."""


@dataclass(frozen=True)
class _Began:
    """An observation that has begun, under its observer's name."""

    name: str
    observation: Observation


class Observers:
    """All observers of a run."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def begin(self, launch: LaunchPlan) -> Observations:
        """Have all look before a launch is started."""
        seconds: dict[str, float] = {}
        began = []
        for one in self._observers:
            with _timed(seconds, one.name):
                began.append(_Began(one.name, one.begin(launch)))
        return Observations(tuple(began), seconds)


@dataclass(frozen=True)
class Observations:
    """What all observers have begun to look at of one launch, and how long that took each."""

    began: tuple[_Began, ...]
    seconds: dict[str, float]

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        """Have all look once more, and return together what they found, with what looking took in all (`observing_seconds`)."""
        facts: dict[str, Any] = {}
        invalid: tuple[str, ...] = ()
        seconds = dict(self.seconds)
        for one in self.began:
            with _timed(seconds, one.name):
                found = one.observation.end(record, ended)
            facts |= found.facts
            invalid += found.invalid_because
        return Observed({**facts, "observing_seconds": seconds}, invalid)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin


def observers_of(plan: RunPlan, launcher: Launcher, settings: SettingsSession | None) -> Observers:
    """Return what is observed of a run: switches always, settings where they are varied, quotas where the ranks are here."""
    found: list[Observer] = [Switches(plan, launcher)]
    if settings is not None:
        found.append(Settings(settings))
    if isinstance(launcher, OnThisMachine):
        found.append(Quota())
    return Observers(found)


class Switches:
    """The counters of emulated switches, and how late the launch's own was during each cell; nothing of real fabrics."""

    name = "switches"

    def __init__(self, plan: RunPlan, launcher: Launcher) -> None:
        self._plan, self._launcher = plan, launcher

    def begin(self, launch: LaunchPlan) -> Observation:
        """Read the counters."""
        return _SwitchesOf(self._plan, self._launcher, launch, self._launcher.switches())


@dataclass(frozen=True)
class _SwitchesOf:
    plan: RunPlan
    launcher: Launcher
    launch: LaunchPlan
    before: dict[str, Any]

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        del ended  # they count whatever became of it
        after = self.launcher.switches()
        lateness = self.launcher.lateness(self.plan.fabric(self.launch.fabric), spans_of(record))
        return Observed({"switches_before": self.before, "switches_after": after, "lateness": lateness})


class Settings:
    """Settings of hosts that the campaign varies: whether they held. What they were before, the session has read already."""

    name = "settings"

    def __init__(self, session: SettingsSession) -> None:
        self._session = session

    def begin(self, launch: LaunchPlan) -> Observation:
        """Read nothing: they were brought to what the launch's fabric sets of them, and read back."""
        return _SettingsOf(self._session, launch)


@dataclass(frozen=True)
class _SettingsOf:
    session: SettingsSession
    launch: LaunchPlan

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        del record
        if ended is None:
            return Observed()
        held, wrong = self.session.look(self.launch.fabric)
        return Observed({"settings": held}, wrong)


class Quota:
    """Quotas of processors (of a container, say) over ranks of this machine: for how much of a launch they withheld them.

    The kernel adds up what it withheld from each processor: a rank has had the mean of those that ranks can have used.
    """

    name = "quota"

    def begin(self, launch: LaunchPlan) -> Observation:
        """Read for how long they have so far."""
        del launch
        return _QuotaOf(throttled_seconds())


@dataclass(frozen=True)
class _QuotaOf:
    before: float

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        if ended is None:
            return Observed()
        ranks = len(record.header.ranks) if record.header is not None else 1
        processors = min(max(ranks, 1), len(os.sched_getaffinity(0)))
        share = min(1.0, (throttled_seconds() - self.before) / processors / ended.seconds)
        withheld = f"a quota withheld its processors for {100.0 * share:.0f} % of its time"
        return Observed({"throttled_share": share}, (withheld,) if share > MOST_THROTTLED else ())


def spans_of(record: Record, *, staged: bool = False) -> dict[int, tuple[int, int]]:
    """Return when each finished cell began and ended, where the record tells, or each whose stages were measured."""
    ends = [cell.end for cell in record.cells if cell.end is not None and (cell.stages or not staged)]
    return {
        end.cell: (end.begin_unix_ns, end.end_unix_ns)
        for end in ends
        if end.begin_unix_ns is not None and end.end_unix_ns is not None
    }
