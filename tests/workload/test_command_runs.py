"""Applications described in TOML, run for real: in a lab, over the loopback, and what becomes of those that die."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricbench.analysis import analyse
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.venue import OwnLab, Standing
from fabricbench.chapters.workload_tables import LOADS
from fabricbench.errors import RunIncomplete
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.native import build_info, native_file
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import WorkloadPart
from fabricbench.report.formats import FORMATS, Format
from fabricbench.testbed.reading import local_testbed
from support.applications import TIME, campaign, table
from support.debian import linpack, torch
from support.lammps import lammps


@pytest.mark.mpi
def test_an_application_whose_first_rank_dies_by_a_signal_is_tried_again_and_does_not_count(tmp_path: Path):
    dying = table(command=["sh", "-c", "echo time 1; kill -SEGV $$"], ranks=[1])
    with pytest.raises(RunIncomplete, match="ended with exit code"):
        measure(tmp_path / "run", Standing(given=local_testbed()), dying)
    run = Run.open(tmp_path / "run")
    assert run.launches == ()
    assert {one.summary.outcome for one in run.unfinished} == {"failed"}
    assert run.set_aside


@pytest.mark.mpi
def test_an_application_that_aborts_is_said_to_have_ended_and_the_run_goes_on(tmp_path: Path):
    """As MPI_Abort has it: every rank is killed, the one that counts as well, before anything is printed."""
    aborting = table(command=["sh", "-c", "sleep 0.3; kill -KILL $PPID"], ranks=[2])
    with pytest.raises(RunIncomplete, match="ended with exit code"):
        measure(tmp_path / "run", Standing(given=local_testbed()), aborting)


IS = {
    "kind": "command",
    "name": "npb-is",
    "command": ["fabricbench-npb", "is", "--class", "{class}"],
    "parameters": {"class": ["S"]},
    "ranks": [2],
    "environment": {"FABRICBENCH_TOLD": "{class}"},
    "success": {"found": [r"^\s+verification\s+successful$"]},
    "figure": [
        {"name": "rate", "regex": r"^\s+rate\s+(\S+) Mop/s", "unit": "Mop/s", "better": "higher"},
        {"name": "time", "regex": r"^\s+time\s+(\S+) s$", "unit": "s", "better": "lower"},
        {"name": "communication", "regex": r"computing, (\S+) % in MPI", "unit": "%", "better": "lower"},
    ],
}


def measure(directory: Path, venue: OwnLab | Standing, *tables: dict[str, Any]) -> Run:
    asked = campaign(*tables)
    start_run(directory, asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    return Run.open(directory)


@pytest.mark.complete
@pytest.mark.tour
@pytest.mark.lab
@pytest.mark.mpi
def test_an_application_runs_in_a_lab_and_its_rate_reaches_every_report(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    run = measure(tmp_path / "run", venue, IS)
    assert [launch.proof for launch in run.launches] == ["proven"] * 4, [
        launch.summary.facts.path_proof for launch in run.launches
    ]
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells["reason"].to_list()
    assert set(cells["metric"]) == {"work_rate"}
    parts = [launch.summary.workload for launch in run.launches]
    for part in parts:
        assert isinstance(part, WorkloadPart)
        assert [(one.name, one.unit) for one in part.figures][:2] == [("rate", "Mop/s"), ("time", "s")]
        assert part.communication_share is not None
        assert set(part.fixed) == {"program sha256", "MPI", "further figures", "success and verification"}
        assert set(part.definition) == {"command", "variable FABRICBENCH_TOLD", "primary figure"}
    conditions = [launch.summary.facts.conditions for launch in run.launches]
    assert {one["workload environment"] for one in conditions} == {"FABRICBENCH_TOLD=S"}
    findings = analyse([run])
    assert LOADS.of(findings)
    assert findings.cells[0].unit == "Mop/s"
    for name in ("html", "markdown", "csv", "text", "json"):
        made = FORMATS[name]
        assert isinstance(made, Format)
        files = made.render_files(findings, "x.csv") if name == "csv" and made.render_files else {}
        text = made.render(findings).decode() + "".join(one.decode() for one in files.values())
        assert "npb-is" in text, name
        assert "Mop/s" in text, name


@pytest.mark.lab
@pytest.mark.mpi
def test_an_application_whose_ranks_print_much_is_proven(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    npb = native_file("fabricbench-npb")
    printing = {**IS, "command": ["sh", "-c", f"{npb} is --class {{class}}; yes some line | head -c 3000000"]}
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    run = measure(tmp_path / "run", venue, printing)
    assert [launch.proof for launch in run.launches] == ["proven"] * 4, [
        launch.summary.facts.path_proof for launch in run.launches
    ]


@pytest.mark.mpi
def test_a_time_far_below_a_nanosecond_reaches_every_report_as_the_program_told_it(tmp_path: Path):
    figure = {**TIME, "regex": r"^update (\S+)$", "unit": "ns", "select": "first"}
    run = measure(
        tmp_path / "run",
        Standing(given=local_testbed()),
        table(command=["echo", "update", "0.3"], figure=[figure], ranks=[2]),
        table(name="other", command=["echo", "update", "1.3"], figure=[figure], ranks=[2]),
    )
    worth = run.launch_quantiles().select("variant", "launch_value", "mean").unique().sort("variant").rows()
    assert worth == [
        ("other 2 ranks", pytest.approx(1.3), pytest.approx(1.3)),
        ("tiny 2 ranks", pytest.approx(0.3), pytest.approx(0.3)),
    ]
    findings = analyse([run])
    shown = {(one.workload.name, one.unit, round(one.level.value, 9)) for one in LOADS.of(findings)}
    assert shown == {("other", "ns", 1.3), ("tiny", "ns", 0.3)}
    assert {(cell.workload.name if cell.workload else "", round(cell.value_a, 9)) for cell in findings.cells} == {
        ("other", 1.3),
        ("tiny", 0.3),
    }


@pytest.mark.mpi
def test_an_application_with_a_wrong_result_is_a_failed_cell_and_the_run_goes_on(tmp_path: Path):
    wrong = {**IS, "success": {"found": ["never printed"]}}
    run = measure(tmp_path / "run", Standing(given=local_testbed()), wrong)
    cells = run.cells()
    assert set(cells["status"]) == {"failed"}
    assert "wrong result: success: found nothing in stdout, needed 'never printed'; stdout ends: " in cells["reason"][0]
    assert all(launch.summary.is_finished for launch in run.launches)


WITH_TORCH = {"command": ["python-torch", "{directory}/ddp.py", "{directory}/meeting"], "needs": ["python-torch"]}


@pytest.mark.lab
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("asked", "put", "figure"),
    [
        ({"application": "lammps-lj", "parameters": {"scale": [0.25], "steps": [40]}}, lammps, ("loop time", "s")),
        # Its ranks wait for each other so often that beside busy processes it takes minutes.
        pytest.param(
            {"application": "scalapack-lu", "parameters": {"n": [200]}},
            linpack,
            ("LU", "MFLOP/s"),
            marks=pytest.mark.alone,
        ),
        ({"application": "torch-ddp", "parameters": {"width": [64]}, **WITH_TORCH}, torch, ("training", "step/s")),
    ],
    ids=["lammps", "linpack", "torch"],
)
def test_an_application_runs_over_four_nodes_on_two_fabrics_and_does_the_same_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    put: Callable[[Path], str | None],
    figure: tuple[str, str],
):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    version = subprocess.run(
        [build_info().mpiexec, "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    if "HYDRA" not in version.stdout:
        pytest.skip("the programs that are tried are for MPICH, and MPI is another one")
    (folder := tmp_path / "bin").mkdir()
    if missing := put(folder):
        pytest.skip(missing)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    run = measure(tmp_path / "run", venue, {"kind": "command", "ranks": [4], **asked})
    cells = run.cells()
    assert set(cells["status"]) == {"done"}, cells["reason"].to_list()
    assert {launch.proof for launch in run.launches} == {"proven"}, [
        one.summary.facts.path_proof for one in run.launches
    ]
    told = [one.summary.workload for one in run.launches if isinstance(one.summary.workload, WorkloadPart)]
    assert [(one.figures[0].name, one.figures[0].unit) for one in told] == [figure] * 4
    assert all(one.figures[0].value > 0 for one in told)
    assert len({tuple(one.fixed.items()) for one in told}) == 1
    assert all(check.holds for one in told for check in one.checks)
