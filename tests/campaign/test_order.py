"""The order of launches: what is compared lies close together, and blocks can be added without changing the earlier ones."""

from __future__ import annotations

from itertools import groupby

import pytest

from fabricbench.campaign.order import CLOSE_SECONDS, groups_of, is_close
from fabricbench.campaign.plan import RunPlan, extend_plan, plan_run
from fabricbench.campaign.specification import Campaign, campaign_of
from fabricbench.errors import UsageError
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.manifest import Extension
from fabricbench.testbed.model import Testbed

FABRICS = "fast-ethernet,myrinet,gigabit-ethernet"


def campaign() -> Campaign:
    return campaign_of(
        {
            "campaign": {"blocks": 6},
            "experiment": [{"layers": ["tcp", "mpi"], "pattern": "pingpong", "message_bytes": [64]}],
            "npb": [{"benchmarks": ["IS", "EP", "CG"]}],
        },
        "both.toml",
    )


def lab() -> Testbed:
    return plan_lab("four", 4, parse_fabrics(FABRICS), [0, 1]).testbed()


def plan(blocks: int = 6) -> RunPlan:
    return plan_run(campaign(), lab(), seed=4, blocks=blocks)


def extension(blocks: int) -> Extension:
    return Extension(blocks=blocks, planned=6, measured=6, unix_ns=0)


def test_the_launches_of_a_kernel_and_of_the_measurer_on_all_fabrics_follow_one_another():
    for block in range(6):
        launches = [launch for launch in plan().launches if launch.block == block]
        subjects = [launch.workload.name if launch.workload else "" for launch in launches]
        runs = [(subject, len(list(group))) for subject, group in groupby(subjects)]
        assert sorted(subject for subject, _ in runs) == ["", "cg.W.4", "ep.W.4", "is.W.4"]
        assert {length for _, length in runs} == {3}
        assert [launch.position for launch in launches] == list(range(12))


def test_groups_and_the_fabrics_within_them_come_in_an_order_of_their_own_in_each_block():
    blocks = groups_of(plan(40).launches)
    assert len({tuple(group.subject for group in block) for block in blocks}) > 10
    for subject in ("", "is.W.4"):
        orders = [
            tuple(launch.fabric for launch in group.launches)
            for block in blocks
            for group in block
            if group.subject == subject
        ]
        assert len(set(orders)) == 6


def test_a_group_that_is_run_again_has_a_fresh_order_in_the_same_places():
    group = groups_of(plan().launches)[2][1]
    orders = {tuple(one.launch_id for one in group.again(4, number).launches) for number in range(1, 30)}
    assert len(orders) == 6
    again = group.again(4, 1)
    assert again == group.again(4, 1)
    assert [one.position for one in again.launches] == [one.position for one in group.launches]
    assert {one.launch_id for one in again.launches} == {one.launch_id for one in group.launches}


def test_halves_are_close_within_ten_minutes_or_three_times_what_the_group_takes():
    group = groups_of(plan().launches)[0][0]
    assert group.close_seconds == CLOSE_SECONDS
    long = tuple(launch.model_copy(update={"estimated_seconds": 3600.0}) for launch in group.launches)
    slow = type(group)(group.block, group.subject, long)
    assert is_close(slow, [0.0], 9 * 3600.0)
    assert is_close(group, [0.0, 300.0], 600.0)
    assert not is_close(group, [0.0, 300.0], 601.0)


def test_added_blocks_are_those_that_a_longer_plan_would_have_had():
    assert extend_plan(plan(6), extension(9)).launches == plan(9).launches
    extended = extend_plan(plan(6), extension(9))
    assert (extended.blocks, extended.extensions) == (9, (extension(9),))
    assert RunPlan.model_validate_json(extended.model_dump_json()) == extended


@pytest.mark.parametrize(
    ("blocks", "is_final", "said"),
    [
        (5, False, "5 blocks are fewer than the 6"),
        (10_001, False, "10001 blocks are too many"),
        (12, True, "declared final"),
    ],
)
def test_blocks_that_cannot_be_added_are_refused_with_the_reason(blocks: int, is_final: bool, said: str):
    given = plan().model_copy(update={"is_final": is_final})
    with pytest.raises(UsageError, match=said):
        extend_plan(given, extension(blocks))


def test_no_more_blocks_than_there_are_is_no_extension():
    assert extend_plan(plan(), extension(6)) == plan()
