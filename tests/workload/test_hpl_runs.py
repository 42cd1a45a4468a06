"""fabricbench-hpl: right for any equations, panels and grid, the same for all of them, and plain about what it cannot run."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRecord, read_kernel_record
from fabricbench.record.store import Run
from fabricbench.workload.hpl import equations_in
from support.kernel_runs import Done, run_kernel

pytestmark = pytest.mark.mpi

GRIDS = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 4), (4, 1))
BROADCASTS = ("ring", "ring-modified", "long", "mpi")
SWAPS = ("binary", "long")


def start(ranks: int, *words: object, **environment: str) -> Done:
    return run_kernel("fabricbench-hpl", ranks, *words, **environment)


def solved(folder: Path, grid: tuple[int, int], *words: object) -> KernelRecord:
    p, q = grid
    done = start(p * q, "--p", p, "--q", q, *words, "--output", folder / "record.jsonl")
    assert done.returncode == 0, (grid, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / "record.jsonl")
    assert record.is_complete
    assert record.is_verified
    return record


def residual(record: KernelRecord) -> float:
    (check,) = record.runs[0].checks
    assert (check.name, check.expected, check.is_limit) == ("scaled residual", 16, True)
    assert check.found is not None
    return check.found


@pytest.mark.parametrize("grid", GRIDS)
def test_it_verifies_for_many_equations_panels_and_ways_to_share_them(grid: tuple[int, int], tmp_path: Path):
    """Drawn anew for each grid, the same in each run of the tests: fewer equations than ranks, panels wider than the matrix."""
    draw = random.Random(repr(grid))
    for n in (1, 2, 3, draw.randint(4, 40), draw.randint(4, 40), *(draw.randint(41, 300) for _ in range(4))):
        words = {
            "--n": n,
            "--nb": draw.choice((1, 2, 3, 7, 8, 16, 31, 33, 64, 100)),
            "--depth": draw.choice((0, 1)),
            "--broadcast": draw.choice(BROADCASTS),
            "--swap": draw.choice(SWAPS),
        }
        assert residual(solved(tmp_path, grid, *(word for pair in words.items() for word in pair))) < 16


@pytest.mark.parametrize("broadcast", BROADCASTS)
@pytest.mark.parametrize("swap", SWAPS)
def test_it_verifies_with_messages_of_all_sizes_which_overtake_each_other(broadcast: str, swap: str, tmp_path: Path):
    grid = (1, 4) if swap == SWAPS[0] else (4, 1)
    assert residual(solved(tmp_path, grid, "--n", 400, "--nb", 64, "--broadcast", broadcast, "--swap", swap)) < 1


def test_every_grid_solves_the_same_system_and_its_residual_is_as_small(tmp_path: Path):
    found = [residual(solved(tmp_path, grid, "--n", 257, "--nb", 24)) for grid in GRIDS]
    assert max(found) < 0.1
    assert max(found) < 4 * min(found)


def test_every_broadcast_swap_and_depth_gives_the_same_bits(tmp_path: Path):
    """They move numbers and never add them up; only what is multiplied together at once may change the last bits."""
    fingerprints = {
        solved(tmp_path, (2, 2), "--n", 200, "--nb", 16, "--broadcast", broadcast, "--swap", swap, "--depth", 0)
        .runs[0]
        .fingerprint
        for broadcast in BROADCASTS
        for swap in SWAPS
    }
    assert len(fingerprints) == 1


def test_a_start_again_gives_the_same_bits(tmp_path: Path):
    record = solved(tmp_path, (2, 1), "--n", 300, "--nb", 20, "--repeat", 3)
    assert len({run.fingerprint for run in record.runs}) == 1


@pytest.mark.complete
@pytest.mark.tour
def test_the_record_says_what_was_asked_and_what_it_computed_with(tmp_path: Path):
    record = solved(tmp_path, (1, 2), "--n", 150, "--nb", 10, "--broadcast", "long", "--swap", "long", "--depth", 0)
    assert record.header is not None
    assert record.header.kernel == "hpl"
    assert record.header.problem == {
        "n": 150,
        "nb": 10,
        "p": 1,
        "q": 2,
        "depth": 0,
        "broadcast": "long",
        "swap": "long",
        "threads": 1,
    }
    (run,) = record.runs
    assert run.operations == pytest.approx((2 / 3 * 150 + 3 / 2) * 150**2)
    assert run.values["gflops"] == pytest.approx((run.operations or 0) / run.seconds / 1e9)
    clock = run.values.get("processor_hz")
    assert ("flops_per_hz" in run.values) == (clock is not None and len(os.sched_getaffinity(0)) >= 2)
    if "flops_per_hz" in run.values:
        assert clock is not None
        assert run.values["flops_per_hz"] == pytest.approx((run.operations or 0) / run.seconds / (2 * clock))
    assert run.facts["BLAS"].endswith(", 1 thread")
    assert run.profile is not None
    assert sum(run.profile.bytes_sent) > 8 * 150 * 150 / 2  # L goes to the other column


def test_memory_gives_as_many_equations_as_the_adapter_counts(tmp_path: Path):
    record = solved(tmp_path, (2, 1), "--memory", 1, "--nb", 50)
    assert record.header is not None
    assert record.header.problem["n"] == equations_in(2**20, 2, 50) == 500


@pytest.mark.parametrize(
    ("ranks", "words", "said"),
    [
        (2, (), "a grid of 1 x 1 needs 1 ranks, found 2: give --p 1 --q 2, or --ranks 1 where there are more"),
        (1, ("--p", 2, "--q", 2), "a grid of 2 x 2 needs 4 ranks, found 1: give --p 1 --q 1"),
        (
            1,
            ("--n", 600_000, "--nb", 4096),
            "are more numbers than MPI sends at once: take a smaller --nb, or more ranks",
        ),
        (1, ("--n", 0), '--n needs a number from 1 to 4000000, found "0"'),
        (1, ("--nb", "many"), '--nb needs a number from 1 to 4096, found "many"'),
        (1, ("--n", 10, "--memory", 1), "--n and --memory both say how many equations there are"),
        (1, ("--depth", 2), "--depth needs a number from 0 to 1"),
        (1, ("--broadcast", "tree"), "--broadcast needs one of ring, ring-modified, long, mpi, found"),
        (1, ("--swap", "tree"), "--swap needs one of binary, long, found"),
    ],
)
def test_what_it_cannot_run_is_refused_once(ranks: int, words: tuple[object, ...], said: str):
    done = start(ranks, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("fabricbench-hpl: ") == 1


@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_blas_that_is_none_is_named_with_what_to_do(how: str):
    library = "libm.so.6"
    done = start(2, "--q", 2, "--blas", library) if how == "option" else start(2, "--q", 2, FABRICBENCH_BLAS=library)
    assert done.returncode == 3
    assert f"no BLAS can be used ({library}: it has no dgemm and dtrsm)" in done.stderr
    assert "install the wheel scipy-openblas32, or name a library by --blas" in done.stderr


def test_more_memory_than_there_is_ends_all_ranks_and_is_said():
    if shutil.which("prlimit") is None:
        pytest.skip("this needs prlimit")
    done = start(2, "--q", 2, "--n", 4_000_000)
    assert done.returncode == 3
    assert "not enough memory for n 4000000, " in done.stderr


@pytest.mark.lab
def test_over_tcp_parts_of_panels_overtake_each_other_and_the_result_is_right(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    hpl = {"n": 800, "nb": 64, "grid": "1x4", "broadcast": ["long", "ring-modified"]}
    asked = campaign_of({"campaign": {"blocks": 2}, "hpl": [hpl]}, "c.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("myrinet")))
    start_run(tmp_path / "run", asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    launches = Run.open(tmp_path / "run").launches
    assert len(launches) == 4
    for launch in launches:
        part = launch.summary.workload
        assert part is not None
        assert [check.holds for check in part.checks] == [True]
        assert [figure.name for figure in part.figures][:2] == ["HPL", "time"]
        assert "1 thread" in part.fixed["BLAS"]
