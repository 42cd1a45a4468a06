"""What the interfaces carried proves of kernels and of programs whose payload nobody knows."""

from __future__ import annotations

from fabricbench.campaign.path_proof import prove_path
from fabricbench.model import Layer, Pattern
from fabricbench.record.kernel_lines import KernelFooter, KernelHeader, KernelProfile, KernelRecord, KernelRun
from fabricbench.record.lines import (
    InterfaceBytes,
    RankInfo,
)
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.provenance import Proof
from fabricbench.record.reading import Record
from fabricbench.record.workload_cells import (
    LEADER_BYTES,
    Failed,
    LaunchOfWorkload,
    WorkloadResult,
    record_of,
    result_of_kernel,
)
from fabricbench.testbed.model import Fabric
from support.path_records import NETWORK, PAYLOAD, record, under


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
    return record_of(result_of_kernel(kernel), LaunchOfWorkload("b00-net", "net", probe))


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


def test_a_figure_that_was_not_found_unproves_no_path_that_was_counted():
    probe = PlanProbe.model_validate(
        {"id": 0, "layer": "mpi", "pattern": "workload", "message_bytes": 0, "receive": "library", "ranks": [0, 1]}
        | {"warmup_samples": 0, "stopping": {"minimum_samples": 1, "maximum_samples": 1, "maximum_seconds": 1.0}}
    )
    ranks = tuple(RankInfo(rank=rank, host=f"n{rank}", pid=rank, cpus=(0,), interface="eth1") for rank in (0, 1))

    def of_failed(**interfaces: InterfaceBytes) -> Proof:
        failed = Failed("figure 'f': '(x)' in stdout matched nothing", is_wrong=False)
        told = WorkloadResult("solver", ranks=ranks, seconds=(1.0,), failed=failed, interfaces=interfaces)
        return prove_path(record_of(told, LaunchOfWorkload("b00-a-solver.2", "a", probe)), NETWORK).verdict

    assert of_failed(eth1=InterfaceBytes(sent=4_000_000, received=100_000)) is Proof.PROVEN
    assert (
        of_failed(eth1=InterfaceBytes(sent=10, received=10), eth0=InterfaceBytes(sent=2_000, received=0))
        is Proof.UNKNOWN
    )
    assert of_failed() is Proof.UNKNOWN
