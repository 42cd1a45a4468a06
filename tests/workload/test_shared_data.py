"""`[[shared-data]]` as people write it: which launches it comes to, and what it cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.testbed.model import Fabric
from fabricbench.workload.adapter import Place
from fabricbench.workload.shared_data import SharedDataStart
from support.applications import lab_of
from support.kernel_programs import starts_of
from support.paces import FAST, SLOW


def starts(nodes: int = 4, **keys: Any) -> list[SharedDataStart]:
    return starts_of(SharedDataStart, {"shared-data": [keys]}, nodes)


def told(one: SharedDataStart, place: Place) -> dict[str, str]:
    tokens = one.tokens(place)
    return dict(zip(tokens[1::2], tokens[2::2], strict=True))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    (tmp_path / "fabricbench-shared-data").touch()
    return tmp_path


def test_all_nodes_read_the_inputs_of_nist_from_the_first():
    (one,) = starts(nodes=6)
    assert one.name == "shared-data-block50000000-blocks1-moderead.6"
    assert one.parameters == {
        "workload": "shared-data",
        "block": 50_000_000,
        "blocks": 1,
        "mode": "read",
        "figure": "shared data",
        "unit": "MB/s",
    }
    assert one.native_programs == ("fabricbench-shared-data",)
    assert one.moved_bytes == 5 * 50_000_000
    assert list(one.external_commands()) == []


def test_it_is_a_workload_by_its_kind_too():
    by_kind = starts_of(SharedDataStart, {"workload": [{"kind": "shared-data", "block": "1MB"}]})
    assert by_kind == starts(block="1MB")


def test_of_lists_every_combination_is_a_launch_of_its_own():
    found = starts(block=["4KiB", "1MiB"], blocks=[1, 2], mode=["read", "write", "both"], ranks=[2, 3, 4])
    assert len(found) == 36


def test_in_place_of_blocks_their_bytes_are_told():
    found = starts(block=["4KiB", "1MiB"], total="2MiB", mode="both")
    assert {(one.block, one.blocks) for one in found} == {(4096, 512), (2**20, 2)}
    assert {one.moved_bytes for one in found} == {3 * 2 * 2 * 2**20}


def test_a_stored_campaign_comes_to_the_same_launches():
    asked = campaign_of({"campaign": {"blocks": 2}, "shared-data": [{"block": "1MiB", "total": "2MiB"}]}, "c.toml")
    again = type(asked).model_validate(asked.model_dump(mode="json"))
    testbed = lab_of(4)
    assert plan_run(again, testbed, seed=1).launches == plan_run(asked, testbed, seed=1).launches


def test_the_program_is_told_the_blocks_and_the_fabric(program: Path):
    (one,) = starts(block="1MB", blocks=3, mode="both", repetitions=5)
    fabric = lab_of(4).fabrics[0]
    assert told(one, Place(program, fabric)) == {
        "--block": "1000000",
        "--blocks": "3",
        "--mode": "both",
        "--ranks": "4",
        "--repeat": "5",
        "--output": str(program / KERNEL_RECORDS),
        "--interface": str(fabric.interface),
        "--subnet": str(fabric.subnet),
    }


def test_of_a_path_all_ranks_are_clients_and_a_strangers_plan_must_be_trusted_with_it(program: Path):
    (one,) = starts(path="/nfs/scratch", file_system="any")
    words = told(one, Place(program, lab_of(4).fabrics[0]))
    assert (words["--path"], words["--file-system"]) == ("/nfs/scratch", "any")
    assert one.parameters["path"] == "/nfs/scratch"
    assert one.moved_bytes == 4 * 50_000_000
    (said,) = one.external_commands()
    assert said.endswith("files are written and read in /nfs/scratch")


def test_each_fabric_may_have_a_mount_of_its_own_in_one_test(program: Path):
    (one,) = starts(path="/nfs/{fabric}")
    paths = [told(one, Place(program, fabric))["--path"] for fabric in lab_of(4).fabrics]
    assert paths == ["/nfs/fast-ethernet", "/nfs/myrinet"]
    assert one.parameters["path"] == "/nfs/{fabric}"


def test_it_needs_an_interface_to_serve_at_but_not_for_files(program: Path):
    place = Place(program, Fabric(name="memory"))
    with pytest.raises(EnvironmentLacks, match="fabric memory has no interface"):
        starts()[0].tokens(place)
    assert "--path" in told(starts(path="/nfs")[0], place)


def test_there_is_one_rank_on_a_node_and_one_that_serves():
    for keys, said in (({"ranks": [1]}, "numbers from 2 to 4"), ({"ranks": [5], "path": "/nfs"}, "from 1 to 4")):
        with pytest.raises(UsageError) as refused:
            starts(**keys)
        assert said in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"block": 0}, "greater than or equal to 1"),
        ({"block": "2048GiB"}, "less than or equal to"),
        ({"blocks": 0}, "greater than or equal to 1"),
        ({"mode": "append"}, "append"),
        ({"mode": []}, "found nothing, needed at least one value"),
        ({"total": "3MB", "blocks": 3}, "total: it stands in place of blocks, which is there as well"),
        (
            {"total": "3MB", "block": "2MB"},
            "found 3000000 B, needed a multiple of the block of 2000000 B, at most 1,000,000 of them",
        ),
        ({"total": "1GiB", "block": 64}, "needed a multiple of the block of 64 B, at most 1,000,000"),
        ({"path": "nfs"}, "found 'nfs', needed the whole path of a folder that every node mounts"),
        ({"path": "/nfs/{fabrik}"}, "found {fabrik} in '/nfs/{fabrik}', which stands for nothing; there is {fabric}"),
        ({"file_system": "any"}, "file_system: it is that of `path`, which is missing"),
        ({"clients": 4}, "clients"),
    ],
)
def test_what_it_cannot_be_told_is_refused_in_words(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(**keys)
    assert said in str(refused.value)


def test_limits_grow_with_the_bytes_with_a_slower_network_and_with_files():
    one = SharedDataStart(ranks=4)
    assert one.expected_seconds(FAST) < one.expected_seconds(SLOW)
    for other in ({"blocks": 2}, {"mode": "both"}, {"ranks": 5}, {"repetitions": 2}, {"path": "/nfs"}):
        assert one.expected_seconds(SLOW) < one.model_copy(update=other).expected_seconds(SLOW)
