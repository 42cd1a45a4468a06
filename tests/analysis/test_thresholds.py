"""What lies at message sizes by design, as a run tells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fabricbench.analysis.curves import log_time, measured_curves
from fabricbench.analysis.findings.thresholds import ThresholdKind
from fabricbench.analysis.measured import Side
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.thresholds import thresholds_between
from fabricbench.model import Layer, Pattern, Receive
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

SIZES = (64, 1024, 1448, 2048, 4096, 65536)


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Side:
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, size, {"net": 50e3 + 18.0 * size}, receive=receive, samples=5)
        for layer, receive in ((Layer.TCP, Receive.BLOCKING), (Layer.MPI, Receive.LIBRARY))
        for size in SIZES
    ]
    cells.append(SyntheticCell(Layer.TCP, Pattern.STREAM, 1024, {"net": 8e8}, samples=5))
    cells.append(SyntheticCell(Layer.MEMORY, Pattern.PINGPONG, 1024, {"net": 100.0}, samples=5))
    cells.append(
        SyntheticCell(Layer.MPI, Pattern.ALLTOALL, 1024, {"net": 9e4}, receive=Receive.LIBRARY, ranks=(0, 1, 2, 3))
    )
    testbed = synthetic_testbed({"net": 1e9}, nodes=4)
    run = write_synthetic_run(tmp_path_factory.mktemp("run") / "run", cells=cells, blocks=3, testbed=testbed)
    buffers = {"sysctl.net.ipv4.tcp_wmem": "4096\t16384\t4194304"}
    manifest = run.manifest.model_copy(update={"inventory": {node.name: buffers for node in testbed.nodes}})
    (read,) = read_sides([run])
    read.run = replace(run, manifest=manifest)
    return read


def test_curves_are_of_one_layer_and_pattern_each_in_the_order_of_sizes(side: Side):
    found = {(one.key.layer, one.key.pattern): one for one in measured_curves(side)}
    assert found.keys() == {
        (Layer.TCP, Pattern.PINGPONG),
        (Layer.MPI, Pattern.PINGPONG),
        (Layer.TCP, Pattern.STREAM),
        (Layer.MPI, Pattern.ALLTOALL),
    }
    assert found[Layer.TCP, Pattern.PINGPONG].sizes.tolist() == list(SIZES)
    (stream,) = found[Layer.TCP, Pattern.STREAM].cells
    assert log_time(stream).mean() == pytest.approx(np.log(8e9 * 1024 / 8e8), abs=0.02)


def test_first_packets_become_full_where_their_payload_ends(side: Side):
    curve = next(one for one in measured_curves(side) if one.key.layer is Layer.TCP)
    assert curve.is_expected.tolist() == [False, True, True, True, False]


def test_packets_pages_and_buffers_lie_where_they_are(side: Side):
    curve = next(one for one in measured_curves(side) if one.key.layer is Layer.TCP)

    def between(low: int, high: int) -> list[tuple[ThresholdKind, int]]:
        return [(one.kind, one.bytes) for one in thresholds_between(curve, low, high)]

    assert between(1024, 2048) == [(ThresholdKind.PACKETS, 1448)]
    assert between(2048, 4096) == [(ThresholdKind.PACKETS, 2896)]
    assert (ThresholdKind.PAGE, 4096) in between(4096, 8192)
    assert (ThresholdKind.PACKETS, 1448) in between(1448, 2048), "a message of its payload is the last that fits"
    assert (ThresholdKind.SEND_BUFFER, 16384) in between(16384, 32768)
    assert (ThresholdKind.INITIAL_WINDOW, 14480) in between(8192, 16384)
    assert between(64, 512) == []


def test_usual_eager_limits_are_those_of_the_library_that_the_ranks_told(side: Side):
    curve = next(one for one in measured_curves(side) if one.key.layer is Layer.MPI)
    header = side.launches[0].summary.header
    assert header is not None
    object.__setattr__(header, "mpi_library", "Open MPI v5.0.6, package: ...")
    found = thresholds_between(curve, 65536, 131072)
    assert [(one.kind, one.library, one.bytes) for one in found] == [(ThresholdKind.EAGER_LIMIT, "Open MPI", 65536)]
    object.__setattr__(header, "mpi_library", "none")
    assert thresholds_between(curve, 65536, 131072) == ()
