"""A fabric against itself: the venue that a self-check measures in."""

from __future__ import annotations

import pytest

from fabricbench.campaign.venue import OwnLab, find_twins
from fabricbench.errors import UsageError


def test_twins_are_one_fabric_under_two_names_and_the_lab_builds_no_other():
    venue = find_twins("lab:fast-ethernet,myrinet", "myrinet", nodes=2)
    first, second = venue.testbed().fabrics
    assert (first.name, second.name) == ("myrinet", "myrinet-again")
    assert first.model_copy(update={"name": second.name}) == second
    assert isinstance(venue.of, OwnLab)
    assert [fabric.name for fabric in venue.of.fabrics] == ["myrinet"]
    assert all(node.addresses["myrinet"] == node.addresses["myrinet-again"] for node in venue.testbed().nodes)


def test_a_testbed_of_several_fabrics_asks_which():
    with pytest.raises(UsageError, match="has 2 fabrics") as caught:
        find_twins("lab:fast-ethernet,myrinet", None)
    assert caught.value.hint == "choose one with --fabric: fast-ethernet, myrinet"


def test_a_fabric_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no fabric 'sci'"):
        find_twins("lab:myrinet", "sci")
