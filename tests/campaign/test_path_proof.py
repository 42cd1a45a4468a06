from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fabricbench.campaign.path_proof import prove_path
from fabricbench.model import Layer, Pattern, RdmaDoor, RdmaEnd, Receive
from fabricbench.patterns import NETWORK as NETWORK_LAYERS
from fabricbench.patterns import metric_of
from fabricbench.record.kernel_lines import KernelFooter, KernelHeader, KernelProfile, KernelRecord, KernelRun
from fabricbench.record.lines import (
    Cell,
    CellEnd,
    ClockInfo,
    Header,
    InterfaceBytes,
    Quantity,
    RankInfo,
    StopReason,
)
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import CellRecord, ChannelNumbers, Record
from fabricbench.record.workload_cells import LEADER_BYTES, LaunchOfWorkload, as_record
from fabricbench.testbed.model import Fabric

NETWORK = Fabric(name="net", interface="eth1")
MEMORY = Fabric(name="memory", layers=(Layer.MEMORY, Layer.MPI))
SAMPLES, SIZE = 1000, 1024
PAYLOAD = SAMPLES * SIZE


def record(
    layer: Layer,
    pattern: Pattern,
    *,
    lost: int = 0,
    ranks: tuple[int, ...] = (0, 1),
    hosts: tuple[str, ...] = ("n0", "n1", "n2", "n3"),
    channels: Sequence[ChannelNumbers] = (),
    in_use: int = 1,
    congestor: PlanCongestor | None = None,
    door: RdmaDoor | None = None,
    **interfaces: tuple[int, int] | InterfaceBytes,
) -> Record:
    cell = Cell(
        id=3,
        layer=layer,
        pattern=pattern,
        message_bytes=SIZE,
        receive=Receive.BLOCKING,
        metric=metric_of(pattern),
        ranks=ranks,
        bytes_per_sample=SIZE,
        channels=in_use,
        congestor=congestor,
        parameters={"door": door} if door is not None else {},
    )
    end = CellEnd(
        cell=3,
        stop=StopReason.COUNT,
        warmup=0,
        measured=SAMPLES,
        seconds=0.1,
        sent=SAMPLES,
        lost=lost,
        interfaces={
            name: one if isinstance(one, InterfaceBytes) else InterfaceBytes(sent=one[0], received=one[1])
            for name, one in interfaces.items()
        },
    )
    header = Header(
        launch_id="b00-net",
        fabric="net",
        probe_version="0",
        mpi_library="none",
        started_unix_ns=0,
        ranks=tuple(RankInfo(rank=rank, host=host, pid=rank, cpus=(0,)) for rank, host in enumerate((*hosts, *hosts))),
        clock=ClockInfo(name="none", resolution_ns=1, overhead_ns=1, loop_floor_ns=1),
    )
    return Record(header=header, cells=[CellRecord(cell, end=end, channels=list(channels))])


def channel(source: int, destination: int, moved: int, quantity: Quantity = Quantity.TRANSFER) -> ChannelNumbers:
    """A transfer of so many bytes, or so many round trips."""
    is_transfer = quantity is Quantity.TRANSFER
    times = np.full(1 if is_transfer else moved, 5, dtype=np.int64)
    return ChannelNumbers(
        source=source,
        destination=destination,
        flow=0,
        round=0,
        quantity=quantity,
        time_ns=times,
        bytes=np.array([moved], dtype=np.uint64) if is_transfer else None,
        sent=1,
        lost=0,
    )


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


def under(*above: str, carried: int = PAYLOAD, is_counted: bool = True) -> InterfaceBytes:
    """A counter below the interfaces that are named."""
    return InterfaceBytes(sent=carried, received=carried, above=above, is_counted=is_counted)


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


def of_unseen_program(fabric: Fabric, **interfaces: tuple[int, int]) -> Proof:
    """A program that nobody knows the payload of, counted from outside for half a minute."""
    made = record(Layer.MPI, Pattern.WORKLOAD, **interfaces)
    end = made.cells[0].end
    assert end is not None
    made.cells[0].end = end.model_copy(update={"seconds": 30.0})
    return prove_path(made, fabric).verdict


