"""The ranks of a launch are those of its plan, whatever program it is; the reason names the PMI and the starter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fabricbench.campaign.attempt import Attempts
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.rank_proof import rank_violations
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.record.kernel_lines import KernelFooter, KernelHeader, KernelRun
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.workload_cells import RanksFound
from fabricbench.workload.adapter import Place
from fabricbench.workload.counted import rank_line
from support.applications import campaign, lab_of, parsed, start, table
from support.fake_launcher import FakeLauncher

BY_MPICH = {"mpi": "MPICH 4.0.2", "starter": "hydra 4.0.2"}
OPEN_MPI = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"


def why(found: RanksFound, planned: int = 2) -> str:
    return " and ".join(rank_violations(found, planned, BY_MPICH))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (RanksFound(1), "the program found 1 rank in MPI_COMM_WORLD, and 2 were asked for, started by hydra 4.0.2 of MPICH 4.0.2"),
        (RanksFound(4), "the program found 4 ranks in MPI_COMM_WORLD"),
        (RanksFound(numbers=(0, 0)), "2 processes say that they are rank 0 of 2: copies that know nothing of each other"),
        (RanksFound(numbers=(0, 1, 1)), "2 processes say that they are rank 1 of 2"),
        (RanksFound(numbers=(0,)), "rank 0 told that it runs, needed 0 to 1; the starter must start so many ranks"),
        (RanksFound(numbers=(0, 1, 2)), "ranks 0, 1, 2 told that it runs"),
        (RanksFound(), "no rank at all told that it runs"),
        (RanksFound(numbers=(0, 1), sizes=(1, 1)), "a process was told that it is one of 1, and 2 were asked for"),
        (RanksFound(numbers=(0, 0), may_lack=True), "2 processes say that they are rank 0"),
    ],
)  # fmt: skip
def test_other_ranks_than_planned_are_told_with_the_starter_and_what_pmi_has_to_do_with_it(
    found: RanksFound, said: str
):
    assert said in why(found)
    assert "do not speak the same PMI" in why(found)
    assert "srun --mpi=pmix or pmi2" in why(found)


@pytest.mark.parametrize(
    "found",
    [
        RanksFound(2, (0, 1)),
        RanksFound(2),
        RanksFound(numbers=(1, 0), sizes=(2, 2)),
        RanksFound(numbers=(0,), may_lack=True),
        RanksFound(2, mpi_library="MPICH Version: 4.0.2"),
        RanksFound(2, mpi_library="Intel(R) MPI Library 2021.9 for Linux* OS"),
        RanksFound(2, mpi_library="something else"),
        RanksFound(numbers=(0, 1), mpi_library=OPEN_MPI, is_over_mpi=False),
    ],
)
def test_the_ranks_of_the_plan_each_once_are_no_violation(found: RanksFound):
    assert why(found) == ""


def test_a_program_of_another_mpi_than_the_one_that_starts_it_is_told():
    said = why(RanksFound(numbers=(0, 1), mpi_library=OPEN_MPI))
    assert f"the program loads {OPEN_MPI}, and was started by hydra 4.0.2 of MPICH 4.0.2" in said
    assert "MPICH starts no ranks of Open MPI" in said


class MpichLauncher(FakeLauncher):
    """Tells what starts its ranks."""

    def conditions(self, fabric: object) -> dict[str, str]:
        del fabric
        return BY_MPICH


def stored_after(tmp_path: Path, stdout: str) -> tuple[bool, tuple[str, ...]]:
    """Whether a launch of two ranks of an application counts that printed this, and why not."""
    plan = plan_run(campaign(table(ranks=[2])), lab_of(), seed=1)
    run = RunDirectory(tmp_path / "run")
    run.create()
    launch = plan.launches[0]
    directory = run.prepare(launch.launch_id)
    parsed(directory, start(), "")
    (directory / "stdout.log").write_text(stdout)
    found = Attempts(run, plan, MpichLauncher(run.path)).finished(launch)
    assert found is not None
    return found.facts.is_valid, found.facts.invalid_because


def test_a_launch_of_two_copies_of_rank_0_is_void(tmp_path: Path):
    is_valid, reasons = stored_after(tmp_path, f"{rank_line(0, 6)}{rank_line(0, 7)}time 1\n")
    assert not is_valid
    assert "2 processes say that they are rank 0 of 2" in reasons[0]


def test_a_launch_of_another_mpis_program_is_void_though_a_select_takes_one_of_its_figures(tmp_path: Path):
    is_valid, reasons = stored_after(
        tmp_path, f"{rank_line(0, 6)}{rank_line(1, 7)}fabricbench-mpi: {OPEN_MPI}\ntime 1\n"
    )
    assert not is_valid
    assert "the program loads Open MPI" in reasons[0]


def test_a_launch_of_its_ranks_counts(tmp_path: Path):
    is_valid, reasons = stored_after(
        tmp_path, f"{rank_line(0, 6)}{rank_line(1, 7)}fabricbench-mpi: MPICH Version: 4.0.2\ntime 1\n"
    )
    assert not [one for one in reasons if "rank" in one or "MPI" in one]
    assert is_valid or reasons


def test_a_kernel_that_found_itself_alone_is_void(tmp_path: Path):
    plan = plan_run(campaign({"kind": "npb", "benchmarks": ["EP"], "class": "S", "ranks": [2]}), lab_of(), seed=1)
    run = RunDirectory(tmp_path / "run")
    run.create()
    launch = plan.launches[0]
    header = KernelHeader(program="fabricbench-npb", program_version="1", kernel="ep", problem_class="S", rank_count=1)
    one = KernelRun(
        repetition=0,
        size="2^25",
        iterations=1,
        seconds=1.0,
        operation_unit="number",
        mops_total=1.0,
        mops_per_process=1.0,
        verified=True,
    )
    lines = [each.model_dump_json(by_alias=True) for each in (header, one, KernelFooter(runs=1, verified=1))]
    (run.prepare(launch.launch_id) / KERNEL_RECORDS).write_text("\n".join(lines) + "\n")
    found = Attempts(run, plan, MpichLauncher(run.path)).finished(launch)
    assert found is not None
    assert not found.facts.is_valid
    assert "found 1 rank in MPI_COMM_WORLD, and 2 were asked for" in found.facts.invalid_because[0]


@pytest.mark.complete
@pytest.mark.parametrize(
    "kind", ["npb", "hpcg", "fft-convolution", "elliptic", "shared-lu", "shared-raytrace", "training-step"]
)
def test_a_kernel_of_ours_that_is_alone_says_so_before_it_runs(tmp_path: Path, kind: str):
    own = {"benchmarks": ["EP"], "class": "S"} if kind == "npb" else {}
    plan = plan_run(campaign({"kind": kind, "ranks": [2], **own}), lab_of(), seed=1)
    one = plan.launches[0].workload
    assert one is not None
    alone = {
        name: value for name, value in os.environ.items() if not name.startswith(("PMI", "HYDRA", "OMPI", "SLURM"))
    }
    tokens = one.tokens(Place(tmp_path, lab_of().fabrics[0].model_copy(update={"interface": None, "subnet": None})))
    ended = subprocess.run(tokens, capture_output=True, text=True, timeout=60, check=False, env=alone, cwd=tmp_path)
    assert ended.returncode == 2
    assert "--ranks 2 needs as many ranks, found 1" in ended.stderr
    assert "the starter does not speak the PMI of this MPI library" in ended.stderr
    assert not (tmp_path / KERNEL_RECORDS).exists()
