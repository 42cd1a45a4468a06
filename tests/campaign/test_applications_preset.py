"""The campaign `applications`: what is here is taken, what is missing said, and our own loads are always there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.applications_preset import KERNELS, NAME, applications_campaign, find_applications
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preparing import Prepared, prepare_in
from fabricbench.campaign.presets import preset
from fabricbench.campaign.venue import Standing
from fabricbench.errors import UsageError
from fabricbench.launch import linked
from fabricbench.workload.command import CommandTable
from support.applications import lab_of
from support.scripts import script


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def found_with(library: str) -> tuple[list[str], dict[str, str]]:
    found = find_applications(["hpcc", "lammps-lj"], lambda: library)
    missing = {note.split()[1]: note for note in found.missing}
    return [one.name for one in found.tables], missing


def test_what_is_here_is_run_and_what_is_missing_is_a_note_of_the_plan(path: Path):
    script(path / "lmp", "exit 0")
    tables, missing = found_with("MPICH")
    assert tables == ["lammps-lj"]
    assert missing == {
        "hpcc": "application hpcc is left out: hpcc is not here; apt install hpcc, which is built for Open MPI"
    }
    plan = plan_run(applications_campaign(find_applications(["hpcc", "lammps-lj"], lambda: "MPICH")), lab_of(), seed=1)
    assert missing["hpcc"] in plan.notes
    names = {launch.workload.name.partition(".")[0].partition("-")[0] for launch in plan.launches if launch.workload}
    assert names == {*KERNELS, "hpl", "hpcg", "fft", "elliptic", "shared", "training", "lammps"}


def test_a_program_that_is_built_needs_what_builds_it(path: Path, monkeypatch: pytest.MonkeyPatch):
    (missing,) = find_applications(["pvm-pingpong"], lambda: "MPICH").missing
    assert missing.startswith("application pvm-pingpong is left out: cc, ")
    script(path / "cc", "exit 0")
    monkeypatch.setattr(CommandTable, "lacking", lambda *_: ())
    assert [one.name for one in find_applications(["pvm-pingpong"], lambda: "MPICH").tables] == ["pvm-pingpong"]


@pytest.mark.parametrize(
    ("told", "library", "why"),
    [
        ("libmpi.so.40 => /usr/lib/libmpi.so.40", "MPICH", "built for Open MPI, and ranks are started by MPICH"),
        ("libmpi.so.12 => /usr/lib/libmpi.so.12", "Open MPI", "built for MPICH or what has its ABI, and ranks are"),
        ("libmpich.so.12 => /usr/lib/libmpich.so.12", "Open MPI", "built for MPICH or what has its ABI, and ranks are"),
        ("libmpi.so.40 => /usr/lib/libmpi.so.40", "Open MPI", None),
        ("libmpi.so.12 => not found", "Intel MPI", None),
        ("not a dynamic executable", "MPICH", None),
    ],
)
def test_a_program_of_another_mpi_is_left_out_before_it_runs_as_many_single_ranks(
    path: Path, told: str, library: str, why: str | None
):
    script(path / "hpcc", "exit 0")
    script(path / "ldd", f"echo '{told}'")
    tables, missing = found_with(library)
    assert tables == ([] if why else ["hpcc"])
    assert (why or "") in missing.get("hpcc", "")


def test_a_program_that_cannot_be_asked_speaks_for_itself(path: Path):
    assert linked.why_of_other_mpi(path / "nothing", "MPICH") is None


@pytest.mark.usefixtures("path")
def test_the_preset_is_there_whatever_the_machine_has():
    campaign = preset(NAME)
    assert {type(one).__name__ for one in campaign.workloads} >= {"NpbTable", "HplTable"}
    assert any("lammps-lj" in note for note in campaign.notes)


def budgeted(budget: str | None, blocks: int | None = None) -> Prepared:
    return prepare_in(Standing(given=lab_of()), NAME, budget, blocks, 1)


@pytest.mark.usefixtures("path")
def test_a_budget_chooses_how_large_loads_are_and_the_plan_says_so():
    whole = budgeted(None).plan
    assert not any("size" in note for note in whole.notes)
    seconds = whole.estimated_seconds
    usual, large, small = (budgeted(f"{seconds * share:.0f}s") for share in (1.2, 50, 0.6))
    assert usual.plan.cells == whole.cells
    names = {
        size: {launch.arm[1] for launch in one.plan.launches} for size, one in (("large", large), ("small", small))
    }
    assert {"ft.A.4", "hpl-n4000-nb192-grid2x2.4"} <= names["large"]
    assert {"ft.S.4", "hpl-n1000-nb192-grid2x2.4"} <= names["small"]
    for size, one in (("large", large), ("small", small)):
        assert any(note.startswith(f"loads of {size} size, for the budget: NPB class") for note in one.plan.notes)
        assert one.plan.notes[: len(one.campaign.notes)] == one.campaign.notes, (
            "who goes on without a node asks it anew"
        )
    assert large.plan.blocks > whole.blocks


@pytest.mark.usefixtures("path")
def test_a_number_of_blocks_is_kept_whatever_the_budget_chooses():
    of_two = budgeted(None, 2).plan
    chosen = budgeted(f"{of_two.estimated_seconds * 0.8:.0f}s", 2).plan
    assert chosen.blocks == 2
    assert "ft.S.4" in {launch.arm[1] for launch in chosen.launches}
    with pytest.raises(
        UsageError, match="a budget of 3 s is too small: 2 blocks of 1 test and the workloads take at least"
    ):
        budgeted("3s", 2)
