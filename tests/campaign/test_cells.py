"""Which cells a campaign comes to: who takes part, what is swept, what is impossible."""

from __future__ import annotations

import re

import pytest

from fabricbench.campaign.cells import CellPlan, plan_cells
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import Campaign
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.pattern_facts import NETWORK, Family
from fabricbench.patterns import PATTERNS, why_impossible
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.testbed.model import Fabric, LauncherKind, Layout, MpiTransport, Node, Testbed

NET = Fabric(name="net", interface="eth0", layers=tuple(Layer))


def nodes(number: int, launcher: LauncherKind = LauncherKind.SSH) -> Testbed:
    return Testbed(
        name="many", launcher=launcher, nodes=tuple(Node(name=f"n{index}") for index in range(number)), fabrics=(NET,)
    )


def campaign(unfit: str = "refuse", **keys: object) -> Campaign:
    experiment = {"layers": ["tcp"], "pattern": "pingpong", "message_bytes": [64], **keys}
    return Campaign.model_validate({"name": "mine", "unfit": unfit, "experiments": [experiment]})


def cells(number: int, **keys: object) -> CellPlan:
    return plan_cells(campaign(**keys), nodes(number))


def only_ranks(plan: CellPlan) -> tuple[int, ...]:
    (cell,) = plan.cells
    return cell.probe.ranks


@pytest.mark.parametrize("layer", [layer.value for layer in NETWORK])
def test_parallel_flows_go_over_every_network_layer(layer: str):
    plan = cells(4, layers=[layer], pattern="incast", parameters={"flows": [1, 4]})
    assert [cell.probe.parameters["flows"] for cell in plan.cells] == [1, 4]


@pytest.mark.parametrize(
    ("keys", "ranks"),
    [
        ({}, (0, 1)),
        ({"ranks": [0, 3]}, (0, 3)),
        ({"pattern": "ring"}, (0, 1, 2, 3, 4)),
        ({"pattern": "ring", "ranks": 3}, (0, 1, 2)),
        ({"pattern": "incast", "ranks": [4, 0, 2]}, (4, 0, 2)),
        ({"pattern": "bistream", "ranks": "all"}, (0, 1)),
        ({"pattern": "message-rate"}, (0, 1, 2, 3)),
        ({"layers": ["memory"]}, (0,)),
        ({"layers": ["mpi"], "pattern": "put"}, (0, 1)),
        ({"layers": ["mpi"], "pattern": "alltoall"}, (0, 1, 2, 3, 4)),
    ],
)
def test_two_take_part_in_patterns_of_two_and_all_in_others(keys: dict[str, object], ranks: tuple[int, ...]):
    assert only_ranks(cells(5, **keys)) == ranks


def test_this_machine_seats_four_whatever_its_nodes():
    plan = plan_cells(campaign(pattern="chaos"), nodes(1, LauncherKind.LOCAL))
    assert only_ranks(plan) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("number", "keys", "said"),
    [
        (
            4,
            {"pattern": "ring", "ranks": 5},
            "ring was asked for with 5 ranks, each on a node of its own, and it has 4 nodes",
        ),
        (4, {"pattern": "star", "ranks": [0, 1, 4]}, "ranks 0 and 4 of star are both on n0"),
        (1, {}, "pingpong was asked for with 2 ranks, each on a node of its own, and it has 1 node"),
        (1, {"pattern": "chaos"}, "chaos is for 2 or more ranks, and it has 1 node"),
        (4, {"layers": ["tcp"], "pattern": "allreduce"}, "only layer mpi has operations of MPI"),
        (4, {"layers": ["memory"], "pattern": "ring"}, "memory has one rank alone"),
        (4, {"layers": ["mpi"], "pattern": "allreduce", "message_bytes": [4]}, "the smallest is 8 B"),
        (
            4,
            {"layers": ["mpi"], "pattern": "scan", "message_bytes": [12]},
            "it sums doubles, so sizes are multiples of 8 B",
        ),
        (
            4,
            {"layers": ["udp"], "pattern": "exchange", "message_bytes": [0]},
            "the smallest is 1 B",
        ),
        (2, {"congestor": {"pattern": "incast", "message_bytes": 64}}, "1 host is left for the congestor"),
        (4, {"congestor": {"pattern": "ring", "message_bytes": 64, "ranks": [1, 2]}}, "rank 1 takes part in the test"),
        (
            4,
            {"congestor": {"pattern": "ring", "message_bytes": 64, "ranks": [2, 6]}},
            "ranks 2 and 6 of ring are both on n2",
        ),
        (4, {"layers": ["memory"], "congestor": {"pattern": "ring", "message_bytes": 64}}, "memory crosses no network"),
    ],
)
def test_what_is_impossible_is_refused_with_the_reason_or_left_out_with_a_note(
    number: int, keys: dict[str, object], said: str
):
    with pytest.raises(UsageError, match=said) as caught:
        cells(number, **keys)
    assert "leave out" in str(caught.value.hint)
    lenient = campaign(unfit="leave out", **keys)
    anything = campaign(layers=["memory"], pattern="stream").experiments
    more = lenient.model_copy(update={"experiments": (*lenient.experiments, *anything)})
    assert any(" left out: " in note and re.search(said, note) for note in plan_cells(more, nodes(number)).notes)


