"""fabricbench-fft-convolution and fabricbench-elliptic: verified on any ranks and sizes, the same on any fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRun, read_kernel_record
from fabricbench.record.store import Run
from support.kernel_runs import run_kernel

pytestmark = pytest.mark.mpi

FFT, ELLIPTIC = "fabricbench-fft-convolution", "fabricbench-elliptic"


def runs_of(folder: Path, program: str, ranks: int, *words: object) -> list[KernelRun]:
    done = run_kernel(program, ranks, *words, "--output", folder / "record.jsonl")
    assert done.returncode == 0, (ranks, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / "record.jsonl")
    assert record.is_complete
    assert record.is_verified
    return list(record.runs)


def bytes_sent(run: KernelRun) -> int:
    assert run.profile is not None
    return sum(run.profile.bytes_sent)


@pytest.mark.parametrize(
    ("ranks", "decomposition", "grid"), [(1, "slab", "1 x 1"), (5, "slab", "5 x 1"), (6, "pencil", "3 x 2")]
)
def test_a_convolution_is_right_on_uneven_shares_and_sends_what_its_layout_says(
    ranks: int, decomposition: str, grid: str, tmp_path: Path
):
    nx, ny, nz = 27, 20, 25  # a line less one, three or seven points is whole vectors
    words = ("--nx", nx, "--ny", ny, "--nz", nz, "--iterations", 4, "--decomposition", decomposition)
    first, second = runs_of(tmp_path, FFT, ranks, *words, "--repeat", 2)
    assert first.fingerprint == second.fingerprint
    assert first.facts == {"grid of ranks": grid}
    assert [check.name for check in first.checks] == ["error"]
    points = nx * ny * nz
    along_z, along_x = map(int, grid.split(" x "))
    # Each point goes to another rank but for what a rank keeps, which uneven shares change a little.
    expected = 16 * points * 2 * 4 * ((1 - 1 / along_z) + (1 - 1 / along_x))
    assert bytes_sent(first) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("ranks", "grid"), [(1, "1 x 1 x 1"), (7, "7 x 1 x 1"), (8, "2 x 2 x 2")])
def test_an_elliptic_equation_comes_to_its_solution_and_sends_whole_faces(ranks: int, grid: str, tmp_path: Path):
    nx, ny, nz = (20, 20, 20) if ranks == 8 else (40, 17, 19)
    steps = 60
    words = ("--nx", nx, "--ny", ny, "--nz", nz, "--sweeps", 6, "--steps", steps)
    first, second = runs_of(tmp_path, ELLIPTIC, ranks, *words, "--repeat", 2)
    assert first.fingerprint == second.fingerprint
    assert first.facts == {"grid of ranks": grid}
    contraction, error = first.checks
    assert contraction.found is not None
    assert contraction.found <= 0.6 + 1e-9
    assert error.found is not None
    assert error.found < 1e-11
    assert first.operations == 7 * nx * ny * nz * 6 * steps
    x, y, z = map(int, grid.split(" x "))
    faces = (x - 1) * ny * nz + (y - 1) * nx * nz + (z - 1) * nx * ny
    assert bytes_sent(first) == 2 * 8 * faces * steps
    assert first.values["message_bytes"] == {1: 0, 7: 8 * 17 * 19, 8: 8 * 10 * 10}[ranks]


@pytest.mark.parametrize(
    ("program", "ranks", "words", "said"),
    [
        (FFT, 2, ("--ny", 14), "--ny needs a number that has no other prime factors than 2, 3 and 5, found 14; the next one is 15"),
        (FFT, 1, ("--nx", 0), '--nx needs a number from 1 to 16384, found "0"'),
        (FFT, 1, ("--decomposition", "cube"), "--decomposition needs one of slab, pencil, found"),
        (FFT, 3, ("--nx", 9, "--nz", 2), "points: needed are at most 2; or take --decomposition pencil"),
        (FFT, 3, ("--nx", 2, "--decomposition", "pencil"), "share pencils of 2 x 2 x 2 points: needed is a product of two numbers"),
        (ELLIPTIC, 3, ("--nx", 2), "3 ranks cannot share 2 x 2 x 2 points: needed is a product of three numbers"),
        (ELLIPTIC, 1, ("--sweeps", 0), "--sweeps needs a number from 1 to 100000"),
    ],
)  # fmt: skip
def test_what_they_cannot_run_is_refused_once(program: str, ranks: int, words: tuple[object, ...], said: str):
    done = run_kernel(program, ranks, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count(f"{program}: ") == 1


@pytest.mark.parametrize("program", [FFT, ELLIPTIC])
def test_more_memory_than_there_is_ends_all_ranks_and_is_said(program: str):
    done = run_kernel(program, 2, "--nx", 16384)
    assert done.returncode == 3
    assert "rank 0 on " in done.stderr


@pytest.mark.lab
def test_over_two_fabrics_their_results_are_the_same_and_transposes_take_what_the_wire_needs(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    convolution = {"kind": "fft-convolution", "nx": 64, "iterations": 3}
    elliptic = {"kind": "elliptic", "nx": 96, "sweeps": 20, "steps": 5}
    asked = campaign_of({"campaign": {"blocks": 2}, "workload": [convolution, elliptic]}, "c.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    start_run(tmp_path / "run", asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    launches = Run.open(tmp_path / "run").launches
    assert len(launches) == 8
    found: dict[str, set[str]] = {}
    for launch in launches:
        part = launch.summary.workload
        assert part is not None
        assert all(check.holds for check in part.checks)
        rate, time = part.figures
        assert (rate.unit, time.name) == ("Gflop/s", "time")
        found.setdefault(rate.name, set()).add(str([check.found for check in part.checks]))
        if rate.name == "convolution" and launch.summary.fabric == "fast-ethernet":
            # Each of four ranks sends 3/4 of its MiB in each of six transposes.
            assert time.value > 6 * 3 / 4 * 2**20 * 8 / 100e6
    assert {name: len(results) for name, results in found.items()} == {"convolution": 1, "elliptic solver": 1}
