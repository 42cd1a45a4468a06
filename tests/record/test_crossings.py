"""Which frames of the switch are taken for those of which message."""

from __future__ import annotations

import numpy as np

from fabricbench.record.crossings import UNKNOWN, crossed

FRAMES = np.array([[210, 5, 216, 216], [120, 5, 125, 126], [110, 7, 119, 121], [330, 5, 336, 337]], dtype=np.int64)


def test_a_message_has_the_frames_between_its_send_and_its_arrival():
    sent, arrived = np.array([100, 200, 300]), np.array([130, 220, 340])
    found = crossed(sent, arrived, FRAMES)
    assert found.first.tolist() == [110, 210, 330]
    assert found.last.tolist() == [120, 210, 330]
    assert found.wire.tolist() == [5, 5, 5]
    assert found.due.tolist() == [125, 216, 336]


def test_a_message_without_a_frame_or_an_end_is_unknown():
    sent, arrived = np.array([100, UNKNOWN, 225, 100]), np.array([105, 130, 300, UNKNOWN])
    found = crossed(sent, arrived, FRAMES)
    for column in (found.first, found.last, found.wire, found.due):
        assert column.tolist() == [UNKNOWN] * 4


def test_no_frames_tell_nothing():
    found = crossed(np.array([1]), np.array([2]), np.zeros((0, 4), dtype=np.int64))
    assert found.first.tolist() == [UNKNOWN]
