"""What the interfaces carried proves or refutes that a cell went over its fabric."""

from __future__ import annotations

import pytest

from fabricbench.campaign.path_proof import prove_path
from fabricbench.model import Layer, Pattern, RdmaDoor, RdmaEnd
from fabricbench.patterns import NETWORK as NETWORK_LAYERS
from fabricbench.record.lines import (
    InterfaceBytes,
    Quantity,
)
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import Record
from support.path_records import MEMORY, NETWORK, PAYLOAD, SAMPLES, SIZE, channel, record, under


def violations(found: Record) -> tuple[str, ...]:
    return prove_path(found, NETWORK).violations


@pytest.mark.parametrize("layer", list(NETWORK_LAYERS))
def test_a_cell_whose_payload_went_over_the_fabric_is_proven(layer: Layer):
    proof = prove_path(
        record(layer, Pattern.PINGPONG, eth1=(PAYLOAD + 60_000, PAYLOAD + 60_000), ctl0=(900, 900)), NETWORK
    )
    assert proof.violations == ()
    assert proof.interface == "eth1"
    assert proof.cells[0].fabric_sent == PAYLOAD + 60_000
    assert proof.cells[0].other_bytes == 1800


def test_a_stream_need_only_be_sent():
    assert prove_path(record(Layer.TCP, Pattern.STREAM, eth1=(PAYLOAD, 20_000)), NETWORK).violations == ()


