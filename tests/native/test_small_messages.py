"""Messages that are smaller than what a datagram carries of its own, and messages of no byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from fabricbench.model import Layer, Pattern
from fabricbench.record.lines import FailureCode

pytestmark = pytest.mark.mpi

DATAGRAMS = [Layer.FRAME, Layer.IP, Layer.UDP] if os.geteuid() == 0 else [Layer.UDP]
OF_TIMES = (Pattern.PINGPONG, Pattern.ONEWAY, Pattern.PACED, Pattern.BURST, Pattern.PINGPING, Pattern.EXCHANGE)
OF_BYTES = (Pattern.STREAM, Pattern.BISTREAM, Pattern.INCAST)
HEADER_BYTES = 8


def cell(layer: Layer, pattern: Pattern, message_bytes: int) -> dict[str, Any]:
    stopping = {"maximum_samples": 20, "maximum_seconds": 0.05}
    return {
        "layer": layer,
        "pattern": pattern,
        "message_bytes": message_bytes,
        "verify_messages": 2,
        "stopping": stopping,
    }


@pytest.mark.parametrize("layer", DATAGRAMS)
def test_a_message_of_few_bytes_is_padded_to_the_header_of_a_datagram_which_is_told(probe: Callable, layer: Layer):
    cells = [cell(layer, pattern, 1 + number % 7) for number, pattern in enumerate((*OF_TIMES, *OF_BYTES))]
    outcome = probe([*cells, cell(layer, Pattern.PINGPONG, HEADER_BYTES)])
    for number, planned in enumerate(cells):
        end = outcome.end(number)
        assert end.measured > 0
        assert end.verified > 0
        assert end.corrupted == 0
        assert end.values["datagram_bytes"] == HEADER_BYTES
        if planned["pattern"] in OF_BYTES:
            assert all(moved % planned["message_bytes"] == 0 for moved in outcome.bytes(number))
    assert "datagram_bytes" not in outcome.end(len(cells)).values


def test_messages_of_no_byte_go_over_mpi_and_nothing_else(probe: Callable):
    patterns = (Pattern.PINGPONG, Pattern.PINGPING, Pattern.SENDRECV, Pattern.EXCHANGE)
    outcome = probe([*(cell(Layer.MPI, pattern, 0) for pattern in patterns), cell(Layer.UDP, Pattern.PINGPONG, 0)])
    for number in range(len(patterns)):
        assert outcome.end(number).measured > 0
        assert outcome.cell(number).bytes_per_sample == 0
    assert outcome.failed(len(patterns)).code is FailureCode.UNSUPPORTED
    assert "choose from 1 to" in outcome.failed(len(patterns)).reason
