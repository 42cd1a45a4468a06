"""The campaign `rdma`: its table of cells, what a slow fabric cannot be asked, and what is said where no fabric has RDMA."""

from __future__ import annotations

import re

import pytest

from fabricbench.campaign.estimate import FLOOD_DRAIN_SECONDS, cell_seconds, launch_seconds, round_seconds, why_too_slow
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.presets import PRESETS, preset
from fabricbench.campaign.rdma_preset import NAME, SIZES, rdma_campaign
from fabricbench.campaign.specification import Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.wire import Wire

BOTH = (RdmaDoor.SEND, RdmaDoor.WRITE)


def rail(name: str, rate_bit_s: float, *, has_rdma: bool = True) -> Fabric:
    layers = tuple(Layer) if has_rdma else USUAL_LAYERS
    return Fabric(name=name, interface=name, mtu=4200, wire=Wire(line_rate_bit_s=rate_bit_s), layers=layers)


def bed_of(*fabrics: Fabric, nodes: int = 4) -> Testbed:
    return Testbed(
        name="rails",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=f"n{number}") for number in range(nodes)),
        fabrics=fabrics,
    )


FAST = bed_of(rail("roce", 100e9), rail("infiniband", 100e9))
SLOW = bed_of(rail("rail20", 20e6), rail("rail40", 40e6))


def planned(bed: Testbed, *, doors: tuple[RdmaDoor, ...] = BOTH, budget_seconds: float | None = None) -> RunPlan:
    return plan_run(rdma_campaign(doors), bed, seed=1, budget_seconds=budget_seconds)


def floods(plan: RunPlan, door: RdmaDoor = RdmaDoor.SEND) -> list[PlanProbe]:
    return [
        cell
        for cell in plan.cells
        if cell.pattern is Pattern.INCAST and cell.parameters.get("door", RdmaDoor.SEND) == door
    ]


@pytest.mark.parametrize("door", BOTH)
def test_bandwidth_is_of_every_size_over_every_number_of_queue_pairs_alone_and_three_to_one(door: RdmaDoor):
    plan = planned(FAST)
    found = {(cell.message_bytes, cell.parameters.get("flows", 1), len(cell.ranks)) for cell in floods(plan, door)}
    assert found == {(size, flows, ranks) for size in SIZES for flows in (1, 4, 16, 64) for ranks in (2, 4)}
    assert plan.notes == ()


def test_latency_is_alone_at_every_size_and_beside_the_queue_pairs_of_three_senders():
    trips = [cell for cell in planned(FAST, doors=(RdmaDoor.SEND,)).cells if cell.pattern is Pattern.PINGPONG]
    assert {cell.message_bytes for cell in trips if cell.congestor is None} == set(SIZES)
    loaded = [cell.congestor for cell in trips if cell.congestor is not None]
    assert {one.parameters["flows"] for one in loaded} == {1, 4, 16, 64}
    assert {(one.layer, len(one.ranks)) for one in loaded} == {(Layer.RDMA, 3)}


def test_what_loads_a_door_goes_through_the_same_door():
    written = [cell for cell in planned(FAST).cells if cell.parameters.get("door") == RdmaDoor.WRITE]
    assert written
    assert {one.congestor.parameters["door"] for one in written if one.congestor is not None} == {RdmaDoor.WRITE}


def test_writes_are_measured_where_the_measurer_has_the_door_and_sends_always():
    def doors_of(campaign: Campaign) -> set[object]:
        return {each.parameters.get("door", RdmaDoor.SEND) for each in campaign.experiments}

    assert doors_of(preset(NAME, lambda: {Layer.RDMA.value: ("send", "write", "read")})) == set(BOTH)
    assert doors_of(preset(NAME, lambda: {Layer.RDMA.value: ("send",)})) == {RdmaDoor.SEND}
    assert doors_of(preset(NAME, dict)) == doors_of(PRESETS[NAME]) == {RdmaDoor.SEND}


def test_what_a_slow_fabric_takes_too_long_for_is_left_out_and_said():
    plan = planned(SLOW)
    kept = {(cell.message_bytes, cell.parameters.get("flows", 1), len(cell.ranks)) for cell in floods(plan)}
    assert {flows for _, flows, ranks in kept if ranks == 4} == {1, 4, 16, 64}
    assert (64, 64, 4) in kept
    assert (1024 * 1024, 1, 2) not in kept
    for cell in floods(plan):
        assert round_seconds(cell, SLOW.fabric("rail20")) <= cell.stopping.maximum_seconds
        assert cell_seconds(cell, SLOW.fabric("rail20")) < 1 + FLOOD_DRAIN_SECONDS + cell.stopping.maximum_seconds
        # What waits in queues is acknowledged before it is sent again.
        assert 4.096e-6 * 2 ** int(cell.parameters["timeout"]) > FLOOD_DRAIN_SECONDS
    assert (
        "rdma incast messages of 1 MiB are left out: what is under way would take more than 0.8 s over rail20"
        in plan.notes
    )
    assert any(re.search(r"of 16 KiB over \d+ queue pairs in all and more are left out", note) for note in plan.notes)
    for fabric in SLOW.fabrics:
        assert launch_seconds(plan.cells, fabric) < 150


