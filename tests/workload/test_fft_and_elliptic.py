"""Workloads `fft-convolution` and `elliptic` as people write them, and what is read of what their programs left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.workload.adapter import Output, Place
from fabricbench.workload.elliptic import EllipticStart
from fabricbench.workload.fft_convolution import FftConvolutionStart, can_share, has_transform
from fabricbench.workload.kernel_program import KernelProgramStart
from support.applications import lab_of
from support.kernel_programs import starts_of
from support.paces import FAST, SLOW

FFT, ELLIPTIC = "fft-convolution", "elliptic"


def plan_of(kind: str, nodes: int = 4, **keys: Any) -> Any:
    campaign = campaign_of({"campaign": {"blocks": 2}, "workload": [{"kind": kind, **keys}]}, "c.toml")
    return plan_run(campaign, lab_of(nodes), seed=1)


def starts(kind: str, nodes: int = 4, **keys: Any) -> list[KernelProgramStart]:
    return starts_of(KernelProgramStart, {"workload": [{"kind": kind, **keys}]}, nodes)


def test_they_run_on_all_nodes_and_need_nothing_told():
    (fft,), (elliptic,) = starts(FFT, nodes=6), starts(ELLIPTIC, nodes=6)
    assert isinstance(fft, FftConvolutionStart)
    assert isinstance(elliptic, EllipticStart)
    assert fft.name == "fft-convolution-field64x64x64-iterations10-decompositionslab.6"
    assert elliptic.name == "elliptic-grid160x160x160-sweeps20-steps20.6"
    assert fft.native_programs == ("fabricbench-fft-convolution",)
    assert elliptic.native_programs == ("fabricbench-elliptic",)
    assert {fft.parameters["unit"], elliptic.parameters["unit"]} == {"Gflop/s"}


def test_of_lists_every_combination_is_a_launch_of_its_own():
    found = starts(FFT, nx=[16, 20], ny=[30, 8], decomposition=["slab", "pencil"], ranks=[1, 3])
    assert len(found) == 16
    assert {(one.nx, one.ny, one.nz) for one in found} == {(16, 30, 16), (16, 8, 16), (20, 30, 20), (20, 8, 20)}
    found = starts(ELLIPTIC, nx=[16, 17], sweeps=[5, 50], ranks=[1, 3])
    assert len(found) == 8
    assert {(one.nx, one.ny, one.nz, one.sweeps) for one in found} == {
        (side, side, side, sweeps) for side in (16, 17) for sweeps in (5, 50)
    }


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (FFT, {"nx": 15, "ny": 16, "nz": 18, "iterations": 3, "decomposition": "pencil"}),
        (ELLIPTIC, {"nx": 15, "ny": 17, "nz": 19, "sweeps": 3, "steps": 7}),
    ],
)
def test_the_program_is_told_everything(
    kind: str, keys: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    (tmp_path / f"fabricbench-{kind}").touch()
    (one,) = starts(kind, repetitions=2, **keys)
    tokens = one.tokens(Place(tmp_path, lab_of(4).fabrics[0]))
    assert tokens[0] == str(tmp_path / f"fabricbench-{kind}")
    told = dict(zip(tokens[1::2], tokens[2::2], strict=False))
    expected = {**keys, "repeat": 2, "output": tmp_path / KERNEL_RECORDS}
    assert told.items() >= {f"--{name}": str(value) for name, value in expected.items()}.items()


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        (
            FFT,
            {"nx": 14},
            "found 14, needed a number that has no other prime factors than 2, 3 and 5; the next one is 15",
        ),
        (FFT, {"nz": 0}, "greater than or equal to 1"),
        (FFT, {"iterations": 0}, "greater than or equal to 1"),
        (FFT, {"decomposition": "cube"}, "needed one of slab, pencil"),
        (ELLIPTIC, {"ny": []}, "needed at least one value"),
        (ELLIPTIC, {"sweeps": 0}, "greater than or equal to 1"),
        (ELLIPTIC, {"steps": [1, 2]}, "steps"),
    ],
)
def test_what_they_cannot_be_told_is_refused_in_words(kind: str, keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(kind, **keys)
    assert said in str(refused.value)


def test_ranks_that_would_have_no_points_are_left_out_with_their_reason():
    plan = plan_of(FFT, nx=8, ny=2, nz=3, ranks=[2, 3, 4], decomposition=["slab", "pencil"])
    assert {(launch.workload.ranks, launch.workload.decomposition) for launch in plan.launches} == {
        (2, "slab"),
        (2, "pencil"),
        (4, "pencil"),
    }
    notes = "\n".join(str(note) for note in plan.notes)
    assert "fft-convolution of 8x2x3 by slabs takes numbers up to 2 of ranks" in notes
    assert "fft-convolution of 8x2x3 by pencils takes products of numbers up to 2 and up to 2 of ranks" in notes
    plan = plan_of(ELLIPTIC, nx=2, ny=1, nz=2, ranks=[3, 4])
    assert {launch.workload.ranks for launch in plan.launches} == {4}
    notes = "\n".join(str(note) for note in plan.notes)
    assert "elliptic of 2x1x2 takes products of numbers up to 2, 1 and 2 of ranks" in notes


def test_sizes_and_shares_are_those_of_the_program():
    assert [n for n in range(1, 31) if not has_transform(n)] == [7, 11, 13, 14, 17, 19, 21, 22, 23, 26, 28, 29]
    assert [ranks for ranks in range(1, 14) if can_share((4, 6, 8), ranks, "slab")] == [1, 2, 3, 4, 5, 6]
    assert [ranks for ranks in range(1, 14) if can_share((4, 6, 8), ranks, "pencil")] == [
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        9,
        10,
        12,
    ]


def record_of(directory: Path, start: KernelProgramStart, *rates_and_errors: tuple[float, float]) -> Output:
    header = {
        "type": "kernel_header",
        "schema": "fabricbench/kernel-record/1",
        "program": start.program,
        "program_version": "0.1.0",
        "kernel": start.kind,
        "problem": dict(start.options(Place(directory, lab_of().fabrics[0]))),
        "rank_count": start.ranks,
        "processor_levels": ["x86-64-v3"] * start.ranks,
        "started_unix_ns": 1,
    }
    runs = [
        {
            "type": "kernel_run",
            "repetition": repetition,
            "size": "16 x 16 x 16",
            "iterations": 10,
            "seconds": 1 / rate,
            "operations": 1e9,
            "operation_unit": "floating point",
            "mops_total": rate * 1e3,
            "mops_per_process": rate * 500,
            "verified": error < 1e-9,
            "checks": [
                {
                    "name": "error",
                    "found": error,
                    "expected": 1e-9,
                    "tolerance": 0.0,
                    "holds": error < 1e-9,
                    "is_limit": True,
                }
            ],
            "values": {"gflops": rate, "message_bytes": 102400.0},
            "facts": {"grid of ranks": "2 x 1"},
        }
        for repetition, (rate, error) in enumerate(rates_and_errors)
    ]
    verified = sum(bool(run["verified"]) for run in runs)
    footer = {"type": "kernel_footer", "finished_unix_ns": 2, "runs": len(runs), "verified": verified}
    (directory / KERNEL_RECORDS).write_text("\n".join(json.dumps(line) for line in (header, *runs, footer)) + "\n")
    return Output(directory, directory / "stdout.log", directory / "stderr.log")


BOTH = pytest.mark.parametrize(
    "start",
    [FftConvolutionStart(nx=16, ny=16, nz=16, ranks=2), EllipticStart(nx=16, ny=16, nz=16, ranks=2)],
    ids=lambda start: start.kind,
)


@BOTH
def test_the_median_rate_of_its_runs_is_what_it_is_judged_by(start: KernelProgramStart, tmp_path: Path):
    found = start.parse(record_of(tmp_path, start, (10.0, 0), (40.0, 0), (20.0, 0)))
    assert found is not None
    assert [(one.name, one.unit, one.value) for one in found.figures] == [
        (start.rate.name, "Gflop/s", 20.0),
        ("time", "s", 0.05),
    ]
    assert (found.metric, found.rate, found.failed) == (Metric.WORK_RATE, 20.0, None)
    assert found.values["message_bytes"] == 102400
    assert found.fixed == {"instruction set": "x86-64-v3", "grid of ranks": "2 x 1"}


@BOTH
def test_an_error_that_is_too_large_is_a_failed_cell_with_its_reason(start: KernelProgramStart, tmp_path: Path):
    found = start.parse(record_of(tmp_path, start, (10.0, 0), (99.0, 0.5)))
    assert found is not None
    assert found.figures == ()
    assert found.failed is not None
    assert found.failed.is_wrong
    assert "repetition 1 gave a wrong result: error is 0.5, expected less than 1e-09" in found.failed.reason


@pytest.mark.parametrize(
    ("kind", "more"),
    [(FftConvolutionStart, {"iterations": 50}), (EllipticStart, {"sweeps": 50}), (EllipticStart, {"steps": 50})],
)
def test_a_limit_grows_with_the_work_and_with_a_slower_network(kind: Any, more: dict[str, int]):
    small, large = (kind(nx=n, ny=n, nz=n, ranks=4) for n in (60, 120))
    assert small.expected_seconds(SLOW) < large.expected_seconds(SLOW)
    assert large.expected_seconds(FAST) < large.expected_seconds(SLOW)
    assert large.expected_seconds(SLOW) < kind(nx=120, ny=120, nz=120, ranks=4, **more).expected_seconds(SLOW)
    alone = kind(nx=60, ny=60, nz=60, ranks=1, repetitions=2)
    assert alone.expected_seconds(SLOW) == alone.expected_seconds(FAST) > 0
