"""Google Benchmark, Bencher and Extra-P, by hand and against what their readers ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fabricbench.record.store import Run
from support.exported_run import exported, exported_run, text_of

PINGPONG = "pingpong/fabric=slow/layer=tcp/size=64/receive=blocking/ranks=2/origin=emulated"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return exported_run(tmp_path_factory.mktemp("folder") / "run")


def benchmarks(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text_of(exported(run, "google-benchmark")))["benchmarks"]
    return found


def test_a_launch_is_a_repetition_of_google_benchmark(run: Run):
    name = PINGPONG.replace("=", ":")
    found = [one for one in benchmarks(run) if one["name"] == name]
    assert [(one["repetition_index"], one["repetitions"], one["real_time"], one["time_unit"]) for one in found] == [
        (0, 2, 52000.0, "ns"),
        (1, 2, 104000.0, "ns"),
    ]
    assert found[0]["label"] == "launch=b00-slow origin=emulated path=proven"
    assert {one["run_type"] for one in found} == {"iteration"}


def test_a_rate_stands_beside_the_time_of_a_sample(run: Run):
    one = next(one for one in benchmarks(run) if one["name"].startswith("stream/fabric:fast"))
    # 16 messages of 4096 B at 10^9 bit/s
    assert (one["real_time"], one["bytes_per_second"]) == (524288.0, 125e6)


def test_what_counts_nowhere_is_no_benchmark_as_readers_would_take_its_zeros_for_times(run: Run):
    found = benchmarks(run)
    assert len(found) == 8
    assert all(one["real_time"] > 0.0 and "error_occurred" not in one for one in found)


def test_every_benchmark_has_what_compare_py_takes(run: Run):
    needed = {"name", "run_name", "run_type", "iterations", "real_time", "cpu_time", "time_unit"}
    assert all(needed <= one.keys() for one in benchmarks(run))


BMF: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "additionalProperties": False,
            "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
        },
    },
}
"""Bencher's schema, and nothing beside it."""


def test_bencher_has_the_median_launch_between_the_smallest_and_the_largest(run: Run):
    found = json.loads(text_of(exported(run, "bencher")))
    jsonschema.validate(found, BMF)
    assert len(found) == 6
    assert found[PINGPONG] == {"round-trip-time": {"value": 78000.0, "lower_value": 52000.0, "upper_value": 104000.0}}


def test_a_name_that_bencher_has_no_room_for_is_left_out(tmp_path: Path):
    from fabricbench.exchange.exports import bencher

    one = next(iter(exported(exported_run(tmp_path / "run"), "bencher").files))
    assert one.name == "launches.json"
    assert bencher.LONGEST_NAME == 1024


def points(name: str, run: Run) -> list[dict[str, Any]]:
    (file,) = (file for file in exported(run, "extra-p").files if file.name == name)
    assert isinstance(file.content, bytes)
    return [json.loads(line) for line in file.content.splitlines()]


def test_extra_p_has_the_launches_of_a_point_as_its_values(run: Run):
    assert points("mpi-alltoall.jsonl", run)[1] == {
        "params": {"message_bytes": 1024},
        "callpath": "slow->mpi->alltoall->receive=blocking/ranks=4/mode=persistent/origin=emulated",
        "metric": "operation_time",
        "value": [30000.0, 60000.0],
    }


def test_curves_of_extra_p_that_are_not_of_the_same_points_are_not_in_one_file(tmp_path: Path):
    from fabricbench.model import Layer, Pattern
    from support.exported_run import NO_NOISE
    from support.synthetic_run import SyntheticCell, write_synthetic_run

    cells = [
        SyntheticCell(Layer.MPI, Pattern.ALLTOALL, size, dict.fromkeys(fabrics, 1e3), samples=2, ranks=ranks)
        for size, fabrics, ranks in ((8, "ab", (0, 1)), (64, "ab", (0, 1)), (512, "a", (0, 1, 2, 3)))
    ]
    run = write_synthetic_run(tmp_path / "run", cells=cells, blocks=1, noise=NO_NOISE)
    files = {"mpi-alltoall.jsonl": ["message_bytes", "ranks"], "mpi-alltoall-2.jsonl": ["message_bytes"]}
    assert [file.name for file in exported(run, "extra-p").files] == list(files)
    for name, parameters in files.items():
        lines = points(name, run)
        assert {tuple(one["params"]) for one in lines} == {tuple(parameters)}
        assert len({one["callpath"] for one in lines}) == 1


def test_what_has_no_message_size_is_a_point_by_its_ranks(tmp_path: Path):
    from fabricbench.model import Layer, Pattern
    from support.exported_run import NO_NOISE
    from support.synthetic_run import SyntheticCell, write_synthetic_run

    cells = [
        *(
            SyntheticCell(Layer.MPI, Pattern.BARRIER, 0, {"a": 1000.0 * ranks}, samples=3, ranks=tuple(range(ranks)))
            for ranks in (2, 4)
        ),
        SyntheticCell(Layer.MPI, Pattern.PINGPONG, 0, {"a": 1000.0}, samples=3),
    ]
    run = write_synthetic_run(tmp_path / "run", cells=cells, blocks=1, noise=NO_NOISE)
    found = exported(run, "extra-p")
    assert dict(found.left_out) == {"its messages are empty, and parameters of Extra-P are above 0": 1}
    assert [file.name for file in found.files] == ["mpi-barrier.jsonl"]
    told = [(one["params"], one["value"]) for one in points("mpi-barrier.jsonl", run)]
    assert told == [({"ranks": 2}, [2000.0]), ({"ranks": 4}, [4000.0])]
