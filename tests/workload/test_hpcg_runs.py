"""fabricbench-hpcg: verified on any ranks and boxes, the residual of the official program, and plain about what it cannot run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRecord, KernelRun, read_kernel_record
from fabricbench.record.store import Run
from support.kernel_runs import Done, run_kernel

pytestmark = pytest.mark.mpi

VARIANTS = ("reference", "optimised")
CHECKS = [
    "iterations of a set",
    "symmetry of A",
    "symmetry of M",
    "iterations without M",
    "iterations with M",
    "reduction of the residual",
    "variance over the sets",
]


def start(ranks: int, *words: object) -> Done:
    return run_kernel("fabricbench-hpcg", ranks, *words)


def solved(folder: Path, ranks: int, *words: object) -> KernelRecord:
    done = start(ranks, *words, "--output", folder / "record.jsonl")
    assert done.returncode == 0, (ranks, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / "record.jsonl")
    assert record.is_complete
    assert record.is_verified
    return record


def only_run(record: KernelRecord) -> KernelRun:
    (run,) = record.runs
    return run


def residual(run: KernelRun) -> float:
    found = run.values["residual"]
    assert found is not None
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_it_verifies_on_any_number_of_ranks_with_boxes_of_many_shapes(ranks: int, tmp_path: Path):
    """Drawn anew for each number of ranks, the same in each run; native/tests have both variants on one to four and eight."""
    draw = random.Random(ranks)
    words = [word for side in "xyz" for word in (f"--n{side}", draw.choice((8, 16)))]
    run = only_run(solved(tmp_path, ranks, *words, "--sets", 1, "--variant", VARIANTS[ranks % 2]))
    assert [check.name for check in run.checks] == CHECKS
    error = run.values["error"]
    assert error is not None
    assert error < 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("ranks", "points", "expected"), [(1, 24, 2.07152e-28), (2, 48, 1.69072e-11)])
def test_its_residual_is_the_one_that_the_official_program_prints(
    variant: str, ranks: int, points: int, expected: float, tmp_path: Path
):
    """HPCG 3.1 with `--nx=24 --ny=24 --nz=24` on one rank and with 48 on two: `Scaled Residual` after 50 iterations."""
    run = only_run(solved(tmp_path, ranks, "--nx", points, "--sets", 1, "--variant", variant))
    assert residual(run) == pytest.approx(expected, rel=2e-5)
    assert run.values["reference_residual"] == pytest.approx(expected, rel=2e-5)


def test_the_optimised_variant_needs_no_more_iterations_and_sends_the_same_messages(tmp_path: Path):
    runs = [only_run(solved(tmp_path, 2, "--nx", 24, "--sets", 1, "--variant", variant)) for variant in VARIANTS]
    assert [run.iterations for run in runs] == [50, 50]
    assert runs[0].operations == runs[1].operations
    assert residual(runs[1]) == pytest.approx(residual(runs[0]), rel=1e-6)
    profiles = [run.profile for run in runs]
    assert all(profile is not None for profile in profiles)
    first, second = (profile.bytes_sent for profile in profiles if profile is not None)
    assert list(first) == list(second)


def test_a_start_again_gives_the_same_bits(tmp_path: Path):
    record = solved(tmp_path, 3, "--nx", 8, "--sets", 2, "--repeat", 2)
    assert len({run.fingerprint for run in record.runs}) == 1


def test_the_record_says_what_was_asked_and_counts_as_the_official_program_does(tmp_path: Path):
    record = solved(tmp_path, 2, "--nx", 16, "--ny", 8, "--nz", 24, "--sets", 2, "--variant", "reference")
    assert record.header is not None
    assert record.header.kernel == "hpcg"
    assert record.header.problem == {"nx": 16, "ny": 8, "nz": 24, "sets": 2, "variant": "reference"}
    run = only_run(record)
    assert run.size == "32 x 8 x 24"
    nonzeros = [(3 * 32 // c - 2) * (3 * 8 // c - 2) * (3 * 24 // c - 2) for c in (1, 2, 4, 8)]
    iterations, sets = 100, 2
    operations = 2 * (3 * iterations + sets) * 2 * (32 * 8 * 24) + (iterations + sets) * 2 * nonzeros[0]
    operations += iterations * (10 * sum(nonzeros[:3]) + 4 * nonzeros[3])
    assert run.operations == operations
    set_up = run.values["set_up_seconds"]
    assert set_up is not None
    assert run.values["gflops"] == pytest.approx(operations / (run.seconds + sets * set_up / 10) / 1e9)
    assert run.facts == {"grid of ranks": "2 x 1 x 1", "variant": "reference", "matrix": "rows with indices"}
    assert run.profile is not None
    faces = [8 * 24, 4 * 12, 2 * 6, 1 * 3]  # between the two ranks, on each grid
    numbers = iterations * (3 * sum(faces[:3]) + faces[3]) + (iterations + sets) * faces[0]
    sums = iterations * 3 + sets
    assert sum(run.profile.bytes_sent) == 2 * 8 * (numbers + sums)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--nx", 20),
            "--nx needs a multiple of 8, found 20: the coarsest of the 4 grids has every eighth point of it; take 24",
        ),
        (("--ny", 0), '--ny needs a number from 1 to 1024, found "0"'),
        (("--nz", "many"), '--nz needs a number from 1 to 1024, found "many"'),
        (("--nx", 8, "--nz", 128), "--nx 8 --ny 8 --nz 128: the longest side may be 8 times the shortest"),
        (("--sets", 0), "--sets needs a number from 1 to 100000"),
        (("--variant", "fast"), "--variant needs one of reference, optimised, found"),
    ],
)
def test_what_it_cannot_run_is_refused_once(words: tuple[object, ...], said: str):
    done = start(2, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("fabricbench-hpcg: ") == 1


def test_more_memory_than_there_is_ends_all_ranks_and_is_said():
    done = start(2, "--nx", 1024)
    assert done.returncode == 3
    assert "not enough memory for nx 1024, " in done.stderr


@pytest.mark.lab
def test_over_two_fabrics_its_work_and_its_residual_are_the_same(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    asked = campaign_of({"campaign": {"blocks": 2}, "hpcg": [{"nx": 16, "sets": 1}]}, "c.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    start_run(tmp_path / "run", asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    launches = Run.open(tmp_path / "run").launches
    assert len(launches) == 4
    parts = [launch.summary.workload for launch in launches]
    for part in parts:
        assert part is not None
        assert [check.name for check in part.checks] == CHECKS
        assert all(check.holds for check in part.checks)
        assert [figure.name for figure in part.figures] == ["HPCG", "time"]
        assert part.fixed["variant"] == "optimised"
    found = {check.found for part in parts if part is not None for check in part.checks if check.name == CHECKS[5]}
    assert len(found) == 1
