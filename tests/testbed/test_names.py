"""Looking names up does not take longer than it may."""

from __future__ import annotations

import threading
import time
from ipaddress import IPv4Address

from fabricbench.testbed.names import LookUp, look_up_all


def test_a_name_service_that_is_silent_is_given_up_and_others_are_told():
    released = threading.Event()

    def resolve(name: str) -> str:
        if name == "silent":
            released.wait(30)
        if name == "unknown":
            raise OSError
        return "10.1.0.1"

    begin = time.monotonic()
    found = look_up_all(["silent", "here", "unknown"], 0.3, resolve)
    lasted = time.monotonic() - begin
    released.set()
    assert found == {"silent": LookUp(is_silent=True), "here": LookUp(IPv4Address("10.1.0.1")), "unknown": LookUp()}
    assert lasted < 20
