"""What is looked at around launches: all observers begin before and end after, what they find comes together, and each is timed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fabricbench.campaign import observing
from fabricbench.campaign.observing import MOST_THROTTLED, Observation, Observed, Observers, Quota
from fabricbench.campaign.order import LaunchPlan
from fabricbench.launch.watch import ProgramEnd
from fabricbench.record.lines import ClockInfo, Header, RankInfo
from fabricbench.record.reading import Record

LAUNCH = LaunchPlan(launch_id="b00-net", block=0, position=0, fabric="net", token=1, cells=(0,), estimated_seconds=1.0)
ENDED = ProgramEnd(exit_code=0, seconds=10.0, stderr_tail="")


@dataclass
class Fake:
    """Notes when it was asked, and finds what it is told."""

    name: str
    facts: Mapping[str, Any]
    invalid: tuple[str, ...] = ()
    seconds: float = 0.0
    asked: list[str] = field(default_factory=list)

    def begin(self, launch: LaunchPlan) -> Observation:
        self.asked.append(f"begin {launch.fabric}")
        time.sleep(self.seconds)
        return self

    def end(self, record: Record, ended: ProgramEnd | None) -> Observed:
        del record
        self.asked.append("end" if ended else "end that nobody saw")
        return Observed(self.facts, self.invalid)


def test_all_observers_look_before_and_after_and_what_they_find_comes_together():
    one = Fake("one", {"exit_code": 3}, ("one is wrong",), seconds=0.002)
    other = Fake("other", {"signal": "SIGTERM"}, ("other is wrong",))
    observations = Observers([one, other]).begin(LAUNCH)
    assert (one.asked, other.asked) == (["begin net"], ["begin net"])
    found = observations.end(Record(), ENDED)
    assert (one.asked[1:], other.asked[1:]) == (["end"], ["end"])
    seconds = found.facts["observing_seconds"]
    assert {name: value for name, value in found.facts.items() if name != "observing_seconds"} == {
        "exit_code": 3,
        "signal": "SIGTERM",
    }
    assert found.invalid_because == ("one is wrong", "other is wrong")
    assert set(seconds) == {"one", "other"}
    assert seconds["one"] >= 0.002, "what it took before the launch is in it"


def throttled(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    told = iter(seconds)
    monkeypatch.setattr(observing, "throttled_seconds", lambda: next(told))


def test_a_launch_whose_processors_a_quota_withheld_does_not_count(monkeypatch: pytest.MonkeyPatch):
    throttled(monkeypatch, 1.0, 3.0)
    found = Quota().begin(LAUNCH).end(Record(), ENDED)
    assert found.facts == {"throttled_share": 0.2}
    assert found.invalid_because == ("a quota withheld its processors for 20 % of its time",)


def test_what_a_quota_withheld_from_several_processors_is_shared_among_them(monkeypatch: pytest.MonkeyPatch):
    throttled(monkeypatch, 1.0, 1.8)
    monkeypatch.setattr(observing.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    ranks = tuple(RankInfo(rank=rank, host="a", pid=rank + 1, cpus=(rank,)) for rank in range(4))
    clock = ClockInfo(name="CLOCK_MONOTONIC", resolution_ns=1.0, overhead_ns=1.0, loop_floor_ns=1.0)
    facts = {"launch_id": "b00-net", "fabric": "net", "probe_version": "1", "mpi_library": "MPI", "started_unix_ns": 0}
    header = Header(**facts, ranks=ranks, clock=clock)
    found = Quota().begin(LAUNCH).end(Record(header=header), ENDED)
    assert found == Observed({"throttled_share": pytest.approx(0.02)})


def test_a_little_of_that_is_told_and_harmless(monkeypatch: pytest.MonkeyPatch):
    throttled(monkeypatch, 1.0, 1.0 + 10.0 * MOST_THROTTLED)
    assert Quota().begin(LAUNCH).end(Record(), ENDED) == Observed({"throttled_share": pytest.approx(MOST_THROTTLED)})


def test_of_a_launch_whose_end_nobody_saw_no_share_is_known(monkeypatch: pytest.MonkeyPatch):
    throttled(monkeypatch, 1.0, 3.0)
    assert Quota().begin(LAUNCH).end(Record(), None) == Observed()
