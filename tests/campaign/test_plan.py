from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricbench.campaign.budget import TOLERANCE
from fabricbench.campaign.estimate import START_SECONDS, limit_seconds, seconds_left
from fabricbench.campaign.noise import LAB
from fabricbench.campaign.plan import HARDWARE_COUNTERS_NOTE, RunPlan, extend_plan, plan_run
from fabricbench.campaign.presets import FULL, PRESETS, QUICK
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import find_venue
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.quantity import format_duration
from fabricbench.record.manifest import Extension
from fabricbench.statistics.decision import FEWEST_PAIRS
from fabricbench.testbed.model import Node, Testbed
from fabricbench.testbed.wire import Wire


def campaign_of(*layers: str, sizes: tuple[int, ...] = (64,), unfit: str = "refuse", **more: object) -> Campaign:
    experiment = {"layers": layers, "pattern": "pingpong", "message_bytes": sizes, **more}
    return Campaign.model_validate({"name": "mine", "unfit": unfit, "experiments": [experiment]})


def test_each_block_holds_one_launch_on_each_fabric(testbed: Testbed):
    plan = plan_run(QUICK, testbed, seed=1)
    assert plan.blocks == QUICK.blocks
    for block in range(plan.blocks):
        in_block = [launch for launch in plan.launches if launch.block == block]
        assert Counter(launch.fabric for launch in in_block) == {"slow": 1, "fast": 1}
        assert [launch.position for launch in in_block] == [0, 1]
    assert [launch.block for launch in plan.launches] == sorted(launch.block for launch in plan.launches)
    assert plan.launches[0].launch_id == f"b00-{plan.launches[0].fabric}"


def test_quick_has_the_stages_of_small_messages_and_all_else_as_without_them(testbed: Testbed):
    cells = plan_run(QUICK, testbed, seed=1).cells
    stamped = {(one.layer, one.pattern, one.message_bytes) for one in cells if one.is_stamped}
    assert stamped == {(layer, Pattern.PINGPONG, 64) for layer in (Layer.UDP, Layer.TCP)}
    plain = [(one.layer, one.message_bytes) for one in cells if one.pattern is Pattern.PINGPONG and not one.is_stamped]
    datagrams, streams = (64, 512, 1472, 16_384), (64, 512, 1472, 16_384, 65_536)
    for layer, sizes in {Layer.IP: datagrams, Layer.UDP: datagrams, Layer.TCP: streams, Layer.MPI: streams}.items():
        assert sorted(size for one, size in plain if one is layer) == list(sizes)


def test_pauses_are_drawn_before_each_launch_but_the_first_and_count_in_the_budget(testbed: Testbed):
    waiting = LONG.model_copy(update={"pause": (0.0, 2.0)})
    plan = plan_run(waiting, testbed, seed=1)
    drawn = [launch.pause_seconds for launch in plan.launches]
    assert drawn[0] == 0.0
    assert 0.0 < min(drawn[1:]) < 0.5
    assert 1.5 < max(drawn) <= 2.0
    assert plan == plan_run(waiting, testbed, seed=1)
    assert [launch.cells for launch in plan.launches] == [
        launch.cells for launch in plan_run(LONG, testbed, seed=1).launches
    ]
    measuring = sum(launch.estimated_seconds for launch in plan.launches)
    assert plan.estimated_seconds == pytest.approx(measuring + sum(drawn))
    assert "nothing is measured for 0 to 2 s between two launches, drawn at random" in plan.notes
    within, without = (plan_run(one, testbed, seed=1, budget_seconds=60) for one in (waiting, LONG))
    assert within.blocks < without.blocks
    assert within.estimated_seconds <= 60 * TOLERANCE
    more = extend_plan(plan, Extension(blocks=25, planned=20, measured=20, unix_ns=0))
    assert min(launch.pause_seconds for launch in more.launches[40:]) > 0.0


def test_hardware_counters_are_open_where_the_campaign_asks_and_the_plan_says_what_they_cost(testbed: Testbed):
    asked, unasked = (
        plan_run(LONG.model_copy(update={"hardware_counters": one}), testbed, seed=1) for one in (True, False)
    )
    more = extend_plan(asked, Extension(blocks=25, planned=20, measured=20, unix_ns=0))
    for plan in (asked, more):
        assert plan.probe_plan(plan.launches[-1]).hardware_counters
        assert HARDWARE_COUNTERS_NOTE in plan.notes
    assert not unasked.probe_plan(unasked.launches[0]).hardware_counters
    assert HARDWARE_COUNTERS_NOTE not in unasked.notes


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(testbed: Testbed):
    assert plan_run(QUICK, testbed, seed=7) == plan_run(QUICK, testbed, seed=7)
    assert plan_run(QUICK, testbed, seed=7).launches != plan_run(QUICK, testbed, seed=8).launches