def test_queue_pairs_over_slow_fabrics_hold_as_much_together_as_one_and_wait_long_for_what_waits_in_queues():
    plan = planned(SLOW)
    depths = {1: 64, 4: 16, 16: 4, 64: 2}
    for cell in floods(plan):
        flows = int(cell.parameters.get("flows", 1))
        assert (cell.parameters["depth"], cell.parameters["timeout"]) == (depths[flows], 18)
    trips = [cell for cell in plan.cells if cell.pattern is Pattern.PINGPONG]
    assert {cell.parameters["timeout"] for cell in trips} == {18}
    loads = [cell.congestor.parameters for cell in trips if cell.congestor is not None]
    assert {(load["depth"], load["timeout"]) for load in loads} == {(depth, 18) for depth in depths.values()}
    said = (
        "rdma: queue pairs have depth 2 to 64, fewer the more they are, and timeout 18, "
        "since queues of rail20 hold messages for longer than usual"
    )
    assert said in plan.notes
    assert not any({"depth", "timeout"} & set(cell.parameters) for cell in planned(FAST).cells)


def test_what_is_told_of_queue_pairs_is_kept_on_slow_fabrics_and_fewer_messages_take_less_time():
    asked = {"layers": ["rdma"], "pattern": "incast", "message_bytes": [4096], "parameters": {"depth": [2, 64]}}
    mine = Campaign.model_validate({"name": "mine", "unfit": "leave out", "experiments": [asked]})
    shallow, deep = plan_run(mine, SLOW, seed=1).cells
    assert [cell.parameters["depth"] for cell in (shallow, deep)] == [2, 64]
    assert all(cell.parameters["timeout"] == 18 for cell in (shallow, deep))
    less = cell_seconds(deep, SLOW.fabric("rail20")) - cell_seconds(shallow, SLOW.fabric("rail20"))
    senders = len(deep.ranks) - 1
    assert less == pytest.approx(8 * senders * (64 - 2) * 4096 / 20e6)


def test_a_budget_leaves_each_queue_pair_the_time_of_a_message():
    slow = SLOW.fabric("rail20")
    plan = planned(SLOW, budget_seconds=600)
    assert all(round_seconds(cell, slow) <= cell.stopping.maximum_seconds for cell in floods(plan))
    assert plan.estimated_seconds < 1.05 * 600


def test_a_campaign_of_ones_own_is_asked_for_what_it_wishes():
    asked = {"layers": ["rdma"], "pattern": "incast", "message_bytes": [1 << 20], "parameters": {"flows": 64}}
    mine = Campaign.model_validate({"name": "mine", "experiments": [asked]})
    assert [cell.message_bytes for cell in plan_run(mine, SLOW, seed=1).cells] == [1 << 20]
    assert why_too_slow(plan_run(mine, SLOW, seed=1).cells[0], SLOW.fabrics) is not None


def test_two_nodes_are_measured_alone():
    plan = planned(bed_of(rail("roce", 100e9), nodes=2))
    assert {len(cell.ranks) for cell in floods(plan)} == {2}
    assert any("with 4 ranks" in note for note in plan.notes)


def test_a_testbed_without_rdma_is_told_what_to_write():
    with pytest.raises(UsageError, match="no fabric of testbed rails has layer rdma") as caught:
        planned(bed_of(rail("eth", 1e9, has_rdma=False), rail("eth2", 1e9, has_rdma=False)))
    assert 'layers = ["rdma", ...]' in str(caught.value.hint)
    assert 'rdma = { device = "mlx5_0", port = 1 }' in str(caught.value.hint)


def test_a_fabric_beside_those_with_rdma_is_to_be_left_out():
    with pytest.raises(UsageError, match="fabric eth carries nothing that campaign rdma measures"):
        planned(bed_of(rail("roce", 100e9), rail("eth", 1e9, has_rdma=False)))


def asking(**others: object) -> Campaign:
    """A campaign of somebody who refuses to leave anything out, with an incast of large messages in it."""
    experiment = {
        "layers": ["rdma"],
        "pattern": "incast",
        "ranks": 2,
        "message_bytes": ["1MiB"],
        "maximum_seconds": "200ms",
    }
    return Campaign.model_validate({"name": "asked", "experiments": [{**experiment, **others}]})


def test_a_time_out_longer_than_the_test_and_a_queue_longer_than_the_time_out_are_said():
    short, slow = plan_run(asking(parameters={"timeout": 18}), bed_of(rail("rail100", 100e6)), seed=1).notes[-2:]
    assert short.startswith(
        "rdma: 1 test of 200 ms may lose all of their time to one lost packet: `timeout` 18 lets a sender wait 1.1 s"
    )
    assert slow.startswith("rdma: in 1 test what is under way takes up to 2.7 s over rail100")
    assert plan_run(asking(), FAST, seed=1).notes == ()
