"""The kernel of CONTRIBUTING.md, one file and one line of CMake: `tools/test-native --sanitized` builds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fabricbench.native import build_info
from fabricbench.record.kernel_lines import read_kernel_record
from fabricbench.record.workload_cells import result_of_kernel

ROOT = Path(__file__).parents[2]
NAME = "fabricbench-jacobi"
BUILT = ROOT / "build" / "native-tests" / "native" / "tests" / "extending" / NAME
TIME_LIMIT_S = 60

pytestmark = pytest.mark.mpi


@pytest.fixture
def program() -> Path:
    if not BUILT.exists():
        pytest.skip("the kernel of examples/extending is not built: tools/test-native --sanitized builds it")
    return BUILT


def start(ranks: int, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [build_info().mpiexec, "-n", str(ranks), str(program), *words],
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},  # what MPI libraries never free is not ours
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def test_its_options_stand_in_its_help_before_those_of_every_kernel(program: Path):
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    assert done.stdout.startswith(f"Usage: mpiexec -n RANKS {NAME} [options]\n")
    options = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  --")]
    assert options[:3] == ["--n", "--sweeps", "--ranks"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_it_is_verified_and_its_record_is_read_as_that_of_any_kernel(ranks: int, program: Path, tmp_path: Path):
    output = tmp_path / "record.jsonl"
    done = start(ranks, program, "--n", "1000", "--sweeps", "50", "--repeat", "2", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        f"JACOBI n 1000, sweeps 50: 1000, 50 iterations, {ranks} rank{'s' if ranks > 1 else ''}\n"
    )
    record = read_kernel_record(output)
    assert record.is_complete
    assert record.is_verified
    assert record.header is not None
    assert (record.header.program, record.header.problem_class) == (NAME, None)
    assert record.header.problem == {"n": 1000, "sweeps": 50}
    assert len({run.fingerprint for run in record.runs}) == 1
    profile = record.runs[0].profile
    assert profile is not None
    sent = [8 * 50 * (ranks > 1) * (2 - (rank in (0, ranks - 1))) for rank in range(ranks)]
    assert list(profile.bytes_sent) == sent  # 8 bytes to each neighbour before each sweep
    assert result_of_kernel(record).failed is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "1"), "2 ranks leave some without any of the 1 points; take 1 to 1"),
        (("--n", "many"), '--n needs a number from 1 to 1000000000, found "many"; see fabricbench-jacobi --help'),
        (("--class", "A"), "there is no option --class"),
    ],
)
def test_what_it_cannot_run_is_refused_once(words: tuple[str, ...], said: str, program: Path):
    done = start(2, program, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count(f"{NAME}: ") == 1
