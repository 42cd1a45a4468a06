"""`[[hpcg]]` as people write it, and what is read of what fabricbench-hpcg left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.specification import campaign_of
from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.workload.adapter import Place, WorkloadResult
from fabricbench.workload.hpcg import HpcgStart
from support.applications import lab_of
from support.kernel_programs import parsed_by, starts_of
from support.paces import FAST, SLOW

HEADER = {
    "type": "kernel_header",
    "schema": "fabricbench/kernel-record/1",
    "program": "fabricbench-hpcg",
    "program_version": "0.1.0",
    "kernel": "hpcg",
    "problem": {"nx": 16, "ny": 16, "nz": 16, "sets": 2, "variant": "optimised"},
    "rank_count": 2,
    "processor_levels": ["x86-64-v3", "x86-64-v3"],
    "started_unix_ns": 1,
}


def run_line(repetition: int, gflops: float, iterations: int = 50, plain_iterations: float = 11) -> dict[str, Any]:
    holds = plain_iterations <= 12
    return {
        "type": "kernel_run",
        "repetition": repetition,
        "size": "32 x 16 x 16",
        "iterations": iterations,
        "seconds": 1.0 / gflops,
        "operations": 1.1e9,
        "operation_unit": "floating point",
        "mops_total": gflops * 1.1e3,
        "mops_per_process": gflops * 550,
        "verified": holds,
        "checks": [
            {
                "name": "iterations without M",
                "found": plain_iterations,
                "expected": 12.000000000000002,
                "tolerance": 0.0,
                "holds": holds,
                "is_limit": True,
            }
        ],
        "values": {"gflops": gflops, "residual": 1e-30 * repetition},
        "facts": {"variant": "optimised", "grid of ranks": "2 x 1 x 1"},
    }


def parsed(directory: Path, *runs: dict[str, Any]) -> WorkloadResult:
    return parsed_by(HpcgStart(nx=16, ny=16, nz=16, ranks=2), directory, HEADER, *runs)


def starts(nodes: int = 4, **keys: Any) -> list[HpcgStart]:
    return starts_of(HpcgStart, {"hpcg": [keys]}, nodes)


def test_it_runs_on_all_nodes_with_a_cube_on_each():
    (one,) = starts(nodes=6)
    assert one.name == "hpcg-box32x32x32-sets3-variantoptimised.6"
    assert one.parameters == {
        "workload": "hpcg",
        "box": "32x32x32",
        "sets": 3,
        "variant": "optimised",
        "figure": "HPCG",
        "unit": "Gflop/s",
    }
    assert one.native_programs == ("fabricbench-hpcg",)


def test_a_workload_of_its_kind_means_the_same():
    as_kind = campaign_of({"campaign": {"blocks": 2}, "workload": [{"kind": "hpcg", "nx": 16}]}, "c.toml")
    as_table = campaign_of({"campaign": {"blocks": 2}, "hpcg": [{"nx": 16}]}, "c.toml")
    assert as_kind.workloads[0].model_dump() == as_table.workloads[0].model_dump()


def test_of_lists_every_combination_is_a_launch_of_its_own():
    found = starts(nx=[16, 24], ny=[16, 32], variant=["optimised", "reference"], ranks=[1, 3])
    assert len(found) == 16
    boxes = {(one.nx, one.ny, one.nz) for one in found}
    assert boxes == {(16, 16, 16), (16, 32, 16), (24, 16, 24), (24, 32, 24)}  # z is as long as x
    assert {one.ranks for one in found} == {1, 3}


def test_the_program_is_told_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    (tmp_path / "fabricbench-hpcg").touch()
    (one,) = starts(nx=16, ny=24, nz=32, sets=5, variant="reference", repetitions=2)
    tokens = one.tokens(Place(tmp_path, lab_of(4).fabrics[0]))
    assert tokens[0] == str(tmp_path / "fabricbench-hpcg")
    told = dict(zip(tokens[1::2], tokens[2::2], strict=False))
    assert (
        told.items()
        >= {
            "--nx": "16",
            "--ny": "24",
            "--nz": "32",
            "--sets": "5",
            "--variant": "reference",
            "--repeat": "2",
            "--output": str(tmp_path / KERNEL_RECORDS),
        }.items()
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"nx": 20}, "found 20, needed a multiple of 8: each of three coarser grids has every other point; take 24"),
        ({"nx": 0}, "greater than or equal to 8"),
        ({"nx": 2048}, "less than or equal to 1024"),
        ({"ny": []}, "needed at least one value"),
        (
            {"nx": 8, "nz": [64, 72]},
            "nx, ny, nz: found 8 x 8 x 72, needed a longest side of at most 8 times the shortest",
        ),
        ({"sets": 0}, "greater than or equal to 1"),
        ({"variant": "fast"}, "needed one of optimised, reference"),
        ({"seconds": 60}, "seconds"),
    ],
)
def test_what_it_cannot_be_told_is_refused_in_words(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(**keys)
    assert said in str(refused.value)


def test_the_median_rate_of_its_runs_is_what_it_is_judged_by(tmp_path: Path):
    found = parsed(tmp_path, *(run_line(i, g, 50 + i) for i, g in enumerate((10.0, 40.0, 20.0))))
    assert [(one.name, one.unit, one.value) for one in found.figures] == [
        ("HPCG", "Gflop/s", 20.0),
        ("time", "s", 0.05),
    ]
    assert (found.metric, found.rate, found.failed) == (Metric.WORK_RATE, 20.0, None)
    assert found.seconds == (pytest.approx(0.175),)
    assert (found.values["iterations"], found.values["residual"]) == (52.0, 2e-30)
    assert found.fixed == {
        "instruction set": "x86-64-v3",
        "variant": "optimised",
        "grid of ranks": "2 x 1 x 1",
    }


def test_too_many_iterations_of_a_test_are_a_failed_cell_with_its_reason(tmp_path: Path):
    found = parsed(tmp_path, run_line(0, 10.0), run_line(1, 99.0, plain_iterations=13))
    assert found.figures == ()
    assert found.rate is None
    assert found.failed is not None
    assert found.failed.is_wrong
    assert (
        "repetition 1 gave a wrong result: iterations without M is 13.0, expected less than 12" in found.failed.reason
    )


def test_a_limit_grows_with_the_work_and_with_a_slower_network():
    small, large = (HpcgStart(nx=n, ny=n, nz=n, ranks=4) for n in (16, 64))
    assert small.expected_seconds(SLOW) < large.expected_seconds(SLOW)
    assert large.expected_seconds(FAST) < large.expected_seconds(SLOW)
    assert large.expected_seconds(SLOW) < HpcgStart(nx=64, ny=64, nz=64, ranks=4, sets=9).expected_seconds(SLOW)
    alone = HpcgStart(nx=16, ny=16, nz=16, ranks=1, repetitions=2)
    assert alone.expected_seconds(SLOW) == alone.expected_seconds(FAST) > 0