def test_every_possible_pair_of_layer_and_pattern_is_planned_and_no_other():
    for pattern, facts in PATTERNS.items():
        if facts.family is Family.WORKLOAD:
            continue  # a program of its own, with a table of its own
        sizes = {"message_bytes": [64] if facts.has_size else []}
        plan = cells(4, unfit="leave out", layers=[layer.value for layer in Layer], pattern=pattern, **sizes)
        found = {cell.probe.layer for cell in plan.cells}
        assert found == set(facts.layers) == {layer for layer in Layer if why_impossible(layer, pattern, {}) is None}
        assert len(plan.notes) == len(Layer) - len(found)


def test_each_value_of_a_parameter_is_a_cell():
    plan = cells(4, pattern="incast", message_bytes=[64, 1024], parameters={"flows": [1, 4, 16]})
    flows = [(cell.probe.parameters["flows"], cell.probe.message_bytes) for cell in plan.cells]
    assert flows == [(1, 64), (1, 1024), (4, 64), (4, 1024), (16, 64), (16, 1024)]


def test_a_congested_cell_stands_beside_each_isolated_one():
    congestor = {"pattern": "incast", "message_bytes": [1024, 65536], "parameters": {"flows": [1, 16]}}
    plan = cells(4, message_bytes=[64, 128], congestor=congestor)
    assert [cell.probe.congestor is None for cell in plan.cells] == [True, *[False] * 4] * 2
    assert plan.cells[1].probe.congestor == PlanCongestor(
        layer=Layer.TCP, pattern=Pattern.INCAST, message_bytes=1024, ranks=(5, 2, 3), parameters={"flows": 1}
    )
    sizes = {
        (c.probe.congestor.message_bytes, c.probe.congestor.parameters["flows"])
        for c in plan.cells
        if c.probe.congestor
    }
    assert sizes == {(1024, 1), (1024, 16), (65536, 1), (65536, 16)}


@pytest.mark.parametrize(
    ("number", "keys", "ranks"),
    [
        (3, {}, (4, 2)),
        (4, {}, (5, 2, 3)),
        (8, {}, (9, 2, 3, 4, 5, 6, 7)),
        (8, {"congestor_ranks": 4}, (9, 2, 3, 4)),
        (4, {"pattern": "ring"}, (5, 6, 7)),
        (4, {"ranks": [0, 3]}, (7, 1, 2)),
        (2, {"congestor_ranks": [3, 2]}, (3, 2)),
    ],
)
def test_a_congestor_crosses_the_host_of_the_second_member(
    number: int, keys: dict[str, object], ranks: tuple[int, ...]
):
    congestor = {"pattern": "incast", "message_bytes": 1024, "ranks": keys.pop("congestor_ranks", "all")}
    plan = cells(number, congestor=congestor, **keys)
    assert plan.cells[1].probe.congestor is not None
    assert plan.cells[1].probe.congestor.ranks == ranks


@pytest.mark.parametrize(("most", "is_left_out"), [(1, True), (2, False)])
def test_a_congestor_needs_a_place_beside_a_member(most: int, is_left_out: bool):
    testbed = nodes(4).model_copy(update={"layout": Layout(ranks_per_node=most)})
    planned = plan_cells(campaign("leave out", congestor={"pattern": "ring", "message_bytes": 64}), testbed)
    assert [cell.probe.congestor is None for cell in planned.cells] == [True] if is_left_out else [True, False]
    assert any("the testbed has ranks_per_node = 1" in note for note in planned.notes) is is_left_out


