"""Linpack, HPCG and NPB: workloads, stored and named as own runs of them are, and no result where a check failed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.exchange.samples import noted, read, sample

from fabricbench.analysis import analyse
from fabricbench.errors import UsageError
from fabricbench.exchange.imported import ImportedLoad
from fabricbench.exchange.storing import import_run
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from fabricbench.record.verification import RunVerdict, verify
from fabricbench.report.terminal import render_terminal
from fabricbench.workload.npb_adapter import OFFICIAL, KernelStart

HPL, HPCG, NPB = sample("hpl.txt"), sample("hpcg.txt"), sample("npb-cg-s.txt")


def only(text: str) -> ImportedLoad:
    (one,) = read(text).loads
    return one


def test_linpack_is_its_rate_on_a_grid_of_ranks():
    one = only(HPL)
    assert (one.workload, one.ranks, one.seconds) == ("hpl", 4, 0.09)
    assert dict(one.parameters) == {"n": 448, "nb": 64, "grid": "2x2", "variant": "WR11C2R4", "by": "hpl"}
    assert (one.figure.value, one.figure.unit, one.figure.printed_step) == (0.651, "Gflop/s", pytest.approx(1e-4))
    assert (read(HPL).version, read(HPL).notes) == ("2.0", ())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("PASSED\n=", "FAILED\n=", "its residual check failed"),
        ("6.510e-01", "7.510e-01", "its rate is not that of N and its time"),
        ("6.510e-01", "inf", "the rate is 'inf', which is no number"),
        ("6.510e-01", "", "it has not the columns of a result"),
    ],
)
def test_a_wrong_or_damaged_run_of_linpack_is_none(old: str, new: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(HPL.replace(old, new))


def test_a_rate_of_each_gpu_is_left_out_and_several_rows_are_loads():
    row = "WR11C2R4         448    64     2     2               0.09              6.510e-01"
    other = "WC05R2R32      10000   192     2     4               6.67              1.000e+02 ( 1.250e+01)"
    text = HPL.replace(row, f"{other}\n||Ax-b||=        0.0037131 ...... PASSED\n{row}")
    assert [(one.ranks, one.figure.value) for one in read(text).loads] == [(8, 100.0), (4, 0.651)]


def test_linpack_that_nobody_verified_or_that_was_cut_says_so():
    cut = HPL[: HPL.index("||Ax-b||_oo/(eps*(||A||")]
    assert only(cut).figure.value == 0.651
    assert {kind for kind, _ in noted(cut)} == {ImportNoteKind.READ_AS, ImportNoteKind.CUT}


def test_hpcg_is_its_rating_over_a_box_of_each_rank():
    one = only(HPCG)
    assert (one.workload, one.ranks, one.figure.value, one.seconds) == ("hpcg", 4, 0.606229, 4.5912)
    assert dict(one.parameters) == {"box": "16x16x16", "variant": "reference", "by": "hpcg"}
    assert read(HPCG).version == "3.1"
    optimised = HPCG.replace("Final Summary::Reference version of ComputeMG used", "Final Summary::x")
    assert dict(only(optimised).parameters)["variant"] == "optimised"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HPCG.replace("result is VALID with a GFLOP/s rating of=0.606229", "result is INVALID."), "has no"),
        (HPCG.replace("result is VALID with a GFLOP/s rating of=", "result is INVALID="), "calls its result invalid"),
        (HPCG.replace("rating of=0.606229", "rating of=0.906229"), "its rate with all overheads is 0.606229"),
        (HPCG[:4000], "was cut short or damaged"),
    ],
)
def test_hpcg_that_is_invalid_cut_or_contradicts_itself_is_no_result(text: str, why: str):
    with pytest.raises(UsageError, match=re.escape(why)):
        read(text)


def test_a_kernel_is_the_same_test_as_an_official_one_that_is_measured_here():
    one = only(NPB)
    start = KernelStart(benchmark="CG", problem_class="S", ranks=2, program=OFFICIAL)
    assert (dict(one.parameters), one.pattern) == (start.parameters, start.pattern)
    # The count of operations over 2096.26 Mop/s: finer than the printed 0.03 s.
    assert one.figure.value == pytest.approx(0.0317966, rel=1e-5)
    assert read(NPB).version == "3.4.3"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Verification    =               SUCCESSFUL", "Verification    =             UNSUCCESSFUL", "is not verified"),
        (
            "Time in seconds =                     0.03",
            "Time in seconds =                     0.08",
            "its rate is not that",
        ),
        (" Benchmark Completed.\n Class", " Benchm\n Class", "did not come to its end"),
        ("Total processes =                        2", "Total proc", "has no Total processes"),
        ("1400  (class S)", "1400  (class W)", "its head says Class 'W', its results 'S'"),
        (
            "Class           =                        S",
            "Class           =                        W",
            "its head says Class 'S'",
        ),
        ("Size:       1400", "Size:       7000", "its head says Size '7000', its results '1400'"),
        ("of processes:      2", "of processes:      4", "its head says Total processes '4', its results '2'"),
        (
            "Active processes=                        2",
            "Active processes=                        4",
            "4 of its 2 processes",
        ),
    ],
)
def test_a_kernel_that_is_wrong_or_damaged_is_no_result(old: str, new: str, why: str):
    with pytest.raises(UsageError, match=why):
        read(NPB.replace(old, new))


def test_kernels_of_a_log_are_loads_each_and_a_damaged_one_is_named():
    broken = NPB.replace("Class           =", "Class")
    found = read(NPB + broken + NPB.replace("2096.26", "2000.26"))
    assert len(found.loads) == 2
    assert [(note.kind, note.line) for note in found.notes] == [(ImportNoteKind.DAMAGED, 3 + NPB.count("\n"))]


def test_loads_are_launches_of_their_own_that_every_report_shows(tmp_path: Path):
    paths: dict[str, list[Path]] = {"ib": [], "eth": []}
    for name, factor in (("ib", 1.0), ("eth", 0.5)):
        for number in range(3):
            rate, seconds = 0.651 * factor * (1 + 0.01 * number), 0.0925 / factor / (1 + 0.01 * number)
            text = HPL.replace("6.510e-01", f"{rate:.3e}").replace("0.09   ", f"{seconds:.2f}   ")
            paths[name].append(tmp_path / f"{name}-{number}.txt")
            paths[name][-1].write_text(text)
    import_run(tmp_path / "run", paths)
    run = Run.open(tmp_path / "run")
    name = "hpl-n448-nb64-grid2x2-variantWR11C2R4-byhpl.4"
    assert {one.launch_id for one in run.launches} == {f"b0{n}-{fabric}-{name}" for n in range(3) for fabric in paths}
    assert verify(tmp_path / "run").verdict is RunVerdict.WHOLE
    (part,) = {one.summary.workload.name for one in run.launches if one.summary.workload is not None}
    assert part == name
    findings = analyse([run])
    (cell,) = findings.cells
    assert sorted([cell.value_a, cell.value_b]) == pytest.approx([0.651 * 0.505, 0.651 * 1.01], rel=0.01)
    assert "IMPORTED" in render_terminal(findings, 120, color=False)
    assert "Gflop/s" in render_terminal(findings, 120, color=False)


def test_a_loop_in_one_log_is_as_many_launches(tmp_path: Path):
    (tmp_path / "log.txt").write_text(
        HPL + HPL.replace("6.510e-01", "6.520e-01") + HPL.replace("6.510e-01", "6.490e-01")
    )
    told: list[str] = []
    import_run(tmp_path / "run", {"ib": [tmp_path / "log.txt"]}, tell=told.append)
    assert [one.launch_id[:6] for one in Run.open(tmp_path / "run").launches] == ["b00-ib", "b01-ib", "b02-ib"]
    assert told == ["log.txt: took 'results that it has several times' for 3 launches"]
