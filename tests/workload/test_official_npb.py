"""The official NPB: its programs are found, and what they print becomes a record. The outputs here were written by hand."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.native import native_file
from fabricbench.record.workload_cells import RanksFound
from fabricbench.testbed.model import Fabric
from fabricbench.workload.adapter import Output, Place
from fabricbench.workload.counted import AROUND, MPI_LINE, mpi_library, rank_line
from fabricbench.workload.npb import PROGRAM
from fabricbench.workload.npb_adapter import KernelStart
from fabricbench.workload.official_npb import find_official, official_program, parse_official

CG = """

 NAS Parallel Benchmarks 3.4 -- CG Benchmark

 Size:        1400  (class S)
 Iterations:    15
 Total number of processes:      4
 Number of nonzeroes per row:            7
 Eigenvalue shift: .100E+02

   iteration           ||r||                 zeta
        1       0.13257071746643E-12     9.9986441579140
 Benchmark completed
 VERIFICATION SUCCESSFUL
 Zeta is      0.8597177507865E+01
 Error is     0.2066181512343E-15


 CG Benchmark Completed.
 Class           =                        S
 Size            =                     1400
 Iterations      =                       15
 Time in seconds =                     0.05
 Total processes =                        4
 Active processes=                        4
 Mop/s total     =                  1335.12
 Mop/s/process   =                   333.78
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.3
 Compile date    =              01 Jan 2026

 Compile options:
    MPIFC        = mpif90
    FFLAGS       = -O3
    RAND         = (none)


 Please send feedbacks and/or the results of this run to:
"""

FT_FAILED = """
 FT Benchmark Completed.
 Class           =                        W
 Size            =             128x 128x  32
 Iterations      =                        6
 Time in seconds =                     0.31
 Total processes =                        2
 Active processes=                        2
 Mop/s total     =                  1203.00
 Mop/s/process   =                   601.50
 Operation type  =           floating point
 Verification    =             UNSUCCESSFUL
 Version         =                    3.4.3
"""

IS_IN_C = """

 IS Benchmark Completed
 Class           =                        A
 Size            =              8388608
 Iterations      =                   10
 Time in seconds =                 0.40
 Total processes =                    3
 Active processes=                    2
 Mop/s total     =               209.72
 Mop/s/process   =                69.91
 Operation type  =          keys ranked
 Verification    =           SUCCESSFUL
 Version         =                3.4.3
"""

EP_TOO_SHORT_TO_TIME = """
 EP Benchmark Completed.
 Class           =                        S
 Size            =                 33554432
 Iterations      =                        0
 Time in seconds =                     0.00
 Total processes =                        1
 Mop/s total     =             ************
 Mop/s/process   =             ************
 Operation type  = Random numbers generated
 Verification    =               SUCCESSFUL