def of_kernel(told: float, hosts: tuple[str, ...], **interfaces: tuple[int, int]) -> Proof:
    """A kernel of four ranks, of which rank 0 handed so many bytes to MPI for others."""
    made = record(Layer.MPI, Pattern.NPB, ranks=(0, 1, 2, 3), hosts=hosts, **interfaces)
    end = made.cells[0].end
    assert end is not None
    made.cells[0].end = end.model_copy(update={"values": {LEADER_BYTES: told}})
    return prove_path(made, NETWORK).verdict


def test_of_a_kernel_with_several_ranks_a_node_the_fabric_must_have_carried_more_than_any_other():
    spread, shared, one = ("n0", "n1", "n2", "n3"), ("n0", "n1", "n0", "n1"), ("n0", "n0", "n0", "n0")
    assert of_kernel(1e6, spread, eth1=(900_000, 900_000)) is Proof.PROVEN
    assert of_kernel(1e6, spread, eth1=(90_000, 90_000)) is Proof.REFUTED
    # What of it stayed in the node's memory nobody knows: less than rank 0 handed over is no violation, nothing at all is no proof.
    assert of_kernel(1e6, shared, eth1=(90_000, 90_000)) is Proof.PROVEN
    assert of_kernel(1e6, shared, eth1=(0, 0)) is Proof.UNKNOWN
    assert of_kernel(1e6, shared, eth1=(2_000, 2_000), eth0=(50_000, 50_000)) is Proof.UNKNOWN
    assert of_kernel(0.0, shared, eth1=(0, 0)) is Proof.PROVEN
    assert of_kernel(1e6, one, eth1=(0, 0)) is Proof.PROVEN


def test_what_ranks_print_may_go_by_the_network_that_starts_them():
    made = record(Layer.MPI, Pattern.WORKLOAD, eth1=(2_000_000, 2_000_000), eth0=(100_000, 3_000_000))
    assert prove_path(made, NETWORK).verdict is Proof.REFUTED
    assert prove_path(made, NETWORK, printed_bytes=2_500_000).verdict is Proof.PROVEN
    assert prove_path(made, NETWORK, printed_bytes=100_000).verdict is Proof.REFUTED


def repeated_kernel(*interfaces: dict[str, InterfaceBytes]) -> Record:
    """A kernel of two ranks on two hosts, in each of whose repetitions rank 0 handed PAYLOAD bytes to MPI."""
    ranks = tuple(RankInfo(rank=rank, host=f"n{rank}", pid=rank, cpus=(0,), interface="eth1") for rank in (0, 1))
    header = KernelHeader(
        program="npb",
        program_version="1",
        kernel="is",
        problem_class="S",
        rank_count=2,
        ranks=ranks,
        mpi_library="MPICH",
    )
    runs = [
        KernelRun(
            repetition=number,
            size="1",
            iterations=1,
            seconds=0.1,
            operation_unit="keys",
            mops_total=1.0,
            mops_per_process=0.5,
            verified=True,
            profile=KernelProfile(
                compute_seconds=(0.1, 0.1),
                mpi_seconds=(0.1, 0.1),
                bytes_sent=(PAYLOAD, PAYLOAD),
                calls=(),
                message_sizes=(),
                interfaces=carried,
            ),
        )
        for number, carried in enumerate(interfaces)
    ]
    kernel = KernelRecord(header, runs, KernelFooter(runs=len(runs), verified=len(runs)))
    probe = PlanProbe(id=0, layer=Layer.MPI, pattern=Pattern.NPB, message_bytes=0, ranks=(0, 1))
    return as_record(kernel, LaunchOfWorkload("b00-net", "net", probe))


def test_a_repeated_kernel_over_a_bond_is_proven_and_its_cards_are_no_other_way():
    bond, card = under(carried=10 * PAYLOAD), under("eth1", carried=10 * PAYLOAD)
    assert prove_path(repeated_kernel(*[{"eth1": bond, "eth0": card}] * 2), NETWORK).verdict is Proof.PROVEN