def test_both_orders_of_the_fabrics_come_up(testbed: Testbed):
    plan = plan_run(QUICK, testbed, seed=3, blocks=40)
    first = Counter(launch.fabric for launch in plan.launches if launch.position == 0)
    assert min(first["slow"], first["fast"]) > 8


def test_the_order_of_cells_differs_between_blocks_but_their_ids_mean_the_same(testbed: Testbed):
    plan = plan_run(QUICK, testbed, seed=3)
    orders = {launch.cells for launch in plan.launches}
    assert len(orders) == plan.blocks
    for launch in plan.launches:
        assert sorted(launch.cells) == [cell.id for cell in plan.cells]
        assert [probe.id for probe in plan.probe_plan(launch).probes] == list(launch.cells)
    assert [cell.id for cell in plan.cells] == list(range(len(plan.cells)))


def test_a_hung_rank_is_named_before_its_launch_is_ended_as_hung(testbed: Testbed):
    plan = plan_run(QUICK, testbed, seed=3)
    for launch in plan.launches:
        patience = plan.probe_plan(launch).patience_seconds
        assert patience is not None
        assert 20 < patience < limit_seconds(launch.estimated_seconds) - launch.estimated_seconds


def test_more_blocks_leave_the_earlier_ones_as_they_were(testbed: Testbed):
    few, many = (plan_run(QUICK, testbed, seed=3, blocks=blocks) for blocks in (6, 9))
    assert many.launches[: len(few.launches)] == few.launches


def test_each_launch_has_a_token_of_its_own(testbed: Testbed):
    tokens = [launch.token for launch in plan_run(QUICK, testbed, seed=3).launches]
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_fits_any_fabric_and_what_is_compared_exists_on_both(name: str, rdma_testbed: Testbed):
    plan = plan_run(PRESETS[name], rdma_testbed, seed=1)
    slow, fast = (
        {cell for launch in plan.launches if launch.fabric == fabric for cell in launch.cells}
        for fabric in ("slow", "fast")
    )
    assert slow == fast
    assert all(cell.message_bytes <= 1500 for cell in plan.cells if cell.layer is Layer.FRAME)


def test_a_preset_says_what_it_left_out(testbed: Testbed):
    plan = plan_run(FULL, testbed, seed=1)
    assert "frame messages of 8 KiB are left out: slow carries at most 1500 B" in plan.notes


def test_a_preset_measures_on_a_fabric_the_layers_that_it_has(local_testbed: Testbed):
    plan = plan_run(QUICK, local_testbed, seed=1)
    layers = {
        fabric.name: {
            plan.cells[cell].layer for launch in plan.launches if launch.fabric == fabric.name for cell in launch.cells
        }
        for fabric in local_testbed.fabrics
    }
    assert layers == {"loopback": set(USUAL_LAYERS), "shared-memory": {Layer.MEMORY, Layer.MPI}}


@pytest.mark.parametrize(
    ("campaign", "said"),
    [
        (
            campaign_of("frame", sizes=(64, 8192)),
            "frame messages of 8 KiB cannot be measured: slow carries at most 1500 B",
        ),
        (campaign_of("udp", sizes=(65508,)), "at most 65507 B"),
        (campaign_of("udp", sizes=(0,)), "the smallest is 1 B"),
        (campaign_of("tcp", sizes=(64, 64)), "measures tcp pingpong of 64 B again"),
    ],
)
def test_an_explicit_wish_that_cannot_be_carried_is_refused(campaign: Campaign, said: str, testbed: Testbed):
    with pytest.raises(UsageError, match=said):
        plan_run(campaign, testbed, seed=1)


def test_a_fabric_without_a_layer_that_was_asked_for_is_refused(local_testbed: Testbed):
    with pytest.raises(UsageError, match=r"layer tcp, which fabric shared-memory does not have \(it has memory, mpi\)"):
        plan_run(campaign_of("tcp"), local_testbed, seed=1)


