"""What the interfaces carried proves or refutes that a cell went over its fabric."""

from __future__ import annotations

import pytest

from fabricbench.campaign.path_proof import prove_path
from fabricbench.model import Layer, Pattern, RdmaDoor, RdmaEnd
from fabricbench.pattern_facts import NETWORK as NETWORK_LAYERS
from fabricbench.record.lines import (
    InterfaceBytes,
    Quantity,
)
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import Record
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.tunnels import UNKNOWN_CARRIER
from support.path_records import MEMORY, NETWORK, PAYLOAD, SAMPLES, SIZE, channel, record, under

LOCAL = Fabric(name="here", interface="lo")
SAME = ("n0", "n0", "n0", "n0")
"""Ranks that share a machine."""


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
def test_of_ports_beside_no_interface_the_one_that_the_testbed_names_is_the_way_and_no_other(layer: Layer):
    """InfiniBand without IPoIB: a device with two ports, of which only the second is on the fabric."""
    named = NETWORK.model_copy(update={"rdma": RdmaEnd(device="mlx5_0", port=2)})
    right = record(layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_0/2": under(), "mlx5_0/1": under(carried=0)})
    assert prove_path(right, named).verdict is Proof.PROVEN
    wrong = record(layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_0/1": under(), "mlx5_0/2": under(carried=0)})
    found = prove_path(wrong, named).violations
    assert "mlx5_0/1 carried 2048000 B" in found[0]
    assert "eth1, mlx5_0/2 sent 0 B" in found[1]
    device = NETWORK.model_copy(update={"rdma": RdmaEnd(device="mlx5_0")})
    assert prove_path(wrong, device).verdict is Proof.PROVEN


@VERBS
def test_a_port_beside_another_interface_proves_nothing_though_the_testbed_names_it(layer: Layer):
    named = NETWORK.model_copy(update={"rdma": RdmaEnd(device="mlx5_1")})
    proof = prove_path(record(layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_1/1": under("eth7")}), named)
    assert proof.verdict is Proof.REFUTED
    assert "mlx5_1/1 carried 2048000 B" in proof.violations[0]
    ours = prove_path(record(layer, Pattern.PINGPONG, eth1=(0, 0), **{"mlx5_1/1": under("eth7", "eth1")}), named)
    assert ours.verdict is Proof.PROVEN


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
    assert prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=(30_000, 30_000)), MEMORY).violations == ()
    (violation,) = prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=(PAYLOAD, PAYLOAD)), MEMORY).violations
    assert "lo carried" in violation


def test_what_a_loopback_speaks_against_is_told_as_what_may_be_other_programs():
    found = prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=(PAYLOAD, PAYLOAD)), MEMORY)
    (violation,) = found.violations
    assert "other programs of the machine use it as well, and this may be theirs" in violation
    assert found.cells[0].may_be_others
    beside = record(Layer.MPI, Pattern.STREAM, hosts=SAME, eth1=(0, 0), eth0=(PAYLOAD, PAYLOAD))
    assert not prove_path(beside, NETWORK).cells[0].may_be_others


def test_a_loopback_speaks_against_no_rank_that_is_alone_on_its_machine():
    """It reaches no other rank by it, whatever other programs do there."""
    interfaces = {"eth1": (PAYLOAD, PAYLOAD), "lo": (10**9, 10**9)}
    assert prove_path(record(Layer.TCP, Pattern.PINGPONG, **interfaces), NETWORK).verdict is Proof.PROVEN
    assert prove_path(record(Layer.TCP, Pattern.PINGPONG, hosts=SAME, **interfaces), NETWORK).verdict is Proof.REFUTED
    emulated = NETWORK.model_copy(update={"is_emulated": True})
    assert prove_path(record(Layer.TCP, Pattern.PINGPONG, **interfaces), emulated).verdict is Proof.REFUTED


def test_a_loopback_proves_nothing_of_a_program_whose_payload_nobody_knows():
    found = prove_path(record(Layer.MPI, Pattern.WORKLOAD, hosts=SAME, lo=(10**9, 10**9)), LOCAL)
    assert (found.verdict, found.cells[0].may_be_others) == (Proof.UNKNOWN, True)
    assert "this may be theirs" in found.unknown[0]


def test_mpi_over_a_loopback_is_proven_only_where_others_cannot_account_for_its_bytes():
    own, others = (2 * PAYLOAD, 2 * PAYLOAD), (100 * PAYLOAD, 100 * PAYLOAD)
    assert prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=own), LOCAL).verdict is Proof.PROVEN
    assert prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=others), LOCAL).verdict is Proof.UNKNOWN
    # What a socket sends to an address of the loopback goes over nothing else.
    assert prove_path(record(Layer.TCP, Pattern.STREAM, hosts=SAME, lo=others), LOCAL).verdict is Proof.PROVEN
    assert prove_path(record(Layer.MPI, Pattern.STREAM, hosts=SAME, lo=(0, 0)), LOCAL).verdict is Proof.REFUTED


def test_what_a_machine_does_beside_it_has_the_time_from_the_begin_of_a_cell_to_its_end():
    found = record(Layer.MPI, Pattern.ALLREDUCE, hosts=SAME, lo=(400_000, 400_000))
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


def on_hosts(found: Record, **others: dict[str, InterfaceBytes]) -> Record:
    """The record with what other hosts counted."""
    (one,) = found.cells
    assert one.end is not None
    one.end = one.end.model_copy(update={"other_hosts": others})
    return found


def counted(sent: int, received: int) -> InterfaceBytes:
    return InterfaceBytes(sent=sent, received=received)


FINE = counted(PAYLOAD, PAYLOAD)


