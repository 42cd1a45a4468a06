"""fabricbench-shared-lu and -raytrace: right on any number of ranks, plain about what they cannot run."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRun, read_kernel_record
from fabricbench.record.store import Run
from support.kernel_runs import Done, run_kernel

pytestmark = pytest.mark.mpi

LU, RAYTRACE = "shared-lu", "shared-raytrace"
SMALL = {
    LU: ("--n", 100, "--block", 8),
    RAYTRACE: ("--size", 72, "--levels", 4),
}
FINGERPRINTS = {LU: "35794f1f3b146b62", RAYTRACE: "fd238ed4fc6e063f"}
"""Of `SMALL`, on any number of ranks and any processor: of the factors' bits, and of the image."""
OVER_SOCKETS = {"MPIR_CVAR_NOLOCAL": "1"}
"""For MPICH, between ranks of one host."""


def start(kernel: str, ranks: int, *words: object, **environment: str) -> Done:
    return run_kernel(f"fabricbench-{kernel}", ranks, *words, **environment)


def verified_run(folder: Path, kernel: str, ranks: int, *words: object, **environment: str) -> KernelRun:
    done = start(kernel, ranks, *words, "--output", folder / "record.jsonl", **environment)
    assert done.returncode == 0, (kernel, ranks, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / "record.jsonl")
    assert record.is_complete
    assert record.is_verified
    (run,) = record.runs
    return run


def calls(run: KernelRun) -> dict[str, tuple[int, int]]:
    assert run.profile is not None
    return {call.call: (call.number, call.bytes) for call in run.profile.calls}


@pytest.mark.parametrize("kernel", SMALL)
@pytest.mark.parametrize(("ranks", "environment"), [(1, {}), (2, OVER_SOCKETS), (5, {}), (9, OVER_SOCKETS)])
def test_the_result_has_the_same_bits_on_any_ranks(
    kernel: str, ranks: int, environment: dict[str, str], tmp_path: Path
):
    run = verified_run(tmp_path, kernel, ranks, *SMALL[kernel], "--page", 1024, **environment)
    assert run.fingerprint == FINGERPRINTS[kernel]


def pages_of_lu(blocks: int) -> int:
    """Return what four ranks fetch of each other, where each block is a page: by rank, step and what a step needs."""
    pages = 0
    for rank, step in product(range(4), range(blocks)):

        def is_own(row: int, column: int, rank: int = rank) -> bool:
            return row % 2 * 2 + column % 2 == rank

        later = range(step + 1, blocks)
        has_edge = any(is_own(i, step) or is_own(step, i) for i in later)
        pages += has_edge and not is_own(step, step)
        inner = [(i, j) for i, j in product(later, later) if is_own(i, j)]
        needed = {(i, step) for i, _ in inner} | {(step, j) for _, j in inner}
        pages += sum(not is_own(*block) for block in needed)
    return pages


def test_lu_reads_blocks_of_others_in_pages_and_counts_its_operations(tmp_path: Path):
    run = verified_run(tmp_path, LU, 4, "--n", 64, "--block", 16, "--page", 2048)
    pages = pages_of_lu(blocks=4)
    assert run.values["pages_fetched"] == pages
    assert calls(run)["MPI_Get"] == (pages, 2048 * pages)
    assert run.operations == 63 * 64 / 2 + 63 * 64 * 127 / 3
    assert run.facts == {"grid of ranks": "2 x 2"}
    assert run.iterations == 4
    assert run.values["gflops"] == pytest.approx(run.operations / run.seconds / 1e9)


def test_rays_need_few_bytes_for_much_computing(tmp_path: Path):
    image = verified_run(tmp_path, RAYTRACE, 4, *SMALL[RAYTRACE])
    factors = verified_run(tmp_path, LU, 4, *SMALL[LU])
    assert image.operation_unit == "rays traced"
    assert image.profile is not None
    assert factors.profile is not None
    # A ray is some hundred operations: it meets one sphere after the other.
    assert 100 * image.operations / sum(image.profile.bytes_sent) > 2 * factors.operations / sum(
        factors.profile.bytes_sent
    )
    found = image.values
    assert found["mrays_per_second"] == pytest.approx(image.operations / image.seconds / 1e6)
    put = calls(image)["MPI_Put"]
    assert put[1] == found["bytes_put"]
    assert 0 < put[1] < 4 * 72 * 72


@pytest.mark.parametrize(
    ("kernel", "words", "said"),
    [
        (LU, ("--page", 3000), "--page needs a power of two, found 3000; take 4096"),
        (LU, ("--page", 64), '--page needs a number from 256 to 1048576, found "64"'),
        (LU, ("--n", 0), '--n needs a number from 1 to 100000, found "0"'),
        (LU, ("--block", 257), "--block needs a number from 1 to 256"),
        (RAYTRACE, ("--levels", 9), "--levels needs a number from 1 to 8"),
        (RAYTRACE, ("--n", 9), "--n"),
    ],
)
def test_what_they_cannot_run_is_refused_once(kernel: str, words: tuple[object, ...], said: str):
    done = start(kernel, 2, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count(f"fabricbench-{kernel}: ") == 1


def test_more_memory_than_there_is_ends_all_ranks_and_is_said():
    done = start(LU, 2, "--n", 100_000)
    assert done.returncode == 3
    assert "not enough memory for n 100000, " in done.stderr


@pytest.mark.lab
def test_over_two_fabrics_their_work_and_their_results_are_the_same(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    workloads = [{"kind": LU, "n": 128}, {"kind": RAYTRACE, "size": 64, "levels": 4}]
    asked = campaign_of({"campaign": {"blocks": 2}, "workload": workloads}, "c.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    start_run(tmp_path / "run", asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    parts = [launch.summary.workload for launch in Run.open(tmp_path / "run").launches]
    assert len(parts) == 8
    figures, checks = set(), set()
    for part in parts:
        assert part is not None
        assert all(check.holds for check in part.checks)
        figures.add(tuple(figure.name for figure in part.figures))
        checks.update((check.name, check.found) for check in part.checks)
    assert figures == {("shared LU", "time"), ("rays", "time")}
    assert sorted(name for name, _ in checks) == ["image", "rays", "residual"]  # each with one value on both fabrics