"""


def test_the_block_of_a_kernel_becomes_a_verified_record():
    record = parse_official(CG, started_unix_ns=17)
    assert record.is_complete
    assert record.is_verified
    header, (run,) = record.header, record.runs
    assert header is not None
    assert (header.program, header.program_version, header.kernel) == ("official NPB", "3.4.3", "cg")
    assert (header.problem_class, header.rank_count, header.started_unix_ns) == ("S", 4, 17)
    assert (run.size, run.iterations, run.operation_unit) == ("1400", 15, "floating point")
    assert run.seconds == pytest.approx(0.05, abs=0.005)
    assert (run.mops_total, run.mops_per_process) == (1335.12, pytest.approx(333.78))
    assert (run.checks, run.fingerprint, run.profile) == ((), None, None)
    assert (header.ranks, header.mpi_library) == ((), None)


def with_time(text: str, seconds: str, mops: str) -> str:
    return text.replace("0.05\n", f"{seconds}\n").replace("1335.12", mops)


def test_a_time_too_short_for_its_print_is_told_by_the_rate():
    record = parse_official(with_time(CG, "0.00", "36250.00"))
    assert record.header is not None
    assert record.runs[0].seconds == pytest.approx(1.84e-3, rel=2e-3)
    assert record.runs[0].seconds * record.runs[0].mops_total == pytest.approx(record.runs[0].operations * 1e-6)
    assert record.header.clock_resolution_ns == pytest.approx(1.84e6 * 0.01 / 36250.0, rel=2e-3)


@pytest.mark.parametrize(
    ("seconds", "mops"),
    [("0.05", "2000.00"), ("13350.00", "0.01"), ("0.05", "0.00"), ("0.05", "Infinity")],
)
def test_a_rate_that_does_not_fit_the_printed_time_or_is_coarser_leaves_it(seconds: str, mops: str):
    record = parse_official(with_time(CG, seconds, mops))
    assert record.header is not None
    assert (record.runs[0].seconds, record.header.clock_resolution_ns) == (float(seconds), pytest.approx(1e7))


def test_a_kernel_whose_count_is_not_known_keeps_its_printed_time():
    record = parse_official(CG.replace("CG Benchmark Completed", "XY Benchmark Completed"))
    assert (record.runs[0].seconds, record.runs[0].operations) == (0.05, None)


def told(ranks: Sequence[int], library: str = "MPICH Version: 4.2.0") -> str:
    return f"{MPI_LINE}{library}\n" + "".join(rank_line(rank, 100 + rank) for rank in ranks) + CG


def test_ranks_and_mpi_library_are_those_that_were_told_around_the_program():
    header = parse_official(told([2, 0, 3, 1])).header
    assert header is not None
    assert header.mpi_library == "MPICH Version: 4.2.0"
    assert [(rank.rank, rank.pid) for rank in header.ranks] == [(0, 100), (1, 101), (2, 102), (3, 103)]
    assert all(rank.host and rank.cpus for rank in header.ranks)


@pytest.mark.parametrize("ranks", [[0, 1, 2], [0, 0, 0, 0], [1, 2, 3, 4]])
def test_ranks_that_are_not_whole_are_left_out(ranks: list[int]):
    header = parse_official(told(ranks, library="")).header
    assert header is not None
    assert (header.rank_count, header.ranks, header.mpi_library) == (4, (), None)


@pytest.mark.complete
def test_the_mpi_library_of_a_program_is_asked_for_its_version_and_that_of_another_is_not_known():
    version = mpi_library(str(native_file(PROGRAM)))
    assert version is not None
    assert "MPI" in version
    assert mpi_library("/bin/sh") is None
    assert mpi_library("/nonesuch") is None


def test_a_failed_verification_is_a_whole_record_of_a_wrong_run():
    record = parse_official(FT_FAILED)
    assert record.is_complete
    assert not record.is_verified
    assert record.runs[0].size == "128 x 128 x 32"
    assert record.footer is not None
    assert (record.footer.runs, record.footer.verified) == (1, 0)


def test_a_benchmark_written_in_c_ends_its_title_without_a_dot_and_idle_processes_are_not_counted():
    record = parse_official(IS_IN_C)
    assert record.header is not None
    assert (record.header.kernel, record.header.rank_count) == ("is", 2)
    assert record.runs[0].operation_unit == "keys ranked"
    assert record.runs[0].mops_per_process == pytest.approx(209.72 / 2)


@pytest.mark.parametrize("rate", ["************", "Infinity", "NaN"])
def test_a_run_too_short_to_be_timed_has_no_rate(rate: str):
    record = parse_official(EP_TOO_SHORT_TO_TIME.replace("************", rate))
    assert record.is_complete
    assert (record.runs[0].seconds, record.runs[0].mops_total, record.runs[0].mops_per_process) == (0.0, None, None)
    assert record.runs[0].operation_unit == "random numbers generated"


def test_a_verification_that_was_not_performed_proves_nothing():
    record = parse_official(CG.replace("  SUCCESSFUL\n Version", "NOT PERFORMED\n Version"))
    assert record.is_complete
    assert not record.is_verified


def test_an_output_cut_off_anywhere_before_its_verdict_gives_no_run_and_says_so():
    reasons = ("the output has no `Benchmark Completed`", "the block of results has no")
    for cut in range(CG.index(" Version ")):
        record = parse_official(CG[:cut])
        assert (record.header, record.runs, record.is_complete) == (None, [], False), CG[:cut]
        assert record.damage[0].reason.startswith(reasons), CG[:cut]


@pytest.mark.parametrize(
    ("whole", "garbled", "reason"),
    [
        ("=                     0.05", "=                     o.o5", "cannot be read"),
        ("=                        4", "=                     four", "cannot be read"),
        ("=               SUCCESSFUL", "=               SUCCESSFAL", "'SUCCESSFAL', which is no known verdict"),
        ("\n Please", CG + "\n Please", "a second block of results"),
    ],
)
def test_a_garbled_output_gives_no_run_and_says_why(whole: str, garbled: str, reason: str):
    record = parse_official(CG.replace(whole, garbled))
    assert record.runs == []
    assert reason in record.damage[0].reason


def make_program(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_program_is_found_in_the_folder_that_is_given_or_its_bin(tmp_path: Path):
    inside = make_program(tmp_path / "bin" / "cg.A.x")
    assert find_official("cg", "A", 4, tmp_path) == inside
    beside = make_program(tmp_path / "cg.A.x")
    assert find_official("cg", "A", 4, tmp_path) == beside
    assert official_program(beside) == [str(beside)]


def test_a_program_is_found_on_the_path_and_an_old_one_by_its_number_of_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    old = make_program(tmp_path / "bt.B.9")
    assert find_official("bt", "B", 9) == old
    with pytest.raises(EnvironmentLacks, match=r"looked for bt\.B\.x and bt\.B\.4 on PATH") as caught:
        find_official("bt", "B", 4)
    assert "make bt CLASS=B" in (caught.value.hint or "")


def test_another_folder_is_not_looked_in_and_an_unknown_kernel_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    make_program(tmp_path / "cg.A.x")
    with pytest.raises(EnvironmentLacks, match="no official NPB for cg, class A"):
        find_official("cg", "A", 4, tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no NPB kernel 'hpl'"):
        find_official("hpl", "A", 4)


def test_an_official_program_is_counted_from_outside_and_what_it_prints_is_its_record(tmp_path: Path):
    folder, directory = tmp_path / "official", tmp_path / "launch"
    directory.mkdir()
    program = make_program(folder / "cg.S.x")
    start = KernelStart(benchmark="CG", problem_class="S", ranks=4, program=str(folder))
    tokens = start.tokens(Place(directory, Fabric(name="net", interface="eth1")))
    assert tokens[-2:] == ["--", str(program)]
    assert str(directory / AROUND) in tokens
    output = Output(directory, directory / "stdout.log", directory / "stderr.log")
    assert start.parse(output) is None
    output.stdout.write_text(told([0, 1, 2, 3]))
    around = {"exit_code": 0, "started_unix_ns": 1, "finished_unix_ns": 10**12}
    (directory / AROUND).write_text(json.dumps({**around, "interfaces": {"eth1": {"sent": 5, "received": 7}}}))
    parsed = start.parse(output)
    assert parsed is not None
    assert [(one.name, one.unit) for one in parsed.figures] == [
        ("time", "s"),
        ("Mop/s total", "Mop/s"),
        ("Mop/s a process", "Mop/s"),
    ]
    assert parsed.interfaces["eth1"].received == 7
    assert "leader_bytes" not in parsed.values
    assert parsed.found == RanksFound(4, (0, 1, 2, 3), mpi_library="MPICH Version: 4.2.0")
    (directory / AROUND).write_text(json.dumps({**around, "finished_unix_ns": 2, "interfaces": {}}))
    shorter = start.parse(output)
    assert shorter is not None
    assert shorter.failed is not None
    assert "s, and the launch that printed it took" in shorter.failed.reason
    assert shorter.figures == ()
    assert [start.is_success(code) for code in (0, 1, None)] == [True, False, False]
    assert list(start.external_commands()) == [
        f"kernel {start.name}: a program cg.S.x or cg.S.4 of the folder {folder}"
    ]
