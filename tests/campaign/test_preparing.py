"""What a campaign and a testbed by name become: what fabrics cannot carry is left out of presets, whole fabrics too."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.preparing import prepare
from fabricbench.errors import UsageError

LOOPBACK, BOTH = ["loopback"], ["loopback", "shared-memory"]


@pytest.mark.parametrize(("campaign", "fabrics"), [("explain", LOOPBACK), ("switch", LOOPBACK), ("quick", BOTH)])
def test_a_preset_leaves_out_the_fabrics_that_carry_nothing_of_it(campaign: str, fabrics: list[str]):
    """`explain --testbed local`, all that a container without namespaces can measure, was refused for its shared memory."""
    found = prepare(campaign, "local", None, None, None, 1)
    assert [one.name for one in found.plan.fabrics] == fabrics
    assert [one.name for one in found.venue.testbed().fabrics] == fabrics
    assert ("shared-memory left out: no layer there that the campaign measures" in found.plan.notes) is (
        fabrics != BOTH
    )


def test_a_campaign_that_leaves_nothing_out_refuses_them(tmp_path: Path):
    path = tmp_path / "tcp.toml"
    path.write_text('[campaign]\n[[experiment]]\nlayers = ["tcp"]\npattern = "pingpong"\nmessage_bytes = [64]\n')
    with pytest.raises(UsageError, match="asks for layer tcp, which fabric shared-memory does not have"):
        prepare(str(path), "local", None, None, None, 1)


@pytest.mark.complete
def test_where_no_fabric_carries_anything_it_is_refused_all_the_same():
    with pytest.raises(UsageError, match="has layer rdma"):
        prepare("rdma", "local", None, None, None, 1)
