"""`[[hpl]]` as people write it, and what is read of what fabricbench-hpl left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.errors import UsageError
from fabricbench.model import Metric
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.workload_cells import OF_FIGURE
from fabricbench.workload.adapter import Place, WorkloadResult
from fabricbench.workload.hpl import BLAS_VARIABLE, HplStart, equations_in
from support.applications import lab_of
from support.kernel_programs import parsed_by, starts_of
from support.paces import FAST, SLOW

HEADER = {
    "type": "kernel_header",
    "schema": "fabricbench/kernel-record/1",
    "program": "fabricbench-hpl",
    "program_version": "0.1.0",
    "kernel": "hpl",
    "problem": {"n": 100, "nb": 8, "p": 1, "q": 2},
    "rank_count": 2,
    "processor_levels": ["x86-64-v3", "x86-64-v3"],
    "started_unix_ns": 1,
}


def run_line(repetition: int, gflops: float, residual: float | None = 0.005, **more: Any) -> dict[str, Any]:
    holds = residual is not None and residual < 16
    return {
        "type": "kernel_run",
        "repetition": repetition,
        "size": "100",
        "iterations": 1,
        "seconds": 1.0 / gflops,
        "operations": 1e9,
        "operation_unit": "floating point",
        "mops_total": gflops * 1e3,
        "mops_per_process": gflops * 500,
        "verified": holds,
        "checks": [
            {
                "name": "scaled residual",
                "found": residual,
                "expected": 16.0,
                "tolerance": 0.0,
                "holds": holds,
                "is_limit": True,
            }
        ],
        "facts": {"BLAS": "OpenBLAS 0.3.34, 1 thread"},
        **more,
    }


def parsed(directory: Path, *runs: dict[str, Any]) -> WorkloadResult:
    return parsed_by(HplStart(n=100, nb=8, p=1, q=2, ranks=2), directory, HEADER, *runs)


def starts(nodes: int = 4, **keys: Any) -> list[HplStart]:
    return starts_of(HplStart, {"hpl": [keys]}, nodes)


def test_it_runs_on_all_nodes_in_the_most_square_grid():
    (one,) = starts(nodes=6)
    assert (one.name, one.title) == ("hpl-n2000-nb192-grid2x3.6", "workload hpl-n2000-nb192-grid2x3.6")
    assert one.parameters == {
        "workload": "hpl",
        "n": 2000,
        "nb": 192,
        "grid": "2x3",
        "figure": "HPL",
        "unit": "Gflop/s",
    }
    assert one.native_programs == ("fabricbench-hpl",)


def test_a_workload_of_its_kind_means_the_same():
    campaign = campaign_of({"campaign": {"blocks": 2}, "workload": [{"kind": "hpl", "n": 500}]}, "c.toml")
    assert (
        campaign.workloads[0].model_dump()
        == campaign_of({"campaign": {"blocks": 2}, "hpl": [{"n": 500}]}, "c.toml").workloads[0].model_dump()
    )


def test_of_lists_every_combination_is_a_launch_of_its_own():
    found = starts(n=[500, 600], nb=[32, 64], grid=["1x4", "2x2"], depth=[0, 1], swap=["binary", "long"])
    assert len(found) == 32
    assert {(one.p, one.q) for one in found} == {(1, 4), (2, 2)}
    assert "hpl-n500-nb32-grid1x4-depth0-swaplong.4" in {one.name for one in found}


def test_linpack_on_one_rank_is_a_grid_of_one_by_one():
    (one,) = starts(ranks=[1])
    assert (one.p, one.q, one.ranks) == (1, 1, 1)


@pytest.mark.parametrize(("memory", "ranks", "nb"), [(2**30, 4, 192), (10**6, 1, 64), (64, 3, 192), (8, 1, 192)])
def test_memory_says_how_many_equations_there_are(memory: int, ranks: int, nb: int):
    n = equations_in(memory, ranks, nb)
    assert 8 * n * n <= memory * ranks
    whole = n // nb * nb == n
    assert 8 * (n + (nb if whole else 1)) ** 2 > memory * ranks
    (one,) = starts(memory=memory, grid=f"1x{ranks}", nb=nb)
    assert one.n == n


def test_the_program_is_told_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    monkeypatch.delenv(BLAS_VARIABLE, raising=False)
    (tmp_path / "fabricbench-hpl").touch()
    (one,) = starts(n=700, nb=50, grid="4x1", depth=0, broadcast="long", swap="long", threads=2, repetitions=3)
    place = Place(tmp_path, lab_of(4).fabrics[0])
    tokens = one.tokens(place)
    assert tokens[0] == str(tmp_path / "fabricbench-hpl")
    told = dict(zip(tokens[1::2], tokens[2::2], strict=False))
    assert (
        told.items()
        >= {
            "--n": "700",
            "--nb": "50",
            "--p": "4",
            "--q": "1",
            "--depth": "0",
            "--broadcast": "long",
            "--swap": "long",
            "--threads": "2",
            "--repeat": "3",
            "--output": str(tmp_path / KERNEL_RECORDS),
        }.items()
    )
    assert "--blas" not in tokens
    monkeypatch.setenv(BLAS_VARIABLE, "libsite.so")
    again = one.tokens(place)
    assert again[again.index("--blas") + 1] == "libsite.so"
    (named,) = starts(blas="/opt/blas.so")
    assert "/opt/blas.so" in named.tokens(place)
    assert list(named.external_commands()) == [f"{named.title}: every rank loads /opt/blas.so"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"n": 0}, "greater than or equal to 1"),
        ({"n": []}, "needed at least one value"),
        ({"nb": 5000}, "less than or equal to 4096"),
        ({"n": 10, "memory": "1GiB"}, "memory: it stands in place of n, which is there as well"),
        ({"grid": "2by2"}, "found '2by2', needed rows and columns of ranks such as \"2x4\""),
        ({"grid": "0x2"}, "needed rows and columns of ranks"),
        ({"grid": []}, "found nothing, needed at least one"),
        ({"grid": "2x2", "ranks": [4]}, "grid: ranks = [...] says how many there are as well"),
        ({"grid": "3x2", "ranks": [4]}, '"3x2" is 6 ranks'),
        ({"broadcast": "tree"}, "needed one of ring, ring-modified, long, mpi"),
        ({"swap": "spread"}, "needed one of binary, long"),
        ({"depth": 2}, "needed one of 0, 1"),
        ({"treads": 2}, "treads"),
    ],
)
def test_what_it_cannot_be_told_is_refused_in_words(keys: dict[str, Any], said: str):
    with pytest.raises(UsageError) as refused:
        starts(**keys)
    assert said in str(refused.value)


def test_a_grid_that_the_testbed_does_not_seat_is_left_out_and_said():
    campaign = campaign_of({"campaign": {"blocks": 2}, "hpl": [{"grid": ["2x2", "4x4"]}]}, "c.toml")
    plan = plan_run(campaign, lab_of(4), seed=1)
    assert {launch.workload.ranks for launch in plan.launches if launch.workload} == {4}


def test_the_median_rate_of_its_runs_is_what_it_is_judged_by(tmp_path: Path):
    found = parsed(
        tmp_path,
        *(
            run_line(i, g, values={"flops_per_hz": g / 2, "processor_hz": 2e9})
            for i, g in enumerate((10.0, 40.0, 20.0))
        ),
    )
    assert [(one.name, one.unit, one.value) for one in found.figures] == [
        ("HPL", "Gflop/s", 20.0),
        ("time", "s", 0.05),
        ("flops per hertz", "flop/Hz", 10.0),
    ]
    assert (found.metric, found.rate, found.failed) == (Metric.WORK_RATE, 20.0, None)
    assert found.seconds == (pytest.approx(0.175),)
    assert found.values[f"{OF_FIGURE}flops per hertz"] == 10.0
    assert found.values["processor_hz"] == 2e9
    assert found.fixed == {"instruction set": "x86-64-v3", "BLAS": "OpenBLAS 0.3.34, 1 thread"}


def test_where_the_clock_is_not_known_nothing_is_told_per_hertz(tmp_path: Path):
    assert [one.name for one in parsed(tmp_path, run_line(0, 10.0)).figures] == ["HPL", "time"]


@pytest.mark.parametrize("residual", [16.0, 1e9, None])
def test_a_wrong_residual_is_a_failed_cell_with_its_reason(tmp_path: Path, residual: float | None):
    found = parsed(tmp_path, run_line(0, 10.0), run_line(1, 99.0, residual))
    assert found.figures == ()
    assert found.rate is None
    assert found.failed is not None
    assert found.failed.is_wrong
    assert found.failed.reason == (
        f"repetition 1 gave a wrong result: scaled residual is {residual}, expected less than 16"
    )


def test_a_limit_grows_with_the_work_and_with_a_slower_network():
    small, large = (HplStart(n=n, nb=64, p=2, q=2, ranks=4) for n in (500, 5000))
    assert small.expected_seconds(SLOW) < large.expected_seconds(SLOW)
    assert large.expected_seconds(FAST) < large.expected_seconds(SLOW)
    alone = HplStart(n=500, nb=64, p=1, q=1, ranks=1, repetitions=2)
    assert alone.expected_seconds(SLOW) == alone.expected_seconds(FAST) > 0
