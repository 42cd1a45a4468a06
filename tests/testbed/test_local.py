from __future__ import annotations

import pytest

from fabricbench.model import Layer
from fabricbench.testbed import reading
from fabricbench.testbed.model import LauncherKind
from fabricbench.testbed.reading import local_testbed


def test_this_machine_is_a_testbed_of_loopback_and_shared_memory_that_says_so():
    testbed = local_testbed()
    assert testbed.launcher is LauncherKind.LOCAL
    assert [fabric.name for fabric in testbed.fabrics] == ["loopback", "shared-memory"]
    assert {Layer.UDP, Layer.TCP, Layer.MPI} <= set(testbed.fabric("loopback").layers)
    assert "No network was measured" in testbed.notes[0]


def test_layers_that_need_raw_sockets_are_left_out_where_they_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "may_open_raw_socket", lambda _layer: False)
    testbed = local_testbed()
    assert not {Layer.FRAME, Layer.IP} & set(testbed.fabric("loopback").layers)
    assert "CAP_NET_RAW" in testbed.notes[-1]
