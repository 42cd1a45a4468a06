"""Damaged texts are refused or read with a word about it, never with a traceback or a wrong figure in silence."""

from __future__ import annotations

import pytest
from tests.exchange.samples import SAMPLES
from tests.exchange.test_linktest import AT_ONCE, SERIAL
from tests.exchange.test_mpigraph import MATRIX
from tests.exchange.test_netpipe import FIVE
from tests.exchange.test_perftest import SEND_LAT_JSON, WRITE_BW, WRITE_BW_JSON, WRITE_LAT
from tests.exchange.test_sockets import STREAM, UDP

from support.mutated_texts import complaints

MUTANTS = 500

BY_GRAMMAR = [
    ("bandwidth", WRITE_BW),
    ("latency", WRITE_LAT),
    ("bandwidth-json", WRITE_BW_JSON),
    ("latency-json", SEND_LAT_JSON),
    ("stream", STREAM),
    ("udp", UDP),
    ("netpipe-5", FIVE),
    ("mpigraph", MATRIX),
    ("linktest", SERIAL),
    ("linktest-at-once", AT_ONCE),
]
"""Texts of programs of which there is no real output."""


@pytest.mark.slow
def test_a_damaged_text_is_no_traceback_and_no_wrong_figure_without_a_word():
    assert complaints(SAMPLES + BY_GRAMMAR, MUTANTS, seed=1) == []
