from __future__ import annotations

import pytest

from fabricbench.campaign.path_proof import prove_path
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.patterns import metric_of
from fabricbench.record.lines import Cell, CellEnd, InterfaceBytes, StopReason
from fabricbench.record.reading import CellRecord, Record
from fabricbench.testbed.model import Fabric

NETWORK = Fabric(name="net", interface="eth1")
MEMORY = Fabric(name="memory", layers=(Layer.MEMORY, Layer.MPI))
SAMPLES, SIZE = 1000, 1024
PAYLOAD = SAMPLES * SIZE


def record(layer: Layer, pattern: Pattern, *, lost: int = 0, **interfaces: tuple[int, int]) -> Record:
    cell = Cell(
        id=3,
        layer=layer,
        pattern=pattern,
        message_bytes=SIZE,
        receive=Receive.BLOCKING,
        metric=metric_of(pattern),
        ranks=(0, 1),
        bytes_per_sample=SIZE,
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
            name: InterfaceBytes(sent=sent, received=received) for name, (sent, received) in interfaces.items()
        },
    )
    return Record(cells=[CellRecord(cell, end=end)])


@pytest.mark.parametrize("layer", [Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP, Layer.MPI])
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
    assert violation.startswith("cell 3 (mpi pingpong of 1 KiB)")


def test_messages_that_were_lost_need_not_have_come_back():
    half = SAMPLES // 2
    lossy = record(Layer.UDP, Pattern.PINGPONG, lost=half, eth1=(PAYLOAD, half * SIZE))
    assert prove_path(lossy, NETWORK).violations == ()


def test_without_counters_nothing_is_proven():
    (violation,) = prove_path(record(Layer.TCP, Pattern.STREAM), NETWORK).violations
    assert "not proven" in violation


def test_shared_memory_must_not_show_on_any_interface():
    assert prove_path(record(Layer.MPI, Pattern.STREAM, lo=(30_000, 30_000)), MEMORY).violations == ()
    (violation,) = prove_path(record(Layer.MPI, Pattern.STREAM, lo=(PAYLOAD, PAYLOAD)), MEMORY).violations
    assert "lo carried" in violation


def test_a_copy_in_memory_needs_no_interface_and_must_not_use_one():
    assert prove_path(record(Layer.MEMORY, Pattern.STREAM, eth1=(0, 0)), NETWORK).violations == ()
    (violation,) = prove_path(record(Layer.MEMORY, Pattern.STREAM, eth1=(PAYLOAD, 0)), NETWORK).violations
    assert "eth1 carried 1024000 B" in violation