def test_a_fabric_that_carries_nothing_of_the_campaign_is_refused(local_testbed: Testbed):
    with pytest.raises(UsageError, match="shared-memory carries nothing"):
        plan_run(campaign_of("tcp", unfit="leave out"), local_testbed, seed=1)


def test_receive_applies_to_sockets_and_defaults_to_the_testbeds(testbed: Testbed):
    both = plan_run(campaign_of("memory", "udp", "mpi", receive=("blocking", "polling")), testbed, seed=1)
    assert [(cell.layer, cell.receive) for cell in both.cells] == [
        (Layer.MEMORY, Receive.BLOCKING),
        (Layer.UDP, Receive.BLOCKING),
        (Layer.UDP, Receive.POLLING),
        (Layer.MPI, Receive.LIBRARY),
    ]
    polling = testbed.model_copy(update={"default_receive": "polling"})
    assert plan_run(campaign_of("udp"), polling, seed=1).cells[0].receive is Receive.POLLING


def test_a_stream_is_timed_in_windows_of_twenty_milliseconds_at_line_rate(testbed: Testbed):
    fabrics = tuple(
        fabric.model_copy(update={"wire": Wire(line_rate_bit_s=rate)})
        for fabric, rate in zip(testbed.fabrics, (100e6, 1e9), strict=True)
    )
    experiment = Experiment(layers=("tcp", "memory"), pattern=Pattern.STREAM, message_bytes=(1, 1024, 65536, 1 << 22))
    campaign = Campaign(name="s", experiments=(experiment,))
    plan = plan_run(campaign, testbed.model_copy(update={"fabrics": fabrics}), seed=1)
    windows = {}
    for launch in plan.launches[:2]:
        probes = sorted(plan.probe_plan(launch).probes, key=lambda probe: probe.id)
        windows[launch.fabric] = [probe.messages_per_sample for probe in probes]
    assert windows == {"slow": [1024, 244, 3, 1, 1, 1, 1, 1], "fast": [1024, 1024, 38, 1, 1, 1, 1, 1]}


def test_a_run_of_one_block_is_refused(testbed: Testbed):
    with pytest.raises(UsageError, match="--blocks 1 is too few"):
        plan_run(QUICK, testbed, seed=1, blocks=1)


@pytest.mark.parametrize("nodes", [2, 4])
def test_the_quick_preset_keeps_its_documented_time_on_two_fabrics(testbed: Testbed, nodes: int):
    many = testbed.model_copy(update={"nodes": tuple(Node(name=f"n{index}") for index in range(nodes))})
    plan = plan_run(QUICK, many, seed=1)
    assert plan.estimated_seconds <= 5 * 60
    assert max(launch.estimated_seconds for launch in plan.launches) <= 20


@pytest.mark.slow
@given(budget=st.floats(min_value=60, max_value=20_000), name=st.sampled_from(sorted(PRESETS)))
@settings(max_examples=40, deadline=None)
def test_a_budget_is_kept(budget: float, name: str):
    testbed = Testbed.model_validate(
        {
            "name": "t",
            "launcher": "ssh",
            "nodes": [{"name": "a"}, {"name": "b"}],
            "fabrics": [{"name": name, "interface": f"{name}0", "layers": list(Layer)} for name in ("x", "y")],
        }
    )
    try:
        plan = plan_run(PRESETS[name], testbed, seed=1, budget_seconds=budget)
    except UsageError:
        whole = plan_run(PRESETS[name], testbed, seed=1)
        assert budget < 2 * whole.estimated_seconds / whole.blocks, (
            "only a budget for less than two blocks is too small"
        )
        return
    assert plan.estimated_seconds <= budget * 1.001
    assert any("give no verdict" in note for note in plan.notes) == (plan.blocks < FEWEST_PAIRS)


LONG = campaign_of("tcp", sizes=(64, 1472), maximum_seconds=0.5).model_copy(update={"blocks": 20})


def test_a_budget_is_spent_between_launches_not_within_them(testbed: Testbed):
    whole = plan_run(LONG, testbed, seed=1)
    plan = plan_run(LONG, testbed, seed=1, budget_seconds=whole.estimated_seconds)
    assert plan.blocks > whole.blocks
    assert max(cell.stopping.maximum_seconds for cell in plan.cells) < 0.3
    assert plan.estimated_seconds <= whole.estimated_seconds
    assert any("more launches tell more than longer tests" in note for note in plan.notes)
    assert f"{plan.blocks} blocks instead of 20 to use {format_duration(whole.estimated_seconds)}" in plan.notes


