"""`kind = "shared-lu"` and `"shared-raytrace"` as people write them, and what is read of what their programs left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.workload.adapter import Place, WorkloadResult, WorkloadStart
from fabricbench.workload.shared_lu import SharedLuStart
from fabricbench.workload.shared_raytrace import SharedRaytraceStart
from support.applications import lab_of
from support.kernel_programs import parsed_by, starts_of
from support.paces import FAST, SLOW

KINDS = ("shared-lu", "shared-raytrace")


def starts(kind: str, nodes: int = 4, **keys: Any) -> list[WorkloadStart]:
    return starts_of(WorkloadStart, {"workload": [{"kind": kind, **keys}]}, nodes)


def parsed(directory: Path, start: WorkloadStart, unit: str, *runs: dict[str, Any]) -> WorkloadResult:
    header = {
        "type": "kernel_header",
        "schema": "fabricbench/kernel-record/1",
        "program": start.native_programs[0],
        "program_version": "0.1.0",
        "kernel": start.parameters["workload"],
        "problem": {},
        "rank_count": 2,
        "processor_levels": ["x86-64", "x86-64"],
        "started_unix_ns": 1,
    }
    lines: list[dict[str, Any]] = []
    for repetition, run in enumerate(runs):
        checks = [{"tolerance": 0.0, "is_limit": False, **check} for check in run["checks"]]
        lines.append(
            {
                "type": "kernel_run",
                "repetition": repetition,
                "size": "one",
                "iterations": 1,
                "seconds": 1e6 * run["mops"] ** -1,
                "operations": 1e12,
                "operation_unit": unit,
                "mops_total": run["mops"],
                "mops_per_process": run["mops"] / 2,
                "verified": all(check["holds"] for check in checks),
                "checks": checks,
                "values": run["values"],
                "facts": {},
            }
        )
    return parsed_by(start, directory, header, *lines)


def test_lu_runs_on_all_nodes_with_the_matrix_of_splash():
    (one,) = starts("shared-lu", nodes=6)
    assert one.name == "shared-lu-n512-block16-page4096.6"
    assert one.parameters == {
        "workload": "shared-lu",
        "n": 512,
        "block": 16,
        "page": 4096,
        "figure": "shared LU",
        "unit": "Gflop/s",
    }
    assert one.native_programs == ("fabricbench-shared-lu",)


def test_rays_are_traced_on_all_nodes():
    (one,) = starts("shared-raytrace", nodes=3)
    assert one.name == "shared-raytrace-size512-levels6-samples2-bounces4-page4096.3"
    assert one.parameters["unit"] == "Mray/s"
    assert one.native_programs == ("fabricbench-shared-raytrace",)


def test_of_lists_every_combination_is_a_launch_of_its_own():
    found = starts("shared-lu", n=[64, 128], block=[8, 16], page=["1KiB", 4096], ranks=[1, 3])
    assert len(found) == 16
    assert {one.parameters["page"] for one in found} == {1024, 4096}
    found = starts("shared-raytrace", size=[64, 128], levels=[2, 3], samples=[1, 2], bounces=[0, 1], page=256, ranks=2)
    assert len(found) == 16


def test_the_programs_are_told_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    told = {}
    for kind in KINDS:
        (tmp_path / f"fabricbench-{kind}").touch()
        (one,) = starts(kind, page="1KiB", repetitions=3)
        tokens = one.tokens(Place(tmp_path, lab_of(4).fabrics[0]))
        assert tokens[0] == str(tmp_path / f"fabricbench-{kind}")
        told[kind] = dict(zip(tokens[1::2], tokens[2::2], strict=False)).items()
    shared = {"--page": "1024", "--repeat": "3", "--output": str(tmp_path / KERNEL_RECORDS)}
    assert told["shared-lu"] >= ({"--n": "512", "--block": "16"} | shared).items()
    assert (
        told["shared-raytrace"]
        >= ({"--size": "512", "--levels": "6", "--samples": "2", "--bounces": "4"} | shared).items()
    )


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        ("shared-lu", {"page": 3000}, "found 3000, needed a power of two; take 4096"),
        ("shared-lu", {"page": "2MiB"}, "less than or equal to 1048576"),
        ("shared-lu", {"n": 0}, "greater than or equal to 1"),
        ("shared-lu", {"block": 512}, "less than or equal to 256"),
        ("shared-lu", {"block": []}, "found nothing, needed at least one value"),
        ("shared-raytrace", {"levels": 9}, "less than or equal to 8"),
        ("shared-raytrace", {"bounces": -1}, "greater than or equal to 0"),
        ("shared-raytrace", {"tiles": 4}, "tiles"),
    ],
)
def test_what_they_cannot_be_told_is_refused_in_words(kind: str, keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(kind, **keys)
    assert said in str(refused.value)


def residual(found: float) -> dict[str, Any]:
    return {"name": "residual", "found": found, "expected": 16.0, "holds": found < 16, "is_limit": True}


def test_lu_is_judged_by_the_median_rate_of_its_runs(tmp_path: Path):
    runs = (
        {"mops": mops, "checks": [residual(0.5)], "values": {"pages_fetched": 960.0, "residual": 0.5}}
        for mops in (100.0, 400.0, 200.0)
    )
    found = parsed(tmp_path, SharedLuStart(n=64, ranks=2), "floating point", *runs)
    assert [(one.name, one.unit, one.value) for one in found.figures] == [
        ("shared LU", "Gflop/s", 0.2),
        ("time", "s", 5000.0),
    ]
    assert (found.metric, found.rate, found.failed) == (Metric.WORK_RATE, 0.2, None)
    assert (found.values["pages_fetched"], found.values["residual"]) == (960.0, 0.5)


def test_a_residual_that_is_too_large_fails_the_cell_with_its_reason(tmp_path: Path):
    run = {"mops": 100.0, "checks": [residual(17.0)], "values": {}}
    found = parsed(tmp_path, SharedLuStart(n=64, ranks=2), "floating point", run)
    assert found.figures == ()
    assert found.failed is not None
    assert "residual is 17.0, expected less than 16" in found.failed.reason


def test_another_image_fails_the_cell_with_its_reason(tmp_path: Path):
    right = {"name": "rays", "found": 300.0, "expected": 300.0, "holds": True}
    wrong = {"name": "image", "found": 5.0, "expected": 7.0, "holds": False}
    found = parsed(
        tmp_path, SharedRaytraceStart(ranks=2), "rays traced", {"mops": 3.0, "checks": [wrong, right], "values": {}}
    )
    assert found.failed is not None
    assert found.failed.is_wrong
    assert "image is 5.0, expected 7.0" in found.failed.reason


def test_limits_grow_with_the_work_and_with_a_slower_network():
    for small, large in (
        (SharedLuStart(n=256, ranks=4), SharedLuStart(n=512, ranks=4)),
        (SharedRaytraceStart(size=128, ranks=4), SharedRaytraceStart(size=256, ranks=4)),
    ):
        assert small.expected_seconds(SLOW) < large.expected_seconds(SLOW)
        assert large.expected_seconds(FAST) < large.expected_seconds(SLOW)
        alone = small.model_copy(update={"ranks": 1})
        assert alone.expected_seconds(FAST) == alone.expected_seconds(SLOW)
