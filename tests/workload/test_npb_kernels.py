"""Every kernel of fabricbench-npb: right on up to nine ranks, the same twice on up to four; larger classes on up to four."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from fabricbench.native import build_info, native_file
from fabricbench.record.kernel_lines import KernelRecord, KernelRun, read_kernel_record
from fabricbench.workload.npb import BENCHMARKS, PROGRAM, NpbRun, npb_program, read_list
from fabricbench.workload.official_npb import official_operations
from support.kernel_runs import waiting_asleep

pytestmark = pytest.mark.mpi

TIME_LIMIT_S = 100
MOST_RANKS = 9
LARGER = (
    *(("W", ranks, BENCHMARKS) for ranks in (1, 2, 4)),
    ("A", 4, ("ep", "mg", "cg", "ft", "is", "lu")),
    ("B", 2, ("ep", "mg", "is")),
)
"""Class, ranks, and the kernels to try on them: those that end within ten seconds on two processors. The smallest class is tried
on every number of ranks."""
RANKS_FOR_TWICE = 4
"""Above it ranks mostly wait for a processor, and what differs from run to run differs below it."""
SOURCES = Path(__file__).parents[2] / "native/kernel"


@cache
def kernels() -> dict[str, tuple[int, ...]]:
    """The kernels of the program and the numbers of ranks that each takes for class S."""
    listed = subprocess.run([native_file(PROGRAM), "--list"], capture_output=True, text=True, timeout=20, check=True)
    return read_list(listed.stdout)


def cases() -> list[tuple[str, int]]:
    """Each kernel with each number of ranks to try; nothing where the program is not built, which a test below says."""
    try:
        return [(kernel, ranks) for kernel, counts in kernels().items() for ranks in counts if ranks <= MOST_RANKS]
    except Exception:  # noqa: BLE001 - collecting must not fail
        return []


def larger_cases() -> list[tuple[str, str, int]]:
    """Each kernel with each class and number of ranks of LARGER that it takes."""
    takes = set(cases())
    return [
        (kernel, problem_class, ranks)
        for problem_class, ranks, names in LARGER
        for kernel in names
        if (kernel, ranks) in takes
    ]


@dataclass(frozen=True)
class Outcome:
    """What a start of the program left behind."""

    code: int
    stdout: str
    stderr: str
    record: KernelRecord | None


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Outcome]:
    """Start the program on ranks of this machine that sleep while they wait."""

    def run(ranks: int, arguments: Sequence[str], prefix: Sequence[str] = ()) -> Outcome:
        done = subprocess.run(
            [*prefix, build_info().mpiexec, "-n", str(ranks), *arguments],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
            cwd=tmp_path,
            env=waiting_asleep(),
        )
        path = tmp_path / "record.jsonl"
        return Outcome(done.returncode, done.stdout, done.stderr, read_kernel_record(path) if path.exists() else None)

    return run


def record_of(outcome: Outcome) -> KernelRecord:
    assert outcome.record is not None, outcome.stderr
    return outcome.record


def program(*arguments: str) -> list[str]:
    return [str(native_file(PROGRAM)), *arguments]


def kernel_for(ranks: int) -> str:
    return next(kernel for kernel, counts in kernels().items() if ranks in counts)


def test_the_program_has_kernels_and_only_those_that_the_python_side_knows():
    assert kernels()
    assert set(kernels()) <= set(BENCHMARKS)


def test_each_kernel_takes_every_number_of_ranks_that_the_official_one_does():
    for kernel, counts in kernels().items():
        assert set(BENCHMARKS[kernel].admissible_ranks(4)) <= set(counts), kernel


def test_is_refuses_more_keys_on_a_rank_than_it_counts(start: Callable, tmp_path: Path):
    outcome = start(1, npb_program(NpbRun("is", "D"), tmp_path / "record.jsonl"))
    assert outcome.code != 0
    assert "IS counts the keys of a rank in 32 bits, and class D has 2147483648" in outcome.stderr
    assert "take 2 to 1024" in outcome.stderr


@pytest.mark.parametrize(("kernel", "ranks"), cases())
def test_a_kernel_is_right_and_on_few_ranks_gives_the_same_bits_again(
    kernel: str, ranks: int, start: Callable, tmp_path: Path
):
    repetitions = 2 if ranks <= RANKS_FOR_TWICE else 1
    outcome = start(ranks, npb_program(NpbRun(kernel, "S", repetitions=repetitions), tmp_path / "record.jsonl"))
    record = record_of(outcome)
    assert outcome.code == 0, outcome.stderr
    assert record.is_complete
    assert record.is_verified
    assert record.header is not None
    assert (record.header.kernel, record.header.problem_class, record.header.rank_count) == (kernel, "S", ranks)
    assert len(record.header.ranks) == ranks
    assert len(record.runs) == repetitions
    assert all(run.checks for run in record.runs)
    assert len({run.fingerprint for run in record.runs}) == 1
    assert f"{kernel.upper()} class S" in outcome.stdout
    for run in record.runs:
        check_profile(run, ranks)
        count = official_operations(kernel, "S", printed_size(run), run.iterations)
        assert run.operations == pytest.approx(count, rel=1e-12)


def printed_size(run: KernelRun) -> str:
    """The size as an official program prints it: EP the numbers that it draws, IS its keys."""
    power = re.fullmatch(r"2\^(\d+)", run.size)
    return run.size if power is None else str(2 ** (int(power[1]) + (run.operation_unit != "keys ranked")))


@pytest.mark.parametrize(("kernel", "problem_class", "ranks"), larger_cases())
def test_larger_classes_are_right(kernel: str, problem_class: str, ranks: int, start: Callable, tmp_path: Path):
    outcome = start(ranks, npb_program(NpbRun(kernel, problem_class), tmp_path / "record.jsonl"))
    record = record_of(outcome)
    assert outcome.code == 0, outcome.stderr
    assert record.is_complete
    assert record.is_verified
    assert record.header is not None
    assert (record.header.kernel, record.header.problem_class, record.header.rank_count) == (
        kernel,
        problem_class,
        ranks,
    )
    assert record.runs[0].checks


@pytest.mark.parametrize(
    ("kernel", "problem_class"), [(kernel, letter) for kernel in ("bt", "lu", "sp") for letter in "SW"]
)
def test_steps_in_time_end_where_the_specification_does_and_not_just_within_its_tolerance(
    kernel: str, problem_class: str, start: Callable, tmp_path: Path
):
    """What rounding alone leaves: at most 2.4e-10 over two instruction sets, with and without contraction (docs/npb.md)."""
    record = record_of(start(1, npb_program(NpbRun(kernel, problem_class), tmp_path / "record.jsonl")))
    checks = record.runs[0].checks
    assert checks
    for check in checks:
        assert check.found == pytest.approx(check.expected, rel=5e-10), check.name


def check_profile(run: KernelRun, ranks: int) -> None:
    """The split of the time adds up, and the messages account for the bytes."""
    profile = run.profile
    assert profile is not None
    assert len(profile.compute_seconds) == len(profile.mpi_seconds) == len(profile.bytes_sent) == ranks
    for compute, mpi in zip(profile.compute_seconds, profile.mpi_seconds, strict=True):
        assert mpi >= 0
        assert 0 < compute + mpi <= run.seconds * (1 + 1e-6) + 1e-6
    assert sum(call.seconds for call in profile.calls) == pytest.approx(sum(profile.mpi_seconds))
    assert sum(call.bytes for call in profile.calls) == sum(profile.bytes_sent)
    least = sum(sizes.from_bytes * sizes.number for sizes in profile.message_sizes)
    most = sum(sizes.to_bytes * sizes.number for sizes in profile.message_sizes)
    assert least <= sum(profile.bytes_sent) <= most
    assert (sum(profile.bytes_sent) > 0) == (ranks > 1)


def test_a_start_again_gives_the_same_bits(start: Callable, tmp_path: Path):
    for kernel, counts in kernels().items():
        ranks = max(count for count in counts if count <= 2)
        tokens = npb_program(NpbRun(kernel), tmp_path / "record.jsonl")
        fingerprints = {record_of(start(ranks, tokens)).runs[0].fingerprint for _ in range(2)}
        assert len(fingerprints) == 1, kernel


def test_the_first_ranks_of_those_started_are_taken_and_the_others_are_not_in_the_record(
    start: Callable, tmp_path: Path
):
    record = record_of(start(3, npb_program(NpbRun(kernel_for(1), ranks=1), tmp_path / "record.jsonl")))
    assert record.is_complete
    assert record.header is not None
    assert [rank.rank for rank in record.header.ranks] == [0]
    assert record.runs[0].profile is not None
    assert len(record.runs[0].profile.mpi_seconds) == 1


def test_a_record_on_stdout_has_stdout_for_itself(start: Callable):
    outcome = start(1, program(kernel_for(1), "--output", "-"))
    assert [line[:9] for line in outcome.stdout.splitlines()] == ['{"type":"'] * 3
    assert "verification  successful" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonesuch",), 'there is no kernel "nonesuch"; there are '),
        (("{kernel}", "--class", "Z"), "--class needs one of S, W, A, B, C, D"),
        (("{kernel}", "--ranks", "5"), "--ranks 5 needs as many ranks, found 2"),
        ((), "a kernel is needed"),
    ],
)
def test_wrong_usage_ends_with_code_2_and_is_said_once(start: Callable, arguments: Sequence[str], said: str):
    kernel = kernel_for(2)
    outcome = start(2, program(*(argument.format(kernel=kernel) for argument in arguments)))
    assert outcome.code == 2
    assert outcome.stderr.count("fabricbench-npb: ") == 1
    assert said in outcome.stderr


def test_a_number_of_ranks_that_a_kernel_cannot_run_on_is_refused_with_those_that_it_can(start: Callable):
    for kernel, counts in kernels().items():
        refused = next((count for count in range(1, MOST_RANKS + 1) if count not in counts), None)
        if refused is None:
            continue
        outcome = start(refused, program(kernel))
        assert outcome.code == 2, kernel
        assert outcome.stderr.count("fabricbench-npb: ") == 1
        assert re.search(r"\d", outcome.stderr.partition("fabricbench-npb: ")[2]), outcome.stderr


@pytest.mark.parametrize("output", ["/nonesuch/record.jsonl", "/dev/full"])
def test_a_record_that_cannot_be_written_ends_with_code_3_and_is_said_once(start: Callable, output: str):
    outcome = start(2, program(kernel_for(2), "--output", output))
    assert outcome.code == 3
    assert outcome.stderr.count("fabricbench-npb: ") == 1
    assert output in outcome.stderr


def test_too_little_memory_ends_all_ranks_with_code_3_and_is_said_once(start: Callable):
    if "ft" not in kernels() or shutil.which("prlimit") is None:
        pytest.skip("this needs the kernel ft, whose class D needs more memory than any test may have, and prlimit")
    outcome = start(2, program("ft", "--class", "D"), prefix=("prlimit", "--as=4000000000"))
    assert outcome.code == 3
    assert outcome.stderr.count("fabricbench-npb: ") == 1
    assert "not enough memory for class D of ft" in outcome.stderr


def test_every_call_of_the_kernels_that_communicates_is_counted():
    """What is left out neither sends nor waits in the timed section; a call that is new must be sorted in on one side."""
    counted = set(re.findall(r'"(MPI_\w+)"', (SOURCES / "frame/profile.hpp").read_text()))
    silent = {"MPI_Init", "MPI_Finalize", "MPI_Abort", "MPI_Wtime", "MPI_Wtick", "MPI_Get_count"}
    silent_families = ("MPI_Comm_", "MPI_Cart_", "MPI_Dims_", "MPI_Type_", "MPI_Op_", "MPI_Get_library")
    silent |= {f"MPI_Win_{word}" for word in ("allocate", "free", "get_attr", "lock_all", "sync", "unlock_all")}
    called = {
        call
        for path in SOURCES.rglob("*.?pp")
        for call in re.findall(r"\b(MPI_[A-Z][a-z_]+)\(", path.read_text())
        if not call.startswith(silent_families)
    }
    assert called - counted - silent == set()
    watched = {"MPI_Win_free"}  # not counted: it only makes the profile forget what it keeps of a window
    wrapped = set(re.findall(r"^int (MPI_\w+)\(", (SOURCES / "frame/profile_calls.cpp").read_text(), re.MULTILINE))
    assert wrapped == counted | watched