def test_blocks_that_are_asked_for_stay_and_a_budget_shortens_the_cells(testbed: Testbed):
    whole = plan_run(LONG, testbed, seed=1)
    plan = plan_run(LONG, testbed, seed=1, budget_seconds=whole.estimated_seconds * 0.8, blocks=20)
    assert plan.blocks == 20
    assert 0.05 < plan.cells[0].stopping.maximum_seconds < 0.5
    assert plan.estimated_seconds <= whole.estimated_seconds * 0.8
    with pytest.raises(UsageError, match=r"20 blocks of 2 tests take at least"):
        plan_run(LONG, testbed, seed=1, budget_seconds=whole.estimated_seconds * 0.2, blocks=20)


def test_no_cell_is_shortened_below_what_a_slow_fabric_needs_for_a_value():
    lab = find_venue("lab:fast-ethernet,myrinet", 4).testbed()
    campaign = Campaign(
        name="large",
        experiments=(
            Experiment(layers=("tcp",), pattern=Pattern.PINGPONG, message_bytes=(64, 1 << 18), maximum_seconds=2.0),
            Experiment(layers=("tcp",), pattern=Pattern.STREAM, message_bytes=(1 << 14,), maximum_seconds=2.0),
        ),
    )
    plan = plan_run(campaign, lab, seed=1, budget_seconds=12)
    small, large, stream = (cell.stopping.maximum_seconds for cell in plan.cells)
    assert small >= 0.05
    assert large >= 5 * 2 * 8 * (1 << 18) / 100e6, "five round trips of 42 ms over 100 Mbit/s"
    assert stream >= 5 * 0.02, "five windows"


def test_a_budget_below_six_blocks_takes_what_cells_can_spare_first(testbed: Testbed):
    at_ease, tight = (plan_run(LONG, testbed, seed=1, budget_seconds=each, noise=LAB) for each in (30, 15))
    assert (at_ease.blocks, tight.blocks) == (10, 6)
    assert tight.cells[0].stopping.maximum_seconds < at_ease.cells[0].stopping.maximum_seconds


def test_a_cell_that_a_budget_shortens_has_no_minimum_time_beyond_its_maximum(testbed: Testbed):
    full = plan_run(QUICK, testbed, seed=1)
    assert max(cell.stopping.minimum_seconds for cell in full.cells) == 0.1
    tight = plan_run(QUICK, testbed, seed=1, budget_seconds=60)
    assert min(cell.stopping.maximum_seconds for cell in tight.cells) < 0.1
    assert all(cell.stopping.minimum_seconds <= cell.stopping.maximum_seconds for cell in (*full.cells, *tight.cells))


def test_a_budget_that_nothing_fits_is_refused_with_what_is_needed(testbed: Testbed):
    with pytest.raises(UsageError, match=r"2 blocks of .* take at least"):
        plan_run(QUICK, testbed, seed=1, budget_seconds=3)


def test_a_budget_with_room_to_spare_is_filled_with_blocks_but_not_without_end(testbed: Testbed):
    assert QUICK.blocks < plan_run(QUICK, testbed, seed=1, budget_seconds=600).blocks < 100
    plan = plan_run(QUICK, testbed, seed=1, budget_seconds=100_000)
    assert plan.blocks == 100
    assert any("runs of other days tell more" in note for note in plan.notes)
    roomy = plan_run(QUICK, testbed, seed=1, budget_seconds=100_000, blocks=8)
    assert roomy.model_copy(update={"budget_seconds": None}) == plan_run(QUICK, testbed, seed=1, blocks=8)


@pytest.mark.parametrize(("name", "minutes"), [("quick", 5), ("standard", 28.5), ("full", 210)])
def test_a_preset_for_all_fits_its_time_on_two_fabrics_with_launches_as_short_as_tell_most(name: str, minutes: float):
    lab = find_venue("lab:fast-ethernet,myrinet", 4).testbed()
    plan = plan_run(PRESETS[name], lab, seed=1)
    assert plan.estimated_seconds <= 60 * minutes
    for cell in (one for one in plan.cells if one.layer is not Layer.MEMORY):
        assert cell.stopping.maximum_seconds >= (0.1 if cell.pattern in (Pattern.STREAM, Pattern.CHAOS) else 0.05)
        if cell.stopping.maximum_seconds <= 0.1:
            assert cell.stopping.relative_width < 1e-6, "a short cell takes its whole time"