@pytest.mark.parametrize(
    ("eth1", "said"),
    [
        ((PAYLOAD, 3000), "eth1 received 3000 B, but the payload is 1024000 B: it went another way"),
        ((3000, PAYLOAD), "eth1 sent 3000 B"),
        ((PAYLOAD // 2, PAYLOAD // 2), "eth1 sent 512000 B"),
    ],
    ids=["not received", "not sent", "half of it"],
)
def test_a_payload_that_the_fabric_did_not_carry_is_a_violation(eth1: tuple[int, int], said: str):
    proof = prove_path(record(Layer.MPI, Pattern.PINGPONG, eth1=eth1), NETWORK)
    assert any(said in violation for violation in proof.violations)


def test_a_payload_on_two_fabrics_at_once_is_a_violation():
    carried = (PAYLOAD, PAYLOAD)
    (violation,) = prove_path(record(Layer.MPI, Pattern.PINGPONG, eth1=carried, eth0=carried), NETWORK).violations
    assert "eth0 carried 2048000 B" in violation
    assert violation.startswith("test 3 (mpi pingpong of 1 KiB)")


def test_messages_that_were_lost_need_not_have_come_back():
    half = SAMPLES // 2
    lossy = record(Layer.UDP, Pattern.PINGPONG, lost=half, eth1=(PAYLOAD, half * SIZE))
    assert prove_path(lossy, NETWORK).violations == ()


@pytest.mark.parametrize("interfaces", [{}, {"eth0": (0, 0)}], ids=["none", "another"])
def test_without_counters_of_the_fabric_nothing_is_known_and_nothing_refuted(interfaces: dict[str, tuple[int, int]]):
    proof = prove_path(record(Layer.TCP, Pattern.STREAM, **interfaces), NETWORK)
    assert (proof.verdict, proof.violations) == (Proof.UNKNOWN, ())
    (why,) = proof.unknown
    assert "no interface of net was counted" in why


VERBS = pytest.mark.parametrize("layer", [Layer.RDMA, Layer.MPI])
"""Verbs by themselves, and MPI over them."""


@VERBS
def test_what_a_port_of_an_rdma_device_carried_is_on_its_fabric(layer: Layer):
    """The kernel's counters of ib0 see nothing of it."""
    port = {"mlx5_0/1": under("eth1")}
    proof = prove_path(record(layer, Pattern.PINGPONG, eth1=(2000, 2000), **port), NETWORK)
    assert (proof.verdict, proof.cells[0].fabric_sent, proof.cells[0].other_bytes) == (Proof.PROVEN, PAYLOAD, 0)


def test_a_port_counts_what_its_interface_counts_as_well():
    port = {"mlx5_0/1": under("eth1", carried=PAYLOAD // 2)}
    half = PAYLOAD // 2
    proof = prove_path(record(Layer.MPI, Pattern.PINGPONG, eth1=(half, half), **port), NETWORK)
    assert proof.verdict is Proof.REFUTED
    assert "eth1, mlx5_0/1 sent 512000 B" in proof.violations[0]


@pytest.mark.parametrize("layer", [Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP])
def test_what_others_send_over_an_rdma_port_does_not_refute_a_layer_of_the_kernel(layer: Layer):
    others = {"mlx5_0/1": InterfaceBytes(sent=10**9, received=10**9, above=("ib0",))}
    own = (2 * PAYLOAD, 2 * PAYLOAD)
    assert prove_path(record(layer, Pattern.PINGPONG, eth1=own, **others), NETWORK).verdict is Proof.PROVEN
    assert prove_path(record(Layer.MPI, Pattern.PINGPONG, eth1=own, **others), NETWORK).verdict is Proof.REFUTED


def test_a_socket_does_not_go_by_a_port_of_an_rdma_device():
    port = {"mlx5_0/1": under("eth1")}
    assert prove_path(record(Layer.TCP, Pattern.PINGPONG, eth1=(0, 0), **port), NETWORK).verdict is Proof.REFUTED


@VERBS
def test_another_devices_port_is_another_way(layer: Layer):
    port = {"mlx5_1/1": under("eth7")}
    (violation,) = prove_path(record(layer, Pattern.PINGPONG, eth1=(PAYLOAD, PAYLOAD), **port), NETWORK).violations
    assert "mlx5_1/1 carried 2048000 B" in violation


@VERBS
def test_where_the_payload_may_have_gone_by_a_port_without_counters_the_path_is_unknown(layer: Layer):
    port = {"mlx5_0/1": under("eth1", carried=0, is_counted=False)}
    proof = prove_path(record(layer, Pattern.PINGPONG, eth1=(0, 0), **port), NETWORK)
    assert (proof.verdict, proof.violations) == (Proof.UNKNOWN, ())
    assert "eth1 did not carry it, and what mlx5_0/1 carries cannot be counted" in proof.unknown[0]
    by_interface = record(layer, Pattern.PINGPONG, eth1=(PAYLOAD, PAYLOAD), **port)
    assert prove_path(by_interface, NETWORK).verdict is Proof.PROVEN


def test_soft_roce_is_proven_by_the_interface_below_which_it_goes():
    """Two fabrics, a soft device on each: neither port counts bytes, both interfaces do."""
    ports = {"rxe0/1": under("eth0", carried=0, is_counted=False), "rxe1/1": under("eth1", carried=0, is_counted=False)}
    right = record(Layer.RDMA, Pattern.PINGPONG, eth0=(900, 900), eth1=(2 * PAYLOAD, 2 * PAYLOAD), **ports)
    assert prove_path(right, NETWORK).verdict is Proof.PROVEN
    wrong = record(Layer.RDMA, Pattern.PINGPONG, eth0=(2 * PAYLOAD, 2 * PAYLOAD), eth1=(900, 900), **ports)
    (violation,) = prove_path(wrong, NETWORK).violations
    assert "eth0 carried 4096000 B" in violation


@VERBS
def test_the_port_that_the_testbed_names_is_the_way_and_no_other(layer: Layer):
    """A device with two ports, of which only the second is on the fabric, whatever lies beside them."""
    named = NETWORK.model_copy(update={"rdma": RdmaEnd(device="mlx5_0", port=2)})
    right = record(
        layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_0/2": under("ib7"), "mlx5_0/1": under("ib6", carried=0)}
    )
    assert prove_path(right, named).verdict is Proof.PROVEN
    wrong = record(
        layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_0/1": under("ib6"), "mlx5_0/2": under("ib7", carried=0)}
    )
    found = prove_path(wrong, named).violations
    assert "mlx5_0/1 carried 2048000 B" in found[0]
    assert "eth1, mlx5_0/2 sent 0 B" in found[1]
    device = NETWORK.model_copy(update={"rdma": RdmaEnd(device="mlx5_0")})
    assert prove_path(wrong, device).verdict is Proof.PROVEN


def test_what_is_read_crosses_once():
    port = {"mlx5_0/1": InterfaceBytes(sent=30 * SAMPLES, received=PAYLOAD, above=("eth1",))}
    read = record(Layer.RDMA, Pattern.PINGPONG, door=RdmaDoor.READ, eth1=(0, 0), **port)
    assert prove_path(read, NETWORK).verdict is Proof.PROVEN
    sent = record(Layer.RDMA, Pattern.PINGPONG, door=RdmaDoor.SEND, eth1=(0, 0), **port)
    assert "sent 30000 B, but the payload is 1024000 B" in prove_path(sent, NETWORK).violations[0]


def test_a_counter_that_was_reset_proves_nothing():
    proof = prove_path(record(Layer.TCP, Pattern.PINGPONG, eth1=under(carried=0, is_counted=False)), NETWORK)
    assert (proof.verdict, proof.violations) == (Proof.UNKNOWN, ())


def test_a_card_below_the_fabrics_vlan_counts_the_same_traffic_and_is_no_other_way():
    vlan = record(Layer.TCP, Pattern.PINGPONG, eth1=(PAYLOAD, PAYLOAD), eth0=under("eth1"))
    assert prove_path(vlan, NETWORK).verdict is Proof.PROVEN


def test_what_went_over_the_card_and_not_over_its_vlan_went_another_way():
    untagged = record(Layer.MPI, Pattern.PINGPONG, eth1=(0, 0), eth0=under("eth1"))
    assert prove_path(untagged, NETWORK).verdict is Proof.REFUTED


def test_a_launch_is_proven_where_every_cell_is_and_refuted_where_one_is():
    good = record(Layer.TCP, Pattern.PINGPONG, eth1=(PAYLOAD, PAYLOAD))
    assert prove_path(good, NETWORK).verdict is Proof.PROVEN
    for other, verdict in (((), Proof.UNKNOWN), ((("eth1", (0, 0)),), Proof.REFUTED)):
        two = record(Layer.TCP, Pattern.PINGPONG, eth1=(PAYLOAD, PAYLOAD))
        two.cells += record(Layer.TCP, Pattern.PINGPONG, **dict(other)).cells
        assert prove_path(two, NETWORK).verdict is verdict
    good.cells.clear()
    assert prove_path(good, NETWORK).verdict is Proof.UNKNOWN


def test_shared_memory_must_not_show_on_any_interface():
    assert prove_path(record(Layer.MPI, Pattern.STREAM, lo=(30_000, 30_000)), MEMORY).violations == ()
    (violation,) = prove_path(record(Layer.MPI, Pattern.STREAM, lo=(PAYLOAD, PAYLOAD)), MEMORY).violations
    assert "lo carried" in violation


def test_what_a_machine_does_beside_it_has_the_time_from_the_begin_of_a_cell_to_its_end():
    found = record(Layer.MPI, Pattern.ALLREDUCE, lo=(400_000, 400_000))
    end = found.cells[0].end
    assert end is not None
    assert len(prove_path(found, MEMORY).violations) == 1
    found.cells[0].end = end.model_copy(update={"begin_unix_ns": 10**18, "end_unix_ns": 10**18 + 3 * 10**9})
    assert prove_path(found, MEMORY).violations == ()


def test_a_copy_in_memory_needs_no_interface_and_must_not_use_one():
    assert prove_path(record(Layer.MEMORY, Pattern.STREAM, eth1=(0, 0)), NETWORK).violations == ()
    (violation,) = prove_path(record(Layer.MEMORY, Pattern.STREAM, eth1=(PAYLOAD, 0)), NETWORK).violations
    assert "eth1 carried 1024000 B" in violation


@pytest.mark.parametrize(
    ("pattern", "members", "in_use", "neighbours"),
    [
        (Pattern.PINGPING, 2, 2, 1),
        (Pattern.SENDRECV, 4, 4, 1),
        (Pattern.EXCHANGE, 4, 8, 2),
        (Pattern.HALO, 4, 16, 4),
    ],
)
def test_in_each_turn_a_message_goes_to_and_comes_from_each_neighbour(
    pattern: Pattern, members: int, in_use: int, neighbours: int
):
    ranks = tuple(range(members))
    enough, little = neighbours * PAYLOAD, int(0.9 * neighbours * PAYLOAD)
    assert violations(record(Layer.TCP, pattern, ranks=ranks, in_use=in_use, eth1=(enough, enough))) == ()
    (one,) = violations(record(Layer.TCP, pattern, ranks=ranks, in_use=in_use, eth1=(enough, little)))
    assert f"received {little} B, but the payload is {enough} B" in one


STAR = [channel(0, 1, 3000), channel(0, 2, 3000), channel(1, 0, 2000), channel(2, 0, 2000)]


def test_of_a_flood_the_channels_that_begin_or_end_on_the_first_host_must_show():
    fine = record(Layer.TCP, Pattern.STAR, ranks=(0, 1, 2), channels=STAR, eth1=(6000, 4000))
    assert violations(fine) == ()
    assert prove_path(fine, NETWORK).cells[0].payload_bytes == 10_000
    (one,) = violations(record(Layer.TCP, Pattern.STAR, ranks=(0, 1, 2), channels=STAR, eth1=(3000, 4000)))
    assert "sent 3000 B, but the payload is 6000 B" in one


def test_channels_between_other_hosts_are_theirs_to_prove():
    ring = [channel(0, 1, 500), channel(1, 2, 10**9), channel(2, 0, 700)]
    assert violations(record(Layer.MPI, Pattern.RING, ranks=(0, 1, 2), channels=ring, eth1=(500, 700))) == ()


def test_a_second_rank_on_the_first_host_counts_with_it():
    incast = [channel(1, 0, 500), channel(1, 4, 900)]
    (one,) = violations(record(Layer.TCP, Pattern.INCAST, ranks=(0, 1, 4), channels=incast, eth1=(0, 500)))
    assert "received 500 B, but the payload is 1400 B" in one


def test_of_a_matrix_the_round_trips_go_both_ways():
    pairs = [
        channel(0, 1, 10, Quantity.ROUND_TRIP),
        channel(0, 2, 10, Quantity.ROUND_TRIP),
        channel(1, 2, 10, Quantity.ROUND_TRIP),
    ]
    enough = 20 * SIZE
    assert violations(record(Layer.UDP, Pattern.PAIRS, ranks=(0, 1, 2), channels=pairs, eth1=(enough, enough))) == ()
    assert len(violations(record(Layer.UDP, Pattern.PAIRS, ranks=(0, 1, 2), channels=pairs, eth1=(0, 0)))) == 2


def test_a_burst_need_only_be_sent():
    assert violations(record(Layer.TCP, Pattern.BURST, eth1=(8 * PAYLOAD, 0))) == ()
    assert len(violations(record(Layer.TCP, Pattern.BURST, eth1=(PAYLOAD, PAYLOAD)))) == 1


@pytest.mark.parametrize("pattern", [Pattern.ONEWAY, Pattern.PACED])
def test_other_round_trips_are_as_ping_pongs(pattern: Pattern):
    assert violations(record(Layer.TCP, pattern, eth1=(PAYLOAD, PAYLOAD))) == ()
    assert len(violations(record(Layer.TCP, pattern, eth1=(0, 0)))) == 2


def test_of_an_operation_something_must_have_moved_wherever_two_hosts_take_part():
    assert violations(record(Layer.MPI, Pattern.BCAST, ranks=(0, 1, 2), eth1=(PAYLOAD, 0))) == ()
    (one,) = violations(record(Layer.MPI, Pattern.BCAST, ranks=(0, 1, 2), eth1=(3000, 3000)))
    assert f"sent and received 6000 B, but the payload is {PAYLOAD // 2} B" in one
    alone = record(Layer.MPI, Pattern.BCAST, ranks=(0, 1), hosts=("n0", "n0"), eth1=(0, 0))
    assert violations(alone) == ()


def test_a_congestor_may_load_the_fabric_and_nothing_else():
    congestor = PlanCongestor(layer=Layer.TCP, pattern=Pattern.INCAST, message_bytes=65536, ranks=(5, 2, 3))
    many = 100 * PAYLOAD
    assert violations(record(Layer.TCP, Pattern.PINGPONG, congestor=congestor, eth1=(many, many))) == ()
    elsewhere = record(Layer.TCP, Pattern.PINGPONG, congestor=congestor, eth1=(many, many), eth0=(many, many))
    assert "eth0 carried" in violations(elsewhere)[0]
