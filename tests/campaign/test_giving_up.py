"""A workload that never starts is stopped, and the others go on; one that fails now and then is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.failure import AttemptEnd, Failure
from fabricbench.campaign.giving_up import ALIKE_EVERYWHERE, ALIKE_ON_A_FABRIC, Stop, Trials
from fabricbench.campaign.order import LaunchPlan
from fabricbench.launch.launcher import Command
from fabricbench.workload.npb_adapter import KernelStart

KERNEL = KernelStart(benchmark="IS", problem_class="S", ranks=2)


def launch(fabric: str, block: int = 0) -> LaunchPlan:
    return LaunchPlan(
        launch_id=f"b{block:02d}-{fabric}-{KERNEL.name}",
        block=block,
        position=0,
        fabric=fabric,
        token=0,
        cells=(0,),
        estimated_seconds=1.0,
        workload=KERNEL,
    )


def failure(
    fabric: str, log: str = "no such library", code: int = 1, ended: AttemptEnd = AttemptEnd.WITH_AN_ERROR
) -> Failure:
    return Failure(launch(fabric), Command((), Path()), ended, "ended", True, log, code)


def printed(fabric: str, text: str) -> Failure:
    """A start that told its end on stdout alone."""
    command = Command((), Path())
    return Failure(launch(fabric), command, AttemptEnd.WITH_AN_ERROR, "ended", True, "", 1, stdout_tail=text)


def trials(*failures: Failure, fabrics: tuple[str, ...] = ("a", "b")) -> Trials:
    found = Trials(launch(fabric, block) for fabric in fabrics for block in range(6))
    for one in failures:
        found.note_failure(one)
    return found


def test_what_fails_alike_on_every_fabric_is_stopped_after_its_first_block():
    found = trials(failure("a"), failure("a"), failure("b"))
    assert found.review() == [Stop(KERNEL.name, ("a", "b"), ALIKE_EVERYWHERE)]
    assert found.is_stopped(launch("a", 3))
    assert found.review() == []


def test_programs_that_tell_their_end_on_stdout_fail_alike_where_that_is_alike():
    assert trials(printed("a", "no input"), printed("a", "no input"), printed("b", "no input")).review()
    assert not trials(printed("a", "at 0x1"), printed("a", "at 0x2"), printed("b", "at 0x3")).review()


def test_what_fails_on_one_fabric_alone_is_stopped_there_and_goes_on_on_the_other():
    found = trials(*[failure("a")] * ALIKE_ON_A_FABRIC)
    found.note_finished(launch("b"))
    assert found.review() == [Stop(KERNEL.name, ("a",), ALIKE_ON_A_FABRIC)]
    assert not found.is_stopped(launch("b", 3))


@pytest.mark.parametrize(
    "failures",
    [
        (failure("a"), failure("a")),
        (failure("a"), failure("a"), failure("a")),
        (failure("a"), failure("a"), failure("b", code=2)),
        (failure("a"), failure("a"), failure("b", ended=AttemptEnd.HUNG)),
        (failure("a", log="pid 7"), failure("a", log="pid 8"), failure("b", log="pid 9")),
    ],
)
def test_too_few_failures_or_different_ones_stop_nothing(failures: tuple[Failure, ...]):
    assert trials(*failures).review() == []


def test_logs_that_differ_each_time_need_twice_as_many():
    found = trials(*[failure("ab"[n % 2], log=f"pid {n}") for n in range(2 * ALIKE_EVERYWHERE)])
    assert len(found.review()) == 1


def test_what_has_measured_once_is_never_stopped_however_often_it_fails():
    found = trials(*[failure("ab"[n % 2]) for n in range(20)])
    for fabric in "ab":
        found.note_finished(launch(fabric))
    assert found.review() == []


def test_a_measurer_is_none_of_its_affairs():
    found = trials()
    measurer = launch("a").model_copy(update={"workload": None, "subject": ""})
    for _ in range(9):
        found.note_failure(Failure(measurer, Command((), Path()), AttemptEnd.WITH_AN_ERROR, "ended", False, "", 1))
    assert found.review() == []
    assert not found.is_stopped(measurer)
