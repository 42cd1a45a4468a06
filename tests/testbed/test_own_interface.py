"""A host finds its interface in a fabric: by name, by an address in the subnet, by a route that leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.testbed.own_interface import addresses_in, device_of, interface_of

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
ib0\t0000020A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
"""As Linux writes it: a default route, 10.0.0.0/8 through eth0, 10.2.0.0/16 through ib0."""


def test_the_label_of_an_address_leads_to_its_device():
    assert [device_of(name) for name in ("eth0:1", "eth0", "eth0.5:storage")] == ["eth0", "eth0", "eth0.5"]


def test_loopback_is_found_by_its_name_and_by_its_subnet():
    assert interface_of("lo") == interface_of("127.0.0.0/8") == "lo"
    assert addresses_in("127.0.0.0/8")[0][0] == "lo"
    assert interface_of("no-such-thing0") is None


@pytest.mark.parametrize(
    ("subnet", "found"),
    [("10.2.0.0/16", "ib0"), ("10.2.7.0/24", "ib0"), ("10.9.0.0/16", "eth0"), ("192.168.0.0/16", None)],
)
def test_without_an_address_the_most_specific_route_leads_to_it_and_a_default_route_nowhere(
    tmp_path: Path, subnet: str, found: str | None
):
    (tmp_path / "route").write_text(ROUTES)
    assert interface_of(subnet, tmp_path / "route") == found