def test_a_repeated_kernel_over_the_port_of_an_rdma_device_is_proven_and_one_without_counters_unknown():
    """MPI over verbs: the kernel's counters of ib0 see nothing of it."""
    silent, port = under(carried=0), under("eth1", carried=10 * PAYLOAD)
    told = {"eth1": silent, "mlx5_0/1": port}
    untold = {"eth1": silent, "mlx5_0/1": under("eth1", carried=0, is_counted=False)}
    assert prove_path(repeated_kernel(told, told), NETWORK).verdict is Proof.PROVEN
    assert prove_path(repeated_kernel(untold, untold), NETWORK).verdict is Proof.UNKNOWN
    assert prove_path(repeated_kernel(told, untold), NETWORK).verdict is Proof.UNKNOWN


def test_a_program_of_unknown_payload_must_have_talked_over_the_fabric_more_than_over_any_other():
    emulated = NETWORK.model_copy(update={"is_emulated": True})
    for fabric, misled in ((NETWORK, Proof.UNKNOWN), (emulated, Proof.REFUTED)):
        assert of_unseen_program(fabric, eth1=(900_000, 900_000), eth0=(20_000, 9_000)) is Proof.PROVEN
        assert of_unseen_program(fabric, eth1=(20_000, 9_000), eth0=(9_000, 9_000)) is Proof.PROVEN
        assert of_unseen_program(fabric, eth1=(4_014, 3_854), eth0=(3_215_278, 2_645_881)) is misled
        assert of_unseen_program(fabric, eth1=(0, 0), eth0=(20_000, 9_000)) is misled
        assert of_unseen_program(fabric, eth1=(900, 900), eth0=(90_000_000, 0)) is Proof.REFUTED


def test_where_little_crossed_any_interface_nobody_knows_the_path_and_control_traffic_refutes_nothing():
    emulated = NETWORK.model_copy(update={"is_emulated": True})
    for fabric in (NETWORK, emulated):
        assert of_unseen_program(fabric, eth1=(43, 0), ctl0=(330, 810)) is Proof.UNKNOWN  # one broadcast
        assert of_unseen_program(fabric, eth1=(43, 0)) is Proof.UNKNOWN
        assert of_unseen_program(fabric, eth1=(2_000, 2_000), eth0=(20_000, 9_000)) is Proof.UNKNOWN
        assert of_unseen_program(fabric, eth1=(8_000, 8_000), eth0=(20_000, 9_000)) is Proof.UNKNOWN
        assert of_unseen_program(fabric, eth1=(40_000, 40_000), eth0=(60_000, 9_000)) is Proof.PROVEN
    (why,) = prove_path(record(Layer.MPI, Pattern.WORKLOAD, eth1=(43, 0), ctl0=(330, 810)), emulated).unknown
    assert why.endswith(
        "eth1 carried 43 B and ctl0 1140 B: too little crossed any interface to tell by which its ranks talked"
    )


def test_what_ranks_print_is_not_held_against_the_fabric_either():
    made = record(Layer.MPI, Pattern.WORKLOAD, eth1=(10_000, 10_000), eth0=(1_000, 29_000))
    assert prove_path(made, NETWORK, printed_bytes=28_000).verdict is Proof.PROVEN
    assert prove_path(made, NETWORK, printed_bytes=1_000).verdict is Proof.UNKNOWN


def test_what_ranks_print_proves_no_path_that_a_stray_packet_took():
    misled = record(Layer.MPI, Pattern.WORKLOAD, eth1=(43, 0), eth0=(100_000, 3_000_000))
    assert prove_path(misled, NETWORK, printed_bytes=2_500_000).verdict is Proof.UNKNOWN


def test_a_lab_has_no_chatter_of_its_own_and_a_real_network_has_some_each_second():
    little = {"eth1": (800, 900)}
    assert of_unseen_program(NETWORK, **little) is Proof.UNKNOWN
    assert of_unseen_program(NETWORK.model_copy(update={"is_emulated": True}), **little) is Proof.PROVEN
