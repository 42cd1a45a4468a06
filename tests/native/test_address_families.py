"""The versions of IP that cells of ip, udp and tcp ask for, over the loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fabricbench.record.lines import FailureCode

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this kernel has no IPv6"),
]

SENT = "Ip6OutRequests"


def sent_packets() -> int:
    """Return how many packets of IPv6 this network namespace has sent."""
    lines = Path("/proc/net/snmp6").read_text().splitlines()
    return next(int(number) for name, number in map(str.split, lines) if name == SENT)


@pytest.mark.parametrize("layer", ["ip", "udp", "tcp"])
def test_messages_go_by_the_version_that_is_asked_for(layer: str, probe: Callable):
    def cell(family: str | None, size: int) -> dict[str, object]:
        parameters = {} if family is None else {"address_family": family}
        usual = {"layer": layer, "pattern": "pingpong", "verify_messages": 2}
        return {**usual, "message_bytes": size, "parameters": parameters}

    before = sent_packets()
    outcome = probe([cell(None, 64), cell("ipv4", 64)])
    assert sent_packets() - before < outcome.end(0).measured + outcome.end(1).measured
    before = sent_packets()
    sizes = (64, 4096, 65_000)
    outcome = probe([*(cell("ipv6", size) for size in sizes), cell("ipv5", 64)])
    for number in range(len(sizes)):
        assert outcome.end(number).verified > 0
        assert outcome.end(number).corrupted == 0
    assert sent_packets() - before > 2 * sum(outcome.end(number).measured for number in range(len(sizes)))
    assert outcome.failed(len(sizes)).code is FailureCode.UNSUPPORTED
    assert "ipv4 or ipv6" in outcome.failed(len(sizes)).reason
