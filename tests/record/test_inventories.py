"""Inventories of many hosts: short in a file, whole in the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricbench.record.inventories import COMMON, MOST_WHOLE, folded, unfolded
from fabricbench.record.manifest import MANIFEST, manifest_text, read_manifest, write_manifest
from support.configured_runs import write_system

FACTS = st.dictionaries(st.sampled_from(["cpu", "kernel", "mtu", "missing"]), st.sampled_from("ab"))


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=3), FACTS, max_size=20))
def test_what_is_folded_unfolds_to_the_same(inventory: dict[str, dict[str, str]]):
    assert unfolded(json.loads(json.dumps(folded(inventory)))) == inventory


def test_what_most_hosts_have_stands_once_and_what_others_have_or_lack_with_them():
    inventory = {f"n{number}": {"cpu": "epyc", "kernel": "6.1"} for number in range(MOST_WHOLE + 1)}
    inventory["n3"] = {"cpu": "xeon"}
    found = folded(inventory)
    assert found[COMMON] == {"cpu": "epyc", "kernel": "6.1"}
    assert found["n3"] == {"cpu": "xeon", "kernel": None}
    assert all(facts == {} for host, facts in found.items() if host not in (COMMON, "n3"))


def test_a_short_file_that_stands_for_more_than_memory_holds_is_refused():
    bomb = {COMMON: {str(fact): "x" for fact in range(10_000)}, **{f"n{host}": {} for host in range(1000)}}
    with pytest.raises(ValueError, match="10000 facts of 1001 hosts are more than 5,000,000"):
        unfolded(bomb)


def test_a_manifest_of_many_hosts_is_short_and_reads_as_it_was(tmp_path: Path):
    manifest = write_system(tmp_path / "run", {"a": 1.0, "b": 2.0}, seed=1, nodes=2).manifest
    facts = {f"fact {number}": "a value as long as most" for number in range(300)}
    many = manifest.model_copy(update={"inventory": {f"n{number}": dict(facts) for number in range(100)}})
    write_manifest(tmp_path / "run", many)
    assert read_manifest(tmp_path / "run").inventory == many.inventory
    assert len((tmp_path / "run" / MANIFEST).read_text()) < len(json.dumps(many.inventory)) / 20
    few = json.loads(manifest_text(manifest))["inventory"]
    assert few == manifest.inventory
