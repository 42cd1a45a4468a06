"""Which build of fabricbench-npb runs: the best that the processor has, or the one that all nodes are held to."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fabricbench.native import build_info, built_for_levels, native_file
from fabricbench.record.kernel_lines import KernelRecord, read_kernel_record
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.workload.adapter import Output
from fabricbench.workload.npb import PROGRAM
from fabricbench.workload.npb_adapter import OWN, KernelStart

VARIABLE = "FABRICBENCH_PROCESSOR_LEVEL"
BASELINE = "x86-64"
NEEDS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    BASELINE: set(),
}
"""The levels from the best, with what each has that the next has not (psABI for x86-64), by the names of /proc/cpuinfo."""
LEVELS = tuple(NEEDS)

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has levels"),
]


def supported() -> tuple[str, ...]:
    """The levels of this processor, from the best."""
    flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    found = set(LEVELS)
    for level in reversed(LEVELS):
        if not NEEDS[level] <= flags:
            found -= set(LEVELS[: LEVELS.index(level) + 1])
    return tuple(level for level in LEVELS if level in found)


def start(program: Path, tmp_path: Path, level: str | None, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["is", "--class", "S", "--output", str(tmp_path / "record.jsonl")]
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [build_info().mpiexec, "-n", "2", str(program), *words],
        env=inherited | environment | ({} if level is None else {VARIABLE: level}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def record_of(done: subprocess.CompletedProcess[str], tmp_path: Path) -> KernelRecord:
    assert done.returncode == 0, done.stderr
    return read_kernel_record(tmp_path / "record.jsonl")


@pytest.fixture
def program() -> Path:
    if built_for_levels(PROGRAM) == (PROGRAM,):
        pytest.skip("the kernels are built for one processor alone: make without MARCH builds them for all")
    return native_file(PROGRAM)


def test_every_level_is_built_and_belongs_to_the_build_that_nodes_must_share(program: Path):
    assert built_for_levels(program.name) == (PROGRAM, f"{PROGRAM}-x86-64-v3", f"{PROGRAM}-x86-64-v4")


def test_a_program_goes_on_as_the_best_level_of_the_processor(program: Path, tmp_path: Path):
    done = start(program, tmp_path, None)
    record = record_of(done, tmp_path)
    assert record.header is not None
    assert record.header.processor_levels == (supported()[0],) * 2
    assert record.header.program == PROGRAM
    assert f"compiled for  {supported()[0]}\n" in done.stdout


@pytest.mark.parametrize("level", LEVELS)
def test_all_ranks_are_held_to_a_level_and_one_that_the_processor_lacks_is_refused(
    level: str, program: Path, tmp_path: Path
):
    done = start(program, tmp_path, level)
    if level not in supported():
        assert done.returncode == 3
        assert f"{VARIABLE} is {level}, which this processor lacks: it runs {', '.join(supported())}" in done.stderr
        return
    record = record_of(done, tmp_path)
    assert record.header is not None
    assert record.header.processor_levels == (level, level)
    assert record.is_verified


def test_the_level_of_a_launch_is_to_be_the_same_on_all_fabrics(program: Path, tmp_path: Path):
    record_of(start(program, tmp_path, BASELINE), tmp_path)
    (tmp_path / "record.jsonl").rename(tmp_path / KERNEL_RECORDS)
    kernel = KernelStart(benchmark="IS", problem_class="S", ranks=2, program=OWN)
    parsed = kernel.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert parsed is not None
    assert parsed.fixed == {"instruction set": BASELINE}


def test_a_level_that_there_is_not_is_refused_with_those_that_there_are_and_said_once(program: Path, tmp_path: Path):
    done = start(program, tmp_path, "avx2")
    assert done.returncode == 3
    assert f'{VARIABLE} needs one of {", ".join(LEVELS)}, found "avx2"' in done.stderr
    assert done.stderr.count(f"{PROGRAM}: ") == 1
    assert not (tmp_path / "record.jsonl").exists()


def test_a_program_without_its_other_builds_runs_everywhere_and_says_what_it_is_asked_for_in_vain(
    program: Path, tmp_path: Path
):
    alone = Path(shutil.copy(program, tmp_path / PROGRAM))
    libraries = str(Path(build_info().mpiexec).parents[1] / "lib")
    record = record_of(start(alone, tmp_path, None, LD_LIBRARY_PATH=libraries), tmp_path)
    assert record.header is not None
    assert record.header.processor_levels == (BASELINE, BASELINE)
    if "x86-64-v3" in supported():
        done = start(alone, tmp_path, "x86-64-v3", LD_LIBRARY_PATH=libraries)
        assert done.returncode == 3
        assert f"{alone}-x86-64-v3 cannot be started: No such file or directory" in done.stderr
