"""The kinds of memory that messages lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fabricbench.record.lines import FailureCode

pytestmark = pytest.mark.mpi

MESSAGE_BYTES = 4 << 20


def cell(memory: str | None, **more: Any) -> dict[str, Any]:
    usual = {"layer": "tcp", "pattern": "pingpong", "message_bytes": MESSAGE_BYTES, "verify_messages": 2}
    return {**usual, "parameters": {"memory": memory} if memory else {}, **more}


def test_a_cell_that_asks_for_huge_pages_tells_how_much_of_a_message_lies_in_them(probe: Callable):
    outcome = probe([cell("huge"), cell("huge", pattern="bistream", message_bytes=64), cell("plain"), cell(None)])
    for number, size in ((0, MESSAGE_BYTES), (1, 64)):
        assert outcome.end(number).verified > 0
        assert outcome.end(number).corrupted == 0
        assert 0 <= outcome.end(number).values["huge_page_buffer_bytes"] <= size
    for number in (2, 3):
        assert "huge_page_buffer_bytes" not in outcome.end(number).values


def test_memory_that_no_device_lends_is_refused(probe: Callable):
    in_memory = {"layer": "memory", "pattern": "stream", "ranks": [0], "message_bytes": 4096}
    outcome = probe([cell("cuda"), cell("rocm"), cell("swap"), cell("huge", **in_memory), cell(None)])
    reasons = (
        "memory of kind cuda is not built into this measurer: take plain or huge",
        "memory of kind rocm is not built into this measurer",
        'memory must be one of plain, huge, cuda, rocm, found "swap"',
        "door processor into layer memory has arrays of its own",
    )
    for number, reason in enumerate(reasons):
        assert outcome.failed(number).code is FailureCode.UNSUPPORTED
        assert reason in outcome.failed(number).reason
    assert outcome.end(4).measured >= 1


def test_pairs_of_a_matrix_are_measured_in_the_memory_and_as_the_parameters_say(probe: Callable):
    def pairs(memory: str, pattern: str = "pairs", **own: str) -> dict[str, Any]:
        of_all = {"pattern": pattern, "ranks": [0, 1, 2], "message_bytes": 4096}
        return {**cell(memory), **of_all, "parameters": {"memory": memory, "schedule": "halves", **own}}

    outcome = probe(
        [pairs("huge", answer="own"), pairs("huge", "pairs-stream"), pairs("plain"), pairs("cuda")], ranks=3
    )
    for number in (0, 1):
        assert outcome.end(number).corrupted == 0
        assert 0 <= outcome.end(number).values["huge_page_buffer_bytes"] <= 4096
    assert "huge_page_buffer_bytes" not in outcome.end(2).values
    assert "memory of kind cuda is not built into this measurer" in outcome.failed(3).reason