def test_the_description_of_a_preset_says_its_number_of_blocks():
    words = {18: "eighteen", 44: "forty-four", 90: "ninety"}
    for name in ("quick", "standard", "full"):
        assert f"{words[PRESETS[name].blocks]} blocks" in PRESETS[name].description


def test_what_a_slow_fabric_still_has_to_carry_when_a_stream_ends_is_part_of_the_estimate():
    lab = find_venue("lab:fast-ethernet,myrinet", 4).testbed()
    stream = Experiment(layers=("mpi",), pattern=Pattern.STREAM, message_bytes=(1 << 20,), maximum_seconds=0.1)
    plan = plan_run(Campaign(name="s", experiments=(stream,)), lab, seed=1)
    seconds = {launch.fabric: launch.estimated_seconds for launch in plan.launches[:2]}
    assert seconds["fast-ethernet"] > 1.5, "four messages of 1 MiB take 0.34 s at 100 Mbit/s"
    assert seconds["myrinet"] < 2


def test_the_time_left_follows_what_was_seen():
    remaining = [("slow", 10.0), ("fast", 10.0)]
    assert seconds_left(remaining, []) == 20.0
    assert seconds_left(remaining, [("slow", 10.0, 5.0)]) == 10.0
    assert seconds_left(remaining, [("slow", 10.0, 5.0), ("fast", 10.0, 2.0)]) == 7.0
    assert seconds_left([], [("slow", 10.0, 5.0)]) == 0.0


def test_a_launch_may_take_longer_than_estimated_but_not_for_ever():
    assert 2 * 20 < limit_seconds(20.0) < 120


def operations(pattern: Pattern, size: int, seconds: float = 0.05, **parameters: str) -> tuple[float, RunPlan]:
    """The seconds of one launch on the lab's fast-ethernet beyond those of starting it, for one cell of an operation."""
    lab = find_venue("lab:fast-ethernet,myrinet", 4).testbed()
    sizes = () if pattern is Pattern.BARRIER else (size,)
    one = Experiment(
        layers=("mpi",), pattern=pattern, message_bytes=sizes, maximum_seconds=seconds, parameters=parameters
    )
    plan = plan_run(Campaign(name="o", experiments=(one,)), lab, seed=1)
    launch = next(launch for launch in plan.launches if launch.fabric == "fast-ethernet")
    return launch.estimated_seconds - START_SECONDS, plan


def test_what_an_operation_takes_beside_its_time_is_part_of_the_estimate():
    allreduce, plan = operations(Pattern.ALLREDUCE, 8)
    assert allreduce > 0.05 + 0.02 + 3 * 0.02, (
        "looks before two loops and the agreed start: 0.18 to 0.21 s were measured"
    )
    assert operations(Pattern.PUT, 8)[0] < allreduce, "no loop after barriers"
    assert operations(Pattern.ALLREDUCE, 8, mode="nonblocking")[0] > allreduce + 0.05 + 2 * 0.02
    assert operations(Pattern.ALLTOALL, 1 << 20)[0] > 15 * 0.25, "calls of 3 MiB over 100 Mbit/s, at least 15 of them"
    assert operations(Pattern.BARRIER, 0, 0.1)[0] == pytest.approx(allreduce + 0.05, abs=0.01)
    assert plan.patient_seconds == pytest.approx(len(plan.launches) * (1 - 0.025)), "a second for too few good starts"


def test_a_rank_has_the_patience_of_its_cell_before_it_is_taken_as_hung():
    _, plan = operations(Pattern.ALLREDUCE, 8, 2.0)
    patience = plan.probe_plan(plan.launches[0]).patience_seconds
    assert patience is not None
    assert patience > 20 + 2 * (2.0 + 3 * 1.0), "a cell that finds too few good starts goes on four times as long"


def test_a_budget_for_operations_reckons_with_what_they_take_beside_their_time():
    lab = find_venue("lab:fast-ethernet,myrinet", 4).testbed()
    plan = plan_run(PRESETS["collectives"], lab, seed=1, budget_seconds=120)
    cells = sum(len(launch.cells) for launch in plan.launches)
    seconds = max(cell.stopping.maximum_seconds for cell in plan.cells)
    assert cells * (seconds + 0.02 + 2 * 0.02) < 120