def test_the_other_host_of_a_pair_must_have_received_what_the_first_has_sent():
    stream = record(Layer.MPI, Pattern.STREAM, eth1=(PAYLOAD, 20_000))
    assert prove_path(on_hosts(stream, n1={"eth1": counted(20_000, PAYLOAD)}), NETWORK).verdict is Proof.PROVEN
    (violation,) = prove_path(on_hosts(stream, n1={"eth1": counted(20_000, 3_000)}), NETWORK).violations
    assert "on n1: eth1 received 3000 B, but the payload is 1024000 B" in violation


@pytest.mark.parametrize("pattern", [Pattern.ALLREDUCE, Pattern.CHAOS, Pattern.PAIRS])
def test_one_host_of_many_whose_traffic_took_another_way_refutes_a_launch_and_is_named(pattern: Pattern):
    four = (0, 1, 2, 3)
    clean = on_hosts(
        record(Layer.MPI, pattern, ranks=four, eth1=(PAYLOAD, PAYLOAD)),
        n1={"eth1": FINE},
        n2={"eth1": FINE},
        n3={"eth1": FINE},
    )
    assert prove_path(clean, NETWORK).verdict is Proof.PROVEN
    strayed = on_hosts(clean, n1={"eth1": FINE}, n2={"eth1": counted(500, 500), "eth0": FINE}, n3={"eth1": FINE})
    (violation,) = prove_path(strayed, NETWORK).violations
    assert "on n2: eth0 carried 2048000 B" in violation


def test_a_program_of_unknown_payload_may_be_silent_on_another_host_but_not_talk_elsewhere_there():
    made = record(Layer.MPI, Pattern.WORKLOAD, ranks=(0, 1), eth1=(900_000, 900_000))
    for there, verdict in (
        ({"eth1": counted(0, 0)}, Proof.PROVEN),
        ({"eth1": counted(900_000, 900_000), "ctl0": counted(30_000, 9_000)}, Proof.PROVEN),
        ({"eth1": counted(4_000, 4_000), "eth0": counted(80_000, 80_000)}, Proof.UNKNOWN),
        ({"eth1": counted(4_000, 4_000), "eth0": counted(9_000_000, 80_000)}, Proof.REFUTED),
    ):
        assert prove_path(on_hosts(made, n1=there), NETWORK).verdict is verdict, there


def test_a_host_that_nobody_counted_makes_the_path_unknown_where_others_were_and_old_records_are_as_they_were():
    three = record(Layer.MPI, Pattern.ALLREDUCE, ranks=(0, 1, 2), eth1=(PAYLOAD, PAYLOAD))
    assert prove_path(three, NETWORK).verdict is Proof.PROVEN
    (why,) = prove_path(on_hosts(three, n1={"eth1": FINE}), NETWORK).unknown
    assert "nobody counted what went over the interfaces of n2" in why


def by_subnet(found: Record, *interfaces: str | None) -> Record:
    """The record with what each rank has found in the fabric's subnet."""
    assert found.header is not None
    ranks = [
        one.model_copy(update={"interface": name}) for one, name in zip(found.header.ranks, interfaces, strict=False)
    ]
    found.header = found.header.model_copy(update={"ranks": tuple(ranks)})
    return found


SUBNET = Fabric.model_validate({"name": "far", "subnet": "10.1.0.0/24"})


def test_by_a_subnet_each_host_has_an_interface_of_its_own_name():
    made = by_subnet(record(Layer.MPI, Pattern.WORKLOAD, eth1=(900_000, 900_000)), "eth1", "eno2")
    proof = prove_path(on_hosts(made, n1={"eno2": counted(900_000, 900_000)}), SUBNET)
    assert (proof.verdict, proof.interfaces) == (Proof.PROVEN, {"n0": "eth1", "n1": "eno2"})


def test_an_interface_that_was_not_identified_is_said_and_refutes_nothing():
    made = by_subnet(record(Layer.MPI, Pattern.WORKLOAD, eno2=(9_000_000, 9_000_000)), None, "eno2")
    proof = prove_path(made, SUBNET)
    assert (proof.verdict, proof.violations) == (Proof.UNKNOWN, ())
    assert proof.unknown[0].endswith("the interface of fabric far was not identified on n0")


def test_what_carries_a_tunnel_is_no_other_way_and_one_that_nobody_knows_refutes_nothing():
    tunnel = Fabric(name="overlay", interface="vx0")
    made = record(Layer.MPI, Pattern.STREAM, vx0=(PAYLOAD, 9_000), eth0=(2 * PAYLOAD, 20_000), eno1=under("eth0"))
    assert prove_path(made, tunnel).verdict is Proof.REFUTED
    known = prove_path(made, tunnel, carriers={"n0": {"vx0": ("eth0",)}})
    assert (known.verdict, known.carriers) == (Proof.PROVEN, {"n0": ("eth0",)})
    unknown = prove_path(made, tunnel, carriers={"n0": {"vx0": (UNKNOWN_CARRIER,)}})
    assert (unknown.verdict, unknown.violations) == (Proof.UNKNOWN, ())
    assert "vx0 is a tunnel, and nobody can tell what carries it" in unknown.unknown[0]
    elsewhere = record(Layer.MPI, Pattern.STREAM, vx0=(PAYLOAD, 9_000), eth0=(PAYLOAD, 9_000), eth5=(PAYLOAD, 9_000))
    assert "eth5 carried" in prove_path(elsewhere, tunnel, carriers={"n0": {"vx0": ("eth0",)}}).violations[0]


def test_what_stays_on_a_host_need_not_have_crossed_its_interface():
    incast = [channel(1, 0, 500), channel(4, 0, 900)]
    found = record(Layer.TCP, Pattern.INCAST, ranks=(0, 1, 4), channels=incast, eth1=(0, 500))
    assert violations(found) == ()
