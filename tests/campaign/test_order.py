"""The order of launches: what is compared lies close together, and blocks can be added without changing the earlier ones."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise

import pytest

from fabricbench.campaign.order import (
    CLOSE_SECONDS,
    LaunchPlan,
    groups_of,
    is_close,
    launch_of,
    order_blocks,
    rows_of_williams,
)
from fabricbench.campaign.plan import RunPlan, extend_plan, plan_run
from fabricbench.campaign.specification import Campaign, campaign_of
from fabricbench.errors import UsageError
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.manifest import Extension, PlannedLaunch
from fabricbench.testbed.model import Testbed
from support.applications import PRINTED, TIME, lab_of

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


def orders_of(fabrics: str, blocks: int, seed: int) -> list[list[str]]:
    """The fabric of each launch of the measurer, block by block."""
    launches = list(order_blocks([launch_of(fabric, (0,), 1.0) for fabric in fabrics], range(blocks), seed))
    return [[one.fabric for one in launches if one.block == block] for block in range(blocks)]


@pytest.mark.parametrize("seed", range(20))
def test_two_fabrics_take_turns_at_being_first_from_a_drawn_start(seed: int):
    assert [order[0] for order in orders_of("ab", 7, seed)] in (list("abababa"), list("bababab"))
    assert {orders_of("ab", 1, one)[0][0] for one in range(20)} == {"a", "b"}


@pytest.mark.parametrize("fabrics", ["abc", "abcd", "abcde", "abcdef"])
def test_of_more_fabrics_each_is_as_often_in_each_place_and_right_after_each_other_one(fabrics: str):
    size, blocks = len(fabrics), rows_of_williams(len(fabrics))
    assert blocks == (size if size % 2 == 0 else 2 * size)
    orders = orders_of(fabrics, 2 * blocks, 3)
    for square in (orders[:blocks], orders[blocks:]):
        places = Counter((place, fabric) for order in square for place, fabric in enumerate(order))
        after = Counter(pair for order in square for pair in pairwise(order))
        assert (len(places), len(set(places.values()))) == (size**2, 1)
        assert (len(after), len(set(after.values()))) == (size * (size - 1), 1)
    assert orders[:blocks] != orders[blocks:]


def test_of_two_tests_on_two_fabrics_each_launch_begins_as_many_blocks():
    table = {
        "campaign": {"blocks": 12},
        "experiment": [{"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64]}],
        "npb": [{"benchmarks": ["IS"]}],
    }
    testbed = plan_lab("two", 4, parse_fabrics("fast-ethernet,myrinet"), [0, 1]).testbed()
    for seed in range(8):
        launches = plan_run(campaign_of(table, "two.toml"), testbed, seed=seed).launches
        begins = Counter(one.arm for one in launches if one.position == 0)
        assert sorted(begins.values()) == [3, 3, 3, 3]


def test_a_group_that_an_earlier_version_ran_again_in_another_order_keeps_the_places_of_its_block():
    group = groups_of(plan().launches)[2][1]
    ids = [one.launch_id for one in group.launches]
    again = group.in_order(ids[::-1])
    assert [one.launch_id for one in again.launches] == ids[::-1]
    assert [one.position for one in again.launches] == [one.position for one in group.launches]
    assert group.in_order(ids[1:]) == group


def test_the_cells_of_a_block_follow_each_other_alike_on_all_fabrics_and_otherwise_in_the_next_block():
    cells = tuple(range(5))
    launches = list(order_blocks([launch_of("a", cells, 1.0), launch_of("b", cells, 1.0)], range(10), 3))
    orders = [{one.cells for one in launches if one.block == block} for block in range(10)]
    assert {len(of_block) for of_block in orders} == {1}
    after = Counter(pair for ((*order,),) in orders for pair in pairwise(order))
    assert (len(after), set(after.values())) == (20, {2})


def test_arms_are_close_within_ten_minutes_or_three_times_what_the_group_takes():
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
        (5, False, "--blocks 5 is fewer than the 6"),
        (10_001, False, "10001 blocks are too many"),
        (12, True, "declared final"),
    ],
)
def test_blocks_that_cannot_be_added_are_refused_with_the_reason(blocks: int, is_final: bool, said: str):
    given = plan().model_copy(update={"is_final": is_final})
    with pytest.raises(UsageError, match=said):
        extend_plan(given, extension(blocks))


def test_plans_and_manifests_of_before_tell_the_subject_of_a_launch_in_its_name():
    table = {
        "kind": "command",
        "name": "is-large",
        "command": ["x"],
        "figure": [TIME],
        "success": PRINTED,
        "ranks": [2],
    }
    found = plan_run(campaign_of({"campaign": {"blocks": 2}, "workload": [table]}, "x"), lab_of(), seed=1)
    for launch in (*plan().launches, *found.launches):
        assert launch.subject == ("" if launch.workload is None else launch.workload.name)
        for kind in (LaunchPlan, PlannedLaunch):
            stored = launch.model_dump(mode="json", include=set(kind.model_fields))
            now = kind.model_validate(stored)
            before = kind.model_validate({name: value for name, value in stored.items() if name != "subject"})
            assert before == now
            assert now.subject == launch.subject


def test_no_more_blocks_than_there_are_is_no_extension():
    assert extend_plan(plan(), extension(6)) == plan()