def test_this_machine_seats_no_more_than_the_testbed_says():
    few = nodes(1, LauncherKind.LOCAL).model_copy(update={"layout": Layout(ranks_per_node=2)})
    assert plan_cells(campaign(pattern="ring"), few).cells[0].probe.ranks == (0, 1)


def test_a_cell_that_another_experiment_measures_alone_is_not_measured_twice():
    congestor = {"pattern": "incast", "message_bytes": 1024}
    one = campaign(message_bytes=[64, 128])
    both = one.model_copy(update={"experiments": (*one.experiments, *campaign(congestor=congestor).experiments)})
    plan = plan_cells(both, nodes(4))
    assert [(cell.probe.message_bytes, cell.probe.congestor is None) for cell in plan.cells] == [
        (64, True),
        (128, True),
        (64, False),
    ]


def test_cells_that_would_read_alike_are_refused():
    again = campaign(congestor={"pattern": "incast", "message_bytes": [64, 64]})
    with pytest.raises(UsageError, match=r"measures tcp pingpong, beside incast tcp 64 B of 3 ranks of 64 B again"):
        plan_cells(again, nodes(4))


def test_a_launch_has_as_many_ranks_as_its_cells_and_congestors_name():
    assert plan_run(campaign(), nodes(4), seed=1).ranks == 2
    assert plan_run(campaign(pattern="ring"), nodes(4), seed=1).ranks == 4
    assert plan_run(campaign(congestor={"pattern": "incast", "message_bytes": 64}), nodes(4), seed=1).ranks == 6


def test_a_longer_schedule_and_more_ranks_take_longer():
    def seconds(number: int, **keys: object) -> float:
        return plan_run(campaign(**keys), nodes(number), seed=1).launches[0].estimated_seconds

    assert seconds(8, pattern="pairs") > seconds(4, pattern="pairs")
    assert seconds(8, pattern="pairs") > seconds(8, pattern="pairs", parameters={"schedule": "rounds"})
    rounds = seconds(8, pattern="pairs", parameters={"schedule": "rounds"})
    assert rounds > seconds(8, pattern="pairs", parameters={"schedule": "halves"})
    assert seconds(8, pattern="pairs-stream") > seconds(8, pattern="pairs")
    assert seconds(32, pattern="chaos", parameters={"flows": 16}) > seconds(32, pattern="chaos")
    assert seconds(4, congestor={"pattern": "incast", "message_bytes": 64}) > 1.8 * seconds(4) - 1.5
    mpi = {"layers": ["mpi"], "pattern": "allreduce"}
    assert seconds(4, parameters={"mode": "nonblocking"}, **mpi) > seconds(4, **mpi)


def test_stages_are_measured_in_a_cell_of_its_own_beside_each():
    plan = cells(2, layers=["udp", "frame", "ip", "tcp"], message_bytes=[64, 1024], stages=True, maximum_samples=50_000)
    assert [cell.probe.is_stamped for cell in plan.cells] == [False, True] * 8
    plain, stamped = (cell.probe for cell in plan.cells[:2])
    assert plain == cells(2, layers=["udp"], maximum_samples=50_000).cells[0].probe
    assert stamped.parameters == {"stages": "user"}
    assert (plain.stopping.maximum_samples, stamped.stopping.maximum_samples) == (50_000, 2_000)
    assert stamped.stopping.minimum_samples <= stamped.stopping.maximum_samples


def test_stages_of_mpi_are_measured_where_it_goes_through_sockets_of_tcp():
    others = (
        Fabric(name="memory", layers=tuple(Layer)),
        NET.model_copy(update={"name": "ib", "transport": MpiTransport.UCX}),
    )
    testbed = nodes(2).model_copy(update={"fabrics": (NET, *others)})
    experiments = [
        {"layers": ["mpi"], "pattern": "pingpong", "message_bytes": [size], "stages": size == 64} for size in (64, 1024)
    ]
    asked = Campaign.model_validate({"name": "mine", "unfit": "leave out", "experiments": experiments})
    plan = plan_cells(asked, testbed)
    assert [(cell.probe.is_stamped, cell.fabrics) for cell in plan.cells] == [
        (False, ("net",)),
        (True, ("net",)),
        (False, ("net", "memory", "ib")),
    ]
    assert [note.partition(":")[0] for note in plan.notes] == [
        "mpi with stages on memory is left out",
        "mpi with stages on ib is left out",
    ]
    with pytest.raises(UsageError, match="mpi with stages on memory cannot be measured: stages are known of those"):
        plan_cells(campaign(layers=["mpi"], stages=True), testbed)
